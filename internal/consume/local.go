package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Broadcasting: every member has all queues of its topics, nobody is asked who
// else is there, and the offsets are the member's own. A queue's life is that of
// a concurrent consumer in clustering mode; what differs is here and where
// Consumer.local is looked at: where it starts, where its offset is kept, and
// that a failed message is dropped.

// OffsetStore keeps the offsets of a member that broadcasts. It is the interface
// of the same name in package consumer.
type OffsetStore interface {
	Load(ctx context.Context, group string, queues []rocketmq.Queue) (map[rocketmq.Queue]int64, error)
	Save(ctx context.Context, group string, offsets map[rocketmq.Queue]int64) error
}

// ErrOffsetsDamaged comes from a store together with those offsets that could be
// restored.
var ErrOffsetsDamaged = errors.New("stored offsets are damaged")

// local is where the offsets of a member that broadcasts are.
type local struct {
	store OffsetStore
	group string
	began time.Time // when Run was called
	late  bool      // the first rebalance is over; only the loop looks at it

	// turn has one slot: offsets are taken from the queues and saved by one at a
	// time, so what is saved last is what was true last. It guards what is below.
	turn    chan struct{}
	saved   map[rocketmq.Queue]int64 // what the store has
	failing bool                     // the last save failed
}

func newLocal(store OffsetStore, group string) *local {
	return &local{store: store, group: group, turn: make(chan struct{}, 1), saved: make(map[rocketmq.Queue]int64)}
}

func (l *local) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the offset store does not return from a call: %w", context.Cause(ctx))
	}
}

func (l *local) leave() { <-l.turn }

// load asks the store for queues. Those that are missing in the result have no
// offset. A store that cannot be asked is an error and never a position.
func (c *Consumer) load(ctx context.Context, queues []rocketmq.Queue) (map[rocketmq.Queue]int64, error) {
	l := c.local
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	defer l.leave()
	all, err := l.store.Load(ctx, l.group, queues)
	switch {
	case errors.Is(err, ErrOffsetsDamaged):
		c.log.Error("stored offsets are damaged, going on with those that are left, with other queues from the start position",
			"left", len(all), "start", c.cfg.Start.String(), "err", err)
	case err != nil:
		return nil, fmt.Errorf("stored offsets: %w", err)
	}
	known := make(map[rocketmq.Queue]int64, len(queues))
	for _, q := range queues {
		off, ok := all[q]
		if ok && off < 0 {
			c.log.Error("the stored offset is negative, beginning at the start position", "queue", q, "offset", off, "start", c.cfg.Start.String())
			ok = false
		}
		if ok {
			known[q], l.saved[q] = off, off
		} else {
			delete(l.saved, q)
		}
	}
	return known, nil
}

// save gives the store the offsets that it does not have yet.
func (c *Consumer) save(ctx context.Context, qs []*queue) error {
	l := c.local
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.leave()
	moved := make(map[rocketmq.Queue]int64)
	for _, q := range qs {
		if q.stale.Load() {
			continue // another queue has its place, with the offset it was moved to
		}
		off := q.lowest()
		if had, ok := l.saved[q.key]; !ok || had != off {
			moved[q.key] = off
		}
	}
	if len(moved) == 0 {
		return nil
	}
	if err := l.store.Save(ctx, l.group, moved); err != nil {
		err = fmt.Errorf("offsets of %d queues not saved: %w", len(moved), err)
		if l.failing {
			c.log.Debug("offsets still not saved, trying again", "err", err)
		} else {
			c.log.Warn("offsets not saved, trying again; messages go on", "err", err)
		}
		l.failing = true
		return err
	}
	for q, off := range moved {
		l.saved[q] = off
	}
	if l.failing {
		c.log.Info("offsets are saved again", "queues", len(moved))
	}
	l.failing = false
	return nil
}

// gainLocal starts new queues: those that the store knows from there, others
// from the start position.
func (c *Consumer) gainLocal(ctx context.Context, g gains) error {
	if len(g.queues) == 0 {
		return nil
	}
	known, err := c.load(ctx, g.queues)
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards fresh
	var fresh []*queue
	err = parallel(ctx, g.queues, func(ctx context.Context, key rocketmq.Queue) error {
		off, ok := known[key]
		if !ok {
			from := c.local.from(c.cfg.Start)
			var err error
			if off, err = c.position(ctx, g.t, key, g.t.master(key.Broker), from); err != nil {
				return fmt.Errorf("start of queue %s at %s: %w", key, from, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		fresh = append(fresh, c.newQueue(g.t, key, off))
		return nil
	})
	// A start position is kept at once: after a crash before the next round a later
	// one would be computed, and what came in between passed over. If it cannot be
	// kept the member consumes all the same, and save has said so.
	_ = c.save(ctx, fresh)
	c.begin(ctx, g.t, fresh)
	return err
}

// from is the start position of queues that come now. After the first round the
// end of a queue is too late: it has been created, or its broker has come back,
// while this member was running, and what was sent meanwhile is not to be lost.
func (l *local) from(start rocketmq.Position) rocketmq.Position {
	if k := start.Kind(); l.late && (k == rocketmq.PositionLatest || k == rocketmq.PositionStrictLatest) {
		return rocketmq.AtTime(l.began)
	}
	return start
}

// readable are the queues of a topic.
func (t *topic) readable(route *client.Route) []rocketmq.Queue {
	queues := make([]rocketmq.Queue, 0, len(route.Readable))
	for _, q := range route.Readable {
		queues = append(queues, rocketmq.Queue{Topic: t.name, Broker: q.Broker, ID: int(q.ID)})
	}
	return queues
}

// model is what heartbeats say.
func (c *Consumer) model() string {
	if c.local != nil {
		return wire.Broadcasting
	}
	return wire.Clustering
}
