package pop

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// NOTIFICATION (200054): a long poll that tells that there is something to pop.
// Fields read: all of wire.NotificationRequest.
//
// Answers: 0, with hasMsg=false after the poll time, and at once with
// pollingFull=true if too many requests wait already; 1 malformed header; 16
// broker, topic or group may not be read; 17 no topic; 26 no group; 29 queue out of
// range.

// notifyOp is one such request that waits.
type notifyOp struct {
	s    *Service
	want want
	hold hold
}

// HandleNotification runs on the connection's reader.
func (s *Service) HandleNotification(r *remoting.Request) {
	var req wire.NotificationRequest
	if err := req.DecodeExt(r.Frame()); err != nil {
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return
	}
	t, code, remark := s.mayRead(req.Topic, req.Group, req.QueueID)
	if code != 0 {
		r.Reply(code, remark, &wire.NotificationResponse{}, nil)
		return
	}
	op := &notifyOp{s: s, want: want{t.Name, req.Group, max(req.QueueID, -1), req.Order, req.AttemptID}}
	resp := &wire.NotificationResponse{HasMsg: s.mayHave(op.want)}
	if !resp.HasMsg && !r.Frame().IsOneway() {
		op.hold.replier = r.Replier()
		op.hold.deadline.At = s.deadline(req.BornTime, req.PollMillis)
		switch s.polls.park(op, op.want) {
		case waits:
			return
		case full:
			resp.Full = true
		}
	}
	r.Reply(wire.RespSuccess, "", resp, nil)
}

// held implements parked.
func (op *notifyOp) held() *hold { return &op.hold }

// again implements parked.
func (op *notifyOp) again() {
	resp := &wire.NotificationResponse{HasMsg: op.s.mayHave(op.want)}
	if !resp.HasMsg && !op.hold.final {
		switch op.s.polls.park(op, op.want) {
		case waits:
			return
		case full:
			resp.Full = true
		}
	}
	op.hold.replier.Reply(wire.RespSuccess, "", resp, nil)
}

// drop implements parked.
func (op *notifyOp) drop() {}

// wants implements parked.
func (op *notifyOp) wants(arrival) bool { return true }
