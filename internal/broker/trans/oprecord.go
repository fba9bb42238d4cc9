package trans

import (
	"bytes"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// opTag is the only tag of op records: the half messages are done with.
const opTag = "d"

// opBody is what an op record says of half messages: a single one in the form
// of 4.9, which all versions read, several as 5.x does.
func opBody(dst []byte, halves []int64) []byte {
	for _, n := range halves {
		dst = strconv.AppendInt(dst, n, 10)
		if len(halves) > 1 {
			dst = append(dst, ',')
		}
	}
	return dst
}

// eachOp calls f for the half offsets of an op record, of either form. What is
// no number is left out.
func eachOp(body []byte, f func(half int64)) {
	for len(body) > 0 {
		var one []byte
		one, body, _ = bytes.Cut(body, []byte{','})
		if n, ok := wire.ParseInt(bytes.TrimSpace(one)); ok && n >= 0 {
			f(n)
		}
	}
}

// opMessage is an op record. Apache's have these two properties, too.
func (s *Service) opMessage(body []byte) store.Message {
	p := wire.AppendProperty(nil, wire.PropWait, "true")
	p = wire.AppendProperty(p, wire.PropTags, opTag)
	return store.Message{
		Topic: []byte(wire.TopicOpHalf), BornTime: s.cfg.Clock.Now().UnixMilli(), BornHost: s.cfg.Host, Body: body, Properties: p,
	}
}
