package pop

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// CHANGE_MESSAGE_INVISIBLETIME (200053): from now on a message stays hidden for
// another time. Fields read: all of wire.AckRequest.
//
// Answers: 0 with the parts of the message's new handle; 1 malformed, not
// stored; 13 queue out of range, no revive queue; 17 no topic; 29 time out of
// range; 208 offset outside of the queue.
//
// The message gets a checkpoint of its own, and is then acknowledged in the old
// one. The new one has another pop time in any case, because by that they are
// told apart.

// HandleChange runs on the connection's reader.
func (s *Service) HandleChange(r *remoting.Request) {
	var req wire.AckRequest
	if err := req.DecodeExt(r.Frame()); err != nil {
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return
	}
	h, code, remark := s.popped(&req)
	if code == 0 && req.Offset >= s.store.MaxOffset(req.Topic, req.QueueID) {
		code, remark = s.outside(&req)
	}
	if code == 0 && (req.InvisibleMillis < 0 || req.InvisibleMillis > maxInvisible) {
		code, remark = wire.RespInvalidParameter, "invisible time "+strconv.FormatInt(req.InvisibleMillis, 10)+" ms: it must be from 0 to 3 days"
	}
	if code != 0 {
		r.Reply(code, remark, nil, nil)
		return
	}
	a := &ackOf{group: req.Group, topic: req.Topic, queue: req.QueueID, h: h}
	resp := &wire.ChangeInvisibleResponse{PopTime: h.PopTime, InvisibleMillis: req.InvisibleMillis, ReviveQueue: h.ReviveQueue}
	if h.ReviveQueue == wire.PopOrderQueue {
		s.changeInOrder(a, &req, resp)
	} else if code, remark = s.change(a, &req, resp); code != 0 {
		r.Reply(code, remark, nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", resp, nil)
}

func (s *Service) change(a *ackOf, req *wire.AckRequest, resp *wire.ChangeInvisibleResponse) (code int32, remark string) {
	if a.h.ReviveQueue < 0 || a.h.ReviveQueue >= reviveQueues {
		return wire.RespMessageIllegal, "there is no revive queue " + strconv.Itoa(int(a.h.ReviveQueue))
	}
	now := s.now()
	resp.PopTime = max(now, a.h.PopTime+1)
	ck := wire.PopCheckpoint{
		StartOffset: req.Offset, PopTime: resp.PopTime, InvisibleMillis: max(req.InvisibleMillis-(resp.PopTime-now), 0), Count: 1,
		QueueID: req.QueueID, Topic: req.Topic, Group: req.Group, Diffs: []int32{0}, Broker: a.h.Broker,
	}
	m := s.mems.Get().(*scratch)
	defer s.mems.Put(m)
	if res := s.putCheckpoint(m, a.h.ReviveQueue, &ck); !res.Status.Stored() {
		return wire.RespSystemError, reason(res)
	}
	return s.ack(a, []int64{req.Offset}, false)
}

func (s *Service) changeInOrder(a *ackOf, req *wire.AckRequest, resp *wire.ChangeInvisibleResponse) {
	if old, _ := s.cfg.Offsets.Offset([]byte(a.group), []byte(a.topic), a.queue); req.Offset < old {
		return // it is done
	}
	until := s.now() + req.InvisibleMillis
	s.orders.hide(queueKey{a.topic, a.group, a.queue}, req.Offset, a.h.PopTime, until)
	resp.InvisibleMillis = until - a.h.PopTime
	if req.InvisibleMillis == 0 {
		s.polls.wakeQueue(queueKey{a.topic, a.group, a.queue})
	}
}
