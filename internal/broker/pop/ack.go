package pop

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// ACK_MESSAGE (200051), BATCH_ACK_MESSAGE (200151). Fields read: all of
// wire.AckRequest but invisibleTime; the body of 200151.
//
// Answers: 0, also for what is acknowledged too late; 1 malformed, or the ack
// could not be stored; 13 queue out of range, no revive queue, in order: no such
// message; 17 no topic; 200051: 208 offset outside of the queue; 200151: 208 no
// entries. Offsets of 200151 outside of their queue are passed over.
//
// Unlike Apache an ack that could not be stored is answered 1, so that the
// consumer knows that the message will come again.

// HandleAck runs on the connection's reader.
func (s *Service) HandleAck(r *remoting.Request) {
	var req wire.AckRequest
	if err := req.DecodeExt(r.Frame()); err != nil {
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return
	}
	h, code, remark := s.popped(&req)
	if code == 0 && req.Offset > s.store.MaxOffset(req.Topic, req.QueueID) {
		code, remark = s.outside(&req)
	}
	if code != 0 {
		r.Reply(code, remark, nil, nil)
		return
	}
	code, remark = s.ack(&ackOf{group: req.Group, topic: req.Topic, queue: req.QueueID, h: h}, []int64{req.Offset}, false)
	r.Reply(code, remark, nil, nil)
}

// popped checks what a consumer says of a message that it has popped.
func (s *Service) popped(req *wire.AckRequest) (h wire.PopHandle, code int32, remark string) {
	t := s.cfg.Topics.Lookup(req.Topic)
	if t == nil {
		return h, wire.RespTopicNotExist, "topic " + req.Topic + " does not exist; create it first"
	}
	if req.QueueID < 0 || req.QueueID >= t.ReadQueues {
		return h, wire.RespMessageIllegal, queueRange(t, req.QueueID)
	}
	if req.Offset < s.store.MinOffset(req.Topic, req.QueueID) {
		code, remark = s.outside(req)
		return h, code, remark
	}
	h, err := wire.ParsePopHandle(req.Handle)
	if err != nil {
		return h, wire.RespSystemError, err.Error()
	}
	return h, 0, ""
}

func (s *Service) outside(req *wire.AckRequest) (code int32, remark string) {
	return wire.RespNoMessage, "offset is illegal, key:" + req.Topic + "@" + strconv.Itoa(int(req.QueueID)) + ", commit:" +
		strconv.FormatInt(req.Offset, 10) + ", store:" + strconv.FormatInt(s.store.MinOffset(req.Topic, req.QueueID), 10) + "~" +
		strconv.FormatInt(s.store.MaxOffset(req.Topic, req.QueueID), 10)
}

// ackOf is the batch of messages that acks are about.
type ackOf struct {
	group, topic string
	queue        int32
	h            wire.PopHandle
}

// ack acknowledges messages of one batch. What is wrong is a code and a remark.
func (s *Service) ack(a *ackOf, offsets []int64, batch bool) (code int32, remark string) {
	if a.h.ReviveQueue == wire.PopOrderQueue {
		for _, off := range offsets {
			if c, r := s.ackInOrder(a, off); c != 0 {
				code, remark = c, r
			}
		}
		return code, remark
	}
	if a.h.ReviveQueue < 0 || a.h.ReviveQueue >= reviveQueues {
		return wire.RespMessageIllegal, "there is no revive queue " + strconv.Itoa(int(a.h.ReviveQueue))
	}
	x := wire.PopAck{
		Offset: -1, StartOffset: a.h.Start, Group: a.group, Topic: a.topic, QueueID: a.queue, PopTime: a.h.PopTime, Broker: a.h.Broker,
	}
	if batch {
		x.Offsets = offsets
	} else {
		x.Offset = offsets[0]
	}
	m := s.mems.Get().(*scratch)
	defer s.mems.Put(m)
	if res := s.putAck(m, a.h.ReviveQueue, &x); !res.Status.Stored() {
		return wire.RespSystemError, reason(res)
	}
	return 0, ""
}

// ackInOrder acknowledges a message that was popped in order: the group's
// offset moves to the first that is not.
func (s *Service) ackInOrder(a *ackOf, offset int64) (code int32, remark string) {
	group, topic := []byte(a.group), []byte(a.topic)
	k := queueKey{a.topic, a.group, a.queue}
	if old, _ := s.cfg.Offsets.Offset(group, topic, a.queue); offset < old {
		return 0, ""
	}
	switch s.orders.ack(k, offset, a.h.PopTime, func(next int64) { s.cfg.Offsets.Commit(group, topic, a.queue, next) }) {
	case ackUnknown:
		return wire.RespMessageIllegal, "offset " + strconv.FormatInt(offset, 10) + " of " + a.topic + "@" + strconv.Itoa(int(a.queue)) + " is none that was popped"
	case ackCommits:
		if !s.orders.blocked(k, nil, 0) {
			s.polls.wakeQueue(k)
		}
	}
	return 0, ""
}

// HandleBatchAck runs on the connection's reader.
func (s *Service) HandleBatchAck(r *remoting.Request) {
	body, err := wire.DecodeBatchAck(r.Frame().Body)
	if len(r.Frame().Body) > 0 && err != nil {
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return
	}
	if len(body.Acks) == 0 {
		r.Reply(wire.RespNoMessage, "there is nothing to acknowledge", nil, nil)
		return
	}
	code, remark := wire.RespSuccess, ""
	for i := range body.Acks {
		x := &body.Acks[i]
		topic := wire.PopTopic(x.Retry, x.Group, x.Topic)
		t := s.cfg.Topics.Lookup(topic)
		if t == nil || x.QueueID < 0 || x.QueueID >= t.ReadQueues {
			continue
		}
		lo, hi := s.store.MinOffset(topic, x.QueueID), s.store.MaxOffset(topic, x.QueueID)
		var offsets []int64
		for _, off := range x.Offsets() {
			if lo <= off && off <= hi {
				offsets = append(offsets, off)
			}
		}
		if len(offsets) == 0 {
			continue
		}
		a := ackOf{group: x.Group, topic: topic, queue: x.QueueID, h: wire.PopHandle{
			Start: x.Start, PopTime: x.PopTime, InvisibleMillis: x.InvisibleMillis, ReviveQueue: x.ReviveQueue, Broker: body.Broker,
		}}
		if c, why := s.ack(&a, offsets, true); c != 0 {
			code, remark = c, why
		}
	}
	r.Reply(code, remark, nil, nil)
}
