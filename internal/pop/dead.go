package pop

import (
	"context"
	"math"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// limitKept is how long a broker's word on a group's attempts counts.
const limitKept = time.Minute

// limit is how many attempts a message of the group has.
type limit struct {
	attempts int
	asked    time.Time
}

// forUser takes out what the application does not see: messages whose tag is
// another one with the same hash, and those that have had all their attempts. They
// are put away in the background. What fails there comes again, as anything that
// is not acknowledged does.
func (c *Consumer) forUser(ctx context.Context, x *target, got []*Delivery) []*Delivery {
	var unwanted, dead []*Delivery
	keep := got[:0]
	for _, d := range got {
		body, err := c.inflate.Inflate(d.Body, d.sysFlag)
		switch {
		case !x.topic.keep(d.Tag):
			unwanted = append(unwanted, d)
		case d.Attempt > 1 && d.Attempt > c.attempts(ctx, x):
			dead = append(dead, d)
		case err != nil:
			c.log.Error("a message cannot be read, it is not acknowledged", "topic", d.Topic, "id", d.ID, "attempt", d.Attempt, "err", err)
		default:
			d.Body = body
			keep = append(keep, d)
		}
	}
	if len(unwanted)+len(dead) > 0 {
		c.tasks.Go(func(ctx context.Context) {
			c.AckAll(ctx, unwanted)
			for _, d := range dead {
				if err := c.bury(ctx, d); err != nil {
					c.log.Warn("a message that has had all its attempts could not be sent to the dead letters, it comes again", "topic", d.Topic, "id", d.ID, "err", err)
				}
			}
		})
	}
	return keep
}

// attempts is how many a message of the group has, by the broker's word unless
// the application has one. No answer is no limit, for now.
func (c *Consumer) attempts(ctx context.Context, x *target) int {
	if c.cfg.MaxAttempts > 0 {
		return c.cfg.MaxAttempts
	}
	c.mu.Lock()
	known, addr := c.limits[x.broker], x.addr
	c.mu.Unlock()
	now := time.Now()
	if known.attempts > 0 && now.Sub(known.asked) < limitKept {
		return known.attempts
	}
	f, err := c.cfg.Runtime.Call(ctx, addr, &wire.Command{Code: wire.ReqGetSubscriptiongroupConfig, Ext: &wire.SubscriptionGroupRequest{Group: c.group}})
	var g wire.SubscriptionGroup
	if err == nil {
		g, err = wire.DecodeSubscriptionGroup(f.Body)
	}
	l := limit{int(g.RetryMaxTimes) + 1, now}
	if ctx.Err() != nil {
		return math.MaxInt
	}
	if err != nil {
		c.log.Debug("how many attempts a message has is not known", "broker", x.broker, "err", err)
		if l.attempts = known.attempts; l.attempts == 0 {
			l.attempts = math.MaxInt
		}
	}
	l.attempts = max(l.attempts, 1)
	c.mu.Lock()
	c.limits[x.broker] = l
	c.mu.Unlock()
	return l.attempts
}

// bury sends a message to the dead letters of its group. It is acknowledged when
// that is done.
func (c *Consumer) bury(ctx context.Context, d *Delivery) error {
	addr, err := c.master(d.topic, d.Queue.Broker)
	if err != nil {
		return err
	}
	if _, err := c.cfg.Runtime.Call(ctx, addr, &wire.Command{Code: wire.ReqConsumerSendMsgBack, Ext: &wire.SendBackRequest{
		Offset: d.logOffset, Group: c.group, DelayLevel: -1, OriginMsgID: d.ID,
		OriginTopic: wire.PopTopic(d.handle.Retry, c.group, d.topic.wireName),
	}}); err != nil {
		return err
	}
	return d.Ack(ctx)
}
