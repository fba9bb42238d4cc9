package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	retryDispatch = time.Second // between attempts of a follower that failed
	givesUpAfter  = 30          // attempts until the store refuses new messages
)

// follower is something that is built from the log, record by record, such as
// the consume queues. The dispatcher calls it in the order of the log; after
// a restart it may see records again, and it must know them. With an error
// the same record comes again.
type follower interface {
	follow(r *wire.Record) error
}

// dispatcher follows the log, record by record, and owns what is built from
// it: consume queues are written by it alone. Whoever holds owner dispatches.
// Mostly that is the appender of the record itself: it is done before another
// goroutine could wake up. All that is in the way of that (barriers, failures,
// records that had to wait) is left to the dispatcher's own goroutine.
type dispatcher struct {
	log       *commitLog
	clock     clock.Clock
	logger    *slog.Logger
	followers []follower
	queues    *queueFollower       // one of followers
	notice    func(r *wire.Record) // after all followers; nil during recovery
	confirm   func() int64         // how far records may be shown

	// pos is the log position up to which everything is dispatched.
	pos atomic.Int64
	// storeTime is the store time of the newest dispatched record, ms.
	storeTime atomic.Int64
	// fault is why followers do not get ahead, nil while they do.
	fault atomic.Pointer[error]

	owner sync.Mutex    // the right to dispatch; guards rec, ended and the followers
	ended bool          // the store is closing: appenders no longer dispatch
	rec   wire.Record   // here so that it is not allocated anew
	kick  chan struct{} // one slot; wakes the goroutine

	mu       sync.Mutex // guards barriers
	barriers []barrier
	waiting  atomic.Int32 // len(barriers)
}

// barrier is work for the dispatcher once it has dispatched everything before
// a log position, and nothing after it.
type barrier struct {
	at   int64
	f    func()
	done chan struct{}
}

// wake tells the dispatcher that the log has grown.
func (d *dispatcher) wake() {
	select {
	case d.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// carry dispatches what the caller has appended, up to log position end, on
// the caller's goroutine if nobody else is dispatching. If that was one record
// the caller has it still: r, as it is in the log, and its queue. Else r is
// nil.
func (d *dispatcher) carry(end int64, r *wire.Record, q *queue) {
	if d.waiting.Load() > 0 || d.fault.Load() != nil {
		d.wake()
		return
	}
	if !d.owner.TryLock() {
		return // the owner looks once more when it is done
	}
	var err error
	switch {
	case d.ended:
	case r != nil && d.pos.Load() == r.PhyOffset && d.waiting.Load() == 0 && end <= d.confirm():
		d.queues.known = q
		err = d.give(r)
		d.queues.known = nil
	default:
		err = d.advance(context.Background(), min(end, d.confirm()), false)
	}
	d.owner.Unlock()
	if err != nil || d.behind() {
		d.wake()
	}
}

// behind reports whether there is something to do. It is asked after owner
// has been given back: an appender that found it taken has appended before
// that, so its record is seen here.
func (d *dispatcher) behind() bool {
	pos := d.pos.Load()
	return pos < d.confirm() || d.due(pos)
}

// run is the dispatcher's goroutine. It dispatches until ctx ends.
func (d *dispatcher) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		d.owner.Lock()
		err := d.advance(ctx, d.confirm(), true)
		d.owner.Unlock()
		if err != nil {
			failures++
			d.failed(ctx, err, failures)
			continue
		}
		if failures > 0 {
			failures = 0
			d.fault.Store(nil)
			d.logger.Info("consume queues follow the commit log again")
		}
		if d.behind() {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.kick:
		}
	}
}

// end takes the right to dispatch away from appenders and waits for the one
// that has it.
func (d *dispatcher) end() {
	d.owner.Lock()
	d.ended = true
	d.owner.Unlock()
}

// borrow runs f while nobody dispatches.
func (d *dispatcher) borrow(f func()) {
	d.owner.Lock()
	f()
	d.owner.Unlock()
	if d.behind() {
		d.wake() // an appender may have found it taken
	}
}

// failed waits before the next attempt.
func (d *dispatcher) failed(ctx context.Context, err error, failures int) {
	if failures == 1 || failures%givesUpAfter == 0 {
		d.logger.Error("consume queues do not follow the commit log; trying again",
			"err", err, "attempt", failures, "phy", d.pos.Load())
	}
	if failures >= givesUpAfter {
		d.fault.Store(&err)
	}
	again := make(chan struct{})
	t := d.clock.AfterFunc(retryDispatch, func() { close(again) })
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-again:
	}
}

// advance dispatches up to the log position end and runs the barriers on the
// way, or without barriers stops at the first. It stops early when ctx ends.
// The caller holds owner.
func (d *dispatcher) advance(ctx context.Context, end int64, barriers bool) error {
	for {
		pos := d.pos.Load()
		switch {
		case barriers:
			d.runBarriers(pos)
		case d.due(pos):
			return nil
		}
		if pos >= end || ctx.Err() != nil {
			return nil
		}
		if b := d.log.begin(); pos < b {
			d.pos.Store(b) // cleaned away before it was dispatched
			continue
		}
		f, b := d.log.hold(pos)
		if f == nil {
			return nil // closed, or cleaned away just now
		}
		if have := end - pos; int64(len(b)) > have {
			b = b[:have]
		}
		err := d.dispatchAll(ctx, b, pos, f.End())
		f.Release()
		if err != nil {
			return err
		}
	}
}

// dispatchAll dispatches the records in b, which begins at log position pos
// in a file that ends at fileEnd, until one is at a barrier, and moves pos
// behind each.
func (d *dispatcher) dispatchAll(ctx context.Context, b []byte, pos, fileEnd int64) error {
	r := &d.rec
	for len(b) > 0 && ctx.Err() == nil && !d.due(pos) {
		what, n, reason := scan(b, pos, false, r)
		switch what {
		case foundBlank:
			d.pos.Store(fileEnd)
			return nil
		case foundEnd:
			// Recovery has seen every record before us and appends are ours,
			// so this is memory or disk gone bad under us.
			d.logger.Error("commit log is damaged; skipping the rest of the file", "err", d.log.damage(pos, reason), "phy", pos)
			d.pos.Store(min(fileEnd, pos+int64(len(b))))
			return nil
		}
		if err := d.give(r); err != nil {
			return err
		}
		b, pos = b[n:], pos+n
	}
	return nil
}

// give hands the next record to all followers. The caller holds owner.
func (d *dispatcher) give(r *wire.Record) error {
	for _, f := range d.followers {
		if err := f.follow(r); err != nil {
			return err
		}
	}
	d.storeTime.Store(r.StoreTime)
	d.pos.Store(r.PhyOffset + int64(r.Size))
	if d.notice != nil {
		d.notice(r)
	}
	return nil
}

// at calls f on the dispatcher's goroutine once all before log position pos
// is dispatched, and returns a channel that is closed then.
func (d *dispatcher) at(pos int64, f func()) <-chan struct{} {
	done := d.plan(pos, f)
	d.wake()
	return done
}

// plan is at for callers who wake the dispatcher themselves, when they have
// given back their locks.
func (d *dispatcher) plan(pos int64, f func()) <-chan struct{} {
	b := barrier{at: pos, f: f, done: make(chan struct{})}
	d.mu.Lock()
	d.barriers = append(d.barriers, b)
	d.waiting.Store(int32(len(d.barriers)))
	d.mu.Unlock()
	return b.done
}

// due reports whether a barrier is at or before pos.
func (d *dispatcher) due(pos int64) bool {
	if d.waiting.Load() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.barriers, func(b barrier) bool { return b.at <= pos })
}

func (d *dispatcher) runBarriers(pos int64) {
	if d.waiting.Load() == 0 {
		return
	}
	d.mu.Lock()
	var due []barrier
	d.barriers = slices.DeleteFunc(d.barriers, func(b barrier) bool {
		if b.at <= pos {
			due = append(due, b)
			return true
		}
		return false
	})
	d.waiting.Store(int32(len(d.barriers)))
	d.mu.Unlock()
	for _, b := range due {
		if b.f != nil {
			b.f()
		}
		close(b.done)
	}
}

// queueFollower builds the consume queues.
type queueFollower struct {
	queues *queueTable
	delays []time.Duration
	logger *slog.Logger
	known  *queue // the next record's, if whoever dispatches knows it
	tags   int64  // tags code of the last record that belongs into a queue
}

// follow implements follower. Half messages and rolled back ones have no
// place in a queue.
func (f *queueFollower) follow(r *wire.Record) error {
	if !inQueue(r.SysFlag) {
		return nil
	}
	f.tags = tagsCode(r, f.delays)
	// A queue that has been deleted since gets a unit in vain: it is removed
	// only once all that went to it has been dispatched.
	q := f.known
	if q == nil {
		q = f.queues.dispatchTo(r.Topic, r.QueueID, r.PhyOffset)
	}
	if q == nil {
		return nil
	}
	if f.queues.building {
		if err := f.rebuild(q, r); err != nil {
			return err
		}
	}
	u := cq.Unit{Phy: r.PhyOffset, Size: r.Size, Tags: f.tags}
	out, err := q.cq.Append(r.QueueOffset, u)
	if invariants && out == cq.Appended && err == nil {
		checkUnit(q.cq, u, r)
	}
	if out >= cq.Gap && err == nil {
		f.logger.Error("queue offset of a record is not the next one", "topic", q.topic, "queue", q.id,
			"offset", r.QueueOffset, "have", q.cq.Max()-1, "phy", r.PhyOffset)
	}
	return err
}

// rebuild looks whether a queue that is built anew after a crash goes on with
// the record r.
func (f *queueFollower) rebuild(q *queue, r *wire.Record) error {
	switch have := q.cq.Max(); {
	case f.queues.strict && q.cq.Lacks(r.QueueOffset):
		return fmt.Errorf("%w: topic %s queue %d has %d and not %d", errUnitsMissing, q.topic, q.id, have, r.QueueOffset)
	case r.QueueOffset == 0 && have > 0 && !q.built:
		// The queue was removed and made anew, and the machine has forgotten
		// the removal.
		if err := q.cq.Rebuild(-1); err != nil {
			return err
		}
	}
	q.built = true
	return nil
}

// errUnitsMissing is a queue that does not have all units that it should.
var errUnitsMissing = errors.New("units are missing before a record")

// inQueue reports whether records with these flags belong into a queue.
func inQueue(sysFlag int32) bool {
	t := sysFlag & wire.SysTranMask
	return t != wire.SysTranPrepared && t != wire.SysTranRollback
}

// tagsCode is the third field of a record's unit: the hash of its tag, or the
// time at which a delayed message is due.
func tagsCode(r *wire.Record, delays []time.Duration) int64 {
	if string(r.Topic) == wire.TopicSchedule {
		if v, ok := r.Properties.Lookup(wire.PropDelay); ok {
			if level, err := strconv.Atoi(string(v)); err == nil && level > 0 {
				return dueTime(r.StoreTime, level, delays)
			}
		}
	}
	tags, ok := r.Properties.Lookup(wire.PropTags)
	if !ok {
		return 0
	}
	return wire.TagsCode(tags)
}

func dueTime(storeTime int64, level int, delays []time.Duration) int64 {
	if len(delays) == 0 {
		return storeTime + 1000
	}
	return storeTime + delays[min(level, len(delays))-1].Milliseconds()
}
