package consume

import (
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// QueueHealth is the state of one assigned queue.
type QueueHealth struct {
	Queue       rocketmq.Queue
	Committed   int64 // lowest offset that is not done
	Next        int64 // to be pulled next
	Max         int64 // the broker's end of the queue, as of the last answer
	Cached      int   // messages pulled and not done
	CachedBytes int64
	Begun       int // of these, handed to handlers
	State       string
	Busy        time.Time            // when the oldest call of a handler began that has not returned; zero: there is none
	Suspended   bool                 // in order: after a failure
	Until       time.Time            // of the suspension; zero: until a dead letter is stored
	LastPull    time.Time            // last good answer of the broker
	LastError   error                // since then
	Stuck       rocketmq.StuckReason // "": it is not
	StuckSince  time.Time            // see watch.go
}

// states name the phases for people.
var states = [...]string{
	phaseIdle: "pulling", phasePulling: "pulling", phaseConnecting: "connecting", phaseWaiting: "backing off",
	phaseFull: "cache full", phasePaused: "paused", phaseHandover: "taking over", phaseLocking: "waiting for lock",
	phaseGone: "revoked",
}

// Balance tells when the queues were divided last without a failure, and the failure
// since then.
func (c *Consumer) Balance() (last time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.balanced, c.unsolved
}

// Health is a snapshot of all assigned queues, sorted.
func (c *Consumer) Health() []QueueHealth {
	qs := c.queues()
	out := make([]QueueHealth, len(qs))
	for i, q := range qs {
		out[i] = q.health()
	}
	slices.SortFunc(out, func(a, b QueueHealth) int { return a.Queue.Compare(b.Queue) })
	return out
}

func (q *queue) health() QueueHealth {
	begun := len(q.begun())
	st := q.topic.standing(q)
	q.mu.Lock()
	defer q.mu.Unlock()
	h := QueueHealth{
		Queue: q.key, Committed: q.committableLocked(), Next: q.next, Max: q.max,
		Cached: int(q.count.Load()), CachedBytes: q.bytes.Load(), Begun: begun,
		Busy: st.busy, Suspended: st.suspended, Until: st.until,
		State: states[q.phase], LastPull: q.lastPull, LastError: q.lastErr,
	}
	if q.watched.reason != "" {
		h.Stuck, h.StuckSince = q.watched.reason, q.watched.since
	}
	switch {
	case q.phase == phaseLocking && q.leased():
		h.State = "waiting for handler"
	case q.phase == phaseLocking && q.lost:
		h.State = "lock lost"
	case q.phase == phaseGone || q.phase == phaseLocking:
	case q.topic.paused.Load():
		h.State = "paused" // also while a pull waits at the broker
	case st.suspended:
		h.State = "suspended"
	}
	return h
}
