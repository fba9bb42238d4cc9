package testbroker

import (
	"context"
	"fmt"
	"slices"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/broker"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/consume"
)

// Messages returns the messages that are stored of a topic on the brokers that
// are up, consumed or not: by broker, queue and offset. It needs no client and
// leaves no trace. A topic that does not exist has none.
func (c *Cluster) Messages(topic string) []*rocketmq.MessageView {
	c.helper()
	var all []*rocketmq.MessageView
	c.must(c.inTurn(func(ctx context.Context) error {
		return c.eachQueue(ctx, topic, func(b *broker.Broker, q rocketmq.Queue) error {
			views, err := readQueue(b.Store(), q)
			all = append(all, views...)
			return err
		})
	}))
	return all
}

// Offset returns the offset that a group has committed for a queue: that of
// the next message it has not finished. ok is false if it has committed none,
// or if the queue's broker is unknown or down. Consumers commit every few
// seconds and when they are closed.
func (c *Cluster) Offset(group string, q rocketmq.Queue) (offset int64, ok bool) {
	c.helper()
	c.must(c.inTurn(func(context.Context) error {
		if n, err := c.node(q.Broker, 0); err == nil && n.broker() != nil {
			offset, ok = n.broker().Offset(group, q.Topic, int32(q.ID))
		}
		return nil
	}))
	return offset, ok
}

// Lag returns how many messages of a topic, on the brokers that are up, a group
// has still to finish by the offsets it has committed, see [Cluster.Offset].
func (c *Cluster) Lag(group, topic string) int64 {
	c.helper()
	var lag int64
	c.must(c.inTurn(func(ctx context.Context) error {
		for _, b := range c.up() {
			if err := b.Store().WaitDispatched(ctx); err != nil {
				return fmt.Errorf("%s: %w", b.Name(), err)
			}
			lag += lagOf(b, group, topic)
		}
		return nil
	}))
	return lag
}

// eachQueue calls f for the queues of a topic that have messages. The caller
// has the turn, so that no broker ends meanwhile.
func (c *Cluster) eachQueue(ctx context.Context, topic string, f func(*broker.Broker, rocketmq.Queue) error) error {
	for _, n := range c.brokers {
		b := n.broker()
		if b == nil {
			continue
		}
		// Queues follow the log a moment later.
		if err := b.Store().WaitDispatched(ctx); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		for _, id := range slices.Sorted(slices.Values(b.Store().Queues(topic))) {
			if err := f(b, rocketmq.Queue{Topic: topic, Broker: n.name, ID: int(id)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readQueue reads a queue from end to end.
func readQueue(s *store.Store, q rocketmq.Queue) ([]*rocketmq.MessageView, error) {
	var all []*rocketmq.MessageView
	req := store.GetRequest{Topic: []byte(q.Topic), QueueID: int32(q.ID), MaxMsgs: 32, Offset: s.MinOffset(q.Topic, int32(q.ID))}
	for req.Offset < s.MaxOffset(q.Topic, int32(q.ID)) {
		body, res := s.Get(nil, req) // the views keep body
		if res.Status == store.MessageWasRemoving || res.Status == store.OffsetTooSmall {
			req.Offset = res.NextOffset // just being cleaned, see FillDisk
			continue
		}
		if res.Status != store.Found {
			return all, fmt.Errorf("%s at offset %d: %s", q, req.Offset, res.Status)
		}
		views, err := consume.Views(q, body)
		if all = append(all, views...); err != nil {
			return all, fmt.Errorf("%s: %w", q, err)
		}
		req.Offset = res.NextOffset
	}
	return all, nil
}
