package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Lite is a consumer without handlers: its application asks for messages. It is a
// member of a group, with the rebalance loop, the pulls and the offsets of a
// [Consumer]; or, with queues that are given, none, and nobody is asked who has
// which queue. What differs is here, in poll.go (from the cache to the
// application), liteoffsets.go (what counts as done) and given.go.
//
// It connects with the first call that needs a broker.
type Lite struct {
	c      *Consumer
	manual bool
	given  *given // nil: a member of the group
	adopt  func() (release func(), err error)

	life    context.Context // ends with Close
	end     context.CancelCauseFunc
	opening chan struct{} // one slot: whoever opens has it, and at last Close
	opened  atomic.Bool
	release func() // set while opening
	closing sync.Once
	parting atomic.Bool // Close tells the listener, which may commit
	result  error

	polls atomic.Uint64 // the number of the latest poll, see queue.handed
	wake  chan struct{} // one slot: line has something

	mu      sync.Mutex // guards all below, and queue.inLine
	line    line
	paused  map[rocketmq.Queue]bool
	changed chan struct{} // closed with the next announcement; nil: nobody waits for it
}

// LiteConfig is what a [Lite] is made of, beside the [Config]: of its
// subscriptions the handlers do not count.
type LiteConfig struct {
	Manual bool // only the application commits
	// Given: no member of the group; the queues are these, with these limits, until
	// Assign gives others.
	Given    bool
	Queues   []rocketmq.Queue
	Settings Settings
	// Adopt is called when it opens, and release when it has been closed.
	Adopt func() (release func(), err error)
}

// NewLite makes a consumer. It does no I/O and starts nothing.
func NewLite(cfg Config, lc LiteConfig) (*Lite, error) {
	c := base(cfg)
	l := &Lite{
		c: c, manual: lc.Manual, adopt: lc.Adopt,
		opening: make(chan struct{}, 1), wake: make(chan struct{}, 1), paused: make(map[rocketmq.Queue]bool),
	}
	l.polls.Store(1)
	l.life, l.end = context.WithCancelCause(context.Background())
	c.lite = l
	if lc.Given {
		l.given = newGiven(c, lc.Settings)
		return l, l.Assign(lc.Queues)
	}
	for _, s := range cfg.Subscriptions {
		t, err := c.newTopic(s)
		if err != nil {
			return nil, err
		}
		c.topics = append(c.topics, t)
	}
	return l, nil
}

// Open looks up the topics, joins the group and starts the goroutines, unless
// that has been done. After a failure another call tries again.
func (l *Lite) Open(ctx context.Context) error {
	if l.life.Err() != nil {
		return rocketmq.ErrClosed
	}
	if l.opened.Load() {
		return nil
	}
	select {
	case l.opening <- struct{}{}:
	case <-l.life.Done():
		return rocketmq.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.opening }()
	if l.opened.Load() {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.life, func() { cancel(rocketmq.ErrClosed) })
	defer stop()
	release, err := l.adopt()
	if err != nil {
		return err
	}
	if err = l.c.open(ctx); err != nil {
		release()
		if l.life.Err() != nil {
			return rocketmq.ErrClosed
		}
		return err
	}
	l.release = release
	l.opened.Store(true)
	return nil
}

// Ready opens and waits until the first assignment is complete.
func (l *Lite) Ready(ctx context.Context) error {
	if err := l.Open(ctx); err != nil {
		return err
	}
	select {
	case <-l.c.ready:
		return nil
	case <-l.life.Done():
		return rocketmq.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Assignment is the queues that messages come from, sorted.
func (l *Lite) Assignment() []rocketmq.Queue {
	qs := l.c.queues()
	out := make([]rocketmq.Queue, len(qs))
	for i, q := range qs {
		out[i] = q.key
	}
	slices.SortFunc(out, rocketmq.Queue.Compare)
	return out
}

// Health is a snapshot of all assigned queues, sorted.
func (l *Lite) Health() []QueueHealth {
	out := l.c.Health()
	for i := range out {
		if l.isPaused(out[i].Queue) {
			out[i].State = "paused"
		}
	}
	return out
}

// Close ends all calls, commits what counts as done, leaves the group and ends
// the goroutines. Further calls wait for the first and return the same.
func (l *Lite) Close(ctx context.Context) error {
	l.closing.Do(func() {
		l.end(rocketmq.ErrClosed)
		l.opening <- struct{}{} // whoever opens gives up
		if l.opened.Load() {
			l.result = l.leave(ctx)
			l.release()
		}
	})
	return l.result
}

// leave is bounded by ctx and by settleTimeout. It does not take an ended ctx for
// a wish to lose the offsets: applications end one context and close with it.
func (l *Lite) leave(ctx context.Context) error {
	c := l.c
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	qs := c.queues()
	for _, q := range qs {
		q.stop()
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	last, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	l.parting.Store(true)
	c.part(last, qs)
	l.parting.Store(false)
	if l.manual {
		qs = slices.DeleteFunc(qs, (*queue).toldByHand)
	}
	errs := []error{c.commitNow(last, qs, true)}
	if l.given == nil {
		errs = append(errs, c.cfg.Runtime.UnregisterConsumer(last, string(c.groupWire)))
	}
	c.group.Cancel(rocketmq.ErrClosed)
	join, stop := context.WithTimeout(context.WithoutCancel(ctx), joinTimeout)
	defer stop()
	if err := c.group.WaitContext(join); err != nil {
		errs = append(errs, fmt.Errorf("background work still runs: %w", err))
	}
	c.cancelHandlers(rocketmq.ErrClosed)
	return errors.Join(errs...)
}

// announce wakes those who wait for the application to do something, or for a
// queue.
func (l *Lite) announce() {
	l.mu.Lock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	l.mu.Unlock()
}

// next is closed with the next announcement.
func (l *Lite) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// consumeType is what heartbeats and operators are told.
func (c *Consumer) consumeType() string {
	if c.lite != nil {
		return wire.ConsumeActively
	}
	return wire.ConsumePassively
}
