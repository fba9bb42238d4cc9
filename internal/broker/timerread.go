package broker

import (
	"context"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/timer"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// readAtOnce is how many messages are read before those that are due get a
// turn.
const readAtOnce = 200

// read adds messages that have come to the timer log. more tells that there
// are others; with ok false the service has to wait.
func (r *timerRun) read(ctx context.Context) (more, ok bool) {
	off := r.files.State().Queue
	for n := 0; ctx.Err() == nil; n++ {
		at, u, found := r.store.NextUnit(wire.TopicTimer, 0, off)
		if at != off {
			r.log.Warn("timer queue goes on elsewhere: messages have been cleaned away, or the progress was ahead of them", "offset", off, "now", at)
			off = at
			r.files.Read(off, 0)
		}
		if !found {
			return false, true
		}
		if n == readAtOnce {
			return true, true
		}
		end, done := u.Phy+int64(u.Size), true
		if !r.store.Record(u, func(rec *wire.Record) { end, done = r.take(rec, u) }) {
			r.log.Error("timer message cannot be read, skipping it", "offset", off, "phy", u.Phy)
		}
		if !done {
			return true, false
		}
		off++
		r.files.Read(off, end)
	}
	return false, false
}

// take adds a message to the timer log, or delivers it. end is where in the
// log all of it is; done is false if it has to be tried again.
func (r *timerRun) take(rec *wire.Record, u cq.Unit) (end int64, done bool) {
	end = u.Phy + int64(u.Size)
	p := parkedTimer(rec)
	if p.problem != "" {
		r.log.Error("timer message cannot be delivered, skipping it", "offset", rec.QueueOffset, "phy", u.Phy, "why", p.problem)
		return end, true
	}
	if r.files.Done(rec.QueueOffset, p.due) {
		return end, true
	}
	now := r.clock.Now().UnixMilli()
	if st := r.files.State(); p.due <= st.Time {
		if p.due > now {
			r.files.Back(p.due)
		} else {
			return r.late(rec, u, &p)
		}
	}
	precision := r.precision()
	x := timer.Unit{Magic: timer.MagicDefault, EnqueueTime: now / precision * precision, Phy: u.Phy, Size: u.Size, TopicHash: wire.JavaHash(p.topic)}
	slot := r.files.SlotOf(p.due)
	if window := r.window(); slot-x.EnqueueTime >= window {
		x.Magic |= timer.MagicRoll
		// Not so that little is left for the next time.
		if slot-x.EnqueueTime-window < window/precision/3*precision {
			window = window / precision / 2 * precision
		}
		slot = x.EnqueueTime + window
	}
	if p.recalls != nil {
		x.Magic |= timer.MagicDelete
	}
	x.Delay = int32(slot - x.EnqueueTime)
	if err := r.files.Add(x); err != nil {
		r.failed(now, store.PutResult{Err: err})
		return end, false
	}
	r.counts.add(p.topic, x.TopicHash, countOf(x.Magic))
	return end, true
}

// late delivers a message that has come after its time.
func (r *timerRun) late(rec *wire.Record, u cq.Unit, p *timerRecord) (end int64, done bool) {
	end = u.Phy + int64(u.Size)
	if p.recalls != nil {
		return end, true
	}
	e := readyTimer{due: p.due, offset: rec.QueueOffset, phy: u.Phy, size: u.Size, magic: timer.MagicDefault, enqueue: neverEnqueued}
	res, ok := r.release(rec, &e)
	return max(end, res.End), ok
}

// neverEnqueued is what Apache puts into TIMER_ENQUEUE_MS of a message that was
// late from the start.
const neverEnqueued = int64(1<<63 - 1)

// countOf is what a unit adds to the messages that wait.
func countOf(magic int32) int64 {
	if magic&timer.MagicDelete != 0 {
		return -1
	}
	return 1
}

// load takes slots from the files until the first message is known.
func (r *timerRun) load() {
	for {
		slot, ok := r.files.Next()
		if !ok || len(r.ready) > 0 && r.ready[0].due <= slot {
			return
		}
		r.units = r.files.Take(r.units[:0])
		for i := range r.units {
			r.makeReady(&r.units[i])
		}
		if cap(r.units) > readAtOnce {
			r.units = nil // a slot may have had very many
		}
	}
}

// makeReady finds out what a unit is of.
func (r *timerRun) makeReady(u *timer.Unit) {
	e := readyTimer{phy: u.Phy, size: u.Size, magic: u.Magic, enqueue: u.EnqueueTime}
	problem := "its record is not in the log"
	done, recall := false, false
	r.store.Record(cq.Unit{Phy: u.Phy, Size: u.Size}, func(rec *wire.Record) {
		if string(rec.Topic) != wire.TopicTimer || rec.PhyOffset != u.Phy {
			problem = "its record is another one"
			return
		}
		p := parkedTimer(rec)
		if problem = p.problem; problem != "" {
			return
		}
		e.offset, e.due = rec.QueueOffset, p.due
		if u.Magic&timer.MagicRoll != 0 {
			e.due = u.Time() + r.precision()
		} else if p.recalls != nil {
			if !r.recalled.add(p.recalls, e.due+2*r.precision(), u.TopicHash) {
				r.counts.add(nil, u.TopicHash, 1) // asked for twice
			}
			recall = true
			return
		}
		done = r.files.Done(e.offset, e.due)
	})
	switch {
	case problem != "":
		r.log.Error("timer message cannot be delivered, skipping it", "phy", u.Phy, "why", problem)
		r.counts.add(nil, u.TopicHash, -countOf(u.Magic))
	case done:
		r.counts.add(nil, u.TopicHash, -countOf(u.Magic))
	case !recall:
		r.ready.push(e)
	}
}
