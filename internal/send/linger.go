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

	mu     sync.Mutex // guards all below
	tracks map[lane]*track
}

// lane is a way that messages go together: to one queue, or with id -1 to
// whichever is next.
type lane struct {
	topic  string
	broker string
	id     int
}

// track is what is on one lane. Its parcels leave one after the other, so that
// messages for one queue keep their order.
type track struct {
	lane  lane
	open  *parcel   // nil: none
	ready []*parcel // closed, not sent
	busy  bool      // somebody is sending one
}

// parcel is a batch that is being put together.
type parcel struct {
	members []*async
	bytes   int
	timer   *time.Timer
}

func newLinger(p *Pipeline, after time.Duration, limit int) *linger {
	return &linger{p: p, after: after, limit: limit, tracks: make(map[lane]*track)}
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
	l.mu.Lock()
	tr := l.tracks[way]
	if tr == nil {
		tr = &track{lane: way}
		l.tracks[way] = tr
	}
	if tr.open != nil && tr.open.bytes+size > l.limit {
		tr.close()
	}
	pc := tr.open
	if pc == nil {
		pc = &parcel{}
		pc.timer = time.AfterFunc(l.after, func() { l.expire(tr, pc) })
		tr.open = pc
	}
	pc.members = append(pc.members, x)
	if pc.bytes += size; pc.bytes >= l.limit {
		tr.close()
	}
	ready := len(tr.ready) > 0
	l.mu.Unlock()
	if ready {
		l.send(tr)
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
	defer func() { x.mind(recover(), &ok) }()
	if !x.known() || x.choose() != nil {
		return way, false
	}
	return lane{x.m.Topic, x.last.Broker, x.last.ID}, true
}

// close makes the open parcel ready; mu is held.
func (tr *track) close() {
	tr.open.timer.Stop()
	tr.ready = append(tr.ready, tr.open)
	tr.open = nil
}

// expire sends pc when it has waited long enough. Close waits for its members.
func (l *linger) expire(tr *track, pc *parcel) {
	l.mu.Lock()
	if tr.open == pc {
		tr.close()
	}
	l.mu.Unlock()
	l.send(tr)
}

// flush sends all that is held back.
func (l *linger) flush() {
	l.mu.Lock()
	all := make([]*track, 0, len(l.tracks))
	for _, tr := range l.tracks {
		if tr.open != nil {
			tr.close()
		}
		all = append(all, tr)
	}
	l.mu.Unlock()
	for _, tr := range all {
		l.send(tr)
	}
}

// send sends what is ready, unless somebody else is at it and will.
func (l *linger) send(tr *track) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(tr.ready) > 0 && !tr.busy {
		pc := tr.ready[0]
		tr.ready = append(tr.ready[:0], tr.ready[1:]...)
		tr.busy = true
		l.mu.Unlock()
		if x := l.seal(tr.lane, pc); x != nil {
			x.launch()
		}
		l.mu.Lock()
		tr.busy = false
	}
}

// seal makes one send of a closed parcel, nil if nobody in it wants to be sent
// any more.
func (l *linger) seal(way lane, pc *parcel) *async {
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
	if way.id >= 0 {
		x.opts.Fixed = true
		x.opts.Queue = rocketmq.Queue{Topic: way.topic, Broker: way.broker, ID: way.id}
	}
	return x
}

// batchable reports whether brokers take m in a batch.
func batchable(m *rocketmq.Message) bool {
	return m.Delay.IsZero() && m.ReplyTo == nil && !wire.IsRetryTopic(m.Topic) && len(m.Topic) <= wire.MaxTopicV1
}
