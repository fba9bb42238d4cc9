package rocketmq

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// MaxBody is the largest body in bytes that is sent, before compression. A
// broker refuses more by default (maxMessageSize).
const MaxBody = 4 << 20

// MaxProperties is the largest size in bytes of a message's properties, the
// library's own included: their length is a 16-bit number in the store.
const MaxProperties = 32767

// reservedRoom is kept free in MaxProperties for what sender and broker add:
// the message id, WAIT, CLUSTER, MSG_REGION, TRACE_ON and the like.
const reservedRoom = 512

// Message is a message to send. It is plain data: the library neither changes
// it nor keeps it after the call that took it has returned (or, for an
// asynchronous one, after its callback was called).
type Message struct {
	Topic string
	Body  []byte
	// Tag is what consumers filter by. At most one; "" for none.
	Tag string
	// Keys are business keys the broker indexes the message by. They are
	// separated by blanks on the wire and so must not contain any.
	Keys []string
	// ShardingKey keeps messages together: by default equal keys go to one
	// queue.
	ShardingKey string
	// Properties are the application's own. Names the protocol uses itself are
	// refused, as are empty names and values (brokers drop them silently) and
	// the separators 0x01 and 0x02.
	Properties map[string]string
	// Delay is when the message may be delivered. Zero is at once.
	Delay Delay
	// ReplyTo is set in the answer to a request, see [NewReply]. Such a message
	// may have no body.
	ReplyTo *ReplyTo
}

// ReplyTo says whose request a message answers.
type ReplyTo struct {
	Client        string // id of the client that asked
	CorrelationID string
	TTL           time.Duration // for which it waits
}

// Clone returns a copy that shares nothing with m.
func (m *Message) Clone() *Message {
	c := *m
	c.Body = slices.Clone(m.Body)
	c.Keys = slices.Clone(m.Keys)
	c.Properties = maps.Clone(m.Properties)
	if m.ReplyTo != nil {
		to := *m.ReplyTo
		c.ReplyTo = &to
	}
	return &c
}

// Validate reports what a send would refuse, without sending. The error is
// [ErrInvalidMessage], also [ErrTooLarge] if something is too long. It
// allocates nothing for a valid message.
func (m *Message) Validate() error {
	if m == nil {
		return &invalidMessage{"", errors.New("the message is nil")}
	}
	if err := m.check(); err != nil {
		return &invalidMessage{m.Topic, err}
	}
	return nil
}

// invalidMessage is an ErrInvalidMessage with its reason.
type invalidMessage struct {
	topic  string
	reason error
}

func (e *invalidMessage) Error() string {
	return fmt.Sprintf("%v: topic %q: %v", ErrInvalidMessage, e.topic, e.reason)
}

func (e *invalidMessage) Unwrap() []error { return []error{ErrInvalidMessage, e.reason} }

func (m *Message) check() error {
	if err := wire.ValidateTopic(m.Topic); err != nil {
		return err
	}
	if !wire.MaySendTo(m.Topic) {
		return errors.New("the topic is one of the system's own and takes no messages")
	}
	switch {
	case len(m.Body) == 0 && m.ReplyTo == nil:
		return errors.New("the body is empty")
	case len(m.Body) > MaxBody:
		return fmt.Errorf("%w: the body has %d bytes, the limit is %d", ErrTooLarge, len(m.Body), MaxBody)
	}
	if err := m.Delay.validate(); err != nil {
		return err
	}
	return m.checkProperties()
}

func (m *Message) checkProperties() error {
	size := 0
	if m.Tag != "" {
		if err := checkValue("tag", m.Tag); err != nil {
			return err
		}
		if strings.Contains(m.Tag, "|") || strings.TrimSpace(m.Tag) != m.Tag {
			return fmt.Errorf("tag %q: a subscription cannot name a tag with | or outer blanks in it", clip(m.Tag))
		}
		size += len(wire.PropTags) + len(m.Tag) + 2
	}
	for _, k := range m.Keys {
		if k == "" || strings.ContainsAny(k, " \t\r\n") {
			return fmt.Errorf("key %q: keys must not be empty or contain blanks, which separate them", clip(k))
		}
		if err := checkValue("key", k); err != nil {
			return err
		}
		size += len(k) + 1
	}
	if len(m.Keys) > 0 {
		size += len(wire.PropKeys) + 1
	}
	if m.ShardingKey != "" {
		if err := checkValue("sharding key", m.ShardingKey); err != nil {
			return err
		}
		size += len(wire.PropShardingKey) + len(m.ShardingKey) + 2
	}
	if to := m.ReplyTo; to != nil {
		if err := to.check(); err != nil {
			return err
		}
		size += len(wire.PropReplyToClient) + len(to.Client) + len(wire.PropCorrelationID) + len(to.CorrelationID) + 4
	}
	for k, v := range m.Properties {
		switch {
		case k == "":
			return errors.New("a property has no name")
		case v == "":
			return fmt.Errorf("property %q is empty: brokers drop empty values, leave it out", clip(k))
		case k == wire.PropShardingKey:
			return fmt.Errorf("property %q: set Message.ShardingKey instead", k)
		case wire.IsReservedProperty(k):
			return fmt.Errorf("property %q: the name is reserved, use Tag, Keys, Delay or another name", clip(k))
		}
		if err := checkValue("name of property", k); err != nil {
			return err
		}
		if err := checkValue(k, v); err != nil {
			return err
		}
		size += len(k) + len(v) + 2
	}
	if size > MaxProperties-reservedRoom {
		return fmt.Errorf("%w: tag, keys and properties take %d bytes encoded, the limit is %d", ErrTooLarge, size, MaxProperties-reservedRoom)
	}
	return nil
}

func (to *ReplyTo) check() error {
	if to.Client == "" || to.CorrelationID == "" || to.TTL < 0 {
		return errors.New("ReplyTo needs a client, a correlation id and a time that is not negative; NewReply makes it")
	}
	if err := checkValue("client of the reply", to.Client); err != nil {
		return err
	}
	return checkValue("correlation id", to.CorrelationID)
}

// checkValue refuses what the properties' encoding cannot carry. Java readers
// replace invalid UTF-8, so that it would arrive altered.
func checkValue(what, s string) error {
	for i := 0; i < len(s); i++ {
		if s[i] == 1 || s[i] == 2 {
			return fmt.Errorf("%s %q: byte 0x0%d at %d is a separator of the protocol", clip(what), clip(s), s[i], i)
		}
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s %q is not valid UTF-8", clip(what), clip(s))
	}
	return nil
}

// clip keeps long values out of error texts.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}
