package send

import (
	"context"
	"fmt"
	"sync/atomic"
)

// gate counts the sends under way, so that closing can wait for them.
type gate struct {
	inside atomic.Int64
	closed atomic.Bool
	empty  chan struct{} // one slot: the last one has left after closing
}

func (g *gate) init() { g.empty = make(chan struct{}, 1) }

// enter reports whether the gate is open. If so, leave must follow.
func (g *gate) enter() bool {
	g.inside.Add(1)
	if g.closed.Load() {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() {
	if g.inside.Add(-1) == 0 && g.closed.Load() {
		g.signal()
	}
}

func (g *gate) signal() {
	select {
	case g.empty <- struct{}{}:
	default:
	}
}

// shut lets nobody in any more.
func (g *gate) shut() { g.closed.Store(true) }

// wait waits until nobody is inside a gate that is shut.
func (g *gate) wait(ctx context.Context) error {
	for g.inside.Load() > 0 {
		select {
		case <-g.empty:
		case <-ctx.Done():
			return fmt.Errorf("producer: %d sends are still under way: %w", g.inside.Load(), context.Cause(ctx))
		}
	}
	g.signal() // to the next one who waits here
	return nil
}
