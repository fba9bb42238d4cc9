package consume

import (
	"sync/atomic"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// limits bound the cache of one queue. They can change while it is in use.
type limits struct {
	messages, bytes, span atomic.Int64
}

// topic is one topic this member takes part in: a subscription of the
// application, or the group's retry topic.
type topic struct {
	c         *Consumer
	name      string // public
	wireName  string // with the namespace
	wireBytes []byte
	tags      filter.Tags
	expr      string
	exprBytes []byte
	exprType  []byte
	version   int64
	limits    limits
	retry     bool
	paused    atomic.Bool // see tune.go
	stats     stats
	d         *dispatcher // nil for the retry topic

	route   atomic.Pointer[client.Route] // as last seen by the rebalance loop
	warned  atomic.Bool                  // of a broker that cannot tell "none stored" from 0
	missing int                          // rebalances in a row that did not list us; the loop's
}

// address is where to pull a broker's queues from: the broker id it suggested,
// else its master. "" is an unknown broker.
func (t *topic) address(broker string, id int64) string {
	r := t.route.Load()
	if r == nil {
		return ""
	}
	return r.Brokers[broker].Any(id)
}

// master is where the broker's offsets are kept; a replica if there is no
// master.
func (t *topic) master(broker string) string { return t.address(broker, client.MasterID) }

// keep is the exact test of a message's tag: the broker compares hash codes.
// Messages of the retry topic have passed it before.
func (t *topic) keep(tag string) bool {
	if t.retry || t.tags.All() {
		return true
	}
	for _, name := range t.tags.Names() {
		if name == tag {
			return true
		}
	}
	return false
}

// subscription is what heartbeats say of the topic.
func (t *topic) subscription() wire.Subscription {
	return wire.Subscription{
		Topic: t.wireName, Expr: t.expr, ExprType: string(t.exprType),
		Tags: t.tags.Names(), Codes: t.tags.Codes(), Version: t.version,
	}
}

// dispatch hands a page to the subscription it is for. A page of the retry
// topic is cut into runs by original topic.
func (t *topic) dispatch(p *page) {
	if t.c.lite != nil {
		t.c.lite.offer(p.q)
		return
	}
	if t.d != nil {
		p.first.p, p.first.views = p, p.ptrs
		t.d.push(&p.first)
		return
	}
	ptrs := p.ptrs
	for from := 0; from < len(ptrs); {
		to := from + 1
		for to < len(ptrs) && ptrs[to].Topic == ptrs[from].Topic {
			to++
		}
		d := t.c.dispatcherOf(ptrs[from].Topic)
		w := &work{p: p, views: ptrs[from:to:to], base: from}
		if d.ordered {
			// In order means one call at a time, whatever the handler: so one
			// dispatcher has all messages of a queue.
			d, w.via = t.c.topics[0].d, d
		}
		d.push(w)
		from = to
	}
}

// attach announces a queue to its dispatcher.
func (t *topic) attach(q *queue) {
	if t.d != nil {
		t.d.attach(q)
	}
}

// standing is what handlers are doing with a queue.
func (t *topic) standing(q *queue) standing {
	if t.d != nil {
		return t.d.standing(q)
	}
	var all standing
	for _, o := range t.c.topics {
		if o.d == nil {
			continue
		}
		s := o.d.standing(q)
		if !s.busy.IsZero() && (all.busy.IsZero() || s.busy.Before(all.busy)) {
			all.busy = s.busy
		}
		if s.suspended {
			all.suspended, all.until = true, s.until
		}
	}
	return all
}

// masterOnly is the master's address: locks are its alone. "" if there is none.
func (t *topic) masterOnly(broker string) string {
	r := t.route.Load()
	if r == nil {
		return ""
	}
	return r.MasterOf(broker)
}

// forget drops what waits of a queue that is gone.
func (t *topic) forget(q *queue) {
	if t.c.lite != nil {
		t.c.lite.forget(q)
		return
	}
	if t.d != nil {
		t.d.forget(q)
		return
	}
	for _, o := range t.c.topics {
		if o.d != nil {
			o.d.forget(q)
		}
	}
}

// dispatcherOf is where messages of an original topic go. A retried message of
// a topic that is no longer subscribed goes to the first subscription, whose
// handler sees the topic: dropping it would lose it.
func (c *Consumer) dispatcherOf(name string) *dispatcher {
	for _, t := range c.topics {
		if t.name == name && t.d != nil {
			return t.d
		}
	}
	return c.topics[0].d
}

// queueOf makes the wire's name of a queue.
func (t *topic) queueOf(q rocketmq.Queue) wire.MessageQueue {
	return wire.MessageQueue{Topic: t.wireName, Broker: q.Broker, QueueID: int32(q.ID)}
}
