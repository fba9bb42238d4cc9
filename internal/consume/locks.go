package consume

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// In order a queue belongs to whoever has its lock at its broker, not to
// whoever thinks that it was given to him: LOCK_BATCH_MQ before the first
// pull, again every 20 s, UNLOCK_BATCH_MQ when the handler has ended and the
// offset is committed. A broker takes a lock for free 60 s after it was renewed
// last; we do so after 40 s, which leaves a handler 20 s to end.
//
// A queue without its lock is in the table with phaseLocking. It does not pull,
// and its offset is read when the lock is there: the owner before has told it
// before he let go, so nothing is handled twice.
const (
	lockEvery = 20 * time.Second
	lockLease = 40 * time.Second
	// lockFirst is when a refused lock is asked for again, then twice as much, up to
	// lockMost: it is usually a matter of the owner's handler to end.
	lockFirst = 100 * time.Millisecond
	lockMost  = time.Second
	// lockGap is the least time between two requests to one broker because of
	// connections that break.
	lockGap = 200 * time.Millisecond
	// unlockWait bounds how long unlocking waits for a broker that does not answer
	// a request for locks.
	unlockWait = time.Second
)

// locker says when the brokers are asked for locks.
type locker struct {
	kick chan struct{} // one slot

	mu      sync.Mutex // guards all below
	brokers map[string]*lockBroker
}

// lockBroker is one broker.
type lockBroker struct {
	// turn has one slot: a lock that is asked for must not overtake the
	// unlocking of the same queue.
	turn chan struct{}
	last time.Time // when it was asked
	next time.Time // when it is to be
	gap  time.Duration
	busy bool // a request is under way
	soon bool // there is something new since that was put together
}

func newLocker() *locker {
	return &locker{kick: make(chan struct{}, 1), brokers: make(map[string]*lockBroker)}
}

func (l *locker) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *locker) brokerLocked(name string) *lockBroker {
	b := l.brokers[name]
	if b == nil {
		b = &lockBroker{turn: make(chan struct{}, 1)}
		l.brokers[name] = b
	}
	return b
}

// take takes a broker's turn.
func (l *locker) take(ctx context.Context, name string) (release func(), err error) {
	l.mu.Lock()
	b := l.brokerLocked(name)
	l.mu.Unlock()
	select {
	case b.turn <- struct{}{}:
		return func() { <-b.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// now has a broker asked at once: its connection broke, and with it the broker
// may have lost its locks.
func (l *locker) now(name string) {
	l.mu.Lock()
	b := l.brokerLocked(name)
	b.gap, b.soon = 0, true
	b.next = b.last.Add(lockGap)
	l.mu.Unlock()
	l.wake()
}

// gained notes what a first request brought.
func (l *locker) gained(name string, at time.Time, refused bool) {
	next := at.Add(lockEvery)
	if refused {
		next = at.Add(lockFirst)
	}
	l.mu.Lock()
	b := l.brokerLocked(name)
	b.soon = b.soon || refused
	if b.next.IsZero() || next.Before(b.next) {
		b.next, b.gap = next, 0
	}
	l.mu.Unlock()
	l.wake()
}

// begin notes that a request is put together.
func (l *locker) begin(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.brokerLocked(name).soon = false
}

// asked notes what a later one brought: whether all queues have their lock and
// are under way.
func (l *locker) asked(name string, at time.Time, complete bool) {
	defer l.wake()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.brokerLocked(name)
	b.last, b.busy = at, false
	switch {
	case b.soon:
		b.gap, b.next = 0, at.Add(lockGap)
	case complete:
		b.gap, b.next = 0, at.Add(lockEvery)
	default:
		b.gap = min(max(2*b.gap, lockFirst), lockMost)
		b.next = at.Add(b.gap)
	}
}

// due names the brokers that are to be asked now, and tells when the next one
// is.
func (l *locker) due(names map[string]bool, now time.Time) (ask []string, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = now.Add(lockEvery)
	for name := range names {
		b := l.brokerLocked(name)
		switch {
		case b.busy:
		case !b.next.After(now):
			b.busy = true
			ask = append(ask, name)
		case b.next.Before(next):
			next = b.next
		}
	}
	return ask, next
}

// keepLocks is the goroutine.
func (c *Consumer) keepLocks(ctx context.Context) {
	timer := time.NewTimer(lockEvery)
	defer timer.Stop()
	for {
		timer.Reset(c.tendLocks())
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.locks.kick:
		}
	}
}

// tendLocks gives up what has run out, has the brokers asked that are due, and
// returns how long there is nothing to do. It waits for no broker.
func (c *Consumer) tendLocks() time.Duration {
	qs := c.kept()
	names := make(map[string]bool)
	for _, q := range qs {
		names[q.key.Broker] = true
	}
	now := time.Now()
	ask, next := c.locks.due(names, now)
	for _, name := range ask {
		c.group.Go(func(ctx context.Context) { c.renew(ctx, name) })
	}
	for _, q := range qs {
		end := q.lease.Load()
		if end == 0 {
			continue
		}
		at := c.epoch.Add(time.Duration(end))
		switch {
		case !at.After(now):
			c.loseLock(q, "not renewed in time")
		case at.Before(next):
			next = at
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// renew asks a broker for the locks of all its queues that are ours.
func (c *Consumer) renew(ctx context.Context, broker string) {
	release, err := c.locks.take(ctx, broker)
	if err != nil {
		return
	}
	defer release()
	c.locks.begin(broker)
	began := time.Now()
	var qs []*queue
	for _, q := range c.kept() {
		if q.key.Broker == broker && !q.unlocked.Load() {
			qs = append(qs, q)
		}
	}
	if len(qs) == 0 {
		c.locks.asked(broker, began, true)
		return
	}
	held, err := c.lock(ctx, broker, qs)
	complete := err == nil
	for _, q := range qs {
		switch {
		case err != nil:
			if !q.leased() {
				complete = false
			}
		case held[q.topic.queueOf(q.key)]:
			complete = q.locked(began) && complete
		default:
			complete = false
			c.loseLock(q, "another member has it")
		}
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn("queue locks not renewed, trying again", "broker", broker, "queues", len(qs), "err", err)
	}
	c.locks.asked(broker, began, complete)
}

// lock is LOCK_BATCH_MQ: it returns the queues whose lock is ours now.
func (c *Consumer) lock(ctx context.Context, broker string, qs []*queue) (map[wire.MessageQueue]bool, error) {
	f, err := c.callLocks(ctx, wire.ReqLockBatchMQ, broker, qs)
	if err != nil {
		return nil, err
	}
	l, err := wire.DecodeLockedQueues(f.Body)
	if err != nil {
		return nil, fmt.Errorf("answer of broker %s: %w", broker, err)
	}
	held := make(map[wire.MessageQueue]bool, len(l.Queues))
	for _, q := range l.Queues {
		held[q] = true
	}
	return held, nil
}

func (c *Consumer) callLocks(ctx context.Context, code int32, broker string, qs []*queue) (*wire.Frame, error) {
	body := wire.LockBody{Group: string(c.groupWire), ClientID: c.cfg.Runtime.ClientID()}
	addr := ""
	for _, q := range qs {
		body.Queues = append(body.Queues, q.topic.queueOf(q.key))
		if addr == "" {
			addr = q.topic.masterOnly(broker)
		}
	}
	if addr == "" {
		return nil, fmt.Errorf("queue locks of broker %s: no master is known", broker)
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return c.cfg.Runtime.Call(ctx, addr, &wire.Command{Code: code, Body: body.AppendJSON(nil)})
}

// unlock lets go of queues whose handlers have ended and whose offsets are
// committed. A lock that cannot be let go of runs out by itself.
func (c *Consumer) unlock(ctx context.Context, broker string, qs []*queue) error {
	wait, cancel := context.WithTimeout(ctx, unlockWait)
	defer cancel()
	release, err := c.locks.take(wait, broker)
	if err != nil {
		return fmt.Errorf("unlocking queues of broker %s, which does not answer: %w", broker, err)
	}
	defer release()
	var held []*queue
	for _, q := range qs {
		q.unlocked.Store(true)
		if q.lease.Swap(0) != 0 {
			held = append(held, q)
		}
	}
	if len(held) == 0 {
		return nil
	}
	if _, err = c.callLocks(ctx, wire.ReqUnlockBatchMQ, broker, held); err != nil {
		return fmt.Errorf("unlocking queues of broker %s: %w", broker, err)
	}
	return nil
}

// unlockAll is unlock for queues of any brokers.
func (c *Consumer) unlockAll(ctx context.Context, qs []*queue) error {
	by := make(map[string][]*queue)
	var names []string
	for _, q := range qs {
		if by[q.key.Broker] == nil {
			names = append(names, q.key.Broker)
		}
		by[q.key.Broker] = append(by[q.key.Broker], q)
	}
	return parallel(ctx, names, func(ctx context.Context, name string) error { return c.unlock(ctx, name, by[name]) })
}
