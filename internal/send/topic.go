package send

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// topics are the topics that messages were sent to.
type topics struct {
	m  atomic.Pointer[map[string]*topic] // by the user's name; copied on write
	mu sync.Mutex                        // guards writes of m
}

// topic is one of them.
type topic struct {
	wire  string // with the namespace
	bytes []byte // the same
	table atomic.Pointer[table]
	turn  atomic.Uint32 // counts up, for taking queues in turn
}

// table is a route made ready for sending. It is immutable.
type table struct {
	route  *client.Route
	queues []rocketmq.Queue // for selectors: with the user's topic name
	refs   []ref            // parallel to queues
	// borrowed is set if the route is the default topic's, because the topic
	// itself does not exist yet.
	borrowed bool
	made     time.Time
}

// ref is what an attempt needs of a queue.
type ref struct {
	broker *broker
	name   []byte // of the broker
	addr   string // of its master
	id     int32
}

func (t *topics) find(name string) *topic {
	if m := t.m.Load(); m != nil {
		return (*m)[name]
	}
	return nil
}

func (t *topics) add(name, wireName string) *topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[string]*topic)
	if m := t.m.Load(); m != nil {
		next = maps.Clone(*m)
	}
	if x := next[name]; x != nil {
		return x
	}
	x := &topic{wire: wireName, bytes: []byte(wireName)}
	x.turn.Store(rand.Uint32N(1 << 16)) // not every producer begins with the first queue
	next[name] = x
	t.m.Store(&next)
	return x
}

// outdated drops the table of a topic whose route has changed, and tables made
// from the default topic's route when that has.
func (t *topics) outdated(wireName string) {
	m := t.m.Load()
	if m == nil {
		return
	}
	for _, x := range *m {
		tb := x.table.Load()
		if x.wire == wireName || tb != nil && tb.borrowed && tb.route.Topic == wireName {
			x.table.Store(nil)
		}
	}
}

// borrowedFor is how long a borrowed route is used before the topic's own is
// asked for again: the broker creates the topic with the first message.
const borrowedFor = time.Second

// table returns the topic and its current table, with at least one queue. It
// asks a name server only if no route is known or the one known has no queue.
func (p *Pipeline) table(ctx context.Context, name string) (*topic, *table, error) {
	if t := p.topics.find(name); t != nil {
		if tb := t.table.Load(); tb != nil && (!tb.borrowed || time.Since(tb.made) < borrowedFor) {
			return t, tb, nil
		}
	}
	return p.makeTable(ctx, name)
}

func (p *Pipeline) makeTable(ctx context.Context, name string) (*topic, *table, error) {
	wireName := p.rt.Wrap(name)
	rt, err := p.rt.Route(ctx, wireName)
	if err == nil && len(rt.Publish) == 0 {
		// Perhaps just now there is one: a master came back, or permissions did.
		rt, err = p.rt.FetchRoute(ctx, wireName)
	}
	borrowed := false
	if err != nil && p.cfg.AutoCreate > 0 && errors.Is(err, rocketmq.ErrTopicNotFound) {
		def, defErr := p.rt.Route(ctx, wire.TopicDefault)
		if defErr != nil {
			return nil, nil, fmt.Errorf("no broker creates topics: %w", routeError(wire.TopicDefault, defErr))
		}
		rt, err, borrowed = def, nil, true
	}
	if err != nil {
		return nil, nil, routeError(name, err)
	}
	t := p.topics.add(name, wireName)
	for {
		tb := p.build(name, rt, borrowed)
		if len(tb.queues) == 0 {
			return nil, nil, fmt.Errorf("%w: no broker of topic %q takes messages", rocketmq.ErrNoQueue, name)
		}
		t.table.Store(tb)
		// Had the route changed before the line above, the note that it did may
		// have come too early to drop this table.
		now, ok := p.rt.CachedRoute(wireName)
		if borrowed && !ok || now == rt {
			return t, tb, nil
		}
		rt, borrowed = now, false
	}
}

// routeError is err for the user, who does not see namespaces.
func routeError(name string, err error) error {
	err = bridge.PublicError(err)
	var re *rocketmq.RouteError
	if errors.As(err, &re) {
		re.Topic = name
	}
	return err
}

func (p *Pipeline) build(name string, rt *client.Route, borrowed bool) *table {
	tb := &table{route: rt, borrowed: borrowed, made: time.Now()}
	for _, q := range rt.Publish {
		if borrowed && q.ID >= p.autoQueues {
			continue // the broker will create no more than asked for
		}
		tb.queues = append(tb.queues, rocketmq.Queue{Topic: name, Broker: q.Broker, ID: int(q.ID)})
		tb.refs = append(tb.refs, p.ref(rt, q.Broker, q.ID))
	}
	return tb
}

func (p *Pipeline) ref(rt *client.Route, brokerName string, id int32) ref {
	return ref{broker: p.faults.broker(brokerName), name: []byte(brokerName), addr: rt.MasterOf(brokerName), id: id}
}
