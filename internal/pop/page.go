package pop

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/view"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// decode makes deliveries of the body of an answer to a POP, which it takes over.
// The messages are views into it. An error says what is wrong with the first one
// that cannot be read; those before it are returned all the same.
func (c *Consumer) decode(x *target, h *wire.PopResponse, body []byte) ([]*Delivery, error) {
	n := 0
	for rest := body; len(rest) >= 4; n++ {
		size := int(int32(binary.BigEndian.Uint32(rest)))
		if size <= 0 || size > len(rest) {
			break // the decoder below says what is wrong
		}
		rest = rest[size:]
	}
	d := decoder{
		c: c, x: x, h: h, now: time.Now(),
		views: make([]rocketmq.MessageView, 0, n), all: make([]Delivery, 0, n), ids: make([]byte, 0, n*view.OffsetIDLen),
	}
	var r wire.Record
	var err error
	for len(body) > 0 && err == nil {
		var size int
		if size, err = wire.DecodeRecord(body, &r); err == nil {
			err = d.add(&r)
			body = body[size:]
		}
	}
	got := make([]*Delivery, len(d.all))
	for i := range d.all {
		got[i] = &d.all[i]
	}
	if err != nil {
		err = fmt.Errorf("message %d of a POP: %w", len(got), err)
	}
	return got, err
}

type decoder struct {
	c     *Consumer
	x     *target
	h     *wire.PopResponse
	now   time.Time
	views []rocketmq.MessageView
	all   []Delivery
	ids   []byte   // arena of offset ids
	keys  []string // arena of keys

	// The queue of the message before.
	retry byte
	queue int32
	start int64
	same  bool
}

func (d *decoder) add(r *wire.Record) error {
	t := d.x.topic
	var v rocketmq.MessageView
	history := view.Message(&v, r, &d.ids, &d.keys)
	handle, err := d.handle(r, history.PopHandle)
	if err != nil {
		return err
	}
	v.Topic = t.name
	v.Queue = rocketmq.Queue{Topic: t.name, Broker: d.x.broker, ID: int(handle.QueueID)}
	if handle.Retry != wire.PopNormal {
		v.Queue.Topic = wire.PopTopic(handle.Retry, d.c.cfg.Group, t.name)
	}
	v.Offset = handle.Offset
	d.views = append(d.views, v)
	d.all = append(d.all, Delivery{
		MessageView: &d.views[len(d.views)-1], c: d.c, topic: t, handle: handle, logOffset: r.PhyOffset, sysFlag: r.SysFlag,
		deadline: d.now.Add(time.Duration(handle.InvisibleMillis) * time.Millisecond),
	})
	return nil
}

// handle is what names this delivery: made by the broker for messages that it
// took from the retry topic, else made here of what the answer's header says.
func (d *decoder) handle(r *wire.Record, made string) (wire.PopHandle, error) {
	if made != "" {
		return wire.ParsePopHandle(made)
	}
	retry := d.retryOf(string(r.Topic))
	if !d.same || d.retry != retry || d.queue != r.QueueID {
		start, ok := wire.PopStart(d.h.StartOffsets, retry, r.QueueID)
		if !ok {
			start = r.QueueOffset // of the queue's first one
		}
		d.retry, d.queue, d.start, d.same = retry, r.QueueID, start, true
	}
	return wire.PopHandle{
		Start: d.start, PopTime: d.h.PopTime, InvisibleMillis: d.h.InvisibleMillis, ReviveQueue: d.h.ReviveQueue,
		Retry: retry, Broker: d.x.broker, QueueID: r.QueueID, Offset: r.QueueOffset,
	}, nil
}

// retryOf tells the topic's own messages from those of its retry topics, which
// brokers may leave under that name.
func (d *decoder) retryOf(topic string) byte {
	t := d.x.topic
	switch topic {
	case t.wireName:
	case wire.PopRetryTopic(d.c.group, t.wireName):
		return wire.PopRetryV1
	case wire.PopRetryTopicV2(d.c.group, t.wireName):
		return wire.PopRetryV2
	}
	return wire.PopNormal
}
