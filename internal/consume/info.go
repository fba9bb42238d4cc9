package consume

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// stackLimit bounds the goroutine dump that a broker can ask for.
const stackLimit = 1 << 20

// RunningInfo implements [client.Consumer]. It has every field that Java's clients
// fill in, as far as there is such a thing here.
func (c *Consumer) RunningInfo(_ context.Context, jstack bool) ([]byte, error) {
	now := time.Now()
	info := wire.RunningInfo{
		Properties:    c.properties(),
		Subscriptions: c.HeartbeatData().Subscriptions,
		Queues:        make(map[wire.MessageQueue]wire.ProcessQueueInfo),
		Status:        make(map[string]wire.ConsumeStatus),
	}
	for _, t := range c.topics {
		info.Status[t.wireName] = t.stats.status(now)
	}
	for _, q := range c.queues() {
		info.Queues[q.topic.queueOf(q.key)] = q.info()
	}
	if jstack {
		buf := make([]byte, stackLimit)
		info.Stack = string(buf[:runtime.Stack(buf, true)])
	}
	return info.AppendJSON(nil), nil
}

// properties are those that admin tools read, and the settings by the names of the
// fields of Java's DefaultMQPushConsumer.
func (c *Consumer) properties() map[string]string {
	var servers []string
	for _, s := range c.cfg.Runtime.Health() {
		if s.NameServer {
			servers = append(servers, s.Addr)
		}
	}
	model := map[string]string{wire.Clustering: "CLUSTERING", wire.Broadcasting: "BROADCASTING"}[c.model()]
	workers, t := strconv.Itoa(c.workers()), c.topics[0]
	p := map[string]string{
		wire.InfoNameserver: strings.Join(servers, ";"), wire.InfoPoolSize: workers, wire.InfoOrderly: strconv.FormatBool(c.cfg.Ordered),
		wire.InfoType: c.consumeType(), wire.InfoVersion: "V5_3_3", wire.InfoStart: strconv.FormatInt(c.epoch.UnixMilli(), 10),

		"consumerGroup": string(c.groupWire), "messageModel": model, "consumeFromWhere": c.HeartbeatData().From,
		"consumeThreadMin": workers, "consumeThreadMax": workers, "pullBatchSize": strconv.Itoa(pullBatch),
		"pullThresholdForQueue":        strconv.FormatInt(t.limits.messages.Load(), 10),
		"pullThresholdSizeForQueue":    strconv.FormatInt(t.limits.bytes.Load()>>20, 10), // MiB
		"consumeConcurrentlyMaxSpan":   strconv.FormatInt(t.limits.span.Load(), 10),
		"maxReconsumeTimes":            strconv.Itoa(c.cfg.MaxAttempts - 1), // -1: the default, also there
		"allocateMessageQueueStrategy": c.cfg.Strategy.Name(),
	}
	if t.d != nil {
		p["consumeMessageBatchMaxSize"] = strconv.Itoa(int(t.d.batch.Load()))
	}
	if d := c.cfg.HandlerTimeout; d > 0 {
		p["consumeTimeout"] = strconv.FormatInt(int64(d/time.Minute), 10)
	}
	return p
}

// info is the queue's state as a broker wants it. What an ordered consumer has in
// hand is not in its cache there.
func (q *queue) info() wire.ProcessQueueInfo {
	h := q.health()
	i := wire.ProcessQueueInfo{
		CommitOffset: h.Committed, Locked: q.leased(), LastLockTime: q.lockedAt(), CachedMiB: int32(h.CachedBytes >> 20), LastPullTime: millis(h.LastPull),
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i.LastConsumeTime = millis(q.doneAt)
	for _, p := range q.pages {
		for k := range p.views {
			if p.finished(k) {
				continue
			}
			n, low, high := &i.CachedCount, &i.CachedMinOffset, &i.CachedMaxOffset
			if q.c.cfg.Ordered && p.begun(k) {
				n, low, high = &i.TransactionCount, &i.TransactionMin, &i.TransactionMax
			}
			if *n == 0 {
				*low = p.views[k].Offset
			}
			*high = p.views[k].Offset
			*n++
		}
	}
	return i
}

// millis is 0 for no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// ConsumeDirectly implements [client.Consumer]: an operator has one message
// handled at once. It changes no offset, and a failure is only told.
func (c *Consumer) ConsumeDirectly(ctx context.Context, broker string, record []byte) ([]byte, error) {
	if c.lite != nil {
		return nil, fmt.Errorf("group %s has no handler here, its application asks for messages", c.cfg.Group)
	}
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
	var pe *rocketmq.PanicError
	switch {
	case errors.As(err, &pe):
		res.Result, res.Remark = wire.ResultException, err.Error()
	case c.cfg.Judge(err, 0, 1).Kind != Done:
		res.Result, res.Remark = wire.ResultLater, err.Error()
	}
	return res.AppendJSON(nil), nil
}
