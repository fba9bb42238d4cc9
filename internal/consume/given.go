package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gorocketmq/rocketmq"
)

// given is the queues of a [Lite] that is no member of its group.
type given struct {
	c   *Consumer
	set Settings

	mu     sync.Mutex // guards all below
	queues map[rocketmq.Queue]bool
	topics []*topic // those that ever had a queue; the list is replaced and never changed
}

func newGiven(c *Consumer, set Settings) *given { return &given{c: c, set: set} }

func (g *given) list() []*topic {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.topics
}

func (g *given) has(q rocketmq.Queue) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queues[q]
}

// of are the queues of a topic.
func (g *given) of(topic string) []rocketmq.Queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []rocketmq.Queue
	for q := range g.queues {
		if q.Topic == topic {
			out = append(out, q)
		}
	}
	return out
}

// Assign gives other queues. What is not among them is given up here and now; what
// is new comes with the next rebalance, which follows at once.
func (l *Lite) Assign(queues []rocketmq.Queue) error {
	g := l.given
	set := make(map[rocketmq.Queue]bool, len(queues))
	g.mu.Lock()
	topics := slices.Clone(g.topics)
	for _, q := range queues {
		set[q] = true
		if slices.ContainsFunc(topics, func(t *topic) bool { return t.name == q.Topic }) {
			continue
		}
		t, err := g.c.newTopic(Subscription{Topic: q.Topic, Settings: g.set})
		if err != nil {
			g.mu.Unlock()
			return err
		}
		topics = append(topics, t)
	}
	g.queues, g.topics = set, topics
	g.mu.Unlock()
	for _, t := range topics {
		var kept []rocketmq.Queue
		for _, q := range l.c.queues() {
			if q.topic == t && set[q.key] {
				kept = append(kept, q.key)
			}
		}
		l.c.apply(t, kept)
	}
	l.announce()
	l.c.rebalanceSoon()
	return nil
}

// check says which queues their topics do not have, as far as routes are known.
func (g *given) check() error {
	var errs []error
	for _, t := range g.list() {
		if route := t.route.Load(); route != nil {
			errs = append(errs, missing(g.of(t.name), t.readable(route)))
		}
	}
	return errors.Join(errs...)
}

// missing says which queues are not among those that can be read.
func missing(queues, readable []rocketmq.Queue) error {
	var errs []error
	for _, q := range queues {
		if !slices.Contains(readable, q) {
			errs = append(errs, fmt.Errorf("%w: the route of the topic has no queue %s to be read", rocketmq.ErrNoQueue, q))
		}
	}
	return errors.Join(errs...)
}

// unknownGroup reports whether a broker does not know the group because nobody has
// joined it ever. It makes it with the first pull, and takes commits from then on.
func (c *Consumer) unknownGroup(err error) bool {
	var be *rocketmq.BrokerError
	return c.lite != nil && c.lite.given != nil && errors.As(err, &be) && be.Code == rocketmq.CodeGroupNotExist
}

// started looks at a queue that has come into the table: what was not wanted any
// more by then is given up again.
func (l *Lite) started(q *queue) {
	l.announce()
	if l.given != nil && !l.given.has(q.key) {
		l.c.giveUp(q)
	}
}

// gainGiven is what rebalancing a topic comes to if nobody else is asked.
func (c *Consumer) gainGiven(ctx context.Context, t *topic) (gains, error) {
	g := gains{t: t}
	want := c.lite.given.of(t.name)
	gained := c.apply(t, want)
	if len(want) == 0 {
		return g, nil
	}
	route, err := c.cfg.Runtime.Route(ctx, t.wireName)
	if err != nil {
		return g, err
	}
	t.route.Store(route)
	readable := t.readable(route)
	err = missing(gained, readable)
	g.queues = slices.DeleteFunc(gained, func(q rocketmq.Queue) bool { return !slices.Contains(readable, q) })
	return g, err
}
