package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/alloc"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/rebalance"
)

const (
	rebalanceEvery = 20 * time.Second
	// rebalanceAgain is when a rebalance that did not come through is tried
	// again.
	rebalanceAgain = time.Second
	// loadParallel is how many start offsets are asked for at a time.
	loadParallel = 16
	// revokeGrace is how long handlers of a lost queue may finish undisturbed;
	// after revokeLimit their queue is given up with what is done.
	revokeGrace = time.Second
	revokeLimit = 3 * time.Second
)

// errUnassigned says that the brokers do not list this member yet.
var errUnassigned = errors.New("the group's member list does not have this client yet")

// rebalanceSoon has the loop run at once. It may be called from anywhere.
func (c *Consumer) rebalanceSoon() {
	select {
	case c.rebalanceKick <- struct{}{}:
	default:
	}
}

// keepBalancing is the rebalance loop: every 20 s, when members or routes
// change, and soon again after a failure.
func (c *Consumer) keepBalancing(ctx context.Context) {
	timer := time.NewTimer(c.cfg.RebalanceEvery)
	defer timer.Stop()
	for {
		next := c.cfg.RebalanceEvery
		if err := c.rebalance(ctx); err == nil {
			c.becomeReady()
		} else if ctx.Err() == nil {
			next = min(next, rebalanceAgain)
			c.log.Warn("rebalance incomplete, trying again", "in", next, "err", err)
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.rebalanceKick:
		}
	}
}

// rebalance brings the queues in line with what the strategy gives us. The
// error joins those of all topics; each topic stands for itself.
func (c *Consumer) rebalance(ctx context.Context) error {
	var errs []error
	for _, t := range c.topics {
		if err := c.rebalanceTopic(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("topic %q: %w", t.name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Consumer) rebalanceTopic(ctx context.Context, t *topic) error {
	route, err := c.cfg.Runtime.Route(ctx, t.wireName)
	if err != nil {
		if t.retry && errors.Is(err, client.ErrTopicNotFound) {
			return nil // made by the broker with our first heartbeat; seen later
		}
		return err
	}
	t.route.Store(route)
	members, err := c.cfg.Runtime.Members(ctx, string(c.groupWire), t.wireName)
	if err != nil {
		return err
	}
	self := c.cfg.Runtime.ClientID()
	if !slices.Contains(members, self) {
		// The broker was restarted or has not had a heartbeat. What we have is
		// kept for one more round; if we are still not listed then, others
		// have our queues by now.
		c.beatSoon()
		if t.missing++; t.missing == 1 {
			return errUnassigned
		}
	} else {
		t.missing = 0
	}
	queues := make([]rocketmq.Queue, 0, len(route.Readable))
	for _, q := range route.Readable {
		queues = append(queues, rocketmq.Queue{Topic: t.name, Broker: q.Broker, ID: int(q.ID)})
	}
	var mine []rocketmq.Queue
	if len(queues) > 0 && len(members) > 0 {
		alloc.SortMembers(members)
		// A broker lists a member once for each of its connections: twice while
		// an old one has not been noticed to be dead. It has one share.
		members = slices.Compact(members)
		alloc.SortQueues(queues)
		mine, err = c.cfg.Strategy.Allocate(rebalance.Input{Group: c.cfg.Group, Topic: t.name, Self: self, Members: members, Queues: queues})
		if err != nil {
			return err
		}
		if err := checkAllocation(mine, queues); err != nil {
			return fmt.Errorf("strategy %s: %w", c.cfg.Strategy.Name(), err)
		}
	}
	if err := c.apply(ctx, t, mine); err != nil {
		return err
	}
	if t.missing > 0 {
		return errUnassigned
	}
	return nil
}

// checkAllocation keeps a faulty strategy from making us read queues that do
// not exist, or one twice.
func checkAllocation(mine, queues []rocketmq.Queue) error {
	seen := make(map[rocketmq.Queue]bool, len(mine))
	for _, q := range queues {
		seen[q] = false
	}
	for _, q := range mine {
		taken, ok := seen[q]
		switch {
		case !ok:
			return fmt.Errorf("queue %s is not one of the topic's", q)
		case taken:
			return fmt.Errorf("queue %s comes twice", q)
		}
		seen[q] = true
	}
	return nil
}

// apply revokes what is not in mine and takes on what is new.
func (c *Consumer) apply(ctx context.Context, t *topic, mine []rocketmq.Queue) error {
	want := make(map[rocketmq.Queue]bool, len(mine))
	for _, q := range mine {
		want[q] = true
	}
	var lost []*queue
	var gained []rocketmq.Queue
	c.mu.Lock()
	for key, q := range c.table {
		if q.topic == t && !want[key] {
			lost = append(lost, q)
			delete(c.table, key)
			c.revoking[key] = q
		}
	}
	for _, key := range mine {
		if c.table[key] == nil && c.revoking[key] == nil {
			gained = append(gained, key) // one that is being revoked comes when that is over
		}
	}
	c.mu.Unlock()
	for _, q := range lost {
		c.group.Go(func(ctx context.Context) { c.revoke(ctx, q) })
	}
	if len(lost)+len(gained) > 0 {
		c.log.Info("assignment changed", "topic", t.name, "queues", len(mine), "gained", keys(gained), "lost", keysOf(lost))
	}
	return c.gain(ctx, t, gained)
}

// keys makes a short text of queues, for the log.
func keys(qs []rocketmq.Queue) string {
	var b strings.Builder
	for i, q := range qs {
		if i == 16 {
			fmt.Fprintf(&b, " and %d more", len(qs)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(q.String())
	}
	return b.String()
}

func keysOf(qs []*queue) string {
	out := make([]rocketmq.Queue, len(qs))
	for i, q := range qs {
		out[i] = q.key
	}
	return keys(out)
}

// gain loads the start offsets of new queues, several at a time, and starts
// those whose offset is known. A queue whose offset could not be had is tried
// again with the next rebalance.
func (c *Consumer) gain(ctx context.Context, t *topic, gained []rocketmq.Queue) error {
	if len(gained) == 0 {
		return nil
	}
	var (
		mu   sync.Mutex // guards the two below
		errs []error
		at   int
	)
	g := run.NewGroup(ctx)
	for range min(loadParallel, len(gained)) {
		g.Go(func(ctx context.Context) {
			for {
				mu.Lock()
				i := at
				at++
				mu.Unlock()
				if i >= len(gained) || ctx.Err() != nil {
					return
				}
				if err := c.gainOne(ctx, t, gained[i]); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	g.Wait()
	g.Cancel(nil)
	return errors.Join(append(errs, ctx.Err())...)
}

func (c *Consumer) gainOne(ctx context.Context, t *topic, key rocketmq.Queue) error {
	offset, known, err := c.startOffset(ctx, t, key)
	if err != nil {
		return err
	}
	q := c.newQueue(t, key, offset)
	if known {
		q.committed, q.sentTime = offset, time.Now()
	} else if err := c.commitNow(ctx, []*queue{q}); err != nil {
		// From here on the group must not be without an offset: a member that
		// took over before our first commit would choose a later start.
		q.cancel(err)
		return err
	}
	c.start(q)
	return nil
}

func (c *Consumer) newQueue(t *topic, key rocketmq.Queue, offset int64) *queue {
	q := &queue{c: c, topic: t, key: key, next: offset, committed: -1, source: client.MasterID, idle: make(chan struct{})}
	q.pull.q = q
	q.ctx, q.cancel = context.WithCancelCause(c.handlers)
	return q
}

// start puts a queue into the table and sends its first pull.
func (c *Consumer) start(q *queue) {
	c.mu.Lock()
	if c.closing || c.table[q.key] != nil {
		c.mu.Unlock()
		q.cancel(rocketmq.ErrClosed)
		return
	}
	c.table[q.key] = q
	c.mu.Unlock()
	q.startPull()
}

// revoke gives a queue up: no more pulls, no further messages to handlers, a
// moment for those that run, then their context ends; what is done by then is
// committed and the queue forgotten.
func (c *Consumer) revoke(ctx context.Context, q *queue) {
	q.revoked.Store(true)
	idle := q.stop()
	// Its next owner is asking for the offset right now. What the handlers that
	// still run get done is told later.
	c.commitOneway(ctx, []*queue{q})
	timer := time.NewTimer(revokeGrace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-ctx.Done():
	case <-timer.C:
		q.cancel(rocketmq.ErrRevoked)
		timer.Reset(revokeLimit)
		select {
		case <-idle:
		case <-ctx.Done():
		case <-timer.C:
			c.log.Warn("handlers of a revoked queue do not return", "queue", q.key, "offsets", fmt.Sprint(q.begun()))
		}
	}
	q.cancel(rocketmq.ErrRevoked)
	commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := c.commitNow(commit, []*queue{q}); err != nil {
		c.log.Warn("offset of a revoked queue not committed, its messages come again", "queue", q.key, "err", err)
	}
	c.mu.Lock()
	delete(c.revoking, q.key)
	c.mu.Unlock()
	c.rebalanceSoon() // it may have been given back to us meanwhile
}

// replace drops a queue's cache because its offset was moved, and starts anew
// at next. The broker learns the new offset at once, also one that lies
// behind.
func (c *Consumer) replace(old *queue, next int64) {
	old.revoked.Store(true)
	old.stop()
	old.cancel(fmt.Errorf("%w: its offset was moved", rocketmq.ErrRevoked))
	q := c.newQueue(old.topic, old.key, next)
	c.mu.Lock()
	ok := !c.closing && c.table[old.key] == old
	if ok {
		c.table[old.key] = q
	}
	c.mu.Unlock()
	if !ok {
		q.cancel(rocketmq.ErrRevoked)
		return
	}
	c.commitSoon()
	q.startPull()
}
