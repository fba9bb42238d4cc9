// Package pool is the bounded pool of goroutines that runs users' handlers. It
// wraps ants, and is the only package to import it: goroutines are kept for
// the next task, panics go to a handler instead of the terminal, admission
// waits with a context, and closing waits for the tasks.
package pool

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"sync"

	"github.com/panjf2000/ants/v2"
	"golang.org/x/sync/semaphore"
)

// ErrClosed is returned for tasks that come after [Pool.Close].
var ErrClosed = errors.New("pool is closed")

// Pool runs at most a fixed number of tasks at a time. All methods are safe
// for concurrent use.
type Pool struct {
	ants *ants.Pool
	room *semaphore.Weighted
	free sync.Pool // of *task

	mu      sync.Mutex // guards all below; never held while a task is submitted
	size    int
	debt    int // places that tasks give up when they end, because the pool was made smaller
	closed  bool
	running int
	idle    chan struct{} // closed once the pool is closed and nothing runs
}

// task carries a function through ants without a closure per submission.
type task struct {
	p   *Pool
	f   func()
	run func()
}

// New returns a pool for size tasks at a time. onPanic is called on the
// goroutine of a task that panicked, with the panic's value and stack, after
// the task's place has been returned.
func New(size int, onPanic func(value any, stack []byte)) (*Pool, error) {
	if size < 1 {
		return nil, errors.New("pool needs at least one place")
	}
	p := &Pool{room: semaphore.NewWeighted(math.MaxInt64), size: size, idle: make(chan struct{})}
	p.room.TryAcquire(math.MaxInt64 - int64(size)) // what Resize can give back
	p.free.New = func() any {
		t := &task{p: p}
		t.run = t.do
		return t
	}
	// A goroutine of ants counts as busy a moment longer than its task holds a
	// place here; with twice the goroutines a task that got a place finds one.
	// No purge: a pool that is busy again a moment later wants them kept.
	var err error
	p.ants, err = ants.NewPool(2*size, ants.WithDisablePurge(true),
		ants.WithPanicHandler(func(v any) { onPanic(v, debug.Stack()) }))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Go runs f on a goroutine of the pool. It waits for a free place until ctx
// ends and then returns the context's cause.
func (p *Pool) Go(ctx context.Context, f func()) error {
	if err := p.room.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	return p.submit(f)
}

// TryGo runs f if a place is free, and reports whether it does. It does not
// wait for a place. It allocates nothing itself: a method value kept by the
// caller makes a call free of allocation.
func (p *Pool) TryGo(f func()) bool {
	return p.room.TryAcquire(1) && p.submit(f) == nil
}

func (p *Pool) submit(f func()) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.room.Release(1)
		return ErrClosed
	}
	p.running++
	p.mu.Unlock()
	t := p.free.Get().(*task)
	t.f = f
	if err := p.ants.Submit(t.run); err != nil {
		p.done()
		return ErrClosed
	}
	return nil
}

func (t *task) do() {
	p, f := t.p, t.f
	t.f = nil
	p.free.Put(t)
	defer p.done()
	f()
}

func (p *Pool) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.debt > 0 {
		p.debt--
	} else {
		p.room.Release(1)
	}
	p.running--
	if p.closed && p.running == 0 {
		close(p.idle)
	}
}

// Resize changes how many tasks run at a time, at least one. It does not wait:
// tasks that are too many by then finish, and their places go.
func (p *Pool) Resize(size int) {
	size = max(size, 1)
	p.mu.Lock()
	for ; p.size < size; p.size++ {
		if p.debt > 0 {
			p.debt--
		} else {
			p.room.Release(1)
		}
	}
	for ; p.size > size; p.size-- {
		if !p.room.TryAcquire(1) {
			p.debt++
		}
	}
	p.mu.Unlock()
	p.ants.Tune(2 * size)
}

// Running is the number of tasks that run now.
func (p *Pool) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Close refuses new tasks and waits for the running ones and their goroutines.
// When ctx ends first it returns the context's cause; goroutines still busy
// then end with their task. Closing again waits again.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		if p.running == 0 {
			close(p.idle)
		}
	}
	p.mu.Unlock()
	select {
	case <-p.idle:
	case <-ctx.Done():
		p.ants.Release()
		return context.Cause(ctx)
	}
	if err := p.ants.ReleaseContext(ctx); err != nil && !errors.Is(err, ants.ErrPoolClosed) {
		return context.Cause(ctx)
	}
	return nil
}
