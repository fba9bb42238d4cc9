package broker

import (
	"context"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/timer"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// deliverDue is a round: it reads what has come, and delivers what is due, the
// earliest first.
func (r *timerRun) deliverDue(ctx context.Context) (next int64) {
	for ctx.Err() == nil {
		if now := r.clock.Now().UnixMilli(); r.resume > now {
			return r.resume
		}
		more, ok := r.read(ctx)
		if ok && r.files.CaughtUp() {
			ok = r.deliver(ctx)
		}
		if !ok || ctx.Err() != nil {
			break
		}
		r.succeeded()
		if more {
			continue
		}
		// Whoever adds a message now either sees the mark, or is seen here.
		r.idle.Store(true)
		if r.behind() == 0 {
			break
		}
		r.idle.Store(false)
	}
	if err := r.files.Clean(); err != nil {
		r.log.Error("timer log file not removed, trying again", "err", err)
	}
	if len(r.ready) > 0 {
		next = r.ready[0].due
	}
	if r.resume > 0 {
		next = r.resume
	}
	return next
}

// deliver delivers what is due. ok is false if the service has to wait.
func (r *timerRun) deliver(ctx context.Context) (ok bool) {
	for n := 0; ctx.Err() == nil; n++ {
		r.load()
		now := r.clock.Now().UnixMilli()
		if len(r.ready) == 0 || r.ready[0].due > now {
			r.files.Passed(now)
			r.recalled.expire(now, func(hash int32) { r.counts.add(nil, hash, 1) })
			return true
		}
		if n > 0 && n%readAtOnce == 0 && r.behind() > 0 {
			return true
		}
		e := r.ready[0]
		end, ok := r.deliverOne(&e)
		if !ok {
			return false
		}
		r.ready.pop()
		r.files.Delivered(e.offset, e.due, end)
	}
	return false
}

// deliverOne delivers one message. end is that of the copy in the log.
func (r *timerRun) deliverOne(e *readyTimer) (end int64, ok bool) {
	var res store.PutResult
	ok = true
	there := r.store.Record(cq.Unit{Phy: e.phy, Size: e.size}, func(rec *wire.Record) {
		p := parkedTimer(rec)
		if e.magic&timer.MagicRoll == 0 && r.recalled.take(&p) {
			return // counted when it was recalled
		}
		if res, ok = r.release(rec, e); ok {
			r.counts.add(p.topic, wire.JavaHash(p.topic), -countOf(e.magic))
		}
	})
	if !there {
		r.log.Error("timer message cannot be delivered, skipping it", "offset", e.offset, "phy", e.phy, "why", "its record is not in the log")
	}
	return res.End, ok
}

// release puts a copy of a parked message to where it was sent, or back into
// the timer topic if its time has not come. The copy has all properties of the
// parked one, as Apache's, and what became of it. ok is false if that has to be
// tried again.
func (r *timerRun) release(rec *wire.Record, e *readyTimer) (res store.PutResult, ok bool) {
	m, problem := released(rec)
	if problem == "" {
		roll := e.magic&timer.MagicRoll != 0
		m.Properties = r.stamp(rec.Properties, e, roll)
		if roll {
			m.Topic, m.QueueID = []byte(wire.TopicTimer), 0
		}
		now := r.clock.Now().UnixMilli()
		switch res = r.put(&m); {
		case res.Status == store.MessageIllegal || res.Status == store.PropertiesSizeExceeded:
			problem = res.Err.Error() // and so it will be the next time
		case !res.Status.Stored():
			r.failed(now, res)
			return res, false
		}
	}
	if problem != "" {
		r.log.Error("timer message cannot be delivered, skipping it", "offset", e.offset, "phy", e.phy, "why", problem)
	}
	r.succeeded()
	return res, true
}

// stamp appends to a message's properties what Apache's broker does.
func (r *timerRun) stamp(p wire.Properties, e *readyTimer, roll bool) wire.Properties {
	names := [...]string{wire.PropTimerEnqueueMs, wire.PropTimerDequeueMs, wire.PropTimerRollTimes}
	n := len(names)
	if !roll {
		n--
	}
	b := p.Without(r.props[:0], names[:n]...)
	if roll {
		times, _ := p.Lookup(wire.PropTimerRollTimes)
		before, _ := wire.ParseInt(times)
		b = wire.AppendProperty(b, wire.PropTimerRollTimes, strconv.FormatInt(before+1, 10))
	}
	b = wire.AppendProperty(b, wire.PropTimerEnqueueMs, strconv.FormatInt(e.enqueue, 10))
	b = wire.AppendProperty(b, wire.PropTimerDequeueMs, strconv.FormatInt(r.clock.Now().UnixMilli(), 10))
	r.props = b
	return b
}

// failed lets the service wait.
func (r *timerRun) failed(now int64, res store.PutResult) {
	if r.fails == 0 {
		r.log.Error("timer message not delivered, trying again", "status", res.Status, "err", res.Err)
	}
	r.resume = now + pauseAfter(r.fails).Milliseconds()
	r.fails++
}

// succeeded ends what failed began.
func (r *timerRun) succeeded() {
	if r.fails > 0 {
		r.log.Info("timers go on")
		r.fails, r.resume = 0, 0
	}
}

// recalls are messages that have been taken back, by topic and id, as long as
// they may still be delivered.
type recalls map[string]recallOf

type recallOf struct {
	until int64 // ms
	hash  int32 // of the topic
	used  bool
}

// add is false if the message has been recalled before.
func (c recalls) add(key []byte, until int64, hash int32) bool {
	if _, ok := c[string(key)]; ok {
		return false
	}
	c[string(key)] = recallOf{until: until, hash: hash}
	return true
}

// take tells whether a message has been recalled.
func (c recalls) take(p *timerRecord) bool {
	if len(c) == 0 || p.id == nil {
		return false
	}
	key := string(p.topic) + "+" + string(p.id)
	x, ok := c[key]
	if ok {
		x.used = true
		c[key] = x
	}
	return ok
}

// expire drops those whose time is over, and calls f for those that were of no
// message.
func (c recalls) expire(now int64, f func(hash int32)) {
	for key, x := range c {
		if x.until < now {
			delete(c, key)
			if !x.used {
				f(x.hash)
			}
		}
	}
}
