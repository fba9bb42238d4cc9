package consume

import (
	"sync/atomic"
	"time"
)

// worker is a place at which handlers are called. It outlives the goroutine
// that is at it.
type worker struct {
	lane *lane // dispatcher.mu guards it, and the worker reads it
	work *work

	since atomic.Int64 // when the call it is at began, ns since 1970; 0: none. See tick.
	calls int          // since then
	slow  bool         // calls take long enough to have each one's time taken
}

// A clock read costs as much as the rest of a quick call. So the time is taken
// every callsPerTick calls, and of each call if they take longer than slowCall
// on average. What is told of a call's beginning is off by
// callsPerTick * slowCall at most.
const (
	callsPerTick = 16
	slowCall     = 50 * time.Microsecond
)

// tick notes that a call begins.
func (w *worker) tick() {
	if w.calls++; !w.slow && w.calls < callsPerTick && w.since.Load() != 0 {
		return
	}
	now := time.Now().UnixNano()
	if last := w.since.Swap(now); last != 0 {
		w.slow = time.Duration(now-last) > slowCall*time.Duration(w.calls)
	}
	w.calls = 0
}

// idle notes that the worker is not at a call.
func (w *worker) idle() {
	w.since.Store(0)
	w.calls = 0
}

// standing is what a dispatcher is doing with a queue.
type standing struct {
	busy      time.Time // when the oldest call began that has not returned; zero: there is none
	suspended bool      // after a failure
	until     time.Time // of the suspension; zero: until a dead letter is stored
}

// standing looks at one queue.
func (d *dispatcher) standing(q *queue) (s standing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[q]
	if l == nil {
		return s
	}
	for _, w := range l.workers {
		if ns := w.since.Load(); ns != 0 && (s.busy.IsZero() || ns < s.busy.UnixNano()) {
			s.busy = time.Unix(0, ns)
		}
	}
	s.suspended, s.until = l.held, l.until
	return s
}
