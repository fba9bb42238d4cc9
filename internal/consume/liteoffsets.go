package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// What counts as done, in a Lite. Without WithManualCommit that is what polls have
// handed out, except for the latest: whoever polls again is done with what he got
// before. What is committed is decided when it is sent, so a poll has nothing to
// do but to count itself. With it, done is what Commit said (queue.mark).

// commitLocked is the offset to commit, -1 for none.
func (q *queue) commitLocked() int64 {
	l := q.c.lite
	switch {
	case l == nil:
	case l.manual:
		return q.mark
	case q.handed == l.polls.Load():
		return q.since
	}
	return q.lowestLocked()
}

// committableLocked is where the queue goes on after a crash.
func (q *queue) committableLocked() int64 {
	if off := q.commitLocked(); off >= 0 {
		return off
	}
	return q.lowestLocked()
}

func (q *queue) lowestDone() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.committableLocked()
}

// outstanding reports whether messages were handed out that do not count as done.
func (q *queue) outstanding() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	off := q.commitLocked()
	return off >= 0 && off < q.lowestLocked()
}

// markDone has all that was handed out count as done. It reports whether the
// broker has still to hear of it.
func (q *queue) markDone() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mark, q.handed = q.lowestLocked(), 0
	return q.mark != q.confirmed
}

// Commit commits what was handed out of queues, of all if none are named, and
// waits until the brokers have confirmed it. A queue that is being given to another
// member can still be committed for a moment.
func (l *Lite) Commit(ctx context.Context, keys []rocketmq.Queue) error {
	if l.life.Err() != nil && !l.parting.Load() {
		return rocketmq.ErrClosed
	}
	c := l.c
	var mine, leaving []*queue
	var errs []error
	c.mu.Lock()
	if len(keys) == 0 {
		for _, q := range c.table {
			mine = append(mine, q)
		}
		for _, q := range c.revoking {
			leaving = append(leaving, q)
		}
	}
	for _, key := range keys {
		if q := c.table[key]; q != nil {
			mine = append(mine, q)
		} else if q := c.revoking[key]; q != nil {
			leaving = append(leaving, q)
		} else {
			errs = append(errs, notOurs(key))
		}
	}
	c.mu.Unlock()
	mine = slices.DeleteFunc(mine, func(q *queue) bool { return !q.markDone() })
	leaving = slices.DeleteFunc(leaving, func(q *queue) bool { return !q.markDone() })
	if len(mine) > 0 {
		errs = append(errs, c.commitNow(ctx, mine, true))
	}
	for _, q := range leaving {
		errs = append(errs, c.commitLeaving(ctx, q))
	}
	l.announce()
	return errors.Join(errs...)
}

// commitLeaving commits a queue that is another member's by now, unless that one
// is further.
func (c *Consumer) commitLeaving(ctx context.Context, q *queue) error {
	off, known, err := c.storedOffset(ctx, q.topic, q.key)
	if err != nil {
		return err
	}
	if known && off >= q.lowestDone() {
		return nil
	}
	return c.commitNow(ctx, []*queue{q}, true)
}

// toldByHand reports whether the broker has confirmed all that the application
// committed.
func (q *queue) toldByHand() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mark < 0 || q.mark == q.confirmed
}

// byHand reports whether only the application commits.
func (c *Consumer) byHand() bool { return c.lite != nil && c.lite.manual }

func notOurs(key rocketmq.Queue) error {
	return fmt.Errorf("queue %s: %w (%w)", key, errNotAssigned, rocketmq.ErrRevoked)
}

// awaitCommit gives the application a moment to be done with what it was handed
// of a queue that goes to another member, who waits a little for that, too.
func (l *Lite) awaitCommit(ctx context.Context, q *queue) {
	l.c.inform(ctx, Revoked, q) // whose listener may commit
	timer := time.NewTimer(revokeGrace)
	defer timer.Stop()
	for {
		changed := l.next()
		if !q.outstanding() {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Seek has a queue go on elsewhere. What is cached of it is dropped. It waits
// until the queue has been taken on, if that is still under way.
func (l *Lite) Seek(ctx context.Context, key rocketmq.Queue, to rocketmq.Position) error {
	if err := l.Open(ctx); err != nil {
		return err
	}
	old, err := l.await(ctx, key)
	if err != nil {
		return err
	}
	t := old.topic
	off, err := l.c.seekOffset(ctx, t, key, to)
	if err != nil {
		return fmt.Errorf("seek queue %s to %s: %w", key, to, err)
	}
	why := fmt.Errorf("%w: its offset was moved", rocketmq.ErrRevoked)
	for {
		q := l.c.newQueue(t, key, off)
		q.known = old.known
		if l.manual {
			q.mark = -1 // and the application says when to commit
		}
		if l.c.swap(old, q, why) {
			l.c.commitSoon()
			q.startPull()
			return nil
		}
		if old, err = l.await(ctx, key); err != nil {
			return err
		}
	}
}

// seekOffset is a position as an offset that the queue has.
func (c *Consumer) seekOffset(ctx context.Context, t *topic, key rocketmq.Queue, to rocketmq.Position) (int64, error) {
	addr := t.master(key.Broker)
	off, err := c.position(ctx, t, key, addr, to)
	if err != nil || to.Kind() != rocketmq.PositionOffset {
		return off, err
	}
	low, err := c.position(ctx, t, key, addr, rocketmq.Earliest())
	if err != nil {
		return 0, err
	}
	high, err := c.position(ctx, t, key, addr, rocketmq.StrictLatest())
	if err != nil {
		return 0, err
	}
	if off < low || off > high {
		return 0, &rocketmq.OffsetError{Queue: key, Asked: off, Min: low, Max: high}
	}
	return off, nil
}

// await is an assigned queue, waited for if it is about to be.
func (l *Lite) await(ctx context.Context, key rocketmq.Queue) (*queue, error) {
	for {
		changed := l.next()
		pending := l.given != nil && l.given.has(key)
		if l.given == nil {
			select {
			case <-l.c.ready:
			default:
				pending = true
			}
		}
		l.c.mu.Lock()
		q := l.c.table[key]
		l.c.mu.Unlock()
		switch {
		case q != nil:
			return q, nil
		case !pending:
			return nil, notOurs(key)
		}
		var ready <-chan struct{}
		if l.given == nil {
			ready = l.c.ready
		}
		select {
		case <-changed:
		case <-ready:
		case <-l.life.Done():
			return nil, rocketmq.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
