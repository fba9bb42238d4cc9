package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// joinTimeout bounds the wait for goroutines that have nothing more to do.
const joinTimeout = time.Second

// Leftover is what a drain had to leave behind of one queue.
type Leftover struct {
	Queue   rocketmq.Queue
	Offsets []int64 // messages that were handed out and are not finished
}

// Abandoned is a drain that ran into its limit.
type Abandoned struct {
	Queues   []Leftover
	Handlers int   // calls that had not returned
	Cause    error // why the drain ended, and what else failed on the way out
}

// Error implements error.
func (e *Abandoned) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "consumer closed with %d handlers still running", e.Handlers)
	for i, l := range e.Queues {
		fmt.Fprintf(&b, "%s%s offsets %v", [...]string{": ", "; "}[min(i, 1)], l.Queue, l.Offsets)
	}
	fmt.Fprintf(&b, ": %v", e.Cause)
	return b.String()
}

// Unwrap returns why the drain ended.
func (e *Abandoned) Unwrap() error { return e.Cause }

// Close ends Run and waits until it has returned. The drain is bounded by ctx,
// and by Config.DrainTimeout if no ctx of a Close has a deadline. It returns
// what Run returns; once all is over it does nothing and returns nil.
func (c *Consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	switch c.state {
	case stateNew:
		c.state = stateClosed
		close(c.done)
		c.mu.Unlock()
		c.endDrain(nil)
		return nil
	case stateClosed:
		c.mu.Unlock()
		return nil
	}
	_, ok := ctx.Deadline()
	c.bounded = c.bounded || ok
	end := c.end
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { c.endDrain(context.Cause(ctx)) })
	defer stop()
	end(rocketmq.ErrClosed)
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result
}

// drain ends a running consumer: intake, handlers, retries and offsets, locks,
// group, goroutines, in this order. A lock whose handler still runs is left to
// run out. ctx is Run's and has ended as a rule.
func (c *Consumer) drain(ctx context.Context) error {
	limit := c.drainLimit
	c.mu.Lock()
	c.closing = true
	if !c.bounded {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(limit, c.cfg.DrainTimeout)
		defer cancel()
	}
	qs := make([]*queue, 0, len(c.table))
	for _, q := range c.table {
		qs = append(qs, q)
	}
	own := len(qs)
	for _, q := range c.revoking {
		qs = append(qs, q) // these commit by themselves, but their handlers count
	}
	c.mu.Unlock()
	mine := qs[:own:own]
	slices.SortFunc(mine, func(a, b *queue) int { return a.key.Compare(b.key) })

	var idle []<-chan struct{}
	for _, q := range qs {
		idle = append(idle, q.stop())
		for p := q.before(); p != nil; p = p.before() {
			idle = append(idle, p.idle) // in order: its lock was lost, or its offset moved
		}
	}
	abandoned := c.awaitHandlers(limit, qs, idle)
	if abandoned == nil {
		c.settler.wait(limit)
	}
	c.cancelHandlers(rocketmq.ErrClosed)
	c.part(limit, mine)

	// What was done is told to the brokers even if the limit has passed: it
	// would be handled twice otherwise.
	last, endLast := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer endLast()
	var errs []error
	if err := c.commitNow(last, mine, true); err != nil {
		errs = append(errs, err)
	}
	if c.cfg.Ordered {
		if err := c.unlockAll(last, slices.DeleteFunc(slices.Clone(mine), func(q *queue) bool { return !q.quiet() })); err != nil {
			errs = append(errs, err)
		}
	}
	if err := c.cfg.Runtime.UnregisterConsumer(last, string(c.groupWire)); err != nil {
		errs = append(errs, err)
	}
	c.group.Cancel(rocketmq.ErrClosed)
	join, stop := context.WithTimeout(context.WithoutCancel(ctx), joinTimeout)
	defer stop()
	workers := join
	if abandoned != nil {
		workers = limit // has ended: handlers that ignore their context cannot be joined
	}
	if err := c.pool.Close(workers); err != nil && abandoned == nil {
		errs = append(errs, fmt.Errorf("workers still run: %w", err))
	}
	if err := c.group.WaitContext(join); err != nil && abandoned == nil {
		errs = append(errs, fmt.Errorf("background work still runs: %w", err))
	}
	for _, q := range qs {
		q.cancel(rocketmq.ErrClosed)
	}
	if abandoned != nil {
		if len(errs) > 0 {
			abandoned.Cause = errors.Join(append([]error{abandoned.Cause}, errs...)...)
		}
		return abandoned
	}
	return errors.Join(errs...)
}

// part tells the listener of all queues that they go.
func (c *Consumer) part(limit context.Context, qs []*queue) {
	for _, t := range c.allTopics() {
		for _, kind := range []EventKind{Revoked, Lost} {
			c.inform(limit, kind, slices.DeleteFunc(slices.Clone(qs), func(q *queue) bool { return q.topic != t || q.parting() != kind })...)
		}
	}
}

// awaitHandlers waits until no handler runs. If the limit comes first it ends
// their context and says what is left.
func (c *Consumer) awaitHandlers(limit context.Context, qs []*queue, idle []<-chan struct{}) *Abandoned {
	for _, ch := range idle {
		select {
		case <-ch:
			continue
		case <-limit.Done():
		}
		a := &Abandoned{Handlers: c.pool.Running(), Cause: context.Cause(limit)}
		for _, q := range qs {
			if offs := q.begun(); len(offs) > 0 {
				a.Queues = append(a.Queues, Leftover{q.key, offs})
			}
		}
		c.cancelHandlers(rocketmq.ErrClosed)
		return a
	}
	return nil
}
