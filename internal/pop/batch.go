package pop

import (
	"context"
	"errors"

	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// AckAll acknowledges messages with one request to each broker. It returns one
// error per message, in their order, or nil if all went well.
func (c *Consumer) AckAll(ctx context.Context, all []*Delivery) []error {
	errs := make([]error, len(all))
	failed := false
	fail := func(i int, err error) {
		errs[i] = err
		failed = failed || err != nil
	}
	taken := make(map[*topic]map[string][]int) // by topic, because of its route, and broker
	var alone []int
	for i, d := range all {
		if !d.tryTake() {
			alone = append(alone, i) // waiting for its turn with others in hand could be for ever
			continue
		}
		if err := d.late(); err != nil {
			d.give(false)
			fail(i, err)
			continue
		}
		if taken[d.topic] == nil {
			taken[d.topic] = make(map[string][]int)
		}
		taken[d.topic][d.Queue.Broker] = append(taken[d.topic][d.Queue.Broker], i)
	}
	for t, brokers := range taken {
		for broker, some := range brokers {
			err := c.ackBatch(ctx, t, broker, all, some)
			for _, i := range some {
				if errors.Is(err, errNoBatches) {
					e := all[i].ack(ctx)
					all[i].give(e == nil)
					fail(i, e)
					continue
				}
				all[i].give(err == nil)
				fail(i, err)
			}
		}
	}
	for _, i := range alone {
		fail(i, all[i].Ack(ctx))
	}
	if !failed {
		return nil
	}
	return errs
}

// errNoBatches is a broker that takes acknowledgements one by one only.
var errNoBatches = errors.New("the broker does not know batches of acknowledgements")

// ackBatch is the request to one broker.
func (c *Consumer) ackBatch(ctx context.Context, t *topic, broker string, all []*Delivery, some []int) error {
	if len(some) == 1 {
		return all[some[0]].ack(ctx)
	}
	addr, err := c.master(t, broker)
	if err != nil {
		return err
	}
	body := wire.BatchAck{Broker: broker}
	for _, i := range some {
		h := &all[i].handle
		if n := len(body.Acks); n > 0 && together(&body.Acks[n-1], h) && body.Acks[n-1].Add(h.Offset) {
			continue
		}
		acks := wire.PopAcks{
			Group: c.group, Topic: t.wireName, Retry: h.Retry, QueueID: h.QueueID, ReviveQueue: h.ReviveQueue,
			Start: h.Start, PopTime: h.PopTime, InvisibleMillis: h.InvisibleMillis,
		}
		if !acks.Add(h.Offset) {
			return errNoBatches // too far from its checkpoint's start
		}
		body.Acks = append(body.Acks, acks)
	}
	_, err = c.cfg.Runtime.Call(ctx, addr, &wire.Command{Code: wire.ReqBatchAckMessage, Body: body.AppendJSON(nil)})
	var re *client.ResponseError
	if errors.As(err, &re) && re.Code == wire.RespRequestCodeNotSupported {
		return errNoBatches
	}
	return err
}

// together reports whether a handle is of the checkpoint that an entry is of.
func together(a *wire.PopAcks, h *wire.PopHandle) bool {
	return a.Retry == h.Retry && a.QueueID == h.QueueID && a.ReviveQueue == h.ReviveQueue &&
		a.Start == h.Start && a.PopTime == h.PopTime && a.InvisibleMillis == h.InvisibleMillis
}
