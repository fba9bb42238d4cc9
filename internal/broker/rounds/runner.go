package rounds

import (
	"context"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/run"
)

// Runner is a goroutine that works in rounds: whenever it is asked to, and when
// the time has come for what the round before found to be next. It sleeps on one
// timer of the clock. All methods are safe for concurrent use, but Start and Stop
// are called once, in this order.
type Runner struct {
	clock clock.Clock
	round func(ctx context.Context) (next int64)
	group *run.Group
	work  *Work
	timer clock.Timer // the goroutine's own

	mu    sync.Mutex // guards all below; nothing is called under it
	next  time.Time  // when there is something to do; zero: nothing waits
	newer chan struct{}
}

// NewRunner returns a runner that calls round, which tells when there will be
// something to do next, in ms since 1970; 0: nothing waits.
func NewRunner(c clock.Clock, round func(ctx context.Context) (next int64)) *Runner {
	return &Runner{clock: c, round: round, group: run.NewGroup(context.Background()), work: New(), newer: make(chan struct{})}
}

// Start begins with a first round.
func (r *Runner) Start() {
	r.work.Ask()
	r.group.Go(r.run)
}

// Stop ends the goroutine and waits for it.
func (r *Runner) Stop() { r.group.Stop() }

// Ask asks for a round that begins after this call. It does not block.
func (r *Runner) Ask() { r.work.Ask() }

// Settle blocks until a round has ended that began after this call, or Stop.
func (r *Runner) Settle(ctx context.Context) error { return r.work.Wait(ctx, r.work.Ask()) }

// run is the goroutine.
func (r *Runner) run(ctx context.Context) {
	defer r.end()
	for {
		select {
		case <-r.work.Wake():
		case <-ctx.Done():
			return
		}
		seq := r.work.Begin()
		next := r.round(ctx)
		r.sleep(ctx, next)
		r.work.End(seq)
	}
}

func (r *Runner) end() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.work.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.newer)
}

// sleep sets the timer to when there is something to do next.
func (r *Runner) sleep(ctx context.Context, next int64) {
	r.publish(next)
	if next == 0 || ctx.Err() != nil {
		return
	}
	at := time.UnixMilli(next)
	for {
		now := r.clock.Now()
		if !at.After(now) {
			r.work.Ask() // it has become due meanwhile
			return
		}
		if r.timer == nil {
			r.timer = r.clock.AfterFunc(at.Sub(now), func() { r.work.Ask() })
		} else {
			r.timer.Reset(at.Sub(now))
		}
		if r.clock.Now().Sub(now) < time.Millisecond {
			return // else a clock that is moved by hand has been moved meanwhile
		}
	}
}

// publish tells those who ask what there is to do next.
func (r *Runner) publish(next int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next == 0 {
		r.next = time.Time{}
		return
	}
	r.next = time.UnixMilli(next)
	close(r.newer)
	r.newer = make(chan struct{})
}

// Due is when there will be something to do as far as is known; false if
// nothing waits. changed is closed when there is something, or the runner
// ends.
func (r *Runner) Due() (at time.Time, ok bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next, !r.next.IsZero(), r.newer
}
