package consume

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// yieldEvery is after how many messages a worker lets other goroutines run.
// Quick handlers never block, and without this the reader of the connection
// would wait for whole time slices of all the workers.
const yieldEvery = 256

// work is a run of messages of one page for one subscription. Workers take
// batches off it with an atomic counter, several of them at once.
type work struct {
	p     *page
	views []*rocketmq.MessageView
	base  int // index in the page of the first
	pos   atomic.Int32
}

// take hands out the next batch; none is left if from >= len(views).
func (w *work) take(batch int) (from, to int) {
	if int(w.pos.Load()) >= len(w.views) {
		return len(w.views), len(w.views) // keeps the counter from running over
	}
	from = int(w.pos.Add(int32(batch))) - batch
	return from, min(from+batch, len(w.views))
}

func (w *work) left() int { return len(w.views) - int(w.pos.Load()) }

// lane is the work of one queue that waits in a dispatcher. It stays as long
// as the queue, whether there is work or not.
type lane struct {
	q     *queue
	items []*work
	head  int  // items before it are used up
	ready bool // it is in dispatcher.ready
}

// next is the first piece of work that is not used up, nil if there is none.
func (l *lane) next() *work {
	for l.head < len(l.items) && l.items[l.head].left() <= 0 {
		l.items[l.head] = nil
		l.head++
	}
	if l.head == len(l.items) {
		l.items, l.head = l.items[:0], 0
		return nil
	}
	return l.items[l.head]
}

// add appends w, moving the others to the front of the slice rather than
// growing it.
func (l *lane) add(w *work) {
	if l.head > 0 && len(l.items) == cap(l.items) {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	l.items = append(l.items, w)
}

// dispatcher runs the handler of one subscription on up to limit workers.
// Queues take turns, a page at a time.
type dispatcher struct {
	c      *Consumer
	handle func(ctx context.Context, msgs []*rocketmq.MessageView) error
	batch  int
	work   func() // d.run, made once

	mu     sync.Mutex // guards all below
	limit  int
	active int
	lanes  map[*queue]*lane
	ready  []*lane // those with work, in turn
}

func newDispatcher(c *Consumer, s Subscription) *dispatcher {
	d := &dispatcher{c: c, handle: s.Handle, batch: s.Batch, limit: s.Concurrency, lanes: make(map[*queue]*lane)}
	d.work = d.run
	return d
}

// push adds work and wakes a worker.
func (d *dispatcher) push(w *work) {
	d.mu.Lock()
	l := d.lanes[w.p.q]
	if l == nil {
		l = &lane{q: w.p.q}
		d.lanes[w.p.q] = l
	}
	l.add(w)
	if !l.ready {
		l.ready = true
		d.ready = append(d.ready, l)
	}
	wake := d.active < d.limit
	if wake {
		d.active++
	}
	d.mu.Unlock()
	if wake {
		d.wake()
	}
}

// forget drops the work of a queue.
func (d *dispatcher) forget(q *queue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[q]
	if l == nil {
		return
	}
	delete(d.lanes, q)
	for i, r := range d.ready {
		if r == l {
			d.ready = append(d.ready[:i], d.ready[i+1:]...)
			break
		}
	}
}

// claim gives a worker its next piece of work, which stays in its lane until
// it is used up, or ends the worker. more says that another worker has been
// accounted for and must be woken.
func (d *dispatcher) claim() (w *work, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ready) > 0 {
		l := d.ready[0]
		last := copy(d.ready, d.ready[1:])
		if w = l.next(); w == nil {
			l.ready = false
			d.ready[last] = nil
			d.ready = d.ready[:last]
			continue
		}
		d.ready[last] = l
		more = d.active < d.limit && (w.left() > d.batch || len(l.items)-l.head > 1 || last > 0)
		if more {
			d.active++
		}
		return w, more
	}
	d.active--
	return nil, false
}

// wake runs a worker that is accounted for already. The pool has room for all
// the workers of all dispatchers; should it not have it just now, because a
// worker has left us and not yet the pool, the worker gets a goroutine of its
// own. At the end of the consumer both refuse and the work is abandoned.
func (d *dispatcher) wake() {
	if d.c.pool.TryGo(d.work) || d.c.group.Go(func(context.Context) { d.run() }) {
		return
	}
	d.mu.Lock()
	d.active--
	d.mu.Unlock()
}

// run is a worker.
func (d *dispatcher) run() {
	ended := false
	defer func() {
		if !ended {
			// A handler ended its goroutine (runtime.Goexit). The place goes to
			// a new worker.
			d.wake()
		}
	}()
	for {
		w, more := d.claim()
		if w == nil {
			ended = true
			return
		}
		if more {
			d.wake()
		}
		if w.p.q.enter() {
			d.drain(w)
		} else {
			d.forget(w.p.q)
		}
	}
}

// drain handles batches of w until it is used up or its queue is gone.
func (d *dispatcher) drain(w *work) {
	q := w.p.q
	defer q.leave()
	for n := 1; !q.gone.Load(); n++ {
		from, to := w.take(d.batch)
		if from >= to {
			return
		}
		d.deliver(q, w, from, to)
		if n%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
}

// deliver has one batch handled and settles each of its messages, also if the
// handler ends its goroutine.
func (d *dispatcher) deliver(q *queue, w *work, from, to int) {
	p, msgs := w.p, w.views[from:to:to]
	err := errEnded
	defer func() {
		if err != nil {
			d.c.judge(d, q, w, from, to, err)
		}
	}()
	if e := d.prepare(w, from, to); e != nil {
		err = e
		return
	}
	if err = d.call(q, msgs); err != nil {
		return
	}
	for i := from; i < to; i++ {
		q.finish(p, w.base+i)
	}
}

// prepare decompresses what is compressed and marks the messages as begun. It
// is done here and not on the connection's reader, and once a message: the
// bit is gone afterwards.
func (d *dispatcher) prepare(w *work, from, to int) error {
	for i := from; i < to; i++ {
		m := &w.p.meta[w.base+i]
		w.p.begin(w.base + i)
		if m.sysFlag&wire.SysCompressed == 0 {
			continue
		}
		body, err := d.c.inflate.Inflate(w.views[i].Body, m.sysFlag)
		if err != nil {
			return fmt.Errorf("message %s: %w", w.views[i].ID, err)
		}
		w.views[i].Body = body
		m.sysFlag &^= wire.SysCompressed
	}
	return nil
}

// call runs the handler and turns a panic into an error.
func (d *dispatcher) call(q *queue, msgs []*rocketmq.MessageView) (err error) {
	ctx := q.ctx
	if t := d.c.cfg.HandlerTimeout; t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t, errHandlerTimeout)
		defer cancel()
	}
	defer func() {
		if v := recover(); v != nil {
			err = &rocketmq.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return d.handle(ctx, msgs)
}
