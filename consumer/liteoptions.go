package consumer

import (
	"slices"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/consume"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// DefaultPollSize is how many messages [LitePull.Poll] returns at most. It is what
// one pull brings.
const DefaultPollSize = 32

// role is what a constructor makes.
type role uint8

const (
	rolePush role = 1 << iota
	roleOrdered
	roleLite
	rolePull
	roleSimple

	handling = rolePush | roleOrdered
)

func (r role) String() string {
	switch r {
	case rolePush:
		return "Push"
	case roleOrdered:
		return "Ordered"
	case roleLite:
		return "LitePull"
	case rolePull:
		return "Pull"
	}
	return "Simple"
}

// only reports an option that the role has no use for, with what to use instead;
// the last of it is for a bare Pull.
func (c *config) only(roles role, option string, instead ...string) {
	if c.role&roles != 0 {
		return
	}
	text := instead[0]
	switch c.role {
	case rolePull:
		text = instead[len(instead)-1]
	case roleSimple:
		text = "it has no handlers and shares no queues out"
	}
	c.fault("%s is no option of a %s: %s", option, c.role, text)
}

// pullTopic is a topic of a consumer without handlers.
type pullTopic struct {
	topic string
	expr  selector.Expr
}

// SubscribeTo has a [LitePull] or a [Simple] take part in its group and get the
// messages of a topic that e selects. It can be given for several topics, once for
// each. All members of a group must subscribe to the same topics with the same
// expressions. With a LitePull the queues of the topic are shared among the members.
func SubscribeTo(topic string, e selector.Expr) Option {
	return func(c *config) {
		c.only(roleLite|roleSimple, "SubscribeTo", "use Subscribe", "name the queue in each Request")
		c.pulls = append(c.pulls, pullTopic{topic, e})
	}
}

// AssignTo has a [LitePull] read these queues, whoever else reads them. It takes no
// part in the group: brokers do not list it, and offsets are committed in the
// group's name. [LitePull.Assign] gives other queues later; AssignTo() without any
// waits for that. It cannot be had together with [SubscribeTo].
func AssignTo(queues ...rocketmq.Queue) Option {
	return func(c *config) {
		c.only(roleLite, "AssignTo", "use Subscribe, and WithStrategy(rebalance.Config(...)) for given queues", "name the queue in each Request")
		c.assign = true
		c.queues = append(c.queues, queues...)
	}
}

// WithManualCommit has a [LitePull] commit messages only with [LitePull.Commit].
// What is not a message of the application is committed all the same: where a queue
// begins that the group has no offset of, an offset that an operator or the broker
// has moved, and what the subscription does not want, as far as all that came before
// it is committed.
func WithManualCommit() Option {
	return func(c *config) {
		c.only(roleLite, "WithManualCommit", "a message is done when its handler returns nil", "only Commit commits, always")
		c.manual = true
	}
}

// WithPollSize is how many messages [LitePull.Poll] returns at most. The default is
// [DefaultPollSize]. A poll returns messages of one queue, which came with one pull,
// so more than 32 have no effect.
func WithPollSize(n int) Option {
	return func(c *config) {
		c.only(roleLite, "WithPollSize", "use Batch of a subscription", "use Max of each Request")
		c.pollSize = n
	}
}

// WithCache is how much a [LitePull] keeps in memory of each queue: messages that
// were pulled and not handed out. A queue is not pulled while it has more. The
// defaults are 1000 messages and 100 MiB; one pull may exceed them.
func WithCache(messages, bytes int) Option {
	return func(c *config) {
		c.only(roleLite, "WithCache", "use Cache of a subscription", "nothing is cached")
		c.cacheCount, c.cacheVolume = messages, bytes
	}
}

// checkLite looks at what a LitePull has.
func (c *config) checkLite() {
	switch {
	case len(c.pulls) > 0 && c.assign:
		c.fault("SubscribeTo and AssignTo exclude each other: use SubscribeTo to share queues within the group, or AssignTo for given queues")
	case len(c.pulls) == 0 && !c.assign && len(c.subs) == 0:
		c.fault("no topic, use SubscribeTo, or AssignTo for given queues")
	case c.assign && c.hasStrat:
		c.fault("a strategy divides queues among members, with AssignTo there are none: leave WithStrategy out")
	}
	c.checkTopics()
	for _, q := range c.queues {
		if err := checkQueue(q); err != nil {
			c.fault("%w", err)
		}
	}
	if c.pollSize < 1 || c.pollSize > maxBatch {
		c.fault("poll size %d must be 1 to %d", c.pollSize, maxBatch)
	}
	if c.cacheCount < 1 || c.cacheVolume < 1 {
		c.fault("cache of %d messages and %d bytes must be positive", c.cacheCount, c.cacheVolume)
	}
}

// checkTopics looks at what SubscribeTo said.
func (c *config) checkTopics() {
	for i, s := range c.pulls {
		if err := wire.ValidateTopic(s.topic); err != nil {
			c.fault("%w", err)
		}
		if err := s.expr.Validate(); err != nil {
			c.fault("topic %q: %w", s.topic, err)
		}
		if slices.ContainsFunc(c.pulls[:i], func(o pullTopic) bool { return o.topic == s.topic }) {
			c.fault("topic %q is subscribed twice; one subscription can name several tags", s.topic)
		}
	}
}

func (c *config) liteSettings() consume.Settings {
	return consume.Settings{CacheMessages: c.cacheCount, CacheBytes: c.cacheVolume, Span: DefaultSpan}
}

// liteSubscriptions are the topics for the layer below.
func (c *config) liteSubscriptions() []consume.Subscription {
	var out []consume.Subscription
	for _, s := range c.pulls {
		out = append(out, consume.Subscription{Topic: s.topic, Expr: s.expr, Settings: c.liteSettings()})
	}
	return out
}
