package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Which topic a popped message comes from, as handles and info strings say it.
const (
	PopNormal  byte = '0' // the topic itself
	PopRetryV1 byte = '1' // PopRetryTopic
	PopRetryV2 byte = '2' // PopRetryTopicV2
)

// PopRetryTopic is where messages of a topic go that a group has popped and not
// acknowledged in time: KeyBuilder.buildPopRetryTopicV1.
func PopRetryTopic(group, topic string) string { return RetryPrefix + group + "_" + topic }

// PopRetryTopicV2 is the same for brokers with enableRetryTopicV2, which can
// tell group and topic apart again.
func PopRetryTopicV2(group, topic string) string { return RetryPrefix + group + "+" + topic }

// PopTopic is the real topic of a message that was popped from topic.
func PopTopic(retry byte, group, topic string) string {
	switch retry {
	case PopRetryV1:
		return PopRetryTopic(group, topic)
	case PopRetryV2:
		return PopRetryTopicV2(group, topic)
	}
	return topic
}

// ErrPopHandle is wrapped by the errors of texts that are no handles.
var ErrPopHandle = errors.New("malformed handle of a popped message")

// PopHandle names one delivery of a popped message, for its acknowledgement:
// what ExtraInfoUtil of Apache RocketMQ builds, and the property POP_CK holds.
type PopHandle struct {
	Start           int64 // the checkpoint's first queue offset
	PopTime         int64 // ms
	InvisibleMillis int64
	ReviveQueue     int32
	Retry           byte // Pop... constant
	Broker          string
	QueueID         int32
	Offset          int64 // the message's
}

// Append appends the handle as text.
func (h *PopHandle) Append(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, h.Start, 10), ' ')
	dst = append(strconv.AppendInt(dst, h.PopTime, 10), ' ')
	dst = append(strconv.AppendInt(dst, h.InvisibleMillis, 10), ' ')
	dst = append(strconv.AppendInt(dst, int64(h.ReviveQueue), 10), ' ')
	dst = append(dst, h.Retry, ' ')
	dst = append(append(dst, h.Broker...), ' ')
	dst = append(strconv.AppendInt(dst, int64(h.QueueID), 10), ' ')
	return strconv.AppendInt(dst, h.Offset, 10)
}

// String is the handle as text.
func (h *PopHandle) String() string { return string(h.Append(nil)) }

// ParsePopHandle reads a handle. The broker's name points into s. It allocates
// nothing unless it fails.
func ParsePopHandle(s string) (PopHandle, error) {
	var h PopHandle
	bad := false
	rest, more := s, true
	next := func() string {
		var part string
		part, rest, more = strings.Cut(rest, " ")
		bad = bad || part == ""
		return part
	}
	num := func(bits int) int64 {
		n, err := strconv.ParseInt(next(), 10, bits)
		bad = bad || err != nil
		return n
	}
	h.Start, h.PopTime, h.InvisibleMillis, h.ReviveQueue = num(64), num(64), num(64), int32(num(32))
	if t := next(); len(t) == 1 && t[0] >= PopNormal && t[0] <= PopRetryV2 {
		h.Retry = t[0]
	} else {
		bad = true
	}
	h.Broker, h.QueueID, h.Offset = next(), int32(num(32)), num(64)
	if bad || more {
		return PopHandle{}, fmt.Errorf("%w %q: checkpoint offset, pop time, invisible time, revive queue, 0 to 2, broker, queue and offset are expected", ErrPopHandle, clip([]byte(s)))
	}
	return h, nil
}

// AppendPopStart adds a queue to the info string startOffsetInfo.
func AppendPopStart(dst []byte, retry byte, queue int32, start int64) []byte {
	return strconv.AppendInt(appendPopEntry(dst, retry, queue), start, 10)
}

// AppendPopOffsets adds a queue to the info string msgOffsetInfo.
func AppendPopOffsets(dst []byte, retry byte, queue int32, offsets []int64) []byte {
	dst = appendPopEntry(dst, retry, queue)
	for i, o := range offsets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, o, 10)
	}
	return dst
}

func appendPopEntry(dst []byte, retry byte, queue int32) []byte {
	if len(dst) > 0 {
		dst = append(dst, ';')
	}
	dst = append(dst, retry, ' ')
	return append(strconv.AppendInt(dst, int64(queue), 10), ' ')
}

// PopEntry is what an info string says of a queue, false if nothing. Entries
// that are none are passed over.
func PopEntry(info []byte, retry byte, queue int32) (value []byte, ok bool) {
	for len(info) > 0 {
		var entry []byte
		entry, info, _ = bytes.Cut(info, []byte{';'})
		if len(entry) < 2 || entry[0] != retry || entry[1] != ' ' {
			continue
		}
		id, v, found := bytes.Cut(entry[2:], []byte{' '})
		if n, isNum := ParseInt(id); found && isNum && n == int64(queue) {
			return v, true
		}
	}
	return nil, false
}

// PopStart is the start offset that startOffsetInfo has for a queue.
func PopStart(info []byte, retry byte, queue int32) (int64, bool) {
	v, ok := PopEntry(info, retry, queue)
	if !ok {
		return 0, false
	}
	return ParseInt(v)
}

// AppendPopCount adds to the info string orderCountInfo how often all messages
// of a queue have been consumed before.
func AppendPopCount(dst []byte, retry byte, queue, count int32) []byte {
	return strconv.AppendInt(appendPopEntry(dst, retry, queue), int64(count), 10)
}

// AppendPopMessageCount adds to the info string orderCountInfo how often one
// message has been consumed before.
func AppendPopMessageCount(dst []byte, retry byte, queue int32, offset int64, count int32) []byte {
	if len(dst) > 0 {
		dst = append(dst, ';')
	}
	dst = strconv.AppendInt(append(dst, retry, ' ', 'q', 'o'), int64(queue), 10)
	dst = strconv.AppendInt(append(dst, '%'), offset, 10)
	return strconv.AppendInt(append(dst, ' '), int64(count), 10)
}

// PopRetryOf is which kind of topic a popped message is in.
func PopRetryOf(topic string) byte {
	switch {
	case !IsRetryTopic(topic):
		return PopNormal
	case strings.Contains(topic, "+"):
		return PopRetryV2
	}
	return PopRetryV1
}

// PopNormalTopic is the topic whose retry topic for a group a topic is; topics
// that are none are returned as they are.
func PopNormalTopic(group, topic string) string {
	if rest, ok := strings.CutPrefix(topic, RetryPrefix+group); ok && len(rest) > 1 && (rest[0] == '_' || rest[0] == '+') {
		return rest[1:]
	}
	return topic
}

// ReviveTopic is where a cluster's brokers keep the checkpoints of POP.
func ReviveTopic(cluster string) string { return SystemTopicPrefix + "REVIVE_LOG_" + cluster }
