// Package run owns goroutines. Every goroutine of the module is started
// through a [Group], so that whoever started it can end it and wait for it.
package run

import (
	"context"
	"sync"
)

// Group is a set of goroutines that share one context and are ended together.
// The zero value is not usable; call [NewGroup]. All methods are safe for
// concurrent use.
type Group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards closed and orders Add before Wait
	closed bool
	wg     sync.WaitGroup
}

// NewGroup returns a group whose context is a child of ctx.
func NewGroup(ctx context.Context) *Group {
	g := &Group{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Context is the context the group's goroutines run under. It ends when the
// parent ends or when [Group.Cancel] or [Group.Stop] is called.
func (g *Group) Context() context.Context { return g.ctx }

// Go starts f on a goroutine of the group and reports whether it did: a group
// that was stopped starts nothing any more. f must return soon after its
// context ends.
func (g *Group) Go(f func(ctx context.Context)) bool {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false
	}
	g.wg.Add(1)
	g.mu.Unlock()
	go func() {
		defer g.wg.Done()
		f(g.ctx)
	}()
	return true
}

// Cancel ends the group's context with a cause and refuses new goroutines. It
// does not wait. A nil cause means context.Canceled.
func (g *Group) Cancel(cause error) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel(cause)
}

// Wait blocks until every goroutine of the group has returned. It must not be
// called from one of them.
func (g *Group) Wait() { g.wg.Wait() }

// WaitContext is [Group.Wait] bounded by ctx. It returns the context's cause
// when ctx ended first; the goroutines then still run and can be waited for
// again.
func (g *Group) WaitContext(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		g.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop is [Group.Cancel] followed by [Group.Wait].
func (g *Group) Stop() {
	g.Cancel(nil)
	g.Wait()
}
