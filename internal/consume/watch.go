package consume

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gorocketmq/rocketmq"
)

const (
	// watchShare is how often a queue is looked at within Config.StuckAfter.
	watchShare = 8
	// unanswered is how long after a pull was sent a broker is taken for
	// unreachable: it should have answered after pullSuspend.
	unanswered = pullSuspend + 5*time.Second
	// overdueEvery is how often handlers are looked for that do not return.
	overdueEvery = 250 * time.Millisecond
	// overdueGrace is what a handler has to return after its context has ended.
	overdueGrace = time.Second
)

// watched is what the watchdog knows of a queue. queue.mu guards it.
type watched struct {
	done   int64     // messages done at the last look
	since  time.Time // the last look at which the queue went on, or had nothing to do
	reason rocketmq.StuckReason
}

// keepWatching is the watchdog: it finds queues that do not go on, handlers that do
// not return, and takes samples for the numbers that brokers ask for.
func (c *Consumer) keepWatching(ctx context.Context) {
	every := min(max(c.cfg.StuckAfter/watchShare, time.Millisecond), sampleEvery)
	if c.cfg.HandlerTimeout > 0 && !c.cfg.Ordered {
		every = min(every, overdueEvery)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for _, t := range c.topics {
		t.stats.sample(time.Now())
	}
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		c.endOverdue(now)
		for _, t := range c.topics {
			t.stats.sample(now)
		}
		if now.Sub(looked) < c.cfg.StuckAfter/watchShare {
			continue
		}
		looked = now
		for _, q := range c.queues() {
			if s, news := q.watch(now, c.cfg.StuckAfter); news {
				c.tellStuck(s)
			}
		}
	}
}

// tellStuck reports a queue, once an episode.
func (c *Consumer) tellStuck(s rocketmq.StuckInfo) {
	if s.Reason == "" {
		c.log.Info("queue goes on", "queue", s.Queue)
		return
	}
	c.log.Warn("queue is stuck", "queue", s.Queue, "reason", string(s.Reason), "since", s.Since, "lag", s.Lag,
		"cached", s.Cached, "in_flight", s.InFlight, "busy_since", s.BusySince, "err", s.Err)
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("the function or a hook for stuck queues panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	if c.cfg.OnStuck != nil {
		c.cfg.OnStuck(s)
	}
	for _, h := range c.cfg.Hooks.Stuck {
		h.OnStuck(s)
	}
}

// watch looks at a queue. news says that it is stuck and was not the last time, or
// the other way about, with no reason then.
func (q *queue) watch(now time.Time, after time.Duration) (s rocketmq.StuckInfo, news bool) {
	q.mu.Lock()
	w := &q.watched
	was := w.reason
	if w.since.IsZero() || q.restsLocked() {
		w.since, w.reason = now, ""
	}
	w.done = q.doneLocked()
	suspect, sure := now.Sub(w.since) >= after, true
	q.mu.Unlock()
	if suspect {
		s, sure = q.stuck(now)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !sure:
		return s, false
	case suspect && s.Reason == "":
		w.since = now // it has nothing to do after all
	}
	w.reason = s.Reason
	s.Queue = q.key
	return s, q.phase != phaseGone && (was == "") != (s.Reason == "")
}

// doneLocked counts the messages that are done.
func (q *queue) doneLocked() int64 { return q.taken - q.count.Load() }

// restsLocked tells whether there is nothing to complain about: something was done
// since the last look, or there is nothing to do.
func (q *queue) restsLocked() bool {
	switch {
	case q.topic.paused.Load(), q.doneLocked() != q.watched.done, q.phase == phaseHandover, q.phase == phaseGone:
		return true
	case q.phase == phaseLocking, q.failures > 0:
		return false // who knows
	}
	return q.count.Load() == 0 && q.next >= q.max
}

// stuck says why a queue does not go on. There is no reason if all of its messages
// are with handlers, and none waits. It is not sure while a pull is under way after
// one that failed.
func (q *queue) stuck(now time.Time) (s rocketmq.StuckInfo, sure bool) {
	h := q.health()
	places := q.topic.places(q)
	q.mu.Lock()
	defer q.mu.Unlock()
	s = rocketmq.StuckInfo{
		Group: q.c.cfg.Group, CacheFull: q.phase == phaseFull, Since: q.watched.since, BusySince: h.Busy,
		Committed: h.Committed, Lag: max(h.Max-h.Committed, 0), Cached: h.Cached, InFlight: h.Begun, Err: h.LastError,
	}
	unreached := q.failures > 0 && (q.phase != phasePulling || now.Sub(q.sentAt) >= unanswered)
	behind := h.Next < h.Max
	switch {
	case q.phase == phaseLocking && q.leased():
		s.Reason = rocketmq.StuckPredecessor
	case q.phase == phaseLocking:
		s.Reason = rocketmq.StuckLock
	case h.Suspended && h.Cached > 0:
		s.Reason = rocketmq.StuckSuspended
	case !h.Busy.IsZero() && (h.Cached > h.Begun || behind):
		s.Reason = rocketmq.StuckHandler
	case !h.Busy.IsZero():
	case h.Cached > h.Begun && places == placesRate:
		s.Reason = rocketmq.StuckRate
	case h.Cached > h.Begun && places == placesTaken:
		s.Reason = rocketmq.StuckPlaces
	case h.Begun > 0:
		s.Reason = rocketmq.StuckRetry
	case unreached:
		s.Reason = rocketmq.StuckBroker
	case q.failures > 0:
		return s, false
	case behind && h.Cached == 0:
		s.Reason = rocketmq.StuckPulling
	}
	return s, true
}

// What keeps a dispatcher from taking a queue's messages.
const (
	placesFree = iota
	placesTaken
	placesRate
)

// places tells why messages of a queue in the cache are not handed out.
func (t *topic) places(q *queue) int {
	worst := placesFree
	for _, o := range q.c.topics {
		if o.d != nil && (o == t || t.retry) {
			o.d.mu.Lock()
			if o.d.waiting {
				worst = max(worst, placesRate)
			} else if o.d.active >= o.d.limit {
				worst = max(worst, placesTaken)
			}
			o.d.mu.Unlock()
		}
	}
	return worst
}

// endOverdue fails the messages of handlers that do not return although their
// context has ended a while ago. The calls keep their places; what they return
// counts no more.
func (c *Consumer) endOverdue(now time.Time) {
	limit := c.cfg.HandlerTimeout
	if limit <= 0 || c.cfg.Ordered { // in order nothing else may be done with the queue meanwhile
		return
	}
	for _, t := range c.topics {
		if t.d == nil {
			continue
		}
		for _, w := range t.d.atWork() {
			if call, ok := w.giveUp(now.Add(-limit - overdueGrace)); ok {
				c.log.Warn("handler does not return, its messages have failed", "queue", call.w.p.q.key, "offset", call.w.views[call.from].Offset,
					"messages", call.to-call.from, "since", call.began)
				views := call.w.views[call.from:call.to]
				c.judge(t.d, call.w.p.q, call.w, call.from, call.to, ErrHandlerTimeout, c.newReport(call.w.p.q, views, call.began))
			}
		}
	}
}

// atWork are the workers that are at a lane.
func (d *dispatcher) atWork() (ws []*worker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		ws = append(ws, l.workers...)
	}
	return ws
}
