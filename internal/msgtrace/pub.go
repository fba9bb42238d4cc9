package msgtrace

import (
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// MsgType is what kind of message a record is about, numbered as in Apache's
// MessageType.
type MsgType uint8

// The types of messages.
const (
	Normal MsgType = iota
	TransHalf
	TransCommit
	Delay
	Order
)

// Pub is the record of the end of one message's send. Texts are "" where the
// record says null.
type Pub struct {
	Time       time.Time // when the send began; the record has milliseconds
	Region     string
	Group      string
	Topic      string
	MessageID  string
	Tags       string
	Keys       []string // business keys
	StoreHost  string   // the broker's host and port
	BodyLength int
	Cost       time.Duration // of the send with all attempts; the record has milliseconds
	Type       MsgType
	OffsetID   string
	Success    bool   // stored, flushed and replicated as asked; a one-way message was handed over
	ClientHost string // the sender's address, without a port; 5.x only
}

// kindPub is the first field of the records of sends.
const kindPub = "Pub"

// Numbers of fields: of old, when there was no offset id; of 4.x; of 5.x, which
// is what is written. Later versions may add more.
const (
	pubFieldsOld = 13
	pubFields4   = 14
	pubFields5   = 15
)

// Append appends the record, with the client's host as 5.x has it.
func (p *Pub) Append(dst []byte) []byte {
	dst = appendText(dst, kindPub)
	dst = appendInt(dst, p.Time.UnixMilli())
	dst = appendText(dst, p.Region)
	dst = appendText(dst, p.Group)
	dst = appendText(dst, p.Topic)
	dst = appendText(dst, p.MessageID)
	dst = appendText(dst, p.Tags)
	dst = appendKeys(dst, p.Keys)
	dst = appendText(dst, p.StoreHost)
	dst = appendInt(dst, int64(p.BodyLength))
	dst = appendInt(dst, p.Cost.Milliseconds())
	dst = appendInt(dst, int64(p.Type))
	dst = appendText(dst, p.OffsetID)
	dst = appendBool(dst, p.Success)
	dst = appendText(dst, p.ClientHost)
	return endRecord(dst)
}

// ParsePub reads a record of [Records] that is a Pub, of any version. The
// error is [ErrRecord].
func ParsePub(record string) (p Pub, err error) {
	var f [pubFields5]string
	n := cut(record, f[:])
	if f[0] != kindPub {
		return Pub{}, fmt.Errorf("%w: it is a %.40q, not a Pub", ErrRecord, f[0])
	}
	if n < pubFieldsOld {
		return Pub{}, fmt.Errorf("%w: a Pub of %d fields", ErrRecord, n)
	}
	at, err := number("time", f[1], 64)
	if err != nil {
		return Pub{}, err
	}
	length, err := number("body length", f[9], 32)
	if err != nil {
		return Pub{}, err
	}
	cost, err := number("cost", f[10], 32)
	if err != nil {
		return Pub{}, err
	}
	kind, err := number("message type", f[11], 8)
	if err != nil {
		return Pub{}, err
	}
	if length < 0 || kind < 0 {
		return Pub{}, fmt.Errorf("%w: body length %d or message type %d is negative", ErrRecord, length, kind)
	}
	p = Pub{
		Time: time.UnixMilli(at), Region: text(f[2]), Group: f[3], Topic: f[4], MessageID: text(f[5]),
		Tags: text(f[6]), Keys: keysOf(f[7]), StoreHost: text(f[8]), BodyLength: int(length),
		Cost: time.Duration(cost) * time.Millisecond, Type: MsgType(kind),
	}
	if n == pubFieldsOld {
		p.Success = truth(f[12])
		return p, nil
	}
	p.OffsetID, p.Success, p.ClientHost = text(f[12]), truth(f[13]), text(f[14])
	return p, nil
}

// defaultRegion is that of brokers which name none.
const defaultRegion = "DefaultRegion"

// recordRoom is what a Pub has beside the texts that can be long.
const recordRoom = 320

// Observe takes the end of a send; it is meant for a pipeline's Config.Observe.
// It keeps nothing of o and never blocks.
func (t *Tracer) Observe(o *send.Outcome) {
	m := o.Message
	if o.NoTrace || m.Topic == t.topic {
		return
	}
	keys := 0
	for _, k := range m.Keys {
		keys += len(k) + 1
	}
	p := Pub{
		Time: o.Born, Region: o.Region, Group: t.group, Topic: m.Topic, MessageID: o.ID, Tags: m.Tag, Keys: m.Keys,
		StoreHost: o.Addr, BodyLength: len(m.Body), Cost: o.Took, Type: typeOf(m), OffsetID: o.Result.OffsetID,
		Success: o.Err == nil && (o.Oneway || o.Result.Status == send.StatusOK), ClientHost: t.host,
	}
	if p.Region == "" {
		p.Region = defaultRegion
	}
	b := p.Append(make([]byte, 0, recordRoom+len(t.group)+len(m.Topic)+len(m.Tag)+2*keys))
	e := entry{b: b, body: len(b)}
	e.addKey(o.ID)
	for _, k := range m.Keys {
		e.addKey(k)
	}
	t.put(e)
}

// typeOf never is Order: the tools of 4.x fail on a type they do not know, for
// all records of the trace message, and Java clients do not write it either.
func typeOf(m *rocketmq.Message) MsgType {
	if !m.Delay.IsZero() {
		return Delay
	}
	return Normal
}
