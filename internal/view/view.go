// Package view makes a rocketmq.MessageView of what a broker sent. It reads a
// message's properties once and decodes none of them that nobody asks for.
package view

import (
	"strings"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// History is what the properties say of a message's past, beside what a view
// has fields for.
type History struct {
	RetryTopic string // the topic it was first sent to; "" if it is not a retry
	Prepared   bool   // it was sent in a transaction
}

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
