package send

import (
	"context"
	"sync"
)

// laps count the asynchronous sends under way, those of the present lap and
// those of the one before, so that a flush waits for what came before it and
// not for what keeps coming.
type laps struct {
	turn chan struct{} // one slot: whoever flushes has it

	mu    sync.Mutex // guards all below
	lap   uint8      // 0 or 1
	n     [2]int
	empty chan struct{} // closed when the lap before has ended; nil: nobody waits
}

func (l *laps) init() { l.turn = make(chan struct{}, 1) }

func (l *laps) enter() uint8 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n[l.lap]++
	return l.lap
}

func (l *laps) leave(lap uint8) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n[lap]--; l.n[lap] == 0 && lap != l.lap && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}

// wait returns when all that had entered before it has left.
func (l *laps) wait(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	// An earlier wait may have been given up.
	if err := l.past(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.lap = 1 - l.lap
	l.mu.Unlock()
	return l.past(ctx)
}

// past waits for the lap before.
func (l *laps) past(ctx context.Context) error {
	l.mu.Lock()
	if l.n[1-l.lap] == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.empty == nil {
		l.empty = make(chan struct{})
	}
	empty := l.empty
	l.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
