package send

import (
	"strconv"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// appendProperties encodes what travels as properties: the library's own, the
// message's fields and the user's. The message has been validated.
func appendProperties(dst []byte, m *rocketmq.Message, id []byte, extra wire.Properties) []byte {
	dst = wire.AppendProperty(dst, wire.PropUniqKey, id)
	dst = wire.AppendProperty(dst, wire.PropWait, "true")
	if m.Tag != "" {
		dst = wire.AppendProperty(dst, wire.PropTags, m.Tag)
	}
	if len(m.Keys) > 0 {
		dst = appendKeys(dst, m.Keys)
	}
	if m.ShardingKey != "" {
		dst = wire.AppendProperty(dst, wire.PropShardingKey, m.ShardingKey)
	}
	if !m.Delay.IsZero() {
		dst = appendDelay(dst, m.Delay)
	}
	if m.ReplyTo != nil {
		dst = appendReplyTo(dst, m.ReplyTo)
	}
	for k, v := range m.Properties {
		dst = wire.AppendProperty(dst, k, v)
	}
	return append(dst, extra...)
}

// appendKeys joins the keys with blanks and puts none after the last.
func appendKeys(dst []byte, keys []string) []byte {
	if len(keys) == 1 {
		return wire.AppendProperty(dst, wire.PropKeys, keys[0])
	}
	dst = append(dst, wire.PropKeys...)
	sep := byte(1)
	for _, k := range keys {
		dst = append(dst, sep)
		dst = append(dst, k...)
		sep = ' '
	}
	return append(dst, 2)
}

func appendDelay(dst []byte, d rocketmq.Delay) []byte {
	var room [20]byte
	name, n := wire.PropDelay, int64(d.Level())
	switch d.Kind() {
	case rocketmq.DelayByDuration:
		name, n = wire.PropTimerDelayMs, d.Duration().Milliseconds()
	case rocketmq.DelayUntil:
		name, n = wire.PropTimerDeliverMs, d.Time().UnixMilli()
	}
	return wire.AppendProperty(dst, name, strconv.AppendInt(room[:0], n, 10))
}

// appendReplyTo appends what makes a message the reply to a request.
func appendReplyTo(dst []byte, to *rocketmq.ReplyTo) []byte {
	var room [20]byte
	dst = wire.AppendProperty(dst, wire.PropMsgType, wire.MsgTypeReply)
	dst = wire.AppendProperty(dst, wire.PropCorrelationID, to.CorrelationID)
	dst = wire.AppendProperty(dst, wire.PropReplyToClient, to.Client)
	return wire.AppendProperty(dst, wire.PropTTL, strconv.AppendInt(room[:0], to.TTL.Milliseconds(), 10))
}
