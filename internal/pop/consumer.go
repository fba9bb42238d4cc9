package pop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/inflate"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/selector"
)

// announceWait bounds the wait for the first heartbeat: one dead broker must not
// hold up the others.
const announceWait = 300 * time.Millisecond

// Subscription is one topic an application wants.
type Subscription struct {
	Topic string
	Expr  selector.Expr
}

// Config is what a [Consumer] is made of. It must be valid.
type Config struct {
	Runtime       *client.Runtime
	Group         string // without the namespace
	Subscriptions []Subscription
	FromEarliest  bool // where a group begins with a queue it has not read yet
	MaxAttempts   int  // 0: the group's limit at the broker
	DrainTimeout  time.Duration
	Logger        *slog.Logger
	// Adopt has the client close the consumer. It is called with the first Receive.
	Adopt func(close func(ctx context.Context) error) (release func(), err error)
}

// Consumer receives for one member of a group.
type Consumer struct {
	cfg       Config
	log       *slog.Logger
	group     string // on the wire
	groupWire []byte
	topics    []*topic
	inflate   inflate.Inflater
	tasks     *run.Group    // work that Close waits for
	watches   *run.Group    // what it cuts short
	turn      atomic.Uint32 // where the next Receive begins

	opening chan struct{} // one slot: whoever joins the group
	opened  atomic.Bool   // the group was joined
	closing chan struct{} // closed with Close
	closed  chan struct{} // closed when Close is done

	mu        sync.Mutex // guards all below, and the state of targets
	calls     int        // of Receive that run
	idle      chan struct{}
	news      chan struct{} // closed, and replaced, when a target has changed
	released  func()
	isClosing bool
	result    error
	limits    map[string]limit // by broker
}

// topic is one subscription.
type topic struct {
	name      string // public
	wireName  string // with the namespace
	wireBytes []byte
	expr      []byte
	exprType  []byte
	tags      filter.Tags
	version   int64

	route   *client.Route // the targets are those of; guarded by Consumer.mu
	targets []*target
}

// New makes a consumer. It does no I/O and starts nothing.
func New(cfg Config) (*Consumer, error) {
	rt := cfg.Runtime
	c := &Consumer{
		cfg: cfg, log: cfg.Logger.With("group", cfg.Group), group: rt.Wrap(cfg.Group),
		opening: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{}), news: make(chan struct{}),
		tasks: run.NewGroup(context.Background()), watches: run.NewGroup(context.Background()), limits: make(map[string]limit),
	}
	c.groupWire = []byte(c.group)
	version := time.Now().UnixMilli()
	for _, s := range cfg.Subscriptions {
		byTag := filter.All // with SQL92 the broker's word counts
		if s.Expr.Type() == filter.TypeTag {
			byTag = s.Expr.String()
		}
		tags, err := filter.Parse(byTag)
		if err != nil {
			return nil, fmt.Errorf("topic %q: %w", s.Topic, err)
		}
		name := rt.Wrap(s.Topic)
		c.topics = append(c.topics, &topic{
			name: s.Topic, wireName: name, wireBytes: []byte(name), expr: []byte(s.Expr.String()), exprType: []byte(s.Expr.Type()), tags: tags, version: version,
		})
	}
	return c, nil
}

// keep is the exact test of a message's tag: the broker compares hash codes.
func (t *topic) keep(tag string) bool {
	if t.tags.All() {
		return true
	}
	for _, name := range t.tags.Names() {
		if name == tag {
			return true
		}
	}
	return false
}

// open looks up the topics and joins the group, once. What fails is tried again by
// the next call.
func (c *Consumer) open(ctx context.Context) error {
	if c.opened.Load() {
		return nil
	}
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closing:
		return rocketmq.ErrClosed
	}
	if c.opened.Load() {
		return nil
	}
	for _, t := range c.topics {
		if _, err := c.cfg.Runtime.Route(ctx, t.wireName); err != nil {
			return err
		}
	}
	release, err := c.cfg.Adopt(c.Close)
	if err != nil {
		return err
	}
	if err := c.cfg.Runtime.RegisterConsumer(c); err != nil {
		release()
		return err
	}
	c.mu.Lock()
	c.released = release
	c.mu.Unlock()
	c.announce(ctx)
	c.opened.Store(true)
	return nil
}

// announce sends the first heartbeat, without which no broker knows the group.
func (c *Consumer) announce(ctx context.Context) {
	told := make(chan struct{})
	c.tasks.Go(func(ctx context.Context) {
		defer close(told)
		if err := c.cfg.Runtime.HeartbeatNow(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("heartbeat", "err", err)
		}
	})
	patience := time.NewTimer(announceWait)
	defer patience.Stop()
	select {
	case <-told:
	case <-patience.C:
		c.log.Warn("not all brokers have answered the first heartbeat yet")
	case <-ctx.Done():
	case <-c.closing:
	}
}

// enter counts a Receive in, until leave.
func (c *Consumer) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosing {
		return rocketmq.ErrClosed
	}
	c.calls++
	return nil
}

func (c *Consumer) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// Close ends the calls of Receive that wait, lets those finish that are being
// answered, leaves the group and ends all goroutines. Further calls return what
// the first one did.
func (c *Consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.isClosing {
		c.mu.Unlock()
		<-c.closed
		return c.result
	}
	c.isClosing = true
	close(c.closing)
	var idle chan struct{}
	if c.calls > 0 {
		idle = make(chan struct{})
		c.idle = idle
	}
	c.mu.Unlock()
	defer close(c.closed)

	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.DrainTimeout)
		defer cancel()
	}
	c.watches.Cancel(rocketmq.ErrClosed)
	var errs []error
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("calls of Receive are still being answered: %w", context.Cause(ctx)))
		}
	}
	c.mu.Lock()
	release := c.released
	c.mu.Unlock()
	if release != nil {
		errs = append(errs, c.cfg.Runtime.UnregisterConsumer(context.WithoutCancel(ctx), c.group))
		release()
	}
	if err := errors.Join(c.tasks.WaitContext(ctx), c.watches.WaitContext(ctx)); err != nil {
		errs = append(errs, fmt.Errorf("background work still runs: %w", err))
	}
	c.tasks.Cancel(rocketmq.ErrClosed)
	c.result = errors.Join(errs...)
	return c.result
}

// signalLocked wakes whoever waits for a target to change. c.mu is held.
func (c *Consumer) signalLocked() {
	close(c.news)
	c.news = make(chan struct{})
}
