package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/broker/store/timer"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Config says who a broker is, where it listens and stores, and how it
// behaves. Start from [DefaultConfig], which has the defaults of Apache's
// BrokerConfig; the zero value has auto-creation and long polling off. Names
// in brackets are the keys of broker.conf, see [Config.Set].
type Config struct {
	Name    string // brokerName
	Cluster string // brokerClusterName
	ID      int64  // brokerId: 0 is the master

	// Listen is the address to listen on (bindAddress, listenPort). Port 0
	// takes a free one. Ignored if Listener is given.
	Listen string
	// Listener, if not nil, is used instead of listening on Listen. The broker
	// closes it.
	Listener net.Listener
	// AdvertiseAddr is the host:port that clients are told (brokerIP1). Empty:
	// the listener's address, with one of this machine's in place of 0.0.0.0.
	AdvertiseAddr string
	// NameServers are the addresses to register with (namesrvAddr).
	NameServers []string
	// Dial makes the connections to name servers. Nil: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Store says where and how messages are kept. Clock, Logger, StoreHost and
	// OnArrival are set by the broker. Config files are in Store.Dir/config.
	Store store.Config

	AutoCreateTopic    bool          // autoCreateTopicEnable: topics appear when first sent to
	AutoCreateGroup    bool          // autoCreateSubscriptionGroup
	DefaultTopicQueues int32         // defaultTopicQueueNums: at most this many for a topic that appears
	Permission         int32         // brokerPermission: 4 read, 2 write; 4 alone drains the broker
	ClusterTopic       bool          // clusterTopicEnable
	BrokerTopic        bool          // brokerTopicEnable
	TraceTopic         bool          // traceTopicEnable
	TraceOn            bool          // traceOn: tells clients that traces are welcome
	Region             string        // regionId
	AcceptSendFrom     time.Time     // startAcceptSendRequestTimeStamp: sends before are refused
	RegisterEvery      time.Duration // registerNameServerPeriod, 10 s to 60 s
	RegisterTimeout    time.Duration // registerBrokerTimeoutMills
	ClientExpiry       time.Duration // channelExpiredTimeout: a client without a heartbeat for so long is dropped
	OffsetFlushEvery   time.Duration // flushConsumerOffsetInterval
	DelayFlushEvery    time.Duration // flushDelayOffsetInterval
	NoTimers           bool          // timerWheelEnable=false: messages that are to be delivered at a time are refused
	TimerPrecision     time.Duration // timerPrecisionMs: the width of a slot of the timer log, 100, 200, 500 or 1000 ms
	TimerMaxDelay      time.Duration // timerMaxDelaySec: how far ahead a time may be
	TimerRollSlots     int32         // timerRollWindowSlot: messages further ahead are parked again on the way
	TimerFlushEvery    time.Duration // timerFlushIntervalMs
	TimerLogFileSize   int64         // mappedFileSizeTimerLog, bytes; a store must always be opened with the size it was made with
	TimerSlots         int64         // of the file timerwheel: 14 days of seconds, as Apache has them; tests may do with fewer
	Recall             bool          // recallMessageEnable: delayed messages may be taken back
	LongPolling        bool          // longPollingEnable
	ShortPolling       time.Duration // shortPollingTimeMills: how long pulls are held with long polling off
	PropertyFilter     bool          // enablePropertyFilter: SQL92 subscriptions
	NotifyChanges      bool          // notifyConsumerIdsChangedEnable
	StoreReplies       bool          // storeReplyMessageEnable: replies to requests are stored, too
	SlaveRead          bool          // slaveReadEnable: suggest the slave to readers far behind
	ServerSideReset    bool          // useServerSideResetOffset: pulls are told of a reset; false: the members of the group
	RetryTopicV2       bool          // enableRetryTopicV2: POP retry topics are %RETRY%group+topic
	IdleTimeout        time.Duration // serverChannelMaxIdleTimeSeconds
	MaxFrame           int           // bytes; 0: 16 MiB

	RejectTransactions    bool          // rejectTransactionMessage
	TransactionTimeout    time.Duration // transactionTimeOut: how long producers are not asked
	TransactionCheckEvery time.Duration // transactionCheckInterval: the time between two checks
	TransactionCheckMax   int32         // transactionCheckMax: a transaction is given up after as many
	TransactionOpEvery    time.Duration // transactionOpBatchInterval: collect op records for so long; 0: write each at once
	TransactionOpBytes    int           // transactionOpMsgMaxSize: and up to so many bytes

	// TLS, if not nil, lets clients use TLS; plain connections are served on the
	// same port all the same, unless TLSOnly is set.
	TLS     *tls.Config
	TLSOnly bool

	// Clock is the broker's time: store times, delays, long polls, locks,
	// periodic work. Nil: the machine's.
	Clock clock.Clock
	// Liveness is the time by which clients expire and registrations are
	// repeated. Nil: Clock. With a Clock that is moved by hand it may be the
	// machine's, so that the hours that pass there make no client seem dead.
	Liveness clock.Clock
	// Logger takes what an operator must know. Nil: discarded.
	Logger *slog.Logger
}

// DefaultConfig is the configuration of an Apache broker without a
// configuration file, on the loopback address.
func DefaultConfig() Config {
	name, err := os.Hostname()
	if err != nil || wire.ValidateTopic(name) != nil {
		name = "DEFAULT_BROKER"
	}
	return Config{
		Name: name, Cluster: "DefaultCluster", Listen: "127.0.0.1:10911",
		AutoCreateTopic: true, AutoCreateGroup: true, ClusterTopic: true, BrokerTopic: true, TraceOn: true,
		LongPolling: true, NotifyChanges: true, StoreReplies: true, ServerSideReset: true,
	}
}

// withDefaults fills in what was left out and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	def(&c.Cluster, "DefaultCluster")
	def(&c.Region, "DefaultRegion")
	def(&c.DefaultTopicQueues, 8)
	def(&c.Permission, wire.PermRead|wire.PermWrite)
	def(&c.RegisterEvery, 30*time.Second)
	def(&c.RegisterTimeout, 24*time.Second)
	def(&c.ClientExpiry, 120*time.Second)
	def(&c.OffsetFlushEvery, 5*time.Second)
	def(&c.DelayFlushEvery, 10*time.Second)
	def(&c.TransactionTimeout, 6*time.Second)
	def(&c.TransactionCheckEvery, 30*time.Second)
	def(&c.TransactionCheckMax, 15)
	def(&c.TransactionOpBytes, 4096)
	def(&c.TimerPrecision, time.Second)
	def(&c.TimerMaxDelay, 72*time.Hour)
	def(&c.TimerRollSlots, 172_800)
	def(&c.TimerFlushEvery, time.Second)
	def(&c.TimerSlots, timer.WheelSlots)
	if c.Store.FS != nil && c.Store.FS.InMemory() {
		def(&c.TimerLogFileSize, 10_000*timer.UnitSize+16)
	}
	def(&c.TimerLogFileSize, 100<<20)
	def(&c.ShortPolling, time.Second)
	def(&c.IdleTimeout, remoting.DefaultIdleTimeout)
	c.Store = storeDefaults(c.Store)
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Liveness == nil {
		c.Liveness = c.Clock
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	if wire.ValidateTopic(c.Name) != nil {
		errs = append(errs, fmt.Errorf("broker name %q: letters, digits, _, - and %% only", c.Name))
	}
	if wire.ValidateTopic(c.Cluster) != nil {
		errs = append(errs, fmt.Errorf("cluster name %q: letters, digits, _, - and %% only", c.Cluster))
	}
	if c.ID != 0 {
		errs = append(errs, fmt.Errorf("broker id %d: only a master (id 0) can be started yet", c.ID))
	}
	switch c.TimerPrecision.Milliseconds() {
	case 100, 200, 500, 1000:
	default:
		errs = append(errs, fmt.Errorf("timer precision %s: 100, 200, 500 or 1000 ms", c.TimerPrecision))
	}
	if c.Listener == nil && c.Listen == "" {
		errs = append(errs, errors.New("no address to listen on: set Listen or Listener"))
	}
	if c.Permission&^(wire.PermRead|wire.PermWrite) != 0 {
		errs = append(errs, fmt.Errorf("broker permission %d: 2 (write), 4 (read) or 6", c.Permission))
	}
	return c, errors.Join(errs...)
}

// storeDefaults are the store's own defaults, so that they show in the answer
// to GET_BROKER_CONFIG. Those of files in memory are the store's business.
func storeDefaults(c store.Config) store.Config {
	if c.FS == nil {
		c.FS = mfile.OS()
	}
	if !c.FS.InMemory() {
		def(&c.CommitLogFileSize, 1<<30)
		def(&c.ConsumeQueueFileSize, 6_000_000)
		def(&c.IndexSlots, 5_000_000)
		def(&c.IndexEntries, 20_000_000)
	}
	def(&c.MaxQuery, 64)
	def(&c.MaxMessageSize, 4<<20)
	def(&c.SyncFlushTimeout, 5*time.Second)
	def(&c.FlushInterval, 500*time.Millisecond)
	def(&c.FlushLeastPages, 4)
	def(&c.FlushThorough, 10*time.Second)
	def(&c.QueueFlushInterval, time.Second)
	def(&c.QueueFlushLeastPages, 2)
	def(&c.QueueFlushThorough, time.Minute)
	def(&c.FileReserved, 72*time.Hour)
	def(&c.CleanInterval, 10*time.Second)
	def(&c.DeleteBatch, 10)
	def(&c.DeleteInterval, 100*time.Millisecond)
	def(&c.DeleteQueueInterval, 100*time.Millisecond)
	def(&c.DeleteRetry, 120*time.Second)
	def(&c.MemoryPercent, 40)
	def(&c.DiskMaxPercent, 75)
	def(&c.DiskCleanPercent, 85)
	def(&c.DiskFullPercent, 90)
	if c.DeleteHours == nil {
		c.DeleteHours = []int{4}
	}
	def(&c.MemoryTransferBytes, 256<<10)
	def(&c.MemoryTransferCount, 32)
	def(&c.DiskTransferBytes, 64<<10)
	def(&c.DiskTransferCount, 8)
	def(&c.FilterBytes, 16_000)
	if len(c.DelayLevels) == 0 {
		c.DelayLevels = store.DefaultDelayLevels()
	}
	return c
}

// def sets *v to a default if it is the zero value.
func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
