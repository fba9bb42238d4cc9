package consume

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var _ client.Consumer = (*Consumer)(nil)

// stackLimit bounds the goroutine dump that a broker can ask for.
const stackLimit = 1 << 20

// Group implements [client.Consumer].
func (c *Consumer) Group() string { return string(c.groupWire) }

// HeartbeatData implements [client.Consumer].
func (c *Consumer) HeartbeatData() wire.ConsumerData {
	d := wire.ConsumerData{
		Group: string(c.groupWire), ConsumeType: wire.ConsumePassively, Model: c.model(), From: wire.FromLastOffset,
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
			out[q.topic.queueOf(q.key)] = q.lowest()
		}
	}
	return out
}

// RunningInfo implements [client.Consumer].
func (c *Consumer) RunningInfo(_ context.Context, jstack bool) ([]byte, error) {
	info := wire.RunningInfo{
		Properties: map[string]string{
			wire.InfoOrderly: strconv.FormatBool(c.cfg.Ordered), wire.InfoType: wire.ConsumePassively, wire.InfoVersion: "V5_3_3",
		},
		Subscriptions: c.HeartbeatData().Subscriptions,
		Queues:        make(map[wire.MessageQueue]wire.ProcessQueueInfo),
		Status:        make(map[string]wire.ConsumeStatus),
	}
	workers := 0
	for _, t := range c.topics {
		info.Status[t.wireName] = wire.ConsumeStatus{}
		if t.d != nil {
			workers += t.d.limit
		}
	}
	info.Properties[wire.InfoPoolSize] = fmt.Sprint(workers)
	for _, q := range c.queues() {
		h := q.health()
		info.Queues[q.topic.queueOf(q.key)] = wire.ProcessQueueInfo{
			CommitOffset: h.Committed, CachedMinOffset: h.Committed, CachedMaxOffset: h.Next - 1,
			Locked: q.leased(), LastLockTime: q.lockedAt(), CachedCount: int32(h.Cached), CachedMiB: int32(h.CachedBytes >> 20), LastPullTime: h.LastPull.UnixMilli(),
		}
	}
	if jstack {
		buf := make([]byte, stackLimit)
		info.Stack = string(buf[:runtime.Stack(buf, true)])
	}
	return info.AppendJSON(nil), nil
}

// ConsumeDirectly implements [client.Consumer]: an operator has one message
// handled at once. It changes no offset.
func (c *Consumer) ConsumeDirectly(ctx context.Context, broker string, record []byte) ([]byte, error) {
	var r wire.Record
	if _, err := wire.DecodeRecord(record, &r); err != nil {
		return nil, err
	}
	name := c.publicName(string(r.Topic))
	t := &topic{c: c, name: name, retry: true}
	q := &queue{c: c, topic: t, key: rocketmq.Queue{Topic: name, Broker: broker, ID: int(r.QueueID)}, idle: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancelCause(ctx)
	defer q.cancel(nil)
	p, _, err := decodePage(q, record, 0, c.publicName, t.keep)
	if err != nil {
		return nil, err
	}
	if len(p.ptrs) != 1 {
		return nil, fmt.Errorf("the record holds %d messages", len(p.ptrs))
	}
	d := c.dispatcherOf(p.views[0].Topic)
	began := time.Now()
	w := &work{p: p, views: p.ptrs}
	if err = d.prepare(w, 0, 1); err == nil {
		err = d.call(q, p.ptrs)
	}
	res := wire.ConsumeDirectlyResult{Order: c.cfg.Ordered, AutoCommit: true, Result: wire.ResultSuccess, SpentMillis: time.Since(began).Milliseconds()}
	if err != nil {
		res.Result, res.Remark = wire.ResultLater, err.Error()
	}
	return res.AppendJSON(nil), nil
}
