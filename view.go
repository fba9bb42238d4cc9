package rocketmq

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"
)

// MessageView is a message as it was received. Treat it as read-only: handlers
// of one message may share it. It can be written as a literal in a test.
type MessageView struct {
	ID            string // made by the sender, stable across its retries
	OffsetID      string // made by the broker, names one stored copy
	TransactionID string
	Topic, Tag    string   // the original topic, also for a message that is retried
	Keys          []string // business keys
	ShardingKey   string
	Body          []byte     // decompressed
	Properties    Properties // all of them; Properties.User() are the sender's own
	Queue         Queue      // the queue it came from: of a retry topic for a message that is retried
	Offset        int64      // in Queue

	BornAt, StoredAt    time.Time // by the clocks of sender and broker, in milliseconds
	BornHost, StoreHost netip.AddrPort
	Attempt             int // 1 on first delivery
}

// Message returns a fresh message with the same content, to forward it. It
// shares nothing with m. The delay and the message's history are not copied.
func (m *MessageView) Message() *Message {
	return &Message{
		Topic:       m.Topic,
		Body:        slices.Clone(m.Body),
		Tag:         m.Tag,
		Keys:        slices.Clone(m.Keys),
		ShardingKey: m.ShardingKey,
		Properties:  m.Properties.User(),
	}
}

// LogValue implements [slog.LogValuer]: what identifies the message, never its
// body.
func (m *MessageView) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", m.ID),
		slog.String("topic", m.Topic),
		slog.Any("queue", m.Queue),
		slog.Int64("offset", m.Offset),
		slog.Int("attempt", m.Attempt),
	)
}
