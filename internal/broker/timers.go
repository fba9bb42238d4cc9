package broker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/rounds"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/timer"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Messages that are delivered at a time, TimerMessageStore of Apache's broker. A
// message with TIMER_DELAY_SEC, TIMER_DELAY_MS or TIMER_DELIVER_MS is parked
// (timerpark.go) in rmq_sys_wheel_timer. One goroutine reads that queue
// (timerread.go), adds a unit for each message to the timer log, whose slots are
// one second wide, and delivers what is due (timerdeliver.go), the earliest
// first.
//
// In memory are the slots that have messages, and the messages of the first of
// them, in order of the millisecond at which they are due. So the goroutine
// sleeps until something is due, and then looks at nothing else.
//
// Unlike in Apache, where messages come up to a second late, at the end of their
// slot, they come when they are due. Those whose slot begins before the clock's
// second ends are kept in the log as well. If a message cannot be stored all
// wait; what can never be stored is logged and skipped. After a clean stop or a
// kill nothing is delivered twice but, at worst, the message that was being
// delivered; after a crash of the machine what came in the last seconds may be.

// timers delivers messages at their times. All methods are safe for concurrent
// use, but open, close, start and stop are called by one goroutine at a time.
type timers struct {
	clock  clock.Clock
	log    *slog.Logger
	store  *store.Store
	cfg    *Config
	put    func(*store.Message) store.PutResult
	counts *timerCounts

	files *timer.Store // nil: there are no timers

	// Of the goroutine of running: what has been taken from files.
	ready    readyHeap
	recalled recalls

	running atomic.Pointer[timerRun] // nil: stopped
}

// timerRun is the service from one start to the next stop. All its fields are
// the goroutine's own.
type timerRun struct {
	*timers
	*rounds.Runner
	idle   atomic.Bool // waits for a message to arrive
	fails  int
	resume int64 // ms; not before, after a failure
	units  []timer.Unit
	props  []byte
}

// readyTimer is a message whose slot has been taken from the files.
type readyTimer struct {
	due     int64 // ms
	offset  int64 // in the timer topic's queue
	phy     int64
	size    int32
	magic   int32
	enqueue int64 // ms
}

func newTimers(c clock.Clock, log *slog.Logger, cfg *Config) *timers {
	return &timers{clock: c, log: log, cfg: cfg, counts: newTimerCounts(c), recalled: recalls{}}
}

// open opens the files. The store must be open.
func (t *timers) open() error {
	if t.cfg.NoTimers {
		return nil
	}
	files, err := timer.Open(timer.Config{
		FS: t.cfg.Store.FS, Dir: t.cfg.Store.Dir, LogFileSize: t.cfg.TimerLogFileSize, Precision: t.precision(), Slots: t.cfg.TimerSlots,
		Now: t.clock.Now().UnixMilli(), Clean: !t.store.Crashed(), CommitEnd: t.store.Stats().MaxPhy,
		QueueMin: t.store.MinOffset(wire.TopicTimer, 0), QueueMax: t.store.MaxOffset(wire.TopicTimer, 0),
		QueueOffset: t.offsetOf, Logger: t.log,
	})
	t.files = files
	if err == nil {
		t.counts.begin(files.Pending())
	}
	return err
}

// close closes the files.
func (t *timers) close() error {
	if t.files == nil {
		return nil
	}
	return t.files.Close()
}

func (t *timers) precision() int64 { return t.cfg.TimerPrecision.Milliseconds() }

// window is how far ahead of now, in ms, a unit may be.
func (t *timers) window() int64 {
	slots := int64(t.cfg.TimerRollSlots)
	if most := int64(timer.WheelSlots/2 - 60); slots < 2 || slots > most {
		slots = most
	}
	return slots * t.precision()
}

// offsetOf is the offset of a timer message's record in its queue.
func (t *timers) offsetOf(phy int64, size int32) (off int64, ok bool) {
	t.store.Record(cq.Unit{Phy: phy, Size: size}, func(r *wire.Record) {
		off, ok = r.QueueOffset, string(r.Topic) == wire.TopicTimer && r.PhyOffset == phy
	})
	return off, ok
}

// start begins to deliver, from where the files are.
func (t *timers) start() {
	if t.files == nil || t.running.Load() != nil {
		return
	}
	r := &timerRun{timers: t}
	r.Runner = rounds.NewRunner(t.clock, r.deliverDue)
	t.running.Store(r)
	r.Start()
}

// stop ends the service and waits for its goroutine.
func (t *timers) stop() {
	if r := t.running.Swap(nil); r != nil {
		r.Stop()
	}
}

// arrived is told of each record that can be read from the timer topic. It
// does not block.
func (t *timers) arrived() {
	if r := t.running.Load(); r != nil && r.idle.Load() && r.idle.Swap(false) {
		r.Ask()
	}
}

// settle blocks until what is due by now has been delivered, or could not be.
func (t *timers) settle(ctx context.Context) error {
	if r := t.running.Load(); r != nil {
		return r.Settle(ctx)
	}
	return nil
}

// nextDue is when the service will have something to do as far as it knows;
// false if nothing waits. changed is closed when there is something, or the
// service ends; nil if it is not running.
func (t *timers) nextDue() (at time.Time, ok bool, changed <-chan struct{}) {
	if r := t.running.Load(); r != nil {
		return r.Due()
	}
	return time.Time{}, false, nil
}

// behind is how many messages the service has not read yet.
func (t *timers) behind() int64 {
	if t.files == nil {
		return 0
	}
	return max(t.store.MaxOffset(wire.TopicTimer, 0)-t.files.State().Queue, 0)
}

// save makes the progress durable as far as it may be; waits tells that some
// of it waits for the store's flush.
func (t *timers) save(flushed int64) (waits bool) {
	if t.files == nil {
		return false
	}
	waits, err := t.files.Save(flushed, t.clock.Now().UnixMilli())
	if err != nil {
		t.log.Error("progress of timers not saved, a crash of the machine would repeat messages; trying again", "err", err)
	}
	return waits || err != nil
}

// readyHeap is a heap of messages, the earliest first.
type readyHeap []readyTimer

func (h readyHeap) less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].offset < h[j].offset
}

func (h *readyHeap) push(e readyTimer) {
	*h = append(*h, e)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.less(i, up) {
			return
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
}

func (h *readyHeap) pop() {
	a := *h
	n := len(a) - 1
	a[0] = a[n]
	a = a[:n]
	*h = a
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && a.less(down+1, down) {
			down++
		}
		if !a.less(down, i) {
			break
		}
		a[i], a[down] = a[down], a[i]
		i = down
	}
	if n == 0 {
		*h = nil // a slot may have had very many
	}
}
