package broker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/rounds"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Delayed messages, ScheduleMessageService of Apache's broker. A message with a
// delay level is parked (park.go) in the level's queue of SCHEDULE_TOPIC_XXXX,
// whose units carry the time at which it is due. One goroutine delivers: of all
// messages that are due it takes the one that has been for longest, and puts a
// copy into the log (delaydeliver.go). Within a level the order is that of
// parking; a level whose message cannot be stored waits, and no other one with
// it. How far each level has come is kept in config/delayOffset.json
// (delayoffset.go).
//
// The goroutine sleeps until the earliest message is due, on one timer of the
// broker's clock, or until a message arrives at a level that had none.
//
// As in Apache a message that is due later than its level's delay from now is
// delivered at once: the level's delay, or the machine's clock, was changed.
// Unlike Apache: by less than a minute it keeps its time, so that a clock that
// is put right by a little makes nothing early; levels that messageDelayLevel no longer has go on being
// delivered; a message that can never be stored is skipped, and logged, instead
// of blocking its level for ever.

// Pauses of a level whose message could not be stored.
const (
	deliverAgain    = 100 * time.Millisecond // after the first failure, as Apache; doubled with each
	deliverAgainMax = 10 * time.Second
)

// dueTolerance is by how much a message may be due too late.
const dueTolerance = time.Minute

// delays delivers delayed messages. All methods are safe for concurrent use,
// but start and stop are called by one goroutine at a time.
type delays struct {
	clock    clock.Clock
	log      *slog.Logger
	store    *store.Store
	table    []time.Duration // delay of level i+1
	put      func(*store.Message) store.PutResult
	progress *delayOffsets

	running atomic.Pointer[delayRun] // nil: stopped
}

// delayRun is the service from one start to the next stop.
type delayRun struct {
	*delays
	*rounds.Runner
	idle   []atomic.Bool // by queue: waits for a message to arrive
	levels []delayLevel  // the goroutine's own
}

// delayLevel is one queue of the schedule topic.
type delayLevel struct {
	queue  int32
	offset int64 // of the next message
	known  bool  // unit and due are those of that message
	unit   cq.Unit
	due    int64 // ms
	fails  int
	resume int64 // ms; not before, after a failure
}

func newDelays(c clock.Clock, log *slog.Logger, table []time.Duration) *delays {
	return &delays{clock: c, log: log, table: table, progress: newDelayOffsets(c)}
}

// start begins to deliver, from where the progress is.
func (d *delays) start() {
	if d.running.Load() != nil {
		return
	}
	n := len(d.table)
	for _, id := range d.store.Queues(wire.TopicSchedule) {
		n = max(n, int(id)+1) // levels that have been taken out of the table
	}
	r := &delayRun{delays: d, idle: make([]atomic.Bool, n), levels: make([]delayLevel, n)}
	r.Runner = rounds.NewRunner(d.clock, r.deliverDue)
	for i := range r.levels {
		r.levels[i] = delayLevel{queue: int32(i), offset: d.progress.offset(int32(i))}
	}
	d.running.Store(r)
	r.Start()
}

// stop ends the service and waits for its goroutine. Messages stay where they
// are.
func (d *delays) stop() {
	if r := d.running.Swap(nil); r != nil {
		r.Stop()
	}
}

// arrived is told of each record that can be read from the schedule topic. It
// does not block.
func (d *delays) arrived(queue int32) {
	r := d.running.Load()
	if r == nil || int(queue) >= len(r.idle) || !r.idle[queue].Load() {
		return
	}
	if r.idle[queue].Swap(false) {
		r.Ask()
	}
}

// settle blocks until what is due by now has been delivered, or could not be.
func (d *delays) settle(ctx context.Context) error {
	if r := d.running.Load(); r != nil {
		return r.Settle(ctx)
	}
	return nil
}

// nextDue is when the service will have something to do as far as it knows;
// false if nothing waits. changed is closed when there is something, or the
// service ends; nil if it is not running.
func (d *delays) nextDue() (at time.Time, ok bool, changed <-chan struct{}) {
	r := d.running.Load()
	if r == nil {
		return time.Time{}, false, nil
	}
	return r.Due()
}

// deliverDue is a round: it delivers what is due, the earliest first.
func (r *delayRun) deliverDue(ctx context.Context) (next int64) {
	for ctx.Err() == nil {
		now := r.clock.Now().UnixMilli()
		var first *delayLevel
		for i := range r.levels {
			l := &r.levels[i]
			if l.resume <= now && r.look(l) && l.due <= now && (first == nil || l.due < first.due) {
				first = l
			}
		}
		if first == nil {
			break
		}
		r.deliver(first, now)
	}
	for i := range r.levels {
		if l := &r.levels[i]; l.known {
			if at := max(l.due, l.resume); next == 0 || at < next {
				next = at
			}
		}
	}
	return next
}

// look finds out what a level's next message is. It is false if there is none.
func (r *delayRun) look(l *delayLevel) bool {
	for !l.known {
		if r.idle[l.queue].Load() {
			return false
		}
		at, u, ok := r.store.NextUnit(wire.TopicSchedule, l.queue, l.offset)
		if at != l.offset {
			r.log.Warn("delay queue goes on elsewhere: messages have been cleaned away, or the progress was ahead of them",
				"level", l.queue+1, "offset", l.offset, "now", at)
			l.offset = at
			r.progress.set(l.queue, at, 0)
		}
		if ok {
			l.known, l.unit, l.due = true, u, u.Tags
			// The time now and not that of the round: the message may have come
			// since that began.
			now := r.clock.Now().UnixMilli()
			if int(l.queue) < len(r.table) && l.due > now+(r.table[l.queue]+dueTolerance).Milliseconds() {
				l.due = now
			}
			break
		}
		// Whoever adds a unit now either sees the mark, or is seen here.
		r.idle[l.queue].Store(true)
		if _, _, ok := r.store.NextUnit(wire.TopicSchedule, l.queue, l.offset); ok {
			r.idle[l.queue].Store(false)
		}
	}
	return true
}
