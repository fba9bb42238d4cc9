// Package view makes a rocketmq.MessageView of what a broker sent. It reads a
// message's properties once and decodes none of them that nobody asks for.
package view

import (
	"strings"
	"time"
	"unsafe"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// History is what the properties say of a message's past, beside what a view
// has fields for.
type History struct {
	RetryTopic string // the topic it was first sent to; "" if it is not a retry
	PopHandle  string // of a popped message whose handle the broker made; "" if none
	Prepared   bool   // it was sent in a transaction
}

// OffsetIDLen is the length of an offset message id with an IPv4 address.
const OffsetIDLen = 32

// Message sets all of v that a stored record says, but for topic, queue and
// offset. The record must not change any more: v points into it. Ids and keys go
// into arenas, which many messages may share.
func Message(v *rocketmq.MessageView, r *wire.Record, ids *[]byte, keys *[]string) History {
	h := Properties(v, text(r.Properties), keys)
	at := len(*ids)
	*ids = wire.AppendOffsetMsgID(*ids, r.StoreHost, r.PhyOffset)
	v.OffsetID = text((*ids)[at:])
	if v.ID == "" {
		v.ID = v.OffsetID
	}
	if h.Prepared {
		v.TransactionID = v.ID
	}
	v.Body = r.Body
	v.BornAt, v.StoredAt = time.UnixMilli(r.BornTime), time.UnixMilli(r.StoreTime)
	v.BornHost, v.StoreHost = r.BornHost, r.StoreHost
	v.Attempt = int(r.ReconsumeTimes) + 1
	return h
}

// text is b as a string without a copy. b must not change any more: it is
// part of a response's own copy, which lives as long as any view into it.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Properties sets the properties of v, and the fields that are made of them. Of
// equal names the last one counts. The keys go into arena, which many messages
// may share.
func Properties(v *rocketmq.MessageView, props string, arena *[]string) (h History) {
	v.Properties = rocketmq.Properties(props)
	for props != "" {
		var name, value string
		name, value, props = cut(props)
		if value == "" {
			continue
		}
		switch name {
		case wire.PropUniqKey:
			v.ID = value
		case wire.PropTags:
			v.Tag = value
		case wire.PropKeys:
			v.Keys = split(value, arena)
		case wire.PropShardingKey:
			v.ShardingKey = value
		case wire.PropRetryTopic:
			h.RetryTopic = value
		case wire.PropPopCK:
			h.PopHandle = value
		case wire.PropTranMsg:
			h.Prepared = value == "true"
		}
	}
	return h
}

// cut takes the first property off s: name 0x01 value 0x02.
func cut(s string) (name, value, rest string) {
	end := strings.IndexByte(s, 2)
	entry := s
	if end >= 0 {
		entry, rest = s[:end], s[end+1:]
	}
	if i := strings.IndexByte(entry, 1); i > 0 {
		return entry[:i], entry[i+1:], rest
	}
	return "", "", rest
}

// split cuts the keys of a message, all in one arena.
func split(s string, arena *[]string) []string {
	keys := *arena
	at := len(keys)
	for s != "" {
		i := strings.IndexByte(s, ' ')
		if i < 0 {
			i = len(s)
		}
		if i > 0 {
			keys = append(keys, s[:i])
		}
		s = s[min(i+1, len(s)):]
	}
	*arena = keys
	return keys[at:len(keys):len(keys)]
}
