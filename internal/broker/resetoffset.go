package broker

import (
	"fmt"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Resetting offsets: INVOKE_BROKER_TO_RESET_OFFSET (222). Fields read: all of
// wire.ResetOffsetRequest.
//
// Answers: 0 with the new offsets; 1 malformed, offset outside of the queue; 17
// no topic; 26 no group.
//
// As in Apache 5.2 and later nothing is pushed to the members: the next pull of
// each queue is told (21), held pulls at once, and commits until then are
// ignored. With useServerSideResetOffset=false it is pushed, see resetpush.go.
//
// Unlike Apache: without isForce a time moves no offset forwards, as in 4.9;
// and a reset is not over before its group has it for sure, see
// offsets.Table.BeginPull.

func (b *Broker) handleResetOffset(r *remoting.Request) {
	var req wire.ResetOffsetRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	if !b.cfg.ServerSideReset {
		b.pushReset(r, &req)
		return
	}
	t := b.topics.Lookup(req.Topic)
	if t == nil {
		r.Reply(wire.RespTopicNotExist, "topic "+req.Topic+" does not exist", nil, nil)
		return
	}
	if b.groups.Lookup(req.Group) == nil {
		r.Reply(wire.RespSubscriptionGroupNotExist, "group "+req.Group+" does not exist", nil, nil)
		return
	}
	from, to := int32(0), t.Queues()
	if req.OneQueue {
		if from, to = req.QueueID, req.QueueID+1; req.QueueID >= t.Queues() {
			malformed(r, fmt.Errorf("topic %s has no queue %d", t.Name, req.QueueID))
			return
		}
	}
	answer := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{}}
	moved := map[int32]int64{}
	for id := from; id < to; id++ {
		off, err := b.resetTarget(&req, id)
		if malformed(r, err) {
			return
		}
		had, known := b.offsets.Offset([]byte(req.Group), []byte(req.Topic), id)
		if byTime := !req.OneQueue || req.Offset == -1; byTime && known && off > had && !req.Force {
			off = had
		} else {
			moved[id] = off
		}
		answer.Offsets[wire.MessageQueue{Topic: t.Name, Broker: b.cfg.Name, QueueID: id}] = off
	}
	for id, off := range moved {
		b.offsets.Reset([]byte(req.Group), []byte(req.Topic), id, off)
		b.polls.wakeQueue(t.Name, id, func(op *pullOp) bool { return string(op.req.Group) == req.Group })
		b.pop.Reset(t.Name, req.Group, id)
	}
	r.Reply(wire.RespSuccess, "", nil, answer.AppendJSON(nil))
}

// resetTarget is where a queue is to go on: an offset that was given, the
// queue's end for time -1, or the first message that is not older.
func (b *Broker) resetTarget(req *wire.ResetOffsetRequest, queueID int32) (int64, error) {
	lo, hi := b.store.MinOffset(req.Topic, queueID), b.store.MaxOffset(req.Topic, queueID)
	switch {
	case req.OneQueue && req.Offset != -1:
		if req.Offset < lo || req.Offset > hi {
			return 0, fmt.Errorf("offset %d is outside of queue %d, which has %d to %d", req.Offset, queueID, lo, hi)
		}
		return req.Offset, nil
	case req.Timestamp < 0:
		return hi, nil
	}
	return b.store.OffsetByTime(req.Topic, queueID, req.Timestamp, false), nil
}
