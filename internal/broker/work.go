package broker

import (
	"context"
	"sync"
)

// work is a request for rounds of work that merge: asking while a round runs
// causes one more round, not one per request. One goroutine works, any may
// ask and wait.
type work struct {
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

func newWork() *work { return &work{wake: make(chan struct{}, 1)} }

// ask asks for a round that begins after this call. The result is for wait.
func (w *work) ask() uint64 {
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

// begin is what has been asked for so far. The worker takes it at the start of
// a round and gives it to end when the round is over.
func (w *work) begin() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *work) end(seq uint64) {
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

// wait blocks until the round that ask asked for has ended, or close.
func (w *work) wait(ctx context.Context, seq uint64) error {
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

// close releases all who wait, for good. The worker calls it when it ends.
func (w *work) close() {
	w.mu.Lock()
	w.closed = true
	waiters := w.waiters
	w.waiters = nil
	w.mu.Unlock()
	for _, x := range waiters {
		close(x.ch)
	}
}
