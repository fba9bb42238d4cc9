package consumer

import (
	"errors"
	"slices"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/pop"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// pullTopic is a topic of a consumer without handlers.
type pullTopic struct {
	topic string
	expr  selector.Expr
}

// SubscribeTo has a [Simple] receive the messages of a topic that e selects. It can
// be given for several topics, once for each. All members of a group must subscribe
// to the same topics with the same expressions.
func SubscribeTo(topic string, e selector.Expr) Option {
	return func(c *config) { c.pulls = append(c.pulls, pullTopic{topic, e}) }
}

// newSimpleConfig applies the options and reports all that is wrong with them.
func newSimpleConfig(group string, opts []Option) (config, error) {
	c := config{start: rocketmq.Latest(), drain: DefaultDrainTimeout}
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
	for what, given := range map[string]bool{
		"Subscribe": len(c.subs) > 0, "WithStrategy": c.strat != nil, "WithModel": c.model != Clustering, "WithOffsetStore": c.hasStore,
		"OnRebalance": c.hasListen, "WithMiddleware": len(c.middleware) > 0, "WithHandlerTimeout": c.timeout != 0,
	} {
		if given {
			c.fault("%s is no option of a Simple: it has no handlers and shares no queues out", what)
		}
	}
	if len(c.pulls) == 0 {
		c.fault("no topic, use consumer.SubscribeTo")
	}
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
	switch c.start.Kind() {
	case rocketmq.PositionUnset, rocketmq.PositionEarliest, rocketmq.PositionLatest:
	default:
		c.fault("a Simple consumer starts from Earliest or Latest, brokers know nothing else here")
	}
	if c.drain <= 0 {
		c.fault("drain timeout %s must be positive", c.drain)
	}
	if c.hasMax && (c.attempts < 1 || c.attempts > maxAttempts) {
		c.fault("%d attempts must be 1 to %d", c.attempts, maxAttempts)
	}
	return c, errors.Join(c.faults...)
}

// popSubscriptions are the topics for the layer below.
func (c *config) popSubscriptions() []pop.Subscription {
	var out []pop.Subscription
	for _, s := range c.pulls {
		out = append(out, pop.Subscription{Topic: s.topic, Expr: s.expr})
	}
	return out
}
