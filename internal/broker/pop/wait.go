package pop

import (
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// How a POP waits for messages.

// held implements parked.
func (op *popOp) held() *hold { return &op.hold }

// park holds a POP that found nothing. If it is false the caller answers.
func (op *popOp) park(replier remoting.Replier) bool {
	h := &op.hold
	h.replier = replier
	h.deadline.At = op.s.deadline(op.req.BornTime, op.req.PollMillis)
	own(&h.mem, &op.req)
	return op.wait()
}

// wait puts the op into the tables.
func (op *popOp) wait() bool {
	// A wish for any queue is one, whatever the number below zero.
	w := want{op.topic.Name, op.group.Name, max(op.req.QueueID, -1), op.req.Order, string(op.req.AttemptID)}
	switch op.s.polls.park(op, w) {
	case waits:
		return true
	case full:
		op.fail(wire.RespPollingFull, "too many requests wait for messages already")
	}
	return false
}

// deadline is until when a request may wait.
func (s *Service) deadline(born, poll int64) time.Time {
	left := min(poll, maxHold)
	if left > 0 {
		left -= s.age(born)
	}
	return s.clock.Now().Add(time.Duration(left) * time.Millisecond)
}

// own moves what the request points to into memory of the op.
func own(mem *[]byte, req *wire.PopRequest) {
	m := (*mem)[:0]
	all := [...]*[]byte{&req.Group, &req.Topic, &req.ExprType, &req.Expr, &req.AttemptID}
	for _, b := range all {
		m = append(m, *b...)
	}
	*mem = m
	for _, b := range all {
		n := len(*b)
		*b, m = m[:n:n], m[n:]
	}
}

// again implements parked.
func (op *popOp) again() {
	if op.hold.replier.Conn().Err() != nil {
		op.release()
		return
	}
	if op.check() {
		op.pop()
		if op.code == wire.RespPollingTimeout && !op.hold.final && op.wait() {
			return
		}
	}
	op.hold.replier.ReplyAppend(op)
	op.release()
}

// drop implements parked.
func (op *popOp) drop() { op.release() }

// wants implements parked.
func (op *popOp) wants(a arrival) bool {
	return a.forced || op.want == nil || op.want.MatchCode(a.TagsCode) && op.want.MatchProperties(a.Properties)
}

// mayHave tells whether a POP would find something now, as far as that can be
// told without reading.
func (s *Service) mayHave(w want) bool {
	t := s.cfg.Topics.Lookup(w.topic)
	if t == nil {
		return true // it is to be told so
	}
	from, to := int32(0), t.ReadQueues
	if w.queue >= 0 {
		from, to = w.queue, w.queue+1
	}
	if s.mayHaveOf(w, w.topic, from, to) {
		return true
	}
	if w.order {
		return false
	}
	for _, name := range retryTopics(w.group, w.topic) {
		if r := s.cfg.Topics.Lookup(name); r != nil && s.mayHaveOf(w, name, 0, r.ReadQueues) {
			return true
		}
	}
	return false
}

func (s *Service) mayHaveOf(w want, topic string, from, to int32) bool {
	name, group := []byte(topic), []byte(w.group)
	for id := from; id < to; id++ {
		if s.store.MaxOffset(topic, id) <= s.peekOffset(name, group, topic, id) {
			continue
		}
		k := queueKey{topic, w.group, id}
		if s.locks.taken(k) || w.order && s.orders.blocked(k, []byte(w.attempt), 0) {
			continue // whoever has it, or the end of the block, wakes those who wait
		}
		return true
	}
	return false
}

func retryTopics(group, topic string) [2]string {
	return [2]string{wire.PopRetryTopic(group, topic), wire.PopRetryTopicV2(group, topic)}
}
