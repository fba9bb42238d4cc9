package testbroker

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Option configures a [Cluster]. Options only record; [Start] and [New] judge
// them all.
type Option func(*config)

type config struct {
	brokers, nameServers int
	topics               []topic
	autoCreate           bool
	dir                  string
	segment              int
	syncFlush            bool
	clock                *clock.Manual // nil: the machine's
	virtual              bool
	strict               bool
	crashDisk            bool
	quota                int64 // bytes, 0: none
	logger               *slog.Logger
}

type topic struct {
	name   string
	queues int
}

// DefaultSegmentSize is the size of commit log files in bytes unless
// [SegmentSize] says otherwise.
const DefaultSegmentSize = 4 << 20

func defaultConfig() config {
	return config{brokers: 1, nameServers: 1, segment: DefaultSegmentSize, logger: slog.New(slog.DiscardHandler)}
}

// Brokers sets the number of brokers, 1 by default, at most 26. Their names
// are broker-a, broker-b and so on; each is a master of its own.
func Brokers(n int) Option { return func(c *config) { c.brokers = n } }

// NameServers sets the number of name servers, 1 by default. All brokers
// register with all of them.
func NameServers(n int) Option { return func(c *config) { c.nameServers = n } }

// Topic creates a topic with so many queues on each broker. It may be given
// several times.
func Topic(name string, queues int) Option {
	return func(c *config) { c.topics = append(c.topics, topic{name, queues}) }
}

// AutoCreate lets brokers create topics when they are first sent to. It is off
// by default, unlike Apache's, so that a misspelt topic fails the test.
func AutoCreate(on bool) Option { return func(c *config) { c.autoCreate = on } }

// Dir keeps the data in a directory: commit log, consume queues and
// configuration of each broker in a folder named after it, in the format of
// Apache RocketMQ. A later cluster on the same directory finds it again. By
// default data is in memory and survives only [Cluster.Restart].
func Dir(path string) Option { return func(c *config) { c.dir = path } }

// SegmentSize sets the size of commit log files in bytes, 4 MiB by default: a
// message must fit into one. A directory must always be opened with the size
// it was made with.
func SegmentSize(bytes int) Option { return func(c *config) { c.segment = bytes } }

// SyncFlush makes brokers answer a message once it is on disk, and show it to
// consumers then, as Apache's flushDiskType=SYNC_FLUSH. Without [Dir] there is
// no disk to wait for, but answers take the same way.
func SyncFlush() Option { return func(c *config) { c.syncFlush = true } }

// Virtual has the cluster use a network inside the process instead of sockets,
// so that a test can run in a bubble of testing/synctest: clients, brokers and
// time together. Time passes there only when everybody waits, and then at once: a
// long poll of 30 s, a timeout, or a retry that is due in 10 s take no time.
// Create the cluster and its clients inside the bubble. Clients need the dialer
// that is among [Cluster.ClientOptions]; nothing else reaches the cluster. Heartbeats
// and housekeeping go on, so hours cost seconds; for those there is [ManualClock].
func Virtual() Option { return func(c *config) { c.virtual = true } }

// CrashDisk keeps data on a simulated disk that knows what has been flushed and
// what has not, so that [Cluster.Crash] can take the power away. It excludes
// [Dir].
func CrashDisk() Option { return func(c *config) { c.crashDisk = true } }

// DiskQuota gives each broker a disk of so many bytes for its commit log: once
// the files are larger than 90 % of that, messages are refused as when a real disk
// is full ([rocketmq.CodeServiceNotAvailable]). Nothing is removed to make room,
// unlike with [Cluster.FillDisk], which the quota excludes. Whole files count, so it
// must have room for two of [SegmentSize] at least; brokers look ten times a second.
func DiskQuota(bytes int64) Option { return func(c *config) { c.quota = bytes } }

// Logger sets where brokers and name servers log to. By default a cluster of
// [New] logs to the test's own log, which go test shows if the test fails, and
// a cluster of [Start] nowhere.
func Logger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

// ErrInvalidOption is wrapped by every error about an option.
var ErrInvalidOption = errors.New("testbroker: invalid option")

// minSegment keeps system messages and their bookkeeping within a file.
const minSegment = 64 << 10

func (c *config) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s", ErrInvalidOption, fmt.Sprintf(format, args...)))
	}
	if c.brokers < 1 || c.brokers > 26 {
		bad("Brokers(%d): 1 to 26", c.brokers)
	}
	if c.nameServers < 1 || c.nameServers > 16 {
		bad("NameServers(%d): 1 to 16", c.nameServers)
	}
	if c.segment < minSegment || c.segment > 1<<30 {
		bad("SegmentSize(%d): 64 KiB to 1 GiB", c.segment)
	}
	if c.crashDisk && c.dir != "" {
		bad("CrashDisk() and Dir(%q): only one of them", c.dir)
	}
	if c.quota < 0 || c.quota > 0 && c.quota < 2*int64(c.segment) {
		bad("DiskQuota(%d): room for two files of %d bytes, see SegmentSize, at least", c.quota, c.segment)
	}
	if c.logger == nil {
		bad("Logger(nil): to discard, leave the option out")
	}
	for _, t := range c.topics {
		if err := t.validate(); err != nil {
			bad("Topic(%q, %d): %v", t.name, t.queues, err)
		}
	}
	return errors.Join(errs...)
}

func (t topic) validate() error {
	if err := wire.ValidateTopic(t.name); err != nil {
		return err
	}
	if wire.IsSystemTopic(t.name) {
		return errors.New("the name belongs to the system")
	}
	if t.queues < 1 || t.queues > 1024 {
		return fmt.Errorf("%d queues: 1 to 1024", t.queues)
	}
	return nil
}
