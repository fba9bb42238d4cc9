package consume

import (
	"sync"
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
	ok    int          // messages done since the statistics were told, see stats.go

	mu   sync.Mutex // guards call
	call call       // kept only if handlers have a time limit
}

// call is what a handler is at.
type call struct {
	w        *work
	from, to int
	began    time.Time
	runs     bool
	givenUp  bool // its messages have failed without it
}

// beginCall notes that a handler is called which has a time limit.
func (w *worker) beginCall(from, to int) {
	w.mu.Lock()
	w.call = call{w: w.work, from: from, to: to, began: time.Now(), runs: true}
	w.mu.Unlock()
}

// endCall notes that it has returned. It is false if it was given up before.
func (w *worker) endCall() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok := !w.call.givenUp
	w.call = call{}
	return ok
}

// giveUp gives up the call that a worker is at if it began before a time.
func (w *worker) giveUp(before time.Time) (call, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.call.runs || w.call.began.After(before) {
		return call{}, false
	}
	w.call.runs, w.call.givenUp = false, true
	return w.call, true
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
func (w *worker) tick(s *stats) {
	if w.calls++; !w.slow && w.calls < callsPerTick && w.since.Load() != 0 {
		return
	}
	now := time.Now().UnixNano()
	if last := w.since.Swap(now); last != 0 {
		took := time.Duration(now - last)
		w.slow = took > slowCall*time.Duration(w.calls)
		s.handled(w.calls, took, w.ok)
		w.ok = 0
	}
	w.calls = 0
}

// idle notes that the worker is not at a call.
func (w *worker) idle(s *stats) {
	if last := w.since.Swap(0); last != 0 {
		s.handled(w.calls+1, time.Duration(time.Now().UnixNano()-last), w.ok)
	}
	w.calls, w.ok = 0, 0
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
