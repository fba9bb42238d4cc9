package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// How a queue comes and goes in order: with its lock, see locks.go.

// leased tells whether the queue's lock is ours by our own clock.
func (q *queue) leased() bool {
	end := q.lease.Load()
	return end != 0 && int64(time.Since(q.c.epoch)) < end
}

// locked notes that the lock was taken or renewed by a request that left at a
// time. It reports whether the queue is under way, and has it begin if it
// waited for that.
func (q *queue) locked(at time.Time) bool {
	q.lease.Store(int64(at.Add(lockLease).Sub(q.c.epoch)))
	q.mu.Lock()
	q.lockAt = at
	waits := q.phase == phaseLocking
	begin := waits && !q.joining
	if begin {
		q.joining = true
	}
	q.mu.Unlock()
	if begin {
		q.c.group.Go(func(ctx context.Context) { q.c.acquire(ctx, q) })
	}
	return !waits
}

// lockedAt is when the lock was taken or renewed last, in ms since 1970; 0 is never.
func (q *queue) lockedAt() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lockAt.IsZero() {
		return 0
	}
	return q.lockAt.UnixMilli()
}

// loseLock ends a queue whose lock is not ours any more: its handler's context
// ends, its cache is dropped, and nothing is committed, because whoever has the
// lock has read the offset. A fresh one waits for the lock in its place.
func (c *Consumer) loseLock(q *queue, why string) {
	had := q.lease.Swap(0) != 0
	q.mu.Lock()
	waits, gone := q.phase == phaseLocking, q.phase == phaseGone
	if waits && had {
		q.lost = true
	}
	q.mu.Unlock()
	if had && !gone {
		c.mention(Lost, q)
	}
	if !had || waits || gone {
		return
	}
	c.log.Warn("lock of a queue lost, waiting for it", "queue", q.key, "reason", why)
	fresh := c.newQueue(q.topic, q.key, 0)
	fresh.inherit(q)
	fresh.lost, fresh.handover = true, true
	if c.swap(q, fresh, fmt.Errorf("%w: the lock of queue %s is lost: %s", rocketmq.ErrRevoked, q.key, why)) {
		c.locks.now(q.key.Broker)
	}
}

// inherit makes q the next queue after old, whose handler may still run.
func (q *queue) inherit(old *queue) { q.phase, q.pred = phaseLocking, old }

func (q *queue) hasLost() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

func (q *queue) before() *queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pred
}

// ended waits until no handler runs of those queues that were here before q.
// It is false if q itself ends first, or ctx.
func (q *queue) ended(ctx context.Context) bool {
	for p := q.before(); p != nil; p = p.before() {
		select {
		case <-p.idle:
		case <-q.idle:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// done is up to where the queues before q have got since the offset was moved
// last.
func (q *queue) done() int64 {
	var off int64
	for p := q; p != nil && !p.foreign; p = p.before() {
		if p != q {
			off = max(off, p.lowest())
		}
		if p.fixed {
			break
		}
	}
	return off
}

// acquire has a queue begin whose lock is ours: once no handler of the time
// before runs, from where the group is.
func (c *Consumer) acquire(ctx context.Context, q *queue) {
	ok, err := c.prepareLocked(ctx, q)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("queue not begun, trying again", "queue", q.key, "err", err)
	}
	if ok {
		c.inform(ctx, Assigned, q)
	}
	q.mu.Lock()
	q.joining = false
	if ok = ok && q.phase == phaseLocking && q.leased(); ok {
		q.phase, q.handover, q.lost, q.pred = phaseIdle, false, false, nil
	}
	q.mu.Unlock()
	if ok {
		q.startPull()
	}
}

// prepareLocked gives a queue its offset. Without an error it is false if the
// queue is not ours.
func (c *Consumer) prepareLocked(ctx context.Context, q *queue) (bool, error) {
	if !q.ended(ctx) || !q.leased() {
		return false, nil
	}
	if q.fixed {
		return true, nil
	}
	off, known, err := c.startOffset(ctx, q.topic, q.key)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	q.committed, q.began = -1, -1
	if known {
		q.committed, q.began, q.sentTime = off, off, time.Now()
	}
	q.mu.Unlock()
	// What was done here is not done again. A lock that comes back may have had
	// another owner meanwhile: then he is further, or did a part of it once more.
	off = max(off, q.done())
	q.mu.Lock()
	q.next, q.handover = off, false
	q.mu.Unlock()
	if !known {
		err = c.commitNow(ctx, []*queue{q}, false)
	}
	return err == nil, err
}

// gainOrdered takes the locks of new queues and starts those it gets. The
// others wait for theirs in the table.
func (c *Consumer) gainOrdered(ctx context.Context, g gains) error {
	by := make(map[string][]*queue)
	var names []string
	for _, key := range g.queues {
		q := c.newQueue(g.t, key, 0)
		q.phase, q.handover = phaseLocking, true
		if by[key.Broker] == nil {
			names = append(names, key.Broker)
		}
		by[key.Broker] = append(by[key.Broker], q)
	}
	return parallel(ctx, names, func(ctx context.Context, broker string) error {
		return c.gainFrom(ctx, broker, by[broker])
	})
}

// gainFrom takes on the queues of one broker.
func (c *Consumer) gainFrom(ctx context.Context, broker string, qs []*queue) error {
	began := time.Now()
	held, err := c.lock(ctx, broker, qs)
	if err != nil {
		for _, q := range qs {
			q.cancel(err)
		}
		return err
	}
	refused := false
	for _, q := range qs {
		if held[q.topic.queueOf(q.key)] {
			q.lease.Store(int64(began.Add(lockLease).Sub(c.epoch)))
			q.lockAt = began
		} else {
			refused = true
		}
	}
	err = parallel(ctx, qs, func(ctx context.Context, q *queue) error {
		if !q.leased() {
			return nil
		}
		ok, err := c.prepareLocked(ctx, q)
		if err == nil && ok {
			q.phase = phaseIdle
		}
		return err
	})
	c.inform(ctx, Assigned, slices.DeleteFunc(slices.Clone(qs), func(q *queue) bool { return q.phase != phaseIdle })...)
	for _, q := range qs {
		// One whose offset could not be had is let go and gained again with the
		// next rebalance, which is soon.
		if q.phase == phaseLocking && q.lease.Load() != 0 || !c.start(q) {
			c.mention(Lost, q)
			err = errors.Join(err, c.unlock(context.WithoutCancel(ctx), broker, []*queue{q}))
			q.cancel(rocketmq.ErrClosed)
		}
	}
	c.locks.gained(broker, began, refused)
	return err
}

// revokeOrdered sees a queue off that was stopped: its handler may finish for a
// moment, then its context ends; when it has returned, and not before, the
// offset is committed and the lock let go. Until then the lock is renewed,
// however long it takes: another member would break the order.
func (c *Consumer) revokeOrdered(ctx context.Context, q *queue) {
	ended := c.handlerEnds(ctx, q)
	c.inform(ctx, q.parting(), q)
	if ended {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		if err := c.commitNow(last, []*queue{q}, true); err != nil {
			c.log.Warn("offset of a revoked queue not committed, its messages come again", "queue", q.key, "err", err)
		}
		if err := c.unlock(last, q.key.Broker, []*queue{q}); err != nil {
			c.log.Warn("revoked queue not unlocked, its next owner waits until the lock has run out", "queue", q.key, "err", err)
		}
	}
	q.cancel(rocketmq.ErrRevoked)
	c.mu.Lock()
	delete(c.revoking, q.key)
	c.mu.Unlock()
	c.rebalanceSoon() // it may have been given back to us meanwhile
}

// handlerEnds waits for the handler of a queue that was stopped. It is false if
// ctx ends first.
func (c *Consumer) handlerEnds(ctx context.Context, q *queue) bool {
	timer := time.NewTimer(revokeGrace)
	defer timer.Stop()
	grace := true
	for p := q; p != nil; {
		select {
		case <-p.idle:
			p = p.before()
		case <-timer.C:
			if grace {
				grace = false
				q.cancel(rocketmq.ErrRevoked)
				timer.Reset(revokeLimit)
				continue
			}
			c.log.Warn("the handler of a revoked queue does not return, the queue waits for it", "queue", q.key, "offsets", fmt.Sprint(q.begun()))
		case <-ctx.Done():
			return q.quiet()
		}
	}
	return true
}

// parting is how a queue that was stopped leaves us.
func (q *queue) parting() EventKind {
	if q.quiet() {
		return Revoked
	}
	return Lost
}

// quiet tells whether no handler runs of a queue that was stopped, and of those
// before it.
func (q *queue) quiet() bool {
	for p := q; p != nil; p = p.before() {
		select {
		case <-p.idle:
		default:
			return false
		}
	}
	return true
}
