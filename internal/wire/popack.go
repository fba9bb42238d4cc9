package wire

import (
	"encoding/base64"
	"fmt"
	"math/bits"
)

// BatchAck is the body of BATCH_ACK_MESSAGE (200151).
type BatchAck struct {
	Broker string
	Acks   []PopAcks
}

// PopAcks are acknowledgements of messages that were popped together.
type PopAcks struct {
	Group, Topic             string // the topic is the original one
	Retry                    byte   // Pop... constant
	QueueID, ReviveQueue     int32
	Start                    int64 // of the checkpoint
	PopTime, InvisibleMillis int64
	Bits                     []byte // bit n, from the lowest of the first byte on, is offset Start+n
}

// maxPopBits bounds the offsets of one entry: a checkpoint has 32 messages at
// most, with gaps where a filter took some away.
const maxPopBits = 1 << 20

// Add acknowledges an offset. It is false for one that is out of reach: it has
// to be acknowledged by itself.
func (a *PopAcks) Add(offset int64) bool {
	n := offset - a.Start
	if n < 0 || n >= maxPopBits {
		return false
	}
	for int64(len(a.Bits)) <= n/8 {
		a.Bits = append(a.Bits, 0)
	}
	a.Bits[n/8] |= 1 << (n % 8)
	return true
}

// Offsets are the acknowledged offsets, in order.
func (a *PopAcks) Offsets() []int64 {
	n := 0
	for _, b := range a.Bits {
		n += bits.OnesCount8(b)
	}
	out := make([]int64, 0, n)
	for i, b := range a.Bits {
		for ; b != 0; b &= b - 1 {
			out = append(out, a.Start+int64(i)*8+int64(bits.TrailingZeros8(b)))
		}
	}
	return out
}

// AppendJSON appends the body.
func (d *BatchAck) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("acks")
	w.open('[')
	for i := range d.Acks {
		a := &d.Acks[i]
		w.item('{')
		w.text("b", base64.StdEncoding.EncodeToString(a.Bits))
		w.text("c", a.Group)
		w.int("it", a.InvisibleMillis)
		w.int("pt", a.PopTime)
		w.int("q", int64(a.QueueID))
		w.text("r", string(a.Retry))
		w.int("rq", int64(a.ReviveQueue))
		w.int("so", a.Start)
		w.text("t", a.Topic)
		w.close('}')
	}
	w.close(']')
	w.text("brokerName", d.Broker)
	w.close('}')
	return w.b
}

// DecodeBatchAck reads the body.
func DecodeBatchAck(b []byte) (BatchAck, error) {
	r := jsonReader{b: b}
	var d BatchAck
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "brokerName":
			d.Broker = r.text()
		case "acks":
			r.array(func() { d.Acks = append(d.Acks, r.popAcks()) })
		}
	})
	return d, r.finish("batch acknowledgement")
}

func (r *jsonReader) popAcks() PopAcks {
	a := PopAcks{Retry: PopNormal}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "b":
			raw, err := base64.StdEncoding.DecodeString(r.text())
			if err != nil || len(raw) > maxPopBits/8 {
				r.fail("the set of offsets is not base64 or too large")
			}
			a.Bits = raw
		case "c":
			a.Group = r.text()
		case "t":
			a.Topic = r.text()
		case "r":
			if t := r.text(); len(t) == 1 && t[0] >= PopNormal && t[0] <= PopRetryV2 {
				a.Retry = t[0]
			} else {
				r.fail(fmt.Sprintf("retry is %q, not 0 to 2", clip([]byte(t))))
			}
		case "q":
			a.QueueID = r.int32()
		case "rq":
			a.ReviveQueue = r.int32()
		case "so":
			a.Start = r.int64()
		case "pt":
			a.PopTime = r.int64()
		case "it":
			a.InvisibleMillis = r.int64()
		}
	})
	return a
}
