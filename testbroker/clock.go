package testbroker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/broker"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// ManualClock makes the brokers go by a clock that stands still until
// [Cluster.Advance] or [Cluster.AdvanceToNext] moves it, so that hours of delays
// and retries take a test no time. It shows start first; the zero time stands
// for the present, which suits tests whose clients and brokers compare times.
//
// What the clock moves: store times, delay levels, timers, the waiting time of
// retried messages, checks of transactions, long polls, queue locks of ordered consumers. Connections,
// heartbeats and registrations go by the machine's time, and so does
// everything in clients.
func ManualClock(start time.Time) Option {
	return func(c *config) {
		if start.IsZero() {
			start = time.Now()
		}
		c.clock = clock.NewManual(start.Truncate(time.Millisecond))
	}
}

// errNoManualClock is why the time cannot be moved.
var errNoManualClock = errors.New("the cluster goes by the machine's clock; use the option ManualClock")

// Now is the brokers' time: that of [ManualClock], or else the machine's.
func (c *Cluster) Now() time.Time {
	if c.cfg.clock != nil {
		return c.cfg.clock.Now()
	}
	return time.Now()
}

// Advance moves the clock of [ManualClock] forward by d. On the way it stops at
// each moment at which a delayed or retried message is due and waits until
// that can be consumed, and at each at which a transaction is checked, and waits
// until the producers have answered, for up to a second of the machine's time in
// all, so that every message has its exact time and they come
// in order, whatever d is. A message whose send was answered before Advance
// takes part. What consumers do with them is not waited for. Without
// ManualClock it fails the test.
func (c *Cluster) Advance(d time.Duration) {
	c.helper()
	c.must(c.inTurn(func(ctx context.Context) error {
		if c.cfg.clock == nil || d < 0 {
			return fmt.Errorf("Advance(%s): %w", d, errors.Join(c.clockError(), negative(d)))
		}
		return c.advanceTo(ctx, c.Now().Add(d))
	}))
}

// AdvanceToNext waits until a broker holds a message that is delayed, or waits
// for a retry, and moves the clock of [ManualClock] to the moment when the first
// of them is due. The message can be consumed when it returns. It returns by
// how much the time was moved, or the cause of ctx's end. A test that makes a
// message fail over and over need not know how long it waits each time:
//
//	for attempt := 1; attempt <= 16; attempt++ {
//		<-failed // the handler has returned an error
//		waited, err := cluster.AdvanceToNext(t.Context()) // 10s, 30s, 1m ... 2h
//	}
func (c *Cluster) AdvanceToNext(ctx context.Context) (time.Duration, error) {
	if err := c.clockError(); err != nil {
		return 0, fmt.Errorf("testbroker: AdvanceToNext: %w", err)
	}
	for {
		moved, ok := time.Duration(0), false
		err := c.inTurn(func(ctx context.Context) error {
			at, found, err := c.nextDelayed(ctx)
			if err != nil || !found {
				return err
			}
			moved, ok = max(at.Sub(c.Now()), 0), true
			return c.advanceTo(ctx, at)
		})
		if err == nil && !ok {
			err = c.awaitDelayed(ctx)
		}
		if err != nil || ok {
			return moved, err
		}
	}
}

// Delayed returns how many messages the brokers that are up hold back: those
// that are delayed, and those that failed and wait for their retry.
func (c *Cluster) Delayed() int {
	c.helper()
	n := int64(0)
	c.must(c.inTurn(func(ctx context.Context) error {
		for _, b := range c.up() {
			if err := b.SettleDelays(ctx); err != nil {
				return err
			}
			n += b.Delayed()
		}
		return nil
	}))
	return int(n)
}

// DeadLetters returns the messages that a group has given up, or that its
// consumers have: [Cluster.Messages] of its dead-letter topic.
func (c *Cluster) DeadLetters(group string) []*rocketmq.MessageView {
	c.helper()
	return c.Messages(wire.DLQTopic(group))
}

func (c *Cluster) clockError() error {
	if c.cfg.clock == nil {
		return errNoManualClock
	}
	return nil
}

func negative(d time.Duration) error {
	if d < 0 {
		return errors.New("time does not go back")
	}
	return nil
}

// up are the brokers that run.
func (c *Cluster) up() []*broker.Broker {
	var all []*broker.Broker
	for _, n := range c.brokers {
		if b := n.broker(); b != nil {
			all = append(all, b)
		}
	}
	return all
}

// advanceTo moves the clock from one due message to the next. The caller has
// the turn.
func (c *Cluster) advanceTo(ctx context.Context, to time.Time) error {
	var p patience
	for {
		at, ok, err := c.nextMoment(ctx, &p)
		if err != nil {
			return err
		}
		if !ok || at.After(to) {
			break
		}
		c.cfg.clock.Advance(at.Sub(c.Now()))
	}
	c.cfg.clock.Advance(to.Sub(c.Now()))
	_, _, err := c.nextMoment(ctx, &p)
	return err
}

// nextMoment has everything delivered, and all checks sent, that are due, and
// tells when there is more to do.
func (c *Cluster) nextMoment(ctx context.Context, p *patience) (next time.Time, ok bool, err error) {
	check, checks, err := c.nextCheck(ctx, p)
	if err != nil {
		return next, false, err
	}
	if next, ok, err = c.nextDelayed(ctx); err == nil && checks && (!ok || check.Before(next)) {
		next, ok = check, true
	}
	return next, ok, err
}

// nextDelayed has everything delivered that is due, and tells when the next
// message is.
func (c *Cluster) nextDelayed(ctx context.Context) (next time.Time, ok bool, err error) {
	for _, b := range c.up() {
		if err := b.SettleDelays(ctx); err != nil {
			return next, false, fmt.Errorf("%s: %w", b.Name(), err)
		}
		if at, waits := b.NextDelayed(); waits && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	return next, ok, nil
}

// awaitDelayed blocks until some broker holds a message back, or one of them
// has ended.
func (c *Cluster) awaitDelayed(ctx context.Context) error {
	all := c.up()
	if len(all) == 0 {
		return errors.New("testbroker: no broker is up")
	}
	first, done := context.WithCancel(ctx)
	defer done()
	g := run.NewGroup(first)
	defer g.Stop()
	for _, b := range all {
		g.Go(func(ctx context.Context) {
			_ = b.AwaitDelayed(ctx) // its end is a reason to look again, too
			done()
		})
	}
	<-first.Done()
	return context.Cause(ctx)
}
