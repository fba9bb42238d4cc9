package consumer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/consume"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/rebalance"
	"github.com/gorocketmq/rocketmq/selector"
)

// Defaults and limits of the options.
const (
	DefaultConcurrency   = 20
	DefaultBatch         = 1
	DefaultCacheMessages = 1000      // per queue
	DefaultCacheBytes    = 100 << 20 // per queue
	DefaultSpan          = 2000      // per queue
	DefaultDrainTimeout  = 30 * time.Second
	DefaultStuckAfter    = 45 * time.Second

	maxConcurrency = 1 << 16
	maxBatch       = 1024
	maxAttempts    = math.MaxInt32
)

// Option configures a consumer.
type Option func(*config)

// SubOption configures one subscription.
type SubOption func(*subscription)

type config struct {
	role  role
	subs  []subscription
	start rocketmq.Position
	strat rebalance.Strategy

	hasStrat bool
	drain    time.Duration
	timeout  time.Duration
	model    Model

	pulls       []pullTopic // SubscribeTo
	queues      []rocketmq.Queue
	assign      bool // AssignTo
	manual      bool
	pollSize    int
	cacheCount  int
	cacheVolume int

	stuckAfter time.Duration
	onStuck    func(s Stuck)
	listen     func(ctx context.Context, r Rebalance)
	hasListen  bool
	middleware []Middleware

	store    OffsetStore // broadcasting
	hasStore bool
	attempts int // 0: not set
	hasMax   bool
	faults   []error
}

type subscription struct {
	topic   string
	expr    selector.Expr
	handler Handler
	set     consume.Settings
}

// Subscribe has the messages of a topic that e selects handled by h. At least
// one subscription is needed, and at most one per topic.
func Subscribe(topic string, e selector.Expr, h Handler, opts ...SubOption) Option {
	return func(c *config) {
		c.only(handling, "Subscribe", "use SubscribeTo, and handle what Poll returns", "name the queue in each Request")
		s := subscription{
			topic: topic, expr: e, handler: h, set: consume.Settings{
				Concurrency: DefaultConcurrency, Batch: DefaultBatch,
				CacheMessages: DefaultCacheMessages, CacheBytes: DefaultCacheBytes, Span: DefaultSpan,
			},
		}
		for _, o := range opts {
			if o != nil {
				o(&s)
			}
		}
		c.subs = append(c.subs, s)
	}
}

// Concurrency is how many calls of the subscription's handler run at once, over
// all queues. The default is 20. If the member has several queues of the topic
// (the group's retry queue is one as soon as it has brought a message), one of
// them has at most three quarters of the calls at once, so that handlers of one
// queue that do not return do not stop the others. An [Ordered] consumer makes
// one call at a time for each queue.
func Concurrency(n int) SubOption { return func(s *subscription) { s.set.Concurrency = n } }

// Batch is how many messages of one queue a handler gets at most in one call.
// The default is 1. A call never waits for more messages to come: it gets
// fewer if fewer are there, and what one pull brought (32 at most) is not
// joined with the next.
func Batch(n int) SubOption { return func(s *subscription) { s.set.Batch = n } }

// Cache is how much is kept in memory of each queue: messages that were pulled
// and are not done. A queue is not pulled while it has more. The defaults are
// 1000 messages and 100 MiB; one pull may exceed them.
func Cache(messages, bytes int) SubOption {
	return func(s *subscription) { s.set.CacheMessages, s.set.CacheBytes = messages, bytes }
}

// Span is how far a queue is read ahead of its first message that is not done, in
// offsets. All of it is handled again if the member crashes. The default is 2000,
// as consumeConcurrentlyMaxSpan of Java's client. It does nothing with [NewOrdered], whose
// queues have nothing done behind what is not.
func Span(offsets int) SubOption { return func(s *subscription) { s.set.Span = offsets } }

// Rate is how many messages a second the subscription's handler gets at most, over
// all queues and retries included; it may be a fraction. The default, 0, is no
// limit. Calls are spread evenly: a subscription that had nothing to do catches up a tenth of
// a second, and a [Batch] counts as its messages. What waits is in the cache, and a
// queue whose cache is full is not pulled.
func Rate(perSecond float64) SubOption { return func(s *subscription) { s.set.Rate = perSecond } }

// StartFrom is where the group begins with a queue for which the broker (with
// [Broadcasting]: the offset store) has no offset of it. It does nothing for queues
// the group has read before. The default is [rocketmq.Latest], as in Java's client.
//
// With StrictLatest and AtTime the broker is told not to answer 0 for a young
// queue. Brokers before 5.0 do so all the same: a new group then reads a
// young topic from its beginning, and a warning is logged.
func StartFrom(p rocketmq.Position) Option {
	return func(c *config) {
		c.only(handling|roleLite|roleSimple, "StartFrom", "find an offset with SearchOffset or Range")
		c.start = p
	}
}

// WithStrategy divides the queues among the members; all members must use the
// same. The default is [rebalance.Averagely].
func WithStrategy(s rebalance.Strategy) Option {
	return func(c *config) {
		c.only(handling|roleLite, "WithStrategy", "a bare Pull shares its queues with nobody")
		c.strat, c.hasStrat = s, true
	}
}

// WithDrainTimeout bounds the drain when Run's context ends, and that of a
// Close whose context has no deadline. The default is 30 s.
func WithDrainTimeout(d time.Duration) Option {
	return func(c *config) {
		c.only(handling|roleSimple, "WithDrainTimeout", "there are no handlers to wait for; the context of Close bounds it", "there is nothing to close")
		c.drain = d
	}
}

// WithMaxAttempts bounds how often a message is handled; after n failures it
// goes to the dead-letter topic, %DLQ%group. The default is the group's limit at
// the broker, which is 17 attempts unless it was changed; an [Ordered] consumer
// has no limit by default, as in Java's client.
func WithMaxAttempts(n int) Option {
	return func(c *config) {
		c.only(handling|roleSimple, "WithMaxAttempts", "nothing is retried; Seek back to have a message again", "nothing is retried; pull again")
		c.attempts, c.hasMax = n, true
	}
}

// WithHandlerTimeout ends the context of each handler call after d, with
// [ErrHandlerTimeout] as the cause; the default is no limit. What the handler
// returns then counts as always. If it has not returned a second later its messages have failed
// and are retried as after any error: the offset passes them, the queue goes on,
// and what it returns counts no more. The call keeps its place among
// [Concurrency], as nothing can end it, so that such handlers in the end stop a subscription, which
// [WithStuckAfter] reports. Of an [Ordered] consumer nothing is retried, since that would be a
// second call for one queue: it waits for the handler. (Java's consumeTimeout, 15 min by default, is similar.)
func WithHandlerTimeout(d time.Duration) Option {
	return func(c *config) {
		c.only(handling, "WithHandlerTimeout", "there are no handlers")
		c.timeout = d
	}
}

// newConfig applies the options and reports all that is wrong with them.
func newConfig(group string, r role, opts []Option) (config, error) {
	c := config{
		role: r, start: rocketmq.Latest(), strat: rebalance.Averagely(), drain: DefaultDrainTimeout, stuckAfter: DefaultStuckAfter,
		pollSize: DefaultPollSize, cacheCount: DefaultCacheMessages, cacheVolume: DefaultCacheBytes,
	}
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	if err := wire.ValidateGroup(group); err != nil {
		c.fault("%w", err)
	} else if wire.IsSystemGroup(group) || group == wire.GroupDefaultCons || group == wire.GroupDefaultProd {
		c.fault("group %q is reserved for the system, choose another name", group)
	}
	if len(c.subs) == 0 && r&handling != 0 {
		c.fault("no subscription, use consumer.Subscribe")
	}
	seen := map[string]bool{}
	for _, s := range c.subs {
		s.check(&c)
		if seen[s.topic] {
			c.fault("topic %q is subscribed twice; one subscription can name several tags", s.topic)
		}
		seen[s.topic] = true
	}
	if c.start.Kind() == rocketmq.PositionUnset {
		c.start = rocketmq.Latest()
	}
	if c.start.Kind() == rocketmq.PositionOffset && c.start.Offset() < 0 {
		c.fault("start offset %d is negative", c.start.Offset())
	}
	if c.strat == nil {
		c.fault("the strategy is nil")
	}
	if c.drain <= 0 {
		c.fault("drain timeout %s must be positive", c.drain)
	}
	if c.hasMax && (c.attempts < 1 || c.attempts > maxAttempts) {
		c.fault("%d attempts must be 1 to %d", c.attempts, maxAttempts)
	}
	if c.timeout < 0 {
		c.fault("handler timeout %s is negative", c.timeout)
	}
	if c.stuckAfter <= 0 {
		c.fault("time after which a queue is stuck, %s, must be positive", c.stuckAfter)
	}
	if c.hasListen && c.listen == nil {
		c.fault("the rebalance listener is nil")
	}
	c.wrapHandlers()
	c.checkModel()
	switch r {
	case roleLite:
		c.checkLite()
	case roleSimple:
		c.checkSimple()
	}
	return c, errors.Join(c.faults...)
}

// checkModel looks at what goes with the model, and chooses the offset store.
func (c *config) checkModel() {
	if c.hasStore && c.store == nil {
		c.fault("the offset store is nil")
	}
	switch {
	case c.model == Clustering:
		if c.hasStore {
			c.fault("an offset store is for broadcasting; offsets of a clustering group are at the brokers, where its other members find them")
		}
	case c.model != Broadcasting:
		c.fault("unknown %s", c.model)
	case c.role == roleOrdered:
		c.fault("an ordered consumer cannot broadcast, use NewPush")
	case c.hasMax:
		c.fault("a maximum of attempts is for clustering; broadcasting has one attempt")
	case !c.hasStore:
		c.store = MemoryOffsets()
	}
}

func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("%w: "+format, append([]any{rocketmq.ErrInvalidOption}, args...)...))
}

func (s *subscription) check(c *config) {
	if err := wire.ValidateTopic(s.topic); err != nil {
		c.fault("%w", err)
	}
	if err := s.expr.Validate(); err != nil {
		c.fault("topic %q: %w", s.topic, err)
	}
	if s.handler == nil {
		c.fault("topic %q: the handler is nil", s.topic)
	} else if f, ok := s.handler.(HandlerFunc); ok && f == nil {
		c.fault("topic %q: the handler function is nil", s.topic)
	}
	s.checkSettings(c)
}

// checkSettings looks at what can be tuned.
func (s *subscription) checkSettings(c *config) {
	if n := s.set.Concurrency; n < 1 || n > maxConcurrency {
		c.fault("topic %q: concurrency %d must be 1 to %d", s.topic, n, maxConcurrency)
	}
	if n := s.set.Batch; n < 1 || n > maxBatch {
		c.fault("topic %q: batch %d must be 1 to %d", s.topic, n, maxBatch)
	}
	if s.set.CacheMessages < 1 || s.set.CacheBytes < 1 {
		c.fault("topic %q: cache of %d messages and %d bytes must be positive", s.topic, s.set.CacheMessages, s.set.CacheBytes)
	}
	if s.set.Span < 1 {
		c.fault("topic %q: span %d must be positive", s.topic, s.set.Span)
	}
	if r := s.set.Rate; math.IsNaN(r) || math.IsInf(r, 0) || r < 0 {
		c.fault("topic %q: rate %v must be 0, which is no limit, or a positive number of messages a second", s.topic, r)
	}
}

// subscriptions are the same for the layer below.
func (c *config) subscriptions() []consume.Subscription {
	var out []consume.Subscription
	for _, s := range c.subs {
		out = append(out, consume.Subscription{
			Topic: s.topic, Expr: s.expr, Handle: s.handler.Handle, Settings: s.set,
		})
	}
	return out
}
