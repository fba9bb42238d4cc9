package rocketmq

import (
	"strconv"
	"time"
)

// Position is a place in a queue to start from or to seek to. The zero value is
// unset and stands for the default of whoever takes it.
type Position struct {
	kind  PositionKind
	value int64
}

// PositionKind tells the kinds of [Position] apart.
type PositionKind uint8

// The kinds of positions.
const (
	PositionUnset PositionKind = iota
	PositionEarliest
	PositionLatest
	PositionStrictLatest
	PositionTime
	PositionOffset
)

// Earliest is the oldest message that the broker still has.
func Earliest() Position { return Position{kind: PositionEarliest} }

// Latest is the end of the queue as the broker reports it to a new group. A
// broker that still has the first message of a queue in memory answers with
// the beginning instead, so that a young topic is read from its start
// (ConsumerManageProcessor.queryConsumerOffset). See [StrictLatest].
func Latest() Position { return Position{kind: PositionLatest} }

// StrictLatest is the end of the queue at the time it is asked for: really only
// what comes from now on.
func StrictLatest() Position { return Position{kind: PositionStrictLatest} }

// AtTime is the first message stored at t or later, in milliseconds.
func AtTime(t time.Time) Position { return Position{PositionTime, t.UnixMilli()} }

// AtOffset is a queue offset. It is not checked against the queue's range.
func AtOffset(off int64) Position { return Position{PositionOffset, off} }

// Kind tells what the position is.
func (p Position) Kind() PositionKind { return p.kind }

// Time is the time of [AtTime], the zero time for other kinds.
func (p Position) Time() time.Time {
	if p.kind != PositionTime {
		return time.Time{}
	}
	return time.UnixMilli(p.value)
}

// Offset is the offset of [AtOffset], 0 for other kinds.
func (p Position) Offset() int64 {
	if p.kind != PositionOffset {
		return 0
	}
	return p.value
}

// String describes the position.
func (p Position) String() string {
	switch p.kind {
	case PositionEarliest:
		return "earliest"
	case PositionLatest:
		return "latest"
	case PositionStrictLatest:
		return "strict latest"
	case PositionTime:
		return "time " + p.Time().UTC().Format(time.RFC3339Nano)
	case PositionOffset:
		return "offset " + strconv.FormatInt(p.value, 10)
	}
	return "unset"
}
