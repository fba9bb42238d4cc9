package producer

import (
	"log/slog"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// Status is how far a message got. It repeats what the error says, for users
// of [WithWeakAck].
type Status uint8

// The statuses. The zero value says nothing.
const (
	StatusUnknown        Status = Status(send.StatusUnknown)
	StatusOK             Status = Status(send.StatusOK)
	StatusFlushTimeout   Status = Status(send.StatusFlushTimeout)   // stored, not flushed in time
	StatusReplicaTimeout Status = Status(send.StatusReplicaTimeout) // stored, not replicated in time
	StatusNoReplica      Status = Status(send.StatusNoReplica)      // stored, there is no replica to copy to
)

// String is the status' name as in SendStatus of Apache RocketMQ.
func (s Status) String() string {
	switch s {
	case StatusOK:
		return "SEND_OK"
	case StatusFlushTimeout:
		return "FLUSH_DISK_TIMEOUT"
	case StatusReplicaTimeout:
		return "FLUSH_SLAVE_TIMEOUT"
	case StatusNoReplica:
		return "SLAVE_NOT_AVAILABLE"
	}
	return "UNKNOWN"
}

// Result says where a message went. It is complete if the broker stored the
// message, also together with rocketmq.ErrNotDurable.
type Result struct {
	MessageID     string // made by the producer; consumers see it as MessageView.ID
	OffsetID      string // made by the broker
	TransactionID string
	Queue         rocketmq.Queue
	Offset        int64 // in Queue
	Status        Status
	RecallHandle  string // of a timer message, to recall it by; 5.x brokers
}

func result(r send.Result) Result {
	return Result{
		MessageID: r.MessageID, OffsetID: r.OffsetID, TransactionID: r.TransactionID,
		Queue: r.Queue, Offset: r.Offset, Status: Status(r.Status), RecallHandle: r.RecallHandle,
	}
}

// LogValue implements [slog.LogValuer].
func (r Result) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", r.MessageID),
		slog.Any("queue", r.Queue),
		slog.Int64("offset", r.Offset),
		slog.String("status", r.Status.String()),
	)
}
