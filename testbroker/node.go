package testbroker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/namesrv"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// nameServer is a place for a name server: it keeps the address while servers
// come and go. Only the holder of the cluster's turn calls its methods.
type nameServer struct {
	kvPath string
	log    *slog.Logger
	net    network
	tap    *tap
	addr   string          // "": any; fixed by the first start
	srv    *namesrv.Server // nil: down
}

func newNameServer(i int, cfg config, net network, f *faults) *nameServer {
	name := fmt.Sprintf("namesrv-%d", i)
	ns := &nameServer{log: cfg.logger.With("server", name), net: net, tap: newTap(f, name)}
	if cfg.dir != "" {
		ns.kvPath = filepath.Join(cfg.dir, name, "kvConfig.json")
	}
	return ns
}

func (ns *nameServer) start(ctx context.Context) error {
	if ns.srv != nil {
		return errors.New("the name server is up already")
	}
	l, err := ns.net.listen(ctx, ns.addr)
	if err != nil {
		return err
	}
	srv, err := namesrv.Start(ctx, namesrv.Config{Listener: ns.tap.listener(l), ConfigPath: ns.kvPath, Logger: ns.log})
	if err != nil {
		return err
	}
	ns.srv, ns.addr = srv, srv.Addr()
	return nil
}

func (ns *nameServer) stop(ctx context.Context) error {
	if ns.srv == nil {
		return nil
	}
	ns.tap.release() // who is at its end does not answer, but must get there
	err := ns.srv.Close(ctx)
	ns.srv = nil
	return err
}

// node is a place for a broker: it keeps name, address and data while brokers
// come and go. Only the holder of the cluster's turn calls start, stop and kill.
type node struct {
	name string
	cfg  broker.Config
	net  network
	tap  *tap
	addr string // "": any; fixed by the first start

	mu   sync.Mutex // guards all below, for those who only look
	b    *broker.Broker
	disk float64 // what the broker takes for the used share of its disk
}

func newNode(i int, cfg config, nameServers []string, net network, f *faults) *node {
	n := &node{name: "broker-" + string(rune('a'+i)), cfg: broker.DefaultConfig(), net: net}
	n.tap = newTap(f, n.name)
	n.cfg.Dial = n.tap.dialer(net.dial)
	n.cfg.Name = n.name
	n.cfg.NameServers = nameServers
	n.cfg.AutoCreateTopic = cfg.autoCreate
	n.cfg.PropertyFilter = true       // unlike Apache's default
	n.cfg.TraceTopic = true           // likewise
	n.cfg.Recall = true               // likewise
	n.cfg.RegisterEvery = time.Second // and no longer pause after a failure than this
	n.cfg.Logger = cfg.logger.With("server", n.name)
	if cfg.clock != nil {
		n.cfg.Clock, n.cfg.Liveness = cfg.clock, clock.Real()
	}
	n.cfg.Store.SyncFlush = cfg.syncFlush
	n.cfg.Store.CommitLogFileSize = int64(cfg.segment)
	n.cfg.Store.Dir = filepath.Join(cfg.dir, n.name)
	// Neither the developer's disk nor the age of the data decide about a test.
	n.cfg.Store.DiskUsage = func(string) (float64, error) { return n.diskUsed(), nil }
	n.cfg.Store.CleanInterval = time.Second
	n.cfg.Store.FileReserved = 100 * 365 * 24 * time.Hour
	switch {
	case cfg.crashDisk:
		n.cfg.TimerLogFileSize, n.cfg.TimerSlots = 1<<20, 3600 // it is all in memory
		n.useDisk(mfile.NewCrash())
	case cfg.dir == "":
		n.cfg.Store.FS = mfile.NewMemory() // outlives the broker, as a disk does
	default:
		n.cfg.Store.FS = mfile.OS()
	}
	if cfg.quota > 0 {
		n.cfg.Store.NoForcedClean = true
		n.cfg.Store.CleanInterval = 100 * time.Millisecond
		n.cfg.Store.DiskUsage = func(dir string) (float64, error) { return n.quotaUsed(dir, cfg.quota) }
	}
	return n
}

func (n *node) start(ctx context.Context) error {
	if n.broker() != nil {
		return fmt.Errorf("%s is up already", n.name)
	}
	l, err := n.net.listen(ctx, n.addr)
	if err != nil {
		return err
	}
	cfg := n.cfg
	cfg.Listener = n.tap.listener(l)
	b, err := broker.Start(ctx, cfg)
	if err != nil {
		return fmt.Errorf("start of %s: %w", n.name, err)
	}
	n.addr = l.Addr().String()
	n.set(b)
	return nil
}

func (n *node) stop(ctx context.Context) error {
	b := n.broker()
	if b == nil {
		return nil
	}
	n.set(nil)
	n.tap.release()
	return b.Close(ctx)
}

func (n *node) kill() error {
	b := n.broker()
	if b == nil {
		return fmt.Errorf("%s is down already", n.name)
	}
	n.set(nil)
	n.tap.release()
	b.Kill()
	return nil
}

// crash takes the power away: the broker dies, and of its disk remains what
// had to, and more or less of the rest.
func (n *node) crash(seed uint64) error {
	disk, ok := n.cfg.Store.FS.(*mfile.Crash)
	if !ok {
		return errors.New("its disk cannot lose anything; use the option CrashDisk")
	}
	if err := n.kill(); err != nil {
		return err
	}
	n.useDisk(disk.PowerLoss(seed))
	return nil
}

// useDisk puts a simulated disk in. The store takes it for a real one, so the
// sizes of its files have to be set.
func (n *node) useDisk(disk *mfile.Crash) {
	s := &n.cfg.Store
	s.FS = disk
	s.ConsumeQueueFileSize, s.IndexSlots, s.IndexEntries = 40_000, 10_000, 40_000 // as in memory
}

// quotaUsed is the share of a quota that the commit log takes, if dir is where
// that is.
func (n *node) quotaUsed(dir string, quota int64) (float64, error) {
	if filepath.Base(dir) != "commitlog" {
		return 0, nil
	}
	entries, err := n.cfg.Store.FS.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	used := int64(0)
	for _, e := range entries {
		used += e.Size
	}
	return min(float64(used)/float64(quota), 1), nil
}

// broker is the running broker, nil if it is down.
func (n *node) broker() *broker.Broker {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b
}

func (n *node) set(b *broker.Broker) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.b = b
}

func (n *node) diskUsed() float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.disk
}

// fillDisk sets the usage of the disk and has a broker that is up look at it.
func (n *node) fillDisk(ctx context.Context, ratio float64) error {
	n.mu.Lock()
	n.disk = ratio
	n.mu.Unlock()
	if b := n.broker(); b != nil {
		return b.Store().CheckDisk(ctx)
	}
	return nil
}

// createTopics creates topics on a broker that is up.
func (n *node) createTopics(ctx context.Context, topics []topic) error {
	b := n.broker()
	if b == nil || len(topics) == 0 {
		return nil
	}
	var cfgs []wire.TopicConfig
	for _, t := range topics {
		c := wire.NewTopicConfig(t.name)
		c.ReadQueues, c.WriteQueues = int32(t.queues), int32(t.queues)
		cfgs = append(cfgs, c)
	}
	return b.PutTopics(ctx, cfgs...)
}

// each calls f for all items at the same time and joins the errors.
func each[T any](items []T, f func(T) error) error {
	g := run.NewGroup(context.Background())
	errs := make([]error, len(items))
	for i, x := range items {
		g.Go(func(context.Context) { errs[i] = f(x) })
	}
	g.Wait()
	g.Cancel(nil)
	return errors.Join(errs...)
}
