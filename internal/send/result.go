package send

import "github.com/gorocketmq/rocketmq"

// Status is what the broker did with a message, beside failing.
type Status uint8

// The statuses, in the order of producer.Status.
const (
	StatusUnknown Status = iota
	StatusOK
	StatusFlushTimeout
	StatusReplicaTimeout
	StatusNoReplica
)

// statusOf is the status for a response code, StatusUnknown for a refusal.
func statusOf(c rocketmq.Code) Status {
	switch c {
	case rocketmq.CodeSuccess:
		return StatusOK
	case rocketmq.CodeFlushDiskTimeout:
		return StatusFlushTimeout
	case rocketmq.CodeFlushSlaveTimeout:
		return StatusReplicaTimeout
	case rocketmq.CodeSlaveNotAvailable:
		return StatusNoReplica
	}
	return StatusUnknown
}

// Result is where a message went.
type Result struct {
	MessageID, OffsetID, TransactionID string
	Queue                              rocketmq.Queue
	Offset                             int64
	Status                             Status
	RecallHandle                       string
}
