package send

import (
	"context"
	"sync"
)

// laps count the asynchronous sends under way. Every flush begins a new lap and
// waits for the one before and all earlier ones: for what came before it, and
// not for what keeps coming.
type laps struct {
	mu  sync.Mutex // guards all below, and the laps
	now *lap
}

type lap struct {
	n     int  // under way
	first bool // all earlier laps have ended
	next  *lap // nil: more can still come
	ended chan struct{}
}

func (l *laps) init() { l.now = &lap{first: true, ended: make(chan struct{})} }

func (l *laps) enter() *lap {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.n++
	return l.now
}

func (l *laps) leave(x *lap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.n--
	x.settle()
}

// settle ends laps that are over; mu is held.
func (x *lap) settle() {
	for x.first && x.n == 0 && x.next != nil {
		close(x.ended)
		x = x.next
		x.first = true
	}
}

// wait returns when all that had entered before it has left.
func (l *laps) wait(ctx context.Context) error {
	l.mu.Lock()
	x := l.now
	if x.first && x.n == 0 {
		l.mu.Unlock()
		return nil
	}
	l.now = &lap{ended: make(chan struct{})}
	x.next = l.now
	x.settle()
	l.mu.Unlock()
	select {
	case <-x.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
