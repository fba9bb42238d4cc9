package pop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// How long a broker holds a watch, as Java's clients have their polls held, and
// how long a target rests.
const (
	watchTime = 15 * time.Second

	failedFirst = time.Second
	failedMost  = 5 * time.Second
	refusedRest = time.Second

	emptiesAllowed = 3                     // in a row without a rest
	emptyFirst     = 5 * time.Millisecond  // then twice that, and so on
	emptyMost      = time.Second           // up to here
	emptyMoreMost  = 40 * time.Millisecond // up to here if the broker has more: a filter may have passed over what it looked at
)

// target is one topic at one broker.
type target struct {
	topic  *topic
	broker string

	// Guarded by Consumer.mu.
	addr     string
	empty    bool      // it has nothing: to be watched, not popped
	watched  bool      // the broker tells when it has something
	hasty    bool      // the last watch ended early
	rest     time.Time // not before that
	empties  int       // in a row, that a hasty watch or the broker's count let us expect to be none
	failures int       // in a row
	err      error     // the last one, nil after a good answer
}

// refreshLocked makes the targets of the present routes, and returns them all. c.mu is
// held.
func (c *Consumer) refreshLocked(dst []*target) []*target {
	for _, t := range c.topics {
		if route, ok := c.cfg.Runtime.CachedRoute(t.wireName); ok && route != t.route {
			t.take(route)
		}
		dst = append(dst, t.targets...)
	}
	return dst
}

// take keeps the targets of brokers that stay.
func (t *topic) take(route *client.Route) {
	before := t.targets
	t.route, t.targets = route, nil
	for _, q := range route.Readable { // sorted by broker
		addr := route.MasterOf(q.Broker)
		if addr == "" || len(t.targets) > 0 && t.targets[len(t.targets)-1].broker == q.Broker {
			continue
		}
		x := &target{topic: t, broker: q.Broker}
		for _, old := range before {
			if old.broker == q.Broker {
				x = old
			}
		}
		if x.addr != addr {
			x.addr, x.rest = addr, time.Time{} // it may be back under another address
		}
		t.targets = append(t.targets, x)
	}
}

// popped notes what a POP has come to. more is what the broker says it has left.
func (c *Consumer) popped(x *target, found bool, more int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.err = err
	if err != nil {
		c.failedLocked(x)
		return
	}
	x.failures = 0
	x.empty = !found && more == 0
	if found || more == 0 && !x.hasty {
		x.empties = 0
		return
	}
	x.hasty = false
	x.empties++
	if over := x.empties - emptiesAllowed; over > 0 {
		most := emptyMost
		if more > 0 {
			most = emptyMoreMost
		}
		x.rest = time.Now().Add(min(emptyFirst<<min(over-1, 10), most))
	}
}

// failedLocked has a target rest. c.mu is held.
func (c *Consumer) failedLocked(x *target) {
	wait := min(failedFirst<<min(x.failures, 10), failedMost)
	if fatal(x.err) {
		wait = refusedRest
	} else if errors.Is(x.err, remoting.ErrGoAway) && x.failures == 0 {
		wait = 0 // the broker restarts: elsewhere, or over a new connection
	}
	if x.failures++; x.failures == 1 {
		c.log.Warn("receiving from a broker fails", "topic", x.topic.name, "broker", x.broker, "err", x.err)
	}
	x.empty, x.rest = false, time.Now().Add(wait)
	if errors.Is(x.err, rocketmq.ErrTopicNotFound) || errors.Is(x.err, remoting.ErrConnection) {
		c.cfg.Runtime.RefreshRoute(x.topic.wireName)
	}
}

// fatal reports whether a broker refused for a reason that time does not heal.
func fatal(err error) bool {
	var be *rocketmq.BrokerError
	return errors.As(err, &be) && !rocketmq.IsRetryable(be)
}

// refusal is an answer with any code that was not expected.
func refusal(code int32, addr string, f *wire.Frame) error {
	err := error(&rocketmq.BrokerError{Op: wire.RequestName(code), Addr: addr, Code: rocketmq.Code(f.Code), Remark: string(f.Remark)})
	if f.Code == wire.RespRequestCodeNotSupported {
		return fmt.Errorf("receiving by POP needs brokers of Apache RocketMQ 5.0 or later, use a push or pull consumer here: %w", err)
	}
	return err
}

// watchLocked has the broker tell when a target has something. c.mu is held.
func (c *Consumer) watchLocked(x *target) {
	addr := x.addr
	x.watched = true
	c.watches.Go(func(ctx context.Context) {
		began := time.Now()
		has, err := c.notify(ctx, x.topic, addr)
		c.mu.Lock()
		defer c.mu.Unlock()
		// A broker that does not hold watches, or has messages that are not for us,
		// must not be asked in a tight loop.
		x.watched, x.empty, x.hasty = false, false, has || time.Since(began) < watchTime/2
		if err != nil && ctx.Err() == nil {
			x.err = err
			c.failedLocked(x)
		}
		c.signalLocked()
	})
}

// notify is one NOTIFICATION.
func (c *Consumer) notify(ctx context.Context, t *topic, addr string) (has bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchTime+c.cfg.Runtime.RequestTimeout())
	defer cancel()
	conn, err := c.cfg.Runtime.Conn(ctx, addr)
	if err != nil {
		return false, err
	}
	f, err := conn.Call(ctx, &wire.Command{Code: wire.ReqNotification, Ext: &wire.NotificationRequest{
		Group: c.group, Topic: t.wireName, QueueID: wire.AnyQueue, PollMillis: watchTime.Milliseconds(),
	}})
	if err != nil {
		return false, err
	}
	if f.Code != wire.RespSuccess {
		return false, refusal(wire.ReqNotification, addr, f)
	}
	var h wire.NotificationResponse
	if err := h.DecodeExt(f); err != nil {
		return false, fmt.Errorf("answer to a notification: %w", err)
	}
	return h.HasMsg, nil
}
