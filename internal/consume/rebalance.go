package consume

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
		err := c.rebalance(ctx)
		c.mu.Lock()
		if c.unsolved = err; err == nil {
			c.balanced = time.Now()
		}
		c.mu.Unlock()
		if err == nil {
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

// gains are queues of one topic to be taken on.
type gains struct {
	t      *topic
	queues []rocketmq.Queue
	shared bool // the group has other members, who may have had them until now
}

// rebalance brings the queues in line with what the strategy gives us. What
// was lost is given up first, in all topics: others wait for it. The error
// joins those of all topics; each topic stands for itself.
func (c *Consumer) rebalance(ctx context.Context) error {
	var errs []error
	var all []gains
	for _, t := range c.allTopics() {
		g, err := c.rebalanceTopic(ctx, t)
		all = append(all, g)
		if err != nil {
			c.rebalanced(t, nil, nil, nil, err)
			errs = append(errs, fmt.Errorf("topic %q: %w", t.name, err))
		}
	}
	for _, g := range all {
		gain := c.gain
		switch {
		case c.cfg.Ordered:
			gain = c.gainOrdered
		case c.local != nil:
			gain = c.gainLocal
		}
		if err := gain(ctx, g); err != nil {
			errs = append(errs, fmt.Errorf("topic %q: %w", g.t.name, err))
		}
	}
	if c.local != nil {
		c.local.late = true
	}
	return errors.Join(errs...)
}

// rebalanceTopic asks who is here, has the queues shared out, gives up what is
// not ours any more and says what is new.
func (c *Consumer) rebalanceTopic(ctx context.Context, t *topic) (gains, error) {
	none := gains{t: t}
	if c.lite != nil && c.lite.given != nil {
		return c.gainGiven(ctx, t)
	}
	route, err := c.cfg.Runtime.Route(ctx, t.wireName)
	if err != nil {
		if t.retry && errors.Is(err, client.ErrTopicNotFound) {
			return none, nil // made by the broker with our first heartbeat; seen later
		}
		return none, err
	}
	t.route.Store(route)
	queues := t.readable(route)
	if c.local != nil {
		return gains{t: t, queues: c.apply(t, queues)}, nil
	}
	members, err := c.cfg.Runtime.Members(ctx, string(c.groupWire), t.wireName)
	if err != nil {
		return none, err
	}
	self := c.cfg.Runtime.ClientID()
	if !slices.Contains(members, self) {
		// The broker was restarted or has not had a heartbeat. What we have is
		// kept for one more round; if we are still not listed then, others
		// have our queues by now.
		c.beatSoon()
		if t.missing++; t.missing == 1 {
			return none, errUnassigned
		}
	} else {
		t.missing = 0
	}
	var mine []rocketmq.Queue
	if len(queues) > 0 && len(members) > 0 {
		alloc.SortMembers(members)
		// A broker lists a member once for each of its connections: twice while
		// an old one has not been noticed to be dead. It has one share.
		members = slices.Compact(members)
		alloc.SortQueues(queues)
		mine, err = c.allocate(rebalance.Input{Group: c.cfg.Group, Topic: t.name, Self: self, Members: members, Queues: queues})
		if err != nil {
			return none, err
		}
	}
	shared := slices.ContainsFunc(members, func(id string) bool { return id != self })
	g := gains{t: t, queues: c.apply(t, mine), shared: shared}
	if t.missing > 0 {
		return g, errUnassigned
	}
	return g, nil
}

// allocate asks the strategy, which may be the application's: it gets slices of its
// own, and what it answers, or that it panics, is looked at.
func (c *Consumer) allocate(in rebalance.Input) (mine []rocketmq.Queue, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the rebalance strategy: %w", &rocketmq.PanicError{Value: v, Stack: debug.Stack()})
			c.log.Error("the rebalance strategy panicked", "topic", in.Topic, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	own := in
	own.Members, own.Queues = slices.Clone(in.Members), slices.Clone(in.Queues)
	if mine, err = c.cfg.Strategy.Allocate(own); err != nil {
		return nil, fmt.Errorf("the rebalance strategy: %w", err)
	}
	if err := checkAllocation(mine, in.Queues); err != nil {
		return nil, fmt.Errorf("rebalance strategy %s: %w", c.cfg.Strategy.Name(), err)
	}
	return mine, nil
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

// apply revokes what is not in mine and returns what is new.
func (c *Consumer) apply(t *topic, mine []rocketmq.Queue) (gained []rocketmq.Queue) {
	want := make(map[rocketmq.Queue]bool, len(mine))
	for _, q := range mine {
		want[q] = true
	}
	var lost []*queue
	for _, q := range c.queues() {
		if q.topic == t && !want[q.key] {
			if q = c.giveUp(q); q != nil {
				lost = append(lost, q)
			}
		}
	}
	c.mu.Lock()
	for _, key := range mine {
		if c.table[key] == nil && c.revoking[key] == nil {
			gained = append(gained, key) // one that is being revoked comes when that is over
		}
	}
	c.mu.Unlock()
	if len(lost)+len(gained) > 0 {
		c.rebalanced(t, mine, gained, queueKeys(lost), nil)
		c.log.Info("assignment changed", "topic", t.name, "queues", len(mine), "gained", keys(gained), "lost", keys(queueKeys(lost)))
	}
	return gained
}

// giveUp stops a queue and then moves it from the table to those being revoked:
// what is not in the table takes no message any more. It returns what it has
// moved, which is a later queue if the offset was moved meanwhile, or nil.
func (c *Consumer) giveUp(q *queue) *queue {
	for {
		q.revoked.Store(true)
		q.stop()
		c.mu.Lock()
		now := c.table[q.key]
		if now == q {
			delete(c.table, q.key)
			c.revoking[q.key] = q
		}
		c.mu.Unlock()
		switch now {
		case q:
			c.group.Go(func(ctx context.Context) {
				if c.cfg.Ordered {
					c.revokeOrdered(ctx, q)
				} else {
					c.revoke(ctx, q)
				}
			})
			return q
		case nil:
			return nil
		}
		q = now
	}
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

func queueKeys(qs []*queue) []rocketmq.Queue {
	out := make([]rocketmq.Queue, len(qs))
	for i, q := range qs {
		out[i] = q.key
	}
	return out
}

// byBroker sorts queues by broker: one that is slow or away holds up no other.
func byBroker(qs []rocketmq.Queue) (names []string, by map[string][]rocketmq.Queue) {
	by = make(map[string][]rocketmq.Queue)
	for _, q := range qs {
		if by[q.Broker] == nil {
			names = append(names, q.Broker)
		}
		by[q.Broker] = append(by[q.Broker], q)
	}
	return names, by
}

// gain loads the start offsets of new queues, several at a time, and starts
// those whose offset is known. A queue whose offset could not be had is tried
// again with the next rebalance.
func (c *Consumer) gain(ctx context.Context, g gains) error {
	names, by := byBroker(g.queues)
	return parallel(ctx, names, func(ctx context.Context, broker string) error {
		var mu sync.Mutex // guards fresh
		var fresh []*queue
		err := parallel(ctx, by[broker], func(ctx context.Context, key rocketmq.Queue) error {
			q, err := c.gainOne(ctx, g.t, key, g.shared)
			if err == nil {
				mu.Lock()
				fresh = append(fresh, q)
				mu.Unlock()
			}
			return err
		})
		c.begin(ctx, g.t, fresh)
		return err
	})
}

// begin starts new queues of a topic.
func (c *Consumer) begin(ctx context.Context, t *topic, fresh []*queue) {
	c.inform(ctx, Assigned, fresh...)
	var wait []*queue
	for _, q := range fresh {
		waits := q.handover
		if !c.start(q) {
			c.mention(Lost, q)
		} else if waits {
			wait = append(wait, q)
		}
	}
	if len(wait) > 0 {
		c.group.Go(func(ctx context.Context) { c.takeOver(ctx, t, wait) })
	}
}

// gainOne makes a queue. It is not to pull at once if somebody else may just be
// giving it up.
func (c *Consumer) gainOne(ctx context.Context, t *topic, key rocketmq.Queue, shared bool) (*queue, error) {
	offset, known, err := c.startOffset(ctx, t, key)
	if err != nil {
		return nil, err
	}
	q := c.newQueue(t, key, offset)
	switch {
	case known:
		q.began, q.committed, q.confirmed, q.sentTime = offset, offset, offset, time.Now()
		if shared {
			q.phase, q.handover = phaseHandover, true
		}
	default:
		// From here on the group must not be without an offset: a member that
		// took over before our first commit would choose a later start.
		if err := c.commitNow(ctx, []*queue{q}, false); err != nil && !c.unknownGroup(err) {
			q.cancel(err)
			return nil, err
		}
	}
	return q, nil
}

// parallel calls f for all items, several at a time, and joins the errors.
func parallel[T any](ctx context.Context, items []T, f func(context.Context, T) error) error {
	if len(items) == 0 {
		return nil
	}
	var (
		mu   sync.Mutex // guards the two below
		errs []error
		at   int
	)
	g := run.NewGroup(ctx)
	for range min(loadParallel, len(items)) {
		g.Go(func(ctx context.Context) {
			for {
				mu.Lock()
				i := at
				at++
				mu.Unlock()
				if i >= len(items) || ctx.Err() != nil {
					return
				}
				if err := f(ctx, items[i]); err != nil {
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

func (c *Consumer) newQueue(t *topic, key rocketmq.Queue, offset int64) *queue {
	q := &queue{
		c: c, topic: t, key: key, known: new(atomic.Bool),
		next: offset, mark: offset, began: -1, committed: -1, confirmed: -1, source: client.MasterID, idle: make(chan struct{}),
	}
	q.pull.q = q
	q.ctx, q.cancel = context.WithCancelCause(c.handlers)
	return q
}

// start puts a queue into the table and sends its first pull. It is false if
// there is no place for it any more.
func (c *Consumer) start(q *queue) bool {
	q.topic.attach(q)
	c.mu.Lock()
	ok := !c.closing && c.table[q.key] == nil
	if ok {
		c.table[q.key] = q
	}
	c.mu.Unlock()
	if !ok {
		q.topic.forget(q)
		q.cancel(rocketmq.ErrClosed)
		return false
	}
	if c.lite != nil {
		c.lite.started(q)
	}
	q.startPull()
	return true
}

// revoke sees a queue off that was stopped: a moment for the handlers that
// run, then their context ends; what is done by then is committed and the
// queue forgotten.
func (c *Consumer) revoke(ctx context.Context, q *queue) {
	// Its next owner is about to ask for the offset. What the handlers that
	// still run get done is told later.
	c.commitOneway(ctx, []*queue{q})
	timer := time.NewTimer(revokeGrace)
	defer timer.Stop()
	select {
	case <-q.idle:
	case <-ctx.Done():
	case <-timer.C:
		q.cancel(rocketmq.ErrRevoked)
		timer.Reset(revokeLimit)
		select {
		case <-q.idle:
		case <-ctx.Done():
		case <-timer.C:
			c.log.Warn("handlers of a revoked queue do not return", "queue", q.key, "offsets", fmt.Sprint(q.begun()))
		}
	}
	if c.lite != nil {
		c.lite.awaitCommit(ctx, q)
	}
	q.cancel(rocketmq.ErrRevoked)
	c.inform(ctx, q.parting(), q)
	commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := c.commitLast(commit, q); err != nil {
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
	q := c.newQueue(old.topic, old.key, next)
	q.known = old.known
	if c.cfg.Ordered {
		q.inherit(old)
		q.lease.Store(old.lease.Load())
		q.fixed = q.leased()
		q.foreign, q.handover, q.lost = !q.fixed, !q.fixed, old.hasLost()
	}
	if !c.swap(old, q, fmt.Errorf("%w: its offset was moved", rocketmq.ErrRevoked)) {
		return
	}
	c.commitSoon()
	if c.cfg.Ordered {
		c.locks.now(q.key.Broker)
		return
	}
	q.startPull()
}

// swap puts a queue in the place of one that ends here and now, with what its
// handlers did since the last commit. It is false, and the new queue is void,
// if the old one had lost its place already.
func (c *Consumer) swap(old, fresh *queue, why error) bool {
	old.revoked.Store(true)
	old.stale.Store(true)
	old.stop()
	old.cancel(why)
	fresh.topic.attach(fresh)
	c.mu.Lock()
	ok := !c.closing && c.table[old.key] == old
	if ok {
		c.table[old.key] = fresh
	}
	c.mu.Unlock()
	if !ok {
		fresh.topic.forget(fresh)
		fresh.cancel(rocketmq.ErrRevoked)
	}
	return ok
}
