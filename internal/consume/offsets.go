package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	commitEvery = 5 * time.Second
	// commitGap is the least time between two rounds. A queue that has nothing
	// left to do asks for one, so that whoever takes it over repeats little.
	commitGap = 500 * time.Millisecond
	// commitAgain is when an offset that has not moved is sent once more: a
	// one-way request may be lost, and a broker may have lost what it knew.
	commitAgain = 30 * time.Second
	// version5 is the ordinal of MQVersion V5_0_0.
	version5 = 413
)

// startOffset finds where to begin with a queue: where the group stopped, or
// for a group without an offset where its start position says. "None stored"
// and "could not be asked" are different answers; the second is an error and
// never a position. known is false if the position was computed and is not at
// the broker yet.
func (c *Consumer) startOffset(ctx context.Context, t *topic, q rocketmq.Queue) (offset int64, known bool, err error) {
	offset, known, err = c.storedOffset(ctx, t, q)
	if known || err != nil {
		return offset, known, err
	}
	offset, err = c.position(ctx, t, q, t.master(q.Broker), c.cfg.Start)
	if err != nil {
		return 0, false, fmt.Errorf("start of queue %s at %s: %w", q, c.cfg.Start, err)
	}
	return offset, false, nil
}

// storedOffset is what the broker has of the group. known is false if it has
// nothing.
func (c *Consumer) storedOffset(ctx context.Context, t *topic, q rocketmq.Queue) (offset int64, known bool, err error) {
	req := wire.QueryOffsetRequest{Group: string(c.groupWire), Topic: t.wireName, QueueID: int32(q.ID)}
	kind := c.cfg.Start.Kind()
	exact := kind == rocketmq.PositionStrictLatest || kind == rocketmq.PositionTime || kind == rocketmq.PositionOffset
	if exact && !t.retry {
		// Otherwise a broker answers 0 for a young queue as if that had been
		// stored. 4.9 does so whatever is asked.
		req.HasSetZero, req.SetZero = true, false
	}
	offset, version, err := askOffset(ctx, c.cfg.Runtime, t.master(q.Broker), &wire.Command{Code: wire.ReqQueryConsumerOffset, Ext: &req})
	switch {
	case notFound(err):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("stored offset of queue %s: %w", q, err)
	}
	if offset == 0 && req.HasSetZero && version < version5 && !t.warned.Swap(true) {
		c.log.Warn("the broker says offset 0; brokers before 5.0 say so also if none is stored, the topic is then read from its beginning",
			"queue", q, "start", c.cfg.Start.String())
	}
	return max(offset, 0), offset >= 0, nil
}

func notFound(err error) bool {
	var re *client.ResponseError
	return errors.As(err, &re) && re.Code == wire.RespQueryNotFound
}

// position is the offset of a start position.
func (c *Consumer) position(ctx context.Context, t *topic, q rocketmq.Queue, addr string, start rocketmq.Position) (int64, error) {
	if t.retry {
		start = rocketmq.Earliest() // nothing may be left out: all of it failed before
	}
	return askPosition(ctx, c.cfg.Runtime, addr, t.wireName, q, start)
}

// commit is one queue's offset on its way to the broker.
type commit struct {
	q      *queue
	offset int64
	h      wire.UpdateOffsetRequest
	flag   int32
	done   func(x *commit, err error) // nil: one-way
	c      *Consumer
}

// AppendFrame implements [remoting.Appender].
func (x *commit) AppendFrame(dst []byte, opaque int32) []byte {
	if x.q.stale.Load() && x.flag&wire.FlagOneway != 0 {
		return dst // the offset that took its place may be on the wire
	}
	if !x.q.tell(x.h.Offset) {
		x.h.Offset = x.q.told.Load() // more was done since this was made ready
	}
	h := x.c.head
	h.Code, h.Opaque, h.Flag = wire.ReqUpdateConsumerOffset, opaque, x.flag
	e := wire.Begin(dst, h)
	x.h.EncodeExt(&e)
	return e.Finish(nil)
}

// tell notes that an offset goes into a frame and reports whether it may: what
// the broker hears last counts, so it must not be less than what it was told
// before. Frames with offsets of one queue are all encoded under the lock of
// the output of one connection, in the order in which they are sent, and this is
// called in between. A queue whose offset goes back is replaced by a new one.
func (q *queue) tell(off int64) bool {
	for {
		told := q.told.Load()
		if off < told {
			return false
		}
		if off == told || q.told.CompareAndSwap(told, off) {
			return true
		}
	}
}

// Done implements [remoting.Exchange].
func (x *commit) Done(f *wire.Frame, err error) {
	if err == nil && f.Code != wire.RespSuccess {
		err = &rocketmq.BrokerError{Op: "UPDATE_CONSUMER_OFFSET", Code: rocketmq.Code(f.Code), Remark: string(f.Remark)}
	}
	x.done(x, err)
}

// due returns the offset to commit, or nil if the broker knows it. With sure
// it is only taken to know what it had before we began: a one-way request may
// have been lost.
func (q *queue) due(now time.Time, sure bool) *commit {
	q.mu.Lock()
	defer q.mu.Unlock()
	off := q.commitLocked()
	switch {
	case q.stale.Load():
		return nil // it was moved
	case off < 0:
		return nil // it is the application's to commit
	case q.handover:
		return nil // the offset is still the owner's before
	case q.c.cfg.Ordered && !q.leased():
		return nil // the offset is that of whoever has the lock
	case sure && off == q.began && off == q.committed:
		return nil
	case !sure && off == q.committed && (now.Sub(q.sentTime) < commitAgain || q.c.byHand()):
		return nil
	}
	return &commit{q: q, c: q.c, offset: off, h: wire.UpdateOffsetRequest{
		Group: string(q.c.groupWire), Topic: q.topic.wireName, QueueID: int32(q.key.ID), Offset: off,
	}}
}

// confirm notes what the broker has confirmed.
func (q *queue) confirm(off int64) {
	q.mu.Lock()
	q.confirmed = off
	q.mu.Unlock()
}

func (q *queue) sentCommit(off int64) {
	q.mu.Lock()
	q.committed, q.sentTime = off, time.Now()
	q.mu.Unlock()
}

// commitOneway sends the offsets that moved, without waiting for answers.
// What cannot be sent is due again the next time.
func (c *Consumer) commitOneway(ctx context.Context, qs []*queue) {
	if c.local != nil {
		_ = c.save(ctx, qs) // it has said so itself
		return
	}
	dead := map[string]bool{}
	now := time.Now()
	for _, q := range qs {
		x := q.due(now, false)
		if x == nil {
			continue
		}
		addr := q.topic.master(q.key.Broker)
		if dead[addr] {
			continue
		}
		dial, cancel := context.WithTimeout(ctx, settleTimeout)
		conn, err := c.dial(dial, addr)
		cancel()
		x.flag = wire.FlagOneway
		if err == nil {
			err = conn.Oneway(x, time.Time{}, remoting.Later)
		}
		if err != nil {
			dead[addr] = true
			c.log.Debug("offsets not committed, trying again", "addr", addr, "err", err)
			continue
		}
		q.sentCommit(x.offset)
	}
}

// commitNow sends the offsets of the queues and waits until the brokers have
// confirmed them, or ctx ends; with sure also those that were sent and not
// confirmed. The error joins one of each broker that cannot be reached and those
// of all queues that were refused.
func (c *Consumer) commitNow(ctx context.Context, qs []*queue, sure bool) error {
	if c.local != nil {
		return c.save(ctx, qs)
	}
	var (
		mu   sync.Mutex // guards the two below
		errs []error
		left = 1
		all  = make(chan struct{})
	)
	end := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
		}
		if left--; left == 0 {
			close(all)
		}
	}
	now := time.Now()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = now.Add(settleTimeout)
	}
	dead := map[string]bool{}
	for _, q := range qs {
		x := q.due(now, sure)
		if x == nil {
			continue
		}
		mu.Lock()
		left++
		mu.Unlock()
		x.done = func(x *commit, err error) {
			if err != nil {
				end(fmt.Errorf("commit of queue %s: %w", x.q.key, err))
				return
			}
			x.q.sentCommit(x.offset)
			x.q.confirm(x.offset)
			end(nil)
		}
		addr := q.topic.master(q.key.Broker)
		if dead[addr] {
			end(nil) // one error a broker says enough
			continue
		}
		conn, err := c.dial(ctx, addr)
		if err == nil {
			_, err = conn.Start(x, deadline, remoting.Later)
		}
		if err != nil {
			dead[addr] = true
			x.done(x, err)
		}
	}
	end(nil)
	select {
	case <-all:
	case <-ctx.Done():
		end(fmt.Errorf("commit of offsets: %w", context.Cause(ctx)))
	}
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(errs...)
}

// commitSoon has the commit loop run at once.
func (c *Consumer) commitSoon() {
	select {
	case c.commitKick <- struct{}{}:
	default:
	}
}

// keepCommitting is the commit loop.
func (c *Consumer) keepCommitting(ctx context.Context) {
	tick := time.NewTicker(c.cfg.CommitEvery)
	defer tick.Stop()
	gap := time.NewTimer(0)
	defer gap.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.commitKick:
		}
		c.commitOneway(ctx, c.queues())
		gap.Reset(commitGap)
		select {
		case <-ctx.Done():
			return
		case <-gap.C:
		}
	}
}
