package wire

import "strconv"

// Tags of the records in a revive topic.
const (
	PopTagCheckpoint = "ck"
	PopTagAck        = "ack"
	PopTagBatchAck   = "bAck"
)

// PopCheckpoint is the record that stands for one batch of popped messages:
// they are to be delivered again unless acks for them follow. PopCheckPoint of
// Apache RocketMQ; its JSON is the body of a message with the tag "ck".
type PopCheckpoint struct {
	StartOffset     int64
	PopTime         int64 // ms since 1970
	InvisibleMillis int64
	Acked           uint32 // bit i: the i-th message is done
	Count           int32  // of messages, at most 32
	QueueID         int32
	Topic           string
	Group           string
	ReviveOffset    int64   // of the record itself; always 0 in it
	Diffs           []int32 // offsets of the messages less StartOffset; none: consecutive ones
	Broker          string
	Rewritten       string // how often it has been written again
}

// ReviveTime is when the messages become visible again, in ms since 1970.
func (d *PopCheckpoint) ReviveTime() int64 { return d.PopTime + d.InvisibleMillis }

// Offset is the queue offset of the i-th message.
func (d *PopCheckpoint) Offset(i int) int64 {
	if len(d.Diffs) == 0 {
		return d.StartOffset + int64(i)
	}
	return d.StartOffset + int64(d.Diffs[i])
}

// Len is the number of messages.
func (d *PopCheckpoint) Len() int {
	if len(d.Diffs) > 0 {
		return min(len(d.Diffs), 32)
	}
	return int(min(max(d.Count, 0), 32))
}

// Index is which message has a queue offset, -1 if none.
func (d *PopCheckpoint) Index(offset int64) int {
	for i := range d.Len() {
		if d.Offset(i) == offset {
			return i
		}
	}
	return -1
}

// AppendJSON appends the body.
func (d *PopCheckpoint) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.int("bm", int64(int32(d.Acked)))
	w.optText("bn", d.Broker)
	w.text("c", d.Group)
	if len(d.Diffs) > 0 {
		w.key("d")
		w.open('[')
		for _, x := range d.Diffs {
			w.sep()
			w.b = strconv.AppendInt(w.b, int64(x), 10)
		}
		w.close(']')
	}
	w.int("it", d.InvisibleMillis)
	w.int("n", int64(d.Count))
	w.int("pt", d.PopTime)
	w.int("q", int64(d.QueueID))
	w.int("reviveTime", d.ReviveTime())
	w.int("ro", d.ReviveOffset)
	w.optText("rp", d.Rewritten)
	w.int("so", d.StartOffset)
	w.text("t", d.Topic)
	w.close('}')
	return w.b
}

// DecodePopCheckpoint reads the body.
func DecodePopCheckpoint(b []byte) (PopCheckpoint, error) {
	r := jsonReader{b: b}
	var d PopCheckpoint
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "so":
			d.StartOffset = r.int64()
		case "pt":
			d.PopTime = r.int64()
		case "it":
			d.InvisibleMillis = r.int64()
		case "bm":
			d.Acked = uint32(r.int32())
		case "n":
			d.Count = r.int32()
		case "q":
			d.QueueID = r.int32()
		case "t":
			d.Topic = r.text()
		case "c":
			d.Group = r.text()
		case "ro":
			d.ReviveOffset = r.int64()
		case "d":
			r.array(func() { d.Diffs = append(d.Diffs, r.int32()) })
		case "bn":
			d.Broker = r.text()
		case "rp":
			d.Rewritten = r.text()
		}
	})
	return d, r.finish("pop checkpoint")
}

// PopAck is the record that acknowledges messages of a checkpoint, which is the
// one with the same topic, group, queue, start and time. AckMsg and BatchAckMsg
// of Apache RocketMQ; its JSON is the body of a message with the tag "ack", or
// "bAck" for more than one.
type PopAck struct {
	Offset      int64   // of the message, with the tag "ack"; else -1
	Offsets     []int64 // of the messages, with the tag "bAck"
	StartOffset int64
	Group       string
	Topic       string
	QueueID     int32
	PopTime     int64
	Broker      string
}

// AppendJSON appends the body.
func (d *PopAck) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.int("ao", d.Offset)
	if d.Offsets != nil {
		w.key("aol")
		w.open('[')
		for _, x := range d.Offsets {
			w.sep()
			w.b = strconv.AppendInt(w.b, x, 10)
		}
		w.close(']')
	}
	w.optText("bn", d.Broker)
	w.text("c", d.Group)
	w.int("pt", d.PopTime)
	w.int("q", int64(d.QueueID))
	w.int("so", d.StartOffset)
	w.text("t", d.Topic)
	w.close('}')
	return w.b
}

// DecodePopAck reads the body, also with the long names of older releases.
func DecodePopAck(b []byte) (PopAck, error) {
	r := jsonReader{b: b}
	var d PopAck
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "ao", "ackOffset":
			d.Offset = r.int64()
		case "aol", "ackOffsetList":
			r.array(func() { d.Offsets = append(d.Offsets, r.int64()) })
		case "so", "startOffset":
			d.StartOffset = r.int64()
		case "c", "consumerGroup":
			d.Group = r.text()
		case "t", "topic":
			d.Topic = r.text()
		case "q", "queueId":
			d.QueueID = r.int32()
		case "pt", "popTime":
			d.PopTime = r.int64()
		case "bn", "brokerName":
			d.Broker = r.text()
		}
	})
	return d, r.finish("pop ack")
}
