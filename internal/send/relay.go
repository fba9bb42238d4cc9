package send

import (
	"context"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/run"
)

// relay passes asyncs to goroutines of its own: at most max, started when
// there is something to do. All but keep of them end when there is nothing for
// them. What waits in it is bounded by the window.
type relay struct {
	g    *run.Group
	late *run.Group // what comes after g has ended
	max  int
	keep int
	do   func(x *async)

	mu      sync.Mutex // guards all below
	queue   []*async
	head    int // of queue
	running int
	idle    int           // of those, asleep
	wake    chan struct{} // one slot for each that may be asleep
}

func newRelay(g *run.Group, limit, keep int, do func(x *async)) *relay {
	return &relay{g: g, late: run.NewGroup(context.Background()), max: limit, keep: keep, do: do, wake: make(chan struct{}, keep)}
}

func (r *relay) add(x *async) {
	r.mu.Lock()
	r.queue = append(r.queue, x)
	if r.idle > 0 {
		r.idle--
		r.mu.Unlock()
		r.wake <- struct{}{} // there is a slot for everyone asleep
		return
	}
	start := r.running < r.max
	if start {
		r.running++
	}
	r.mu.Unlock()
	if start && !r.g.Go(r.run) {
		r.late.Go(func(context.Context) { r.run(r.g.Context()) })
	}
}

func (r *relay) run(ctx context.Context) {
	for {
		x, sleep := r.next(ctx.Err() == nil)
		switch {
		case x != nil:
			r.do(x)
		case !sleep:
			return
		default:
			select {
			case <-r.wake:
			case <-ctx.Done():
				r.stay()
			}
		}
	}
}

// next takes the first in the queue. If there is none the caller must sleep, or
// else end.
func (r *relay) next(may bool) (x *async, sleep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head == len(r.queue) {
		r.queue, r.head = r.queue[:0], 0
		if sleep = may && r.idle < r.keep; sleep {
			r.idle++
		} else {
			r.running--
		}
		return nil, sleep
	}
	x = r.queue[r.head]
	r.queue[r.head] = nil
	if r.head++; r.head >= 1024 && 2*r.head >= len(r.queue) {
		n := copy(r.queue, r.queue[r.head:])
		clear(r.queue[n:])
		r.queue, r.head = r.queue[:n], 0
	}
	return x, false
}

// stay takes one who was asleep back among those who are not.
func (r *relay) stay() {
	r.mu.Lock()
	woken := r.idle == 0
	if !woken {
		r.idle--
	}
	r.mu.Unlock()
	if woken {
		<-r.wake // it is on the way
	}
}
