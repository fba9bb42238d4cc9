package store

import (
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// GetRequest asks for records of one queue.
type GetRequest struct {
	Topic   []byte
	QueueID int32
	Offset  int64 // queue offset of the first record wanted
	MaxMsgs int32 // at most this many; the first one is always given
	Filter  Filter
}

// Filter chooses records. A nil Filter takes all. Both methods are called
// from the goroutine that called Get.
type Filter interface {
	// MatchCode sees the tags code of the consume queue unit, before the
	// record is read.
	MatchCode(tagsCode int64) bool
	// MatchRecord sees the record; r is valid during the call only.
	MatchRecord(r *wire.Record) bool
}

// GetStatus is the outcome of a Get, as Apache's GetMessageStatus.
type GetStatus uint8

// The statuses.
const (
	Found GetStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetFoundNull
	OffsetOverflowBadly
	OffsetOverflowOne
	OffsetTooSmall
	NoMatchedLogicQueue
	NoMessageInQueue
	Unavailable // the store is closed: Apache answers null
)

// String returns Apache's name of the status.
func (s GetStatus) String() string {
	switch s {
	case Found:
		return "FOUND"
	case NoMatchedMessage:
		return "NO_MATCHED_MESSAGE"
	case MessageWasRemoving:
		return "MESSAGE_WAS_REMOVING"
	case OffsetFoundNull:
		return "OFFSET_FOUND_NULL"
	case OffsetOverflowBadly:
		return "OFFSET_OVERFLOW_BADLY"
	case OffsetOverflowOne:
		return "OFFSET_OVERFLOW_ONE"
	case OffsetTooSmall:
		return "OFFSET_TOO_SMALL"
	case NoMatchedLogicQueue:
		return "NO_MATCHED_LOGIC_QUEUE"
	case NoMessageInQueue:
		return "NO_MESSAGE_IN_QUEUE"
	default:
		return "UNAVAILABLE"
	}
}

// GetResult goes with the records of a Get.
type GetResult struct {
	Status     GetStatus
	NextOffset int64 // where to go on
	MinOffset  int64 // of the queue
	MaxOffset  int64 // of the queue: the offset after the last readable record
	Count      int32 // records given
	// SuggestSlave is set when the records are so far back that a replica
	// should serve them.
	SuggestSlave bool
}
