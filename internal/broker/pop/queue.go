package pop

import (
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// readTopic pops from all queues of a topic, beginning at any of them.
func (op *popOp) readTopic(t *topics.Topic, name []byte, retry byte, first uint32) {
	if t == nil || t.ReadQueues <= 0 {
		return
	}
	n := uint32(t.ReadQueues)
	for i := range n {
		op.readQueue(t, name, retry, int32((first%n+i)%n))
	}
}

// readQueue pops from one queue, if nobody else does so just now. name is the
// topic's.
func (op *popOp) readQueue(t *topics.Topic, name []byte, retry byte, queue int32) {
	s, k := op.s, queueKey{t.Name, op.group.Name, queue}
	if !s.locks.try(k) {
		if !op.req.Order {
			op.resp.Rest += max(s.store.MaxOffset(t.Name, queue)-s.peekOffset(name, op.req.Group, t.Name, queue), 0)
		}
		return
	}
	op.take(k, name, retry)
	if s.locks.release(k) {
		s.polls.wakeQueue(k)
	}
}

// take pops from a queue that is locked.
func (op *popOp) take(k queueKey, name []byte, retry byte) {
	s, req := op.s, &op.req
	offset := s.startOffset(k, name, req)
	if req.Order && s.orders.blocked(k, req.AttemptID, req.InvisibleMillis) {
		return // what is left does not count: an ack wakes those who wait
	}
	if op.count >= req.MaxMsgs {
		op.resp.Rest += max(s.store.MaxOffset(k.topic, k.queue)-offset, 0)
		return
	}
	from := len(op.buf)
	get := store.GetRequest{Topic: name, QueueID: k.queue, Offset: offset, MaxMsgs: req.MaxMsgs - op.count}
	if op.want != nil && retry == wire.PopNormal {
		get.Filter = op.want // what is retried has been through it
	}
	var res store.GetResult
	op.buf, res = s.store.Get(op.buf, get)
	switch res.Status {
	case store.OffsetTooSmall, store.OffsetOverflowBadly, store.OffsetFoundNull:
		// The offset is not one of the queue: part of it has been cleaned away,
		// or it was made anew.
		offset, get.Offset = res.NextOffset, res.NextOffset
		s.cfg.Offsets.Commit(req.Group, name, k.queue, offset)
		op.buf, res = s.store.Get(op.buf, get)
	}
	switch {
	case res.Count > 0:
		if !op.found(k, name, retry, offset, from, &res) {
			return
		}
	case res.NextOffset > offset && (res.Status == store.NoMatchedMessage || res.Status == store.OffsetFoundNull || res.Status == store.MessageWasRemoving):
		s.cfg.Offsets.Commit(req.Group, name, k.queue, res.NextOffset)
	}
	op.resp.Rest += max(res.MaxOffset-res.NextOffset, 0)
}

// found enters the messages that were read from a queue. If it is false they
// are not given out.
func (op *popOp) found(k queueKey, name []byte, retry byte, offset int64, from int, res *store.GetResult) bool {
	s, req := op.s, &op.req
	op.offsets = op.offsets[:0]
	for b := op.buf[from:]; len(b) > 0; {
		n, err := wire.DecodeRecord(b, &op.rec)
		if err != nil {
			s.cfg.Log.Error("record cannot be read, its queue is not popped from", "topic", k.topic, "queue", k.queue, "err", err)
			op.buf = op.buf[:from]
			return false
		}
		op.offsets = append(op.offsets, op.rec.QueueOffset)
		b = b[n:]
	}
	if req.Order {
		op.resp.OrderCounts = s.orders.popped(k, retry, string(req.AttemptID), op.resp.PopTime, req.InvisibleMillis, op.offsets, op.resp.OrderCounts)
		s.cfg.Offsets.Commit(req.Group, name, k.queue, offset)
	} else {
		op.ck = wire.PopCheckpoint{
			StartOffset: offset, PopTime: op.resp.PopTime, InvisibleMillis: req.InvisibleMillis, Count: res.Count, QueueID: k.queue,
			Topic: k.topic, Group: k.group, Broker: s.cfg.Broker, Diffs: op.ck.Diffs[:0],
		}
		for _, o := range op.offsets {
			op.ck.Diffs = append(op.ck.Diffs, int32(o-offset))
		}
		if put := s.putCheckpoint(&op.mem, op.resp.ReviveQueue, &op.ck); !put.Status.Stored() {
			s.cfg.Log.Error("checkpoint not stored, messages are not given out", "topic", k.topic, "group", k.group, "why", reason(put))
			op.buf = op.buf[:from]
			op.resp.Rest += int64(res.Count)
			return false
		}
		s.cfg.Offsets.Commit(req.Group, name, k.queue, res.NextOffset)
	}
	op.resp.StartOffsets = wire.AppendPopStart(op.resp.StartOffsets, retry, k.queue, offset)
	op.resp.MsgOffsets = wire.AppendPopOffsets(op.resp.MsgOffsets, retry, k.queue, op.offsets)
	op.count += res.Count
	if retry != wire.PopNormal {
		op.rename(from, offset, retry)
	}
	return true
}

// rename makes retried messages ones of the topic that was asked for, with the
// handle by which they are acknowledged.
func (op *popOp) rename(from int, start int64, retry byte) {
	op.spare = append(op.spare[:0], op.buf[from:]...)
	op.buf = op.buf[:from]
	rec := &op.rec
	h := wire.PopHandle{
		Start: start, PopTime: op.resp.PopTime, InvisibleMillis: op.req.InvisibleMillis, ReviveQueue: op.resp.ReviveQueue, Retry: retry,
		Broker: op.s.cfg.Broker,
	}
	for b := op.spare; len(b) > 0; {
		n, err := wire.DecodeRecord(b, rec)
		if err != nil {
			return // found has read them all
		}
		b = b[n:]
		h.QueueID, h.Offset = rec.QueueID, rec.QueueOffset
		op.mem.id = h.Append(op.mem.id[:0])
		op.mem.props = rec.Properties.Without(op.mem.props[:0], wire.PropPopCK)
		op.mem.props = wire.AppendProperty(op.mem.props, wire.PropPopCK, op.mem.id)
		if len(op.mem.props) <= wire.MaxProperties { // else the consumer makes the handle itself, as for others
			rec.Properties = op.mem.props
		}
		rec.Topic, rec.V2 = op.req.Topic, false
		op.buf = wire.AppendRecord(op.buf, rec)
	}
}

// startOffset is where a group goes on in a queue. A group without an offset
// gets one; a reset that is pending is carried out.
func (s *Service) startOffset(k queueKey, name []byte, req *wire.PopRequest) int64 {
	off, ok, reset := s.cfg.Offsets.BeginPop(req.Group, name, k.queue)
	if !ok {
		off = s.initialOffset(k, req.InitMode)
		s.cfg.Offsets.Commit(req.Group, name, k.queue, off)
	}
	if reset {
		s.orders.clear(k)
	}
	return off
}

// initialOffset is where a group without an offset begins: at the first message,
// or at the last one that is there, but with a queue that is new at its first.
func (s *Service) initialOffset(k queueKey, mode int32) int64 {
	if lo := s.store.MinOffset(k.topic, k.queue); mode == wire.PopFromMin || wire.IsRetryTopic(k.topic) {
		return lo
	} else if lo <= 0 && s.store.MessageInMemory(k.topic, k.queue, 0) {
		return 0
	}
	return max(s.store.MaxOffset(k.topic, k.queue)-1, 0)
}

// peekOffset is where a group would go on in a queue, without consequences.
func (s *Service) peekOffset(name, group []byte, topic string, queue int32) int64 {
	if off, ok := s.cfg.Offsets.Offset(group, name, queue); ok {
		return off
	}
	return s.store.MinOffset(topic, queue)
}
