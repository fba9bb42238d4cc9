package consume

import (
	"context"
	"slices"
	"time"
)

// A queue that comes from another member. The member before it commits what is
// done at the moment it hears of the change, but it hears of it when we do, and
// we may have asked for the offset before it has said anything. So a queue that
// may have had an owner until now (the group has other members, and the broker
// an offset) does not pull before its offset has been asked for once more, a
// little later. What comes twice is then what its owner's handlers were at.
//
// Being ready does not wait for that: the queue is ours and its offset stands. A
// member that is alone waits for nobody.
const (
	// handoverFirst is enough for a member that is well: a notice, a list of
	// members, a commit.
	handoverFirst = 100 * time.Millisecond
	// handoverAgain: as long as the offset moves somebody is at work.
	handoverAgain = 50 * time.Millisecond
	// handoverLimit bounds the whole.
	handoverLimit = time.Second
)

// takeOver starts queues of a topic when their offsets have come to rest.
func (c *Consumer) takeOver(ctx context.Context, t *topic, qs []*queue) {
	ctx, cancel := context.WithTimeout(ctx, handoverLimit)
	defer cancel()
	timer := time.NewTimer(handoverFirst)
	defer timer.Stop()
	for len(qs) > 0 {
		select {
		case <-timer.C:
			timer.Reset(handoverAgain)
		case <-ctx.Done():
			for _, q := range qs {
				q.takenOver()
			}
			return
		}
		err := parallel(ctx, qs, func(ctx context.Context, q *queue) error {
			off, known, err := c.storedOffset(ctx, t, q.key)
			if err == nil && !(known && q.settle(off)) {
				q.takenOver()
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			c.log.Debug("offset of a queue from another member, asking again", "topic", t.name, "err", err)
		}
		qs = slices.DeleteFunc(qs, func(q *queue) bool { return !q.waits() })
	}
}

func (q *queue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.phase == phaseHandover
}

// settle takes over the stored offset and reports whether it has moved.
func (q *queue) settle(off int64) (moved bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase != phaseHandover || off == q.next {
		return false
	}
	q.next, q.mark, q.began, q.committed, q.confirmed, q.sentTime = off, off, off, off, off, time.Now()
	return true
}

// takenOver has a queue pull from where it is.
func (q *queue) takenOver() {
	q.mu.Lock()
	if q.phase == phaseHandover {
		q.phase, q.handover = phaseIdle, false
	}
	q.mu.Unlock()
	q.startPull()
}

// commitLast commits what a revoked queue got done since it was told last.
// Its next owner may be further by now: then there is nothing to say.
func (c *Consumer) commitLast(ctx context.Context, q *queue) error {
	if c.local != nil {
		return c.save(ctx, []*queue{q})
	}
	x := q.due(time.Now(), false)
	if x == nil {
		return nil
	}
	if off, known, err := c.storedOffset(ctx, q.topic, q.key); err == nil && known && off >= x.offset {
		return nil
	}
	return c.commitNow(ctx, []*queue{q}, false)
}
