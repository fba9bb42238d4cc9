package send

import (
	"context"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// linger holds asynchronous sends back for a moment and sends those that go
// the same way as one batch.
type linger struct {
	p     *Pipeline
	after time.Duration
	limit int // bytes of a batch

	mu   sync.Mutex // guards all below
	open map[lane]*parcel
}

// lane is a way that messages go together: to one queue, or with id -1 to
// whichever is next.
type lane struct {
	topic  string
	broker string
	id     int
}

// parcel is a batch that is still open.
type parcel struct {
	lane    lane
	members []*async
	bytes   int
	timer   *time.Timer
}

func newLinger(p *Pipeline, after time.Duration, limit int) *linger {
	return &linger{p: p, after: after, limit: limit, open: make(map[lane]*parcel)}
}

// add takes x over and reports whether it did: some messages go alone.
func (l *linger) add(x *async) bool {
	if !batchable(x.m) {
		return false
	}
	way, ok := l.way(x)
	size := batchedSize(x.m)
	if !ok || size > l.limit {
		return false
	}
	var full [2]*parcel
	l.mu.Lock()
	pc := l.open[way]
	if pc != nil && pc.bytes+size > l.limit {
		full[0] = l.close(pc)
		pc = nil
	}
	if pc == nil {
		pc = &parcel{lane: way}
		pc.timer = time.AfterFunc(l.after, func() { l.expire(pc) })
		l.open[way] = pc
	}
	pc.members = append(pc.members, x)
	if pc.bytes += size; pc.bytes >= l.limit {
		full[1] = l.close(pc)
	}
	l.mu.Unlock()
	for _, pc := range full {
		if pc != nil {
			if x := l.seal(pc); x != nil {
				x.launch()
			}
		}
	}
	return true
}

// way decides where x goes if that is not up to the pipeline; false if that
// takes waiting.
func (l *linger) way(x *async) (way lane, ok bool) {
	way = lane{x.m.Topic, "", -1}
	switch {
	case x.opts.Fixed:
		q := x.opts.Queue
		return lane{x.m.Topic, q.Broker, q.ID}, (q.Topic == "" || q.Topic == x.m.Topic) && q.ID >= 0
	case x.m.ShardingKey == "" && x.opts.Selector == nil && x.p.cfg.Selector == nil:
		return way, true
	}
	defer x.mind(&ok)
	if !x.known() || x.choose() != nil {
		return way, false
	}
	return lane{x.m.Topic, x.last.Broker, x.last.ID}, true
}

// close takes pc from those that are open; mu is held.
func (l *linger) close(pc *parcel) *parcel {
	pc.timer.Stop()
	delete(l.open, pc.lane)
	return pc
}

// expire lets a helper send pc: timers must not wait.
func (l *linger) expire(pc *parcel) {
	l.mu.Lock()
	mine := l.open[pc.lane] == pc
	if mine {
		l.close(pc)
	}
	l.mu.Unlock()
	if mine {
		if x := l.seal(pc); x != nil {
			l.p.helpers.add(x)
		}
	}
}

// flush sends all that is held back.
func (l *linger) flush() {
	l.mu.Lock()
	all := make([]*parcel, 0, len(l.open))
	for _, pc := range l.open {
		all = append(all, l.close(pc))
	}
	l.mu.Unlock()
	for _, pc := range all {
		if x := l.seal(pc); x != nil {
			x.launch()
		}
	}
}

// seal makes one send of a closed parcel, nil if nobody in it wants to be sent
// any more.
func (l *linger) seal(pc *parcel) *async {
	rest := pc.members[:0]
	for _, m := range pc.members {
		if m.ctx.Err() != nil {
			m.end(m.fail(context.Cause(m.ctx)))
			continue
		}
		rest = append(rest, m)
	}
	switch len(rest) {
	case 0:
		return nil
	case 1:
		return rest[0]
	}
	x := l.p.asyncs.Get().(*async)
	x.ctx, x.members, x.m = context.Background(), rest, rest[0].m
	x.begin(x.ctx, time.Now())
	x.batch = make([]*rocketmq.Message, len(rest))
	for i, m := range rest {
		x.batch[i] = m.m
		if m.deadline.Before(x.deadline) {
			x.deadline = m.deadline
		}
	}
	if pc.lane.id >= 0 {
		x.opts.Fixed = true
		x.opts.Queue = rocketmq.Queue{Topic: pc.lane.topic, Broker: pc.lane.broker, ID: pc.lane.id}
	}
	return x
}

// batchable reports whether brokers take m in a batch.
func batchable(m *rocketmq.Message) bool {
	return m.Delay.IsZero() && m.ReplyTo == nil && !wire.IsRetryTopic(m.Topic) && len(m.Topic) <= wire.MaxTopicV1
}
