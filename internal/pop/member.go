package pop

import (
	"context"
	"errors"
	"runtime"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var _ client.Consumer = (*Consumer)(nil)

// stackLimit bounds the goroutine dump that a broker can ask for.
const stackLimit = 1 << 20

// Group implements [client.Consumer].
func (c *Consumer) Group() string { return c.group }

// HeartbeatData implements [client.Consumer].
func (c *Consumer) HeartbeatData() wire.ConsumerData {
	d := wire.ConsumerData{Group: c.group, ConsumeType: wire.ConsumePop, Model: wire.Clustering, From: wire.FromLastOffset}
	if c.cfg.FromEarliest {
		d.From = wire.FromFirstOffset
	}
	for _, t := range c.topics {
		d.Subscriptions = append(d.Subscriptions, wire.Subscription{
			Topic: t.wireName, Expr: string(t.expr), ExprType: string(t.exprType), Tags: t.tags.Names(), Codes: t.tags.Codes(), Version: t.version,
		})
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

// IDsChanged implements [client.Consumer]. Nothing is shared out here.
func (c *Consumer) IDsChanged() {}

// ResetOffsets implements [client.Consumer]. The offsets are the broker's alone.
func (c *Consumer) ResetOffsets(context.Context, string, map[wire.MessageQueue]int64) {}

// Offsets implements [client.Consumer].
func (c *Consumer) Offsets(string) map[wire.MessageQueue]int64 { return nil }

// RunningInfo implements [client.Consumer].
func (c *Consumer) RunningInfo(_ context.Context, jstack bool) ([]byte, error) {
	info := wire.RunningInfo{
		Properties: map[string]string{
			wire.InfoOrderly: "false", wire.InfoType: wire.ConsumePop, wire.InfoVersion: "V5_3_3",
			wire.InfoStart: strconv.FormatInt(c.topics[0].version, 10), // without it mqadmin's consumerStatus fails
		},
		Subscriptions: c.HeartbeatData().Subscriptions,
		Status:        make(map[string]wire.ConsumeStatus),
	}
	for _, t := range c.topics {
		info.Status[t.wireName] = wire.ConsumeStatus{}
	}
	if jstack {
		buf := make([]byte, stackLimit)
		info.Stack = string(buf[:runtime.Stack(buf, true)])
	}
	return info.AppendJSON(nil), nil
}

// ConsumeDirectly implements [client.Consumer]. There is no handler to call.
func (c *Consumer) ConsumeDirectly(context.Context, string, []byte) ([]byte, error) {
	return nil, errors.New("a consumer that receives by itself has no handler for a message")
}
