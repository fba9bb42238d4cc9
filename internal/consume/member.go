package consume

import (
	"context"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var _ client.Consumer = (*Consumer)(nil)

// Group implements [client.Consumer].
func (c *Consumer) Group() string { return string(c.groupWire) }

// HeartbeatData implements [client.Consumer].
func (c *Consumer) HeartbeatData() wire.ConsumerData {
	d := wire.ConsumerData{
		Group: string(c.groupWire), ConsumeType: c.consumeType(), Model: c.model(), From: wire.FromLastOffset,
	}
	switch c.cfg.Start.Kind() {
	case rocketmq.PositionEarliest:
		d.From = wire.FromFirstOffset
	case rocketmq.PositionTime:
		d.From = wire.FromTimestamp
	}
	for _, t := range c.topics {
		d.Subscriptions = append(d.Subscriptions, t.subscription())
	}
	return d
}

// Topics implements [client.Consumer].
func (c *Consumer) Topics() []string {
	var names []string
	for _, t := range c.topics {
		names = append(names, t.wireName)
	}
	return names
}

// IDsChanged implements [client.Consumer].
func (c *Consumer) IDsChanged() { c.rebalanceSoon() }

// ResetOffsets implements [client.Consumer]: an operator moves the offsets of
// a topic, forwards or back. What is cached of the queues is dropped.
func (c *Consumer) ResetOffsets(_ context.Context, topic string, offsets map[wire.MessageQueue]int64) {
	for _, q := range c.queues() {
		if q.topic.wireName != topic {
			continue
		}
		if off, ok := offsets[q.topic.queueOf(q.key)]; ok {
			c.log.Warn("an operator resets the offset", "queue", q.key, "to", off)
			c.replace(q, max(off, 0))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.revoking {
		if off, ok := offsets[q.topic.queueOf(q.key)]; ok && q.topic.wireName == topic {
			q.resetWhileRevoked(max(off, 0))
		}
	}
}

// resetWhileRevoked moves the offset of a queue whose handlers run out. In order
// its next owner waits for the lock and reads what is committed here; otherwise
// he has been told himself, and what is done here must not undo that.
func (q *queue) resetWhileRevoked(off int64) {
	if !q.c.cfg.Ordered {
		q.stale.Store(true)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pages, q.next, q.committed, q.began = nil, off, -1, -1
	q.told.Store(off)
}

// Offsets implements [client.Consumer].
func (c *Consumer) Offsets(topic string) map[wire.MessageQueue]int64 {
	out := make(map[wire.MessageQueue]int64)
	for _, q := range c.queues() {
		if topic == "" || q.topic.wireName == topic {
			out[q.topic.queueOf(q.key)] = q.lowestDone()
		}
	}
	return out
}
