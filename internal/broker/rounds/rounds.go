// Package rounds lets many ask one goroutine for work, and wait until it is
// done.
package rounds

import (
	"context"
	"sync"
)

// Work is a request for rounds of work that merge: asking while a round runs
// causes one more round, not one per request. One goroutine works, any may
// ask and wait.
type Work struct {
	wake chan struct{} // capacity 1

	mu      sync.Mutex // guards all below; nothing is called under it
	asked   uint64
	done    uint64
	closed  bool
	waiters []waiter
}

type waiter struct {
	seq uint64
	ch  chan struct{}
}

// New returns work that nobody has asked for yet.
func New() *Work { return &Work{wake: make(chan struct{}, 1)} }

// Wake gets a value when there is work to do.
func (w *Work) Wake() <-chan struct{} { return w.wake }

// Ask asks for a round that begins after this call. The result is for [Work.Wait].
func (w *Work) Ask() uint64 {
	w.mu.Lock()
	w.asked++
	seq := w.asked
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return seq
}

// Begin is what has been asked for so far. The worker takes it at the start of
// a round and gives it to [Work.End] when the round is over.
func (w *Work) Begin() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// End ends a round: those who asked for it before it began go on.
func (w *Work) End(seq uint64) {
	w.mu.Lock()
	w.done = max(w.done, seq)
	rest := w.waiters[:0]
	var ready []chan struct{}
	for _, x := range w.waiters {
		if x.seq <= w.done {
			ready = append(ready, x.ch)
		} else {
			rest = append(rest, x)
		}
	}
	w.waiters = rest
	w.mu.Unlock()
	for _, ch := range ready {
		close(ch)
	}
}

// Wait blocks until the round that Ask asked for has ended, or [Work.Close].
func (w *Work) Wait(ctx context.Context, seq uint64) error {
	w.mu.Lock()
	if w.done >= seq || w.closed {
		w.mu.Unlock()
		return nil
	}
	ch := make(chan struct{})
	w.waiters = append(w.waiters, waiter{seq, ch})
	w.mu.Unlock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close releases all who wait, for good. The worker calls it when it ends.
func (w *Work) Close() {
	w.mu.Lock()
	w.closed = true
	waiters := w.waiters
	w.waiters = nil
	w.mu.Unlock()
	for _, x := range waiters {
		close(x.ch)
	}
}
