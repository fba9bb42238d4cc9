package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/inflate"
	"github.com/gorocketmq/rocketmq/internal/pool"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/rebalance"
	"github.com/gorocketmq/rocketmq/selector"
)

// Subscription is one topic an application wants, and what handles it.
type Subscription struct {
	Topic  string
	Expr   selector.Expr
	Handle func(ctx context.Context, msgs []*rocketmq.MessageView) error
	Settings
}

// Config is what a [Consumer] is made of. All fields but the times must be
// set and valid.
type Config struct {
	Runtime       *client.Runtime
	Group         string // without the namespace
	Subscriptions []Subscription
	Start         rocketmq.Position
	Strategy      rebalance.Strategy
	// Judge tells what an error of a handler means for message i of n. A panic
	// comes as a *rocketmq.PanicError.
	Judge          func(err error, i, n int) Outcome
	Ordered        bool          // one call at a time for each queue, in the order of its messages
	Offsets        OffsetStore   // not nil: broadcast, and keep the offsets here; not with Ordered
	MaxAttempts    int           // 0: the group's limit at the broker; in order no limit
	HandlerTimeout time.Duration // 0: none
	DrainTimeout   time.Duration
	StuckAfter     time.Duration
	OnStuck        func(s rocketmq.StuckInfo) // may be nil
	Logger         *slog.Logger
	Hooks          Hooks
	OnRebalance    func(ctx context.Context, e Event) // nil: nobody listens, see listen.go

	RebalanceEvery, CommitEvery time.Duration // 0: 20 s, 5 s
}

// Consumer is one member of a consumer group: in clustering mode concurrent or in
// order, or broadcasting, or the inside of a [Lite].
type Consumer struct {
	cfg       Config
	log       *slog.Logger
	groupWire []byte
	head      wire.Head
	topics    []*topic // subscriptions in order, then the retry topic unless broadcasting; see allTopics

	inflate  inflate.Inflater
	timers   *timers
	settler  *settler
	listener listener
	locks    *locker   // nil unless in order
	local    *local    // nil unless broadcasting
	lite     *Lite     // not nil: there are no handlers, the application asks for messages
	epoch    time.Time // what queue.lease counts from

	tuning sync.Mutex // taken before the others, by Tune, Pause and Resume: one at a time

	// Made by Run.
	pool           *pool.Pool // and guarded by mu, for those who do not run in group
	group          *run.Group
	handlers       context.Context // what handlers' contexts derive from
	cancelHandlers context.CancelCauseFunc

	rebalanceKick, commitKick, beatKick chan struct{} // one slot each
	ready, done                         chan struct{} // done is closed when Run has returned
	readyOnce                           sync.Once
	drainLimit                          context.Context // ended by a Close whose context ends
	endDrain                            context.CancelCauseFunc

	mu       sync.Mutex // guards all below
	state    state
	closing  bool // no queue may be added
	table    map[rocketmq.Queue]*queue
	revoking map[rocketmq.Queue]*queue
	dialing  map[string][]*queue     // queues that wait for a connection, by address
	end      context.CancelCauseFunc // ends the running phase of Run
	bounded  bool                    // a Close came with a deadline of its own
	result   error
	balanced time.Time // last complete rebalance
	unsolved error     // why there was none since
}

// announceWait bounds the wait for the first heartbeat.
const announceWait = 300 * time.Millisecond

type state uint8

const (
	stateNew state = iota
	stateRunning
	stateClosed
)

// New makes a consumer. It does no I/O and starts nothing.
func New(cfg Config) (*Consumer, error) {
	c := base(cfg)
	c.settler = newSettler(c)
	if cfg.Ordered {
		c.locks = newLocker()
	}
	for _, s := range cfg.Subscriptions {
		t, err := c.newTopic(s)
		if err != nil {
			return nil, err
		}
		t.d = newDispatcher(c, s)
		c.topics = append(c.topics, t)
	}
	if cfg.Offsets != nil {
		c.local = newLocal(cfg.Offsets, string(c.groupWire))
		return c, nil // nothing is retried
	}
	retry, err := c.newTopic(Subscription{Topic: wire.RetryTopic(cfg.Group), Settings: cfg.Subscriptions[0].Settings})
	if err != nil {
		return nil, err
	}
	retry.retry = true
	c.topics = append(c.topics, retry)
	return c, nil
}

// base makes what all consumers have.
func base(cfg Config) *Consumer {
	if cfg.RebalanceEvery <= 0 {
		cfg.RebalanceEvery = rebalanceEvery
	}
	if cfg.CommitEvery <= 0 {
		cfg.CommitEvery = commitEvery
	}
	rt := cfg.Runtime
	c := &Consumer{
		cfg: cfg, log: cfg.Logger.With("group", cfg.Group),
		groupWire: []byte(rt.Wrap(cfg.Group)),
		head:      wire.Head{Encoding: rt.Encoding(), Signer: rt.Signer()},
		timers:    newTimers(), epoch: time.Now(),
		rebalanceKick: make(chan struct{}, 1), commitKick: make(chan struct{}, 1), beatKick: make(chan struct{}, 1),
		ready: make(chan struct{}), done: make(chan struct{}),
		table: make(map[rocketmq.Queue]*queue), revoking: make(map[rocketmq.Queue]*queue), dialing: make(map[string][]*queue),
	}
	c.drainLimit, c.endDrain = context.WithCancelCause(context.Background())
	c.listener.f = cfg.OnRebalance
	return c
}

// newTopic makes a topic that messages are to come from.
func (c *Consumer) newTopic(s Subscription) (*topic, error) {
	byTag := filter.All // with SQL92 the broker's word counts
	if s.Expr.Type() == filter.TypeTag {
		byTag = s.Expr.String()
	}
	tags, err := filter.Parse(byTag)
	if err != nil {
		return nil, fmt.Errorf("topic %q: %w", s.Topic, err)
	}
	wireName := c.cfg.Runtime.Wrap(s.Topic)
	t := &topic{
		c: c, name: s.Topic, wireName: wireName, wireBytes: []byte(wireName), tags: tags,
		expr: s.Expr.String(), exprBytes: []byte(s.Expr.String()), exprType: []byte(s.Expr.Type()), version: c.epoch.UnixMilli(),
	}
	t.limits.set(s.Settings)
	return t, nil
}

// allTopics are the topics as of now: those of given queues can change.
func (c *Consumer) allTopics() []*topic {
	if c.lite != nil && c.lite.given != nil {
		return c.lite.given.list()
	}
	return c.topics
}

// Ready is closed once every queue of the first assignment has its start
// offset and is being pulled.
func (c *Consumer) Ready() <-chan struct{} { return c.ready }

func (c *Consumer) becomeReady() { c.readyOnce.Do(func() { close(c.ready) }) }

// Run consumes until ctx ends or Close is called, then drains and returns what
// could not be finished, a [*Abandoned], or nil. Before that it fails if a
// subscribed topic has no route. It can be called once.
func (c *Consumer) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.state != stateNew {
		c.mu.Unlock()
		return fmt.Errorf("consumer of group %q: Run is called for a second time or after Close: %w", c.cfg.Group, rocketmq.ErrClosed)
	}
	c.state = stateRunning
	running, end := context.WithCancelCause(ctx)
	c.end = end
	c.mu.Unlock()

	err := c.open(running)
	switch {
	case err == nil:
		<-running.Done()
		err = c.drain(ctx)
	case running.Err() != nil:
		err = nil // told to end before it had begun
	}
	end(nil)
	c.endDrain(nil)
	c.mu.Lock()
	c.state, c.result = stateClosed, err
	c.mu.Unlock()
	close(c.done)
	return err
}

// open looks up the topics, joins the group and starts the goroutines.
func (c *Consumer) open(ctx context.Context) error {
	if c.local != nil {
		c.local.began = time.Now()
	}
	for _, t := range c.allTopics() {
		route, err := c.cfg.Runtime.Route(ctx, t.wireName)
		if err != nil {
			if t.retry {
				continue // made by a broker when it is needed
			}
			return err
		}
		t.route.Store(route)
	}
	if c.lite != nil && c.lite.given != nil {
		if err := c.lite.given.check(); err != nil {
			return err
		}
	}
	if err := c.askFilters(ctx); err != nil {
		return err
	}
	if c.lite == nil {
		if err := c.openPool(); err != nil {
			return err
		}
	}
	member := c.lite == nil || c.lite.given == nil
	if member {
		if err := c.cfg.Runtime.RegisterConsumer(c); err != nil {
			if c.pool != nil {
				err = errors.Join(err, c.pool.Close(ctx))
			}
			return err
		}
	}
	// The drain outlives ctx, and so do handlers.
	c.group = run.NewGroup(context.WithoutCancel(ctx))
	c.handlers, c.cancelHandlers = context.WithCancelCause(c.group.Context())
	c.group.Go(c.timers.run)
	if c.settler != nil {
		c.group.Go(c.settler.run)
	}
	c.group.Go(c.keepCommitting)
	if c.lite == nil {
		c.group.Go(c.keepWatching)
	}
	if member {
		c.group.Go(c.keepBeating)
	}
	if c.cfg.Ordered {
		c.group.Go(c.keepLocks)
	}
	c.group.Go(func(ctx context.Context) {
		if member {
			c.announce(ctx)
		}
		remove := c.cfg.Runtime.OnRouteChange(func(topic string, before, after *client.Route) { c.routeChanged(topic, after) })
		defer remove()
		c.keepBalancing(ctx)
	})
	return nil
}

// openPool makes the pool that handlers run on.
func (c *Consumer) openPool() error {
	c.tuning.Lock()
	defer c.tuning.Unlock()
	workers, err := pool.New(c.workers(), func(v any, stack []byte) {
		c.log.Error("bug: the consumer itself panicked", "panic", fmt.Sprint(v), "stack", string(stack))
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.pool = workers
	c.mu.Unlock()
	return nil
}

// announce sends the first heartbeat, without which no broker would list us,
// but waits only so long: one dead broker must not hold up the others.
func (c *Consumer) announce(ctx context.Context) {
	told := make(chan struct{})
	c.group.Go(func(ctx context.Context) {
		if err := c.cfg.Runtime.HeartbeatNow(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("heartbeat", "err", err)
		}
		close(told)
	})
	patience := time.NewTimer(announceWait)
	defer patience.Stop()
	select {
	case <-told:
	case <-patience.C:
		c.log.Warn("not all brokers have answered the first heartbeat yet")
	case <-ctx.Done():
	}
}

// routeChanged takes over a new route at once, so that pulls follow a broker
// that moved, and has the queues shared anew.
func (c *Consumer) routeChanged(name string, route *client.Route) {
	for _, t := range c.allTopics() {
		if t.wireName == name {
			t.route.Store(route)
			c.rebalanceSoon()
		}
	}
}

// keepBeating sends heartbeats out of turn when a broker does not know us.
func (c *Consumer) keepBeating(ctx context.Context) {
	gap := time.NewTimer(0)
	defer gap.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.beatKick:
		}
		if err := c.cfg.Runtime.HeartbeatNow(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("heartbeat", "err", err)
		}
		c.rebalanceSoon()
		gap.Reset(rebalanceAgain / 2)
		select {
		case <-ctx.Done():
			return
		case <-gap.C:
		}
	}
}

func (c *Consumer) beatSoon() {
	select {
	case c.beatKick <- struct{}{}:
	default:
	}
}

// queues is a snapshot of what is assigned.
func (c *Consumer) queues() []*queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	qs := make([]*queue, 0, len(c.table))
	for _, q := range c.table {
		qs = append(qs, q)
	}
	return qs
}

// kept is a snapshot of what is assigned or being revoked: the queues whose
// locks are ours to keep.
func (c *Consumer) kept() []*queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	qs := make([]*queue, 0, len(c.table)+len(c.revoking))
	for _, q := range c.table {
		qs = append(qs, q)
	}
	for _, q := range c.revoking {
		qs = append(qs, q)
	}
	return qs
}

func (c *Consumer) publicName(topic string) string { return c.cfg.Runtime.Unwrap(topic) }

var errNoAddress = errors.New("no address of the broker is known")

// dial is a connection to addr, made if there is none.
func (c *Consumer) dial(ctx context.Context, addr string) (*remoting.Conn, error) {
	if addr == "" {
		return nil, errNoAddress
	}
	return c.cfg.Runtime.Conn(ctx, addr)
}

// connect gets a connection for a queue that is about to pull. All queues of
// one broker wait for the same attempt, on a goroutine that ends with it.
func (c *Consumer) connect(q *queue, addr string) {
	c.mu.Lock()
	waiting, under := c.dialing[addr]
	c.dialing[addr] = append(waiting, q)
	c.mu.Unlock()
	if under {
		return
	}
	c.group.Go(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Runtime.RequestTimeout())
		conn, err := c.dial(ctx, addr)
		cancel()
		c.mu.Lock()
		qs := c.dialing[addr]
		delete(c.dialing, addr)
		c.mu.Unlock()
		for _, q := range qs {
			q.connected(addr, conn, err)
		}
	})
}
