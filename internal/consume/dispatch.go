package consume

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	base  int         // index in the page of the first
	via   *dispatcher // whose handler it is for; nil: that of the dispatcher it is in
	pos   atomic.Int32
}

// handler is the dispatcher whose handler takes the work that is in d.
func (w *work) handler(d *dispatcher) *dispatcher {
	if w.via != nil {
		return w.via
	}
	return d
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
	q       *queue
	items   []*work
	head    int       // items before it are used up
	ready   bool      // it is in dispatcher.ready
	gone    bool      // it is not in dispatcher.lanes any more
	held    bool      // ordered: no worker may take it, because of a failure
	until   time.Time // held until then; zero: until a message is settled
	workers []*worker // those at work on it
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
// Queues take turns, a page at a time. How many workers one queue can have is
// bounded, see mostLocked.
type dispatcher struct {
	c       *Consumer
	handle  func(ctx context.Context, msgs []*rocketmq.MessageView) error
	ordered bool
	work    func() // d.run, made once
	proceed func() // d.goOn, likewise

	// What can be changed, see tune.go.
	batch   atomic.Int32
	rate    atomic.Pointer[limiter] // nil: no limit
	paused  atomic.Bool
	surplus atomic.Bool // there are more workers than limit

	mu      sync.Mutex // guards all below
	limit   int
	active  int
	waiting bool // the rate lets nothing through, and a timer is set
	lanes   map[*queue]*lane
	ready   []*lane   // those with work that another worker may take, in turn
	spare   []*worker // of workers that have ended
}

func newDispatcher(c *Consumer, s Subscription) *dispatcher {
	d := &dispatcher{c: c, handle: s.Handle, ordered: c.cfg.Ordered, limit: s.Concurrency, lanes: make(map[*queue]*lane)}
	d.batch.Store(int32(s.Batch))
	d.rate.Store(newLimiter(s.Rate))
	d.work, d.proceed = d.run, d.goOn
	return d
}

// mostLocked is how many workers one queue can have: in order one, else all of them,
// less a quarter that is left to the others if there are any. A handler that
// does not return keeps its worker, and without this the messages of one queue
// could keep all.
func (d *dispatcher) mostLocked() int {
	switch {
	case d.ordered:
		return 1
	case len(d.lanes) < 2:
		return d.limit
	}
	return max(1, d.limit-max(1, d.limit/4))
}

// offerLocked puts a lane in line if a worker may take it.
func (d *dispatcher) offerLocked(l *lane) {
	if !l.ready && !l.gone && !l.held && len(l.workers) < d.mostLocked() && l.next() != nil {
		l.ready = true
		d.ready = append(d.ready, l)
	}
}

// attach announces a queue, so that others leave it room before its first
// message comes.
func (d *dispatcher) attach(q *queue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.laneLocked(q)
}

func (d *dispatcher) laneLocked(q *queue) *lane {
	l := d.lanes[q]
	if l == nil {
		l = &lane{q: q}
		d.lanes[q] = l
	}
	return l
}

// push adds work and wakes a worker.
func (d *dispatcher) push(w *work) {
	d.mu.Lock()
	l := d.laneLocked(w.p.q)
	l.add(w)
	d.offerLocked(l)
	wake := d.wakeLocked(l)
	d.mu.Unlock()
	if wake {
		d.wake()
	}
}

// wakeLocked accounts for a worker that is to take a lane which is in line.
func (d *dispatcher) wakeLocked(l *lane) bool {
	wake := l.ready && d.active < d.limit && !d.shutLocked()
	if wake {
		d.active++
	}
	return wake
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
	l.gone = true
	if i := slices.Index(d.ready, l); i >= 0 {
		d.ready = slices.Delete(d.ready, i, i+1)
	}
	l.ready = false
}

// hold keeps workers off a lane, until a time or for as long as resume is not
// called.
func (d *dispatcher) hold(l *lane, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.held, l.until = true, until
}

// resume ends a hold.
func (d *dispatcher) resume(l *lane) {
	d.mu.Lock()
	l.held, l.until = false, time.Time{}
	d.offerLocked(l)
	wake := d.wakeLocked(l)
	d.mu.Unlock()
	if wake {
		d.wake()
	}
}

// claim gives a worker its next piece of work, which stays in its lane until
// it is used up, or ends the worker and returns nil. A new worker is nil. more
// says that another worker has been accounted for and must be woken.
func (d *dispatcher) claim(me *worker) (at *worker, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if me == nil {
		me = d.hireLocked()
	}
	d.releaseLocked(me)
	for len(d.ready) > 0 && d.active <= d.limit && !d.shutLocked() {
		l := d.ready[0]
		last := copy(d.ready, d.ready[1:])
		d.ready[last] = nil
		d.ready = d.ready[:last]
		l.ready = false
		w := l.next()
		if w == nil {
			continue
		}
		me.lane, me.work = l, w
		l.workers = append(l.workers, me)
		d.offerLocked(l)
		more = d.active < d.limit && (last > 0 || l.ready && (w.left() > int(d.batch.Load()) || len(l.items)-l.head > 1))
		if more {
			d.active++
		}
		return me, more
	}
	d.active--
	d.surplus.Store(d.active > d.limit)
	d.spare = append(d.spare, me)
	return nil, false
}

func (d *dispatcher) hireLocked() *worker {
	n := len(d.spare)
	if n == 0 {
		return &worker{}
	}
	me := d.spare[n-1]
	d.spare = d.spare[:n-1]
	return me
}

// releaseLocked ends a worker's stay with a lane.
func (d *dispatcher) releaseLocked(me *worker) {
	l := me.lane
	if l == nil {
		return
	}
	me.lane, me.work = nil, nil
	if i := slices.Index(l.workers, me); i >= 0 {
		l.workers = slices.Delete(l.workers, i, i+1)
	}
	d.offerLocked(l)
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
	var me *worker
	ended := false
	defer func() {
		if !ended {
			// A handler ended its goroutine (runtime.Goexit). The place goes to
			// a new worker.
			d.mu.Lock()
			d.releaseLocked(me)
			d.mu.Unlock()
			d.wake()
		}
	}()
	for {
		at, more := d.claim(me)
		if at == nil {
			ended = true
			return
		}
		me = at
		if more {
			d.wake()
		}
		if q := me.work.p.q; q.enter() {
			d.drain(me)
		} else {
			d.forget(q)
		}
	}
}

// drain handles batches of a worker's work until it is used up, its queue is
// gone, or the queue may not go on.
func (d *dispatcher) drain(me *worker) {
	w := me.work
	q := w.p.q
	h := w.handler(d)
	stats := &q.topic.stats
	defer q.leave()
	defer me.idle(stats)
	for n := 1; !q.gone.Load(); n++ {
		if d.ordered && !q.leased() {
			d.c.loseLock(q, "not renewed in time")
			return
		}
		if d.surplus.Load() {
			return
		}
		batch := int(h.batch.Load())
		asked := min(batch, w.left())
		rate, ok := d.admit(me, h, asked)
		if !ok {
			return
		}
		from, to := w.take(batch)
		if rate != nil {
			rate.giveBack(asked - max(to-from, 0))
		}
		if from >= to {
			return
		}
		me.tick(stats)
		if !d.deliver(me, h, from, to) {
			return
		}
		if n%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
}

// deliver has one batch handled and settles each of its messages, also if the
// handler ends its goroutine. It is false if the queue may not go on.
func (d *dispatcher) deliver(me *worker, h *dispatcher, from, to int) (ok bool) {
	w := me.work
	q, p, msgs := w.p.q, w.p, w.views[from:to:to]
	err := errEnded
	limited := d.c.cfg.HandlerTimeout > 0
	var began time.Time
	if d.c.cfg.Hooks.Consume != nil {
		began = time.Now()
	}
	defer func() {
		if err == nil || limited && !me.endCall() {
			return
		}
		r := d.c.newReport(q, msgs, began)
		if d.ordered {
			ok = d.c.judgeOrdered(d, me, from, to, err, r)
		} else {
			d.c.judge(d, q, w, from, to, err, r)
		}
	}()
	if e := d.prepare(w, from, to); e != nil {
		err = e
		return true
	}
	if limited {
		me.beginCall(from, to)
	}
	if err = h.call(q, msgs); err != nil {
		return true
	}
	if limited && !me.endCall() {
		return true
	}
	me.ok += to - from
	for i := from; i < to; i++ {
		q.finish(p, w.base+i)
	}
	if d.c.cfg.Hooks.Consume != nil {
		r := d.c.newReport(q, msgs, began)
		for i := range msgs {
			r.tell(i, rocketmq.ConsumeDone, nil, 0)
		}
	}
	return true
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
		ctx, cancel = context.WithTimeoutCause(ctx, t, ErrHandlerTimeout)
		defer cancel()
	}
	defer func() {
		if v := recover(); v != nil {
			err = &rocketmq.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return d.handle(ctx, msgs)
}
