package client

import (
	"context"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Consumer is a member of a consumer group, as the runtime sees it: it says
// what heartbeats tell about it and takes the brokers' requests. Methods are
// called concurrently, without locks.
type Consumer interface {
	Group() string
	// HeartbeatData is what the next heartbeat says. It must list all
	// subscriptions: brokers drop those that are missing.
	HeartbeatData() wire.ConsumerData
	// Topics are the topics whose brokers get heartbeats, beside all topics
	// whose routes were asked for. It must not block.
	Topics() []string
	// IDsChanged says that members came or went (code 40). It runs on a
	// connection's reader and must only take a note.
	IDsChanged()
	// ResetOffsets moves the group's offsets of a topic (code 220). It runs on
	// a goroutine of its own; ctx ends with the runtime.
	ResetOffsets(ctx context.Context, topic string, offsets map[wire.MessageQueue]int64)
	// Offsets are the current offsets of a topic (code 221), "" for all topics.
	Offsets(topic string) map[wire.MessageQueue]int64
	// RunningInfo is the body that answers code 307. jstack asks for the
	// stacks of all goroutines.
	RunningInfo(ctx context.Context, jstack bool) ([]byte, error)
	// ConsumeDirectly hands one stored message to the handler and returns the
	// body that answers code 309. record is owned by the callee.
	ConsumeDirectly(ctx context.Context, broker string, record []byte) ([]byte, error)
}

// ProducerHooks take the brokers' requests to a producer group. Fields may be
// nil.
type ProducerHooks struct {
	// CheckTransaction takes a broker's question about a half message (code
	// 39). The frame is owned by the callee. It runs on a connection's reader
	// and must not block.
	CheckTransaction func(addr string, f *wire.Frame)
}
