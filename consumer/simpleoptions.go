package consumer

import (
	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/pop"
)

// checkSimple looks at what a Simple has.
func (c *config) checkSimple() {
	if len(c.pulls) == 0 {
		c.fault("no topic, use consumer.SubscribeTo")
	}
	c.checkTopics()
	switch c.start.Kind() {
	case rocketmq.PositionEarliest, rocketmq.PositionLatest:
	default:
		c.fault("a Simple consumer starts from Earliest or Latest, brokers know nothing else here")
	}
}

// popSubscriptions are the topics for the layer below.
func (c *config) popSubscriptions() []pop.Subscription {
	var out []pop.Subscription
	for _, s := range c.pulls {
		out = append(out, pop.Subscription{Topic: s.topic, Expr: s.expr})
	}
	return out
}
