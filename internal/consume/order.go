package consume

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// suspend is how long a queue rests after a failure, as in Java's client.
const suspend = time.Second

// judgeOrdered settles a batch whose handler did not return nil. Messages up to
// the first that was not done are finished; that one comes first again, after a
// pause or, once it has had all its attempts, when it is among the dead letters.
// It is false if the queue may not go on before that.
func (c *Consumer) judgeOrdered(d *dispatcher, me *worker, from, to int, err error, r report) bool {
	w := me.work
	q := w.p.q
	var pe *rocketmq.PanicError
	if errors.As(err, &pe) {
		c.log.Error("handler panicked", "queue", q.key, "offset", w.views[from].Offset, "messages", to-from,
			"panic", fmt.Sprint(pe.Value), "stack", string(pe.Stack))
	}
	first, out := from, Outcome{}
	for ; first < to; first++ {
		if out = c.cfg.Judge(err, first-from, to-from); out.Kind != Done {
			break
		}
		r.failed(first-from, out, false)
		q.topic.stats.judged(out)
		q.finish(w.p, w.base+first)
	}
	if first == to {
		return true
	}
	w.pos.Store(int32(first))
	if q.cut() || out.Kind == Untried {
		for i := first; i < to; i++ {
			r.failed(i-from, Outcome{Kind: Untried, Err: err}, false)
		}
	}
	switch {
	case q.cut():
		return false
	case out.Kind == Untried && first > from:
		return true
	case out.Kind == Untried:
		c.suspend(d, me.lane, suspend) // not one done: it would be asked again and again
		return false
	}
	if pe == nil {
		c.log.Warn("message failed, its queue is suspended", "message", w.views[first], "err", out.Err)
	}
	// Views that a handler has had stay as they were.
	w.views = slices.Clone(w.views)
	dead := first
	for i := first; i < to; i++ {
		o := c.cfg.Judge(err, i-from, to-from)
		if o.Kind == Failed {
			q.topic.stats.judged(o)
		}
		switch {
		case o.Kind != Failed:
			r.failed(i-from, Outcome{Kind: Untried}, false)
		case dead == i && c.spent(w.views[i], o):
			dead++
			r.failed(i-from, o, true)
		default:
			r.failed(i-from, o, false)
			w.again(i)
		}
	}
	pause := out.Delay
	if pause <= 0 {
		pause = suspend
	}
	if dead == first {
		c.suspend(d, me.lane, pause)
		return false
	}
	d.hold(me.lane, time.Time{})
	q.running.Add(1)
	out.DelayLevel = -1
	b := &burial{d: d, l: me.lane, w: w, at: first, end: dead, pause: pause, rest: dead < to, out: out}
	b.next()
	return false
}

// spent tells whether a message that failed goes to the dead letters.
func (c *Consumer) spent(v *rocketmq.MessageView, o Outcome) bool {
	return o.DelayLevel < 0 || c.cfg.MaxAttempts > 0 && v.Attempt >= c.cfg.MaxAttempts
}

// suspend keeps a lane's handler off for a while.
func (c *Consumer) suspend(d *dispatcher, l *lane, pause time.Duration) {
	d.hold(l, time.Now().Add(pause))
	c.timers.after(pause, func() { d.resume(l) })
}

// again counts an attempt of message i.
func (w *work) again(i int) {
	v := *w.views[i]
	v.Attempt++
	w.views[i] = &v
}

// burial takes messages that have had all their attempts to the dead letters,
// one after the other, while their lane is held.
type burial struct {
	d     *dispatcher
	l     *lane
	w     *work
	at    int // the message it is at
	end   int
	pause time.Duration
	rest  bool // others of the batch failed, too
	out   Outcome
}

func (b *burial) next() {
	f := newFailed(b.d, b.w, b.at, b.out)
	f.publish, f.burial = true, b
	b.d.c.settler.add(f)
}

// done goes on after one message: it is stored, or err says why not. Then it has
// one more attempt and is tried again.
func (b *burial) done(err error) {
	c, q := b.d.c, b.w.p.q
	gone := q.gone.Load()
	if err == nil {
		c.log.Warn("message sent to the dead letters", "message", b.w.views[b.at])
		q.finish(b.w.p, b.w.base+b.at)
		b.at++
		b.w.pos.Store(int32(b.at))
		if b.at < b.end && !gone {
			b.next()
			return
		}
	} else {
		b.w.again(b.at)
		b.rest = true
		if !gone {
			c.log.Warn("message could not be sent to the dead letters, its queue is suspended", "message", b.w.views[b.at], "err", err)
		}
	}
	q.leave()
	switch {
	case gone:
	case b.rest:
		c.suspend(b.d, b.l, b.pause)
	default:
		b.d.resume(b.l)
	}
}
