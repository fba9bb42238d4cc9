// Package pop serves POP consumption: clients ask a broker for messages of any
// queue, the broker hides those it gives out for a time, and delivers again
// what was not acknowledged until then. It is the POP processors and the revive
// service of Apache's broker, in their file form (popConsumerKVServiceEnable=false).
//
// A POP (pop.go) reads queue by queue (queue.go) from the group's committed
// offset, writes a checkpoint for each batch to the revive topic (records.go)
// and moves the offset behind it: so the offset of a group that pops is ahead of
// what it has acknowledged, and checkpoints, which are messages of the store,
// stand for the rest. Acknowledgements (ack.go) and new times (change.go) are
// records of the same topic. The revive service (revive.go) reads it all and has
// in memory the checkpoints that are still open; what is not acknowledged when
// its time is over it puts into the group's retry topic, or into its dead
// letters (again.go). Requests that find nothing wait (polls.go).
//
// A POP in order has no checkpoint: orders.go knows what was given out of each
// queue, and the offset moves with the acknowledgements.
package pop

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/groups"
	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Limits, as Apache's defaults.
const (
	maxMsgs       = 32
	reviveQueues  = 8      // reviveQueueNum
	pollsPerQueue = 1024   // popPollingSize
	pollsInAll    = 100000 // maxPopPollingSize
	runners       = 2
)

// maxInvisible bounds how long a message can be hidden: as long as Apache's
// timer can wait (timerMaxDelaySec).
const maxInvisible = 3 * 24 * 60 * 60 * 1000

// Filter is which messages a request wants. MatchProperties is MatchRecord for
// a record of which only the properties are at hand.
type Filter interface {
	store.Filter
	MatchProperties(p wire.Properties) bool
}

// Host is what the service needs of the broker.
type Host interface {
	// MayRead tells why the broker may not be read from at present, "" if it may.
	MayRead() string
	// Filter is the filter of a subscription, nil if it wants all messages.
	// With a code that is not 0 there is none, and the remark says why.
	Filter(expr, exprType []byte) (f Filter, code int32, remark string)
	// Group finds a consumer group, or makes it if that is allowed; nil otherwise.
	Group(name []byte) *wire.SubscriptionGroup
	// RetryTopic makes the topic if it is missing.
	RetryTopic(name string) *topics.Topic
	// DeadLetters is the topic of a group's dead letters; it is made if it is missing.
	DeadLetters(group string) *topics.Topic
	// CountPut and CountGot keep the broker's statistics: of a message that was
	// put, with the bytes it takes, and of those that were given out.
	CountPut(res store.PutResult)
	CountGot(n, bytes int64)
}

// Config says what a service works on. All fields are required but Log.
type Config struct {
	Broker  string // name, for handles and records
	Cluster string // its revive topic is used
	Clock   clock.Clock
	// Liveness is the time that clients go by, see broker.Config.
	Liveness clock.Clock
	Log      *slog.Logger
	Topics   *topics.Table
	Groups   *groups.Table
	Offsets  *offsets.Table
	Host     Host
	// RetryV2 names retry topics so that group and topic can be told apart
	// (enableRetryTopicV2); those of the other form are read as well.
	RetryV2 bool
}

// Service is the POP side of one broker. All methods are safe for concurrent
// use.
type Service struct {
	cfg         Config
	store       *store.Store
	clock       clock.Clock
	reviveTopic string
	revives     []byte // the same
	broker      []byte

	locks  locks
	polls  *polls
	orders *orders
	revive *revive

	next    atomic.Uint32 // the revive queue of the next POP
	written atomic.Int64  // log position after the last record that was put
	ops     sync.Pool     // *popOp
	mems    sync.Pool     // *scratch
	group   *run.Group
}

// New returns a service. Start begins its work.
func New(cfg Config) *Service {
	s := &Service{
		cfg: cfg, clock: cfg.Clock, reviveTopic: wire.ReviveTopic(cfg.Cluster), broker: []byte(cfg.Broker),
	}
	s.revives = []byte(s.reviveTopic)
	s.locks.busy = map[queueKey]bool{}
	s.polls = newPolls(s)
	s.orders = newOrders(s)
	s.revive = newRevive(s)
	s.ops.New = func() any { return &popOp{s: s} }
	s.mems.New = func() any { return &scratch{} }
	return s
}

// Start begins to read the revive topic and to serve requests. The tables must
// have been loaded. Before, no method but Arrived may be called.
func (s *Service) Start(st *store.Store) {
	s.store = st
	s.group = run.NewGroup(context.Background())
	s.revive.load()
	s.group.Go(s.revive.run)
	s.revive.work.Ask()
	for range runners {
		s.group.Go(s.polls.run)
	}
}

// Drain answers the requests that wait and lets none wait any more. It is for
// the end of a broker, before its connections are closed.
func (s *Service) Drain() { s.polls.close() }

// Abandon forgets the requests that wait, as if the process had died. Stop has
// to be called all the same.
func (s *Service) Abandon() { s.polls.abandon() }

// Stop ends the service. What it has not done is done after the next start.
func (s *Service) Stop() {
	s.polls.abandon()
	s.orders.close()
	s.group.Stop()
}

// Arrived is the store's notice of a record that can be read. It does not block.
func (s *Service) Arrived(a store.Arrival) {
	s.polls.arrived(a)
	if string(a.Topic) == s.reviveTopic {
		s.revive.arrived()
	}
}

// Disconnected forgets the requests of a connection that is gone.
func (s *Service) Disconnected(c *remoting.Conn) { s.polls.dropConn(c) }

// Reset makes those who wait for a queue look again, when the group's offset has
// been moved.
func (s *Service) Reset(topic, group string, queue int32) {
	s.polls.wakeQueue(queueKey{topic, group, queue})
}

// TopicDeleted makes all who wait for a topic look again.
func (s *Service) TopicDeleted(topic string) { s.polls.wakeTopic(topic) }

// Waiting is how many requests wait for messages.
func (s *Service) Waiting() int { return int(s.polls.n.Load()) }

// WrittenTo is the log position after the last record that the service has
// stored: what is before it must be on disk before offsets are.
func (s *Service) WrittenTo() int64 { return s.written.Load() }

// Settle blocks until everything that was stored before the call has been seen,
// and the messages that are visible again now can be popped, or could not be
// stored.
func (s *Service) Settle(ctx context.Context) error {
	if err := s.store.WaitDispatched(ctx); err != nil {
		return err
	}
	if err := s.revive.work.Wait(ctx, s.revive.work.Ask()); err != nil {
		return err
	}
	return s.store.WaitDispatched(ctx)
}

// NextVisible is when the next popped message becomes visible again unless it is
// acknowledged; false if none is out. It is right after [Service.Settle].
// changed is closed when there is one, or an earlier one, or the service ends.
func (s *Service) NextVisible() (at time.Time, ok bool, changed <-chan struct{}) {
	return s.revive.nextDue()
}
