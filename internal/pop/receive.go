package pop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	// MaxMessages is how many messages a broker gives at once.
	MaxMessages = 32
	// grace is how much longer than its Receive a POP may take that was sent: what
	// it brings would be invisible for nobody.
	grace = 500 * time.Millisecond
	// noTargets is how often routes are asked for that have no broker.
	noTargets = time.Second
)

// Receive waits for messages of any topic. It returns at least one, and at most
// most, or why there are none: ctx has ended, the consumer was closed, or all
// brokers refuse.
func (c *Consumer) Receive(ctx context.Context, most int, invisible time.Duration) ([]*Delivery, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	var buf [8]*target
	for {
		c.mu.Lock()
		news, all := c.news, c.refreshLocked(buf[:0])
		c.mu.Unlock()
		got, err := c.sweep(ctx, all, most, invisible)
		if len(got) > 0 || err != nil {
			return got, err
		}
		if err := c.wait(ctx, all, news); err != nil {
			return nil, err
		}
	}
}

// sweep pops from one target after the other until one has messages.
func (c *Consumer) sweep(ctx context.Context, all []*target, most int, invisible time.Duration) ([]*Delivery, error) {
	first := int(c.turn.Add(1))
	for i := range all {
		x := all[(first+i)%len(all)]
		c.mu.Lock()
		ask, addr := !x.empty && !time.Now().Before(x.rest), x.addr
		c.mu.Unlock()
		if !ask {
			continue
		}
		if err := c.over(ctx, nil); err != nil {
			return nil, err
		}
		got, more, err := c.pop(ctx, x, addr, most, invisible)
		c.popped(x, len(got) > 0, more, err)
		if got = c.forUser(ctx, x, got); len(got) > 0 {
			return got, nil
		}
	}
	return nil, nil
}

// over is why a Receive ends without messages, nil if it goes on.
func (c *Consumer) over(ctx context.Context, failures error) error {
	select {
	case <-c.closing:
		return rocketmq.ErrClosed
	default:
	}
	if ctx.Err() == nil {
		return nil
	}
	if failures != nil {
		return fmt.Errorf("%w; meanwhile: %w", context.Cause(ctx), failures)
	}
	return context.Cause(ctx)
}

// wait returns when there may be something for a sweep to do. news is of before
// the last one.
func (c *Consumer) wait(ctx context.Context, all []*target, news <-chan struct{}) error {
	now := time.Now()
	var until time.Time // the end of the first rest
	var failures error
	refused, ready := 0, false
	c.mu.Lock()
	for _, x := range all {
		ready = ready || !x.empty && !now.Before(x.rest)
		if x.empty && !x.watched && !now.Before(x.rest) {
			c.watchLocked(x)
		}
		if !x.watched && (until.IsZero() || x.rest.Before(until)) {
			until = x.rest
		}
		if x.err != nil {
			failures = errors.Join(failures, x.err)
		}
		if fatal(x.err) {
			refused++
		}
	}
	c.mu.Unlock()
	if len(all) == 0 {
		failures = fmt.Errorf("%w: no broker with a master has a readable queue of the topics", rocketmq.ErrNoQueue)
		until = now.Add(noTargets)
		for _, t := range c.topics {
			c.cfg.Runtime.RefreshRoute(t.wireName)
		}
	}
	if err := c.over(ctx, failures); err != nil {
		return err
	}
	switch {
	case refused > 0 && refused == len(all):
		return failures
	case ready:
		return nil
	}
	var rested <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(until.Sub(now))
		defer timer.Stop()
		rested = timer.C
	}
	select {
	case <-news:
	case <-rested:
	case <-c.closing:
	case <-ctx.Done():
	}
	return c.over(ctx, failures)
}

// outlasting is a context for a request that goes on for a moment after ctx has
// ended.
func (c *Consumer) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Runtime.RequestTimeout())
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// pop is one POP, which the broker answers at once.
func (c *Consumer) pop(ctx context.Context, x *target, addr string, most int, invisible time.Duration) (got []*Delivery, more int64, err error) {
	ctx, cancel := c.outlasting(ctx)
	defer cancel()
	conn, err := c.cfg.Runtime.Conn(ctx, addr)
	if err != nil {
		return nil, 0, err
	}
	t := x.topic
	req := wire.PopRequest{
		Group: c.groupWire, Topic: t.wireBytes, QueueID: wire.AnyQueue, MaxMsgs: int32(min(most, MaxMessages)),
		InvisibleMillis: invisible.Milliseconds(), InitMode: wire.PopFromMax, ExprType: t.exprType, Expr: t.expr,
	}
	if c.cfg.FromEarliest {
		req.InitMode = wire.PopFromMin
	}
	f, err := conn.Call(ctx, &wire.Command{Code: wire.ReqPopMessage, Ext: &req})
	if err != nil {
		return nil, 0, err
	}
	switch f.Code {
	case wire.RespSuccess, wire.RespPollingTimeout:
		var h wire.PopResponse
		if err := h.DecodeExt(f); err != nil {
			return nil, 0, fmt.Errorf("answer to a POP: %w", err)
		}
		if f.Code == wire.RespPollingTimeout {
			return nil, h.Rest, nil
		}
		got, err := c.decode(x, &h, f.Body)
		return got, h.Rest, err
	case wire.RespPollingFull:
		return nil, 0, nil
	}
	return nil, 0, refusal(wire.ReqPopMessage, addr, f)
}
