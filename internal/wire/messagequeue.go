package wire

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// MessageQueue is one queue of a topic on a broker. It is comparable.
type MessageQueue struct {
	Topic   string
	Broker  string // the broker's name
	QueueID int32
}

// String is the text that Java's MessageQueue gives; consistent hashing uses it.
func (q MessageQueue) String() string {
	return "MessageQueue [topic=" + q.Topic + ", brokerName=" + q.Broker + ", queueId=" + strconv.Itoa(int(q.QueueID)) + "]"
}

// Compare orders queues as Java does: topic, broker, queue.
func (q MessageQueue) Compare(p MessageQueue) int {
	if c := CompareJava(q.Topic, p.Topic); c != 0 {
		return c
	}
	if c := CompareJava(q.Broker, p.Broker); c != 0 {
		return c
	}
	return cmp.Compare(q.QueueID, p.QueueID)
}

func (w *jsonWriter) queue(q MessageQueue) {
	w.b = append(w.b, '{')
	w.text("brokerName", q.Broker)
	w.int("queueId", int64(q.QueueID))
	w.text("topic", q.Topic)
	w.close('}')
}

// queueKey writes a queue as a key, which only fastjson can read.
func (w *jsonWriter) queueKey(q MessageQueue) {
	w.sep()
	w.queue(q)
	w.b = append(w.b, ':')
}

func (w *jsonWriter) queues(name string, list []MessageQueue) {
	w.key(name)
	w.open('[')
	for _, q := range list {
		w.sep()
		w.queue(q)
	}
	w.close(']')
}

func (w *jsonWriter) queueOffsets(name string, m map[MessageQueue]int64) {
	w.key(name)
	w.open('{')
	for _, q := range sortedQueues(m) {
		w.queueKey(q)
		w.b = strconv.AppendInt(w.b, m[q], 10)
	}
	w.close('}')
}

func sortedQueues[V any](m map[MessageQueue]V) []MessageQueue {
	return slices.SortedFunc(maps.Keys(m), MessageQueue.Compare)
}

func (r *jsonReader) queue() (q MessageQueue) {
	r.object(func(k jsonKey) { q.member(r, k) })
	return q
}

func (q *MessageQueue) member(r *jsonReader, k jsonKey) {
	switch string(k.text) {
	case "brokerName":
		q.Broker = r.text()
	case "queueId":
		q.QueueID = r.int32()
	case "topic":
		q.Topic = r.text()
	}
}

func (r *jsonReader) queues() (list []MessageQueue) {
	r.array(func() { list = append(list, r.queue()) })
	return list
}

// queue reads a key that is a queue: an object, or a string of its JSON. It is
// false for a reference to another place of the document, which Java writes if
// it meets the same object twice and which is not followed.
func (k jsonKey) queue(r *jsonReader) (q MessageQueue, ok bool) {
	if r.err != nil {
		return q, false
	}
	sub := jsonReader{b: k.text, depth: r.depth}
	ok = true
	sub.object(func(k jsonKey) {
		if string(k.text) == "$ref" {
			ok = false
			return
		}
		q.member(&sub, k)
	})
	if sub.finish("queue") != nil {
		r.fail("a key that is a message queue was expected")
		return q, false
	}
	return q, ok
}

// queueOffsets reads an object with queues as keys, and the two list forms that
// go to C++ clients: [[{queue},offset],...] and [{queue and "offset"},...].
func (r *jsonReader) queueOffsets() map[MessageQueue]int64 {
	m := map[MessageQueue]int64{}
	if r.peek() == '[' {
		r.array(func() {
			if q, n, ok := r.queueOffset(); ok {
				m[q] = n
			}
		})
		return m
	}
	r.object(func(k jsonKey) {
		q, ok := k.queue(r)
		if n := r.int64(); ok {
			m[q] = n
		}
	})
	return m
}

func (r *jsonReader) queueOffset() (q MessageQueue, n int64, ok bool) {
	if r.peek() == '[' {
		at := 0
		r.array(func() {
			switch at {
			case 0:
				q = r.queue()
			case 1:
				n = r.int64()
			}
			at++
		})
		if at != 2 {
			r.fail("a pair of a queue and an offset was expected")
		}
		return q, n, r.err == nil
	}
	r.object(func(k jsonKey) {
		if string(k.text) == "offset" {
			n = r.int64()
			return
		}
		q.member(r, k)
	})
	return q, n, r.err == nil
}
