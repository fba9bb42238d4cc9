package pop

import (
	"math/rand/v2"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// POP_MESSAGE (200050). Fields read: all of wire.PopRequest.
//
// Answers: 0 with records and the info strings; 210 nothing there, after the
// long poll, or the request is older than its poll time by more than half a
// second; 209 too many requests wait already. 1 malformed header; 16 broker, topic or group may not be read; 17 no topic; 23
// bad expression; 26 no group; 29 more than 32 messages, queue out of range,
// invisible time out of range. All of them carry the four numbers.
//
// Messages of the group's retry topic are popped as well: before the others by
// one request in five, else after them if there is room.

// popFromRetry is how many of a hundred requests look at the retry topic first
// (popFromRetryProbability).
const popFromRetry = 20

// lateness is how much older than its poll time a request may be, in ms.
const lateness = 500

// popOp is one POP. Ops are reused. One that waits is owned by polls.
type popOp struct {
	s      *Service
	req    wire.PopRequest
	resp   wire.PopResponse
	code   int32
	remark string
	buf    []byte // records of the answer
	count  int32  // of them

	topic *topics.Topic
	group *wire.SubscriptionGroup
	want  Filter // nil: all

	retry   []byte // name of a retry topic
	offsets []int64
	spare   []byte
	rec     wire.Record
	ck      wire.PopCheckpoint
	mem     scratch
	hold    hold
}

// HandlePop runs on the connection's reader.
func (s *Service) HandlePop(r *remoting.Request) {
	op := s.ops.Get().(*popOp)
	if err := op.req.DecodeExt(r.Frame()); err != nil {
		op.fail(wire.RespSystemError, err.Error())
	} else if op.late() {
		op.fail(wire.RespPollingTimeout, "the request has been on its way for longer than it may wait: "+strconv.FormatInt(op.req.PollMillis, 10)+" ms")
	} else if op.check() {
		op.pop()
		if op.code == wire.RespPollingTimeout && !r.Frame().IsOneway() && op.park(r.Replier()) {
			return
		}
	}
	r.ReplyAppend(op)
	op.release()
}

// release gives the op back, with its memory.
func (op *popOp) release() {
	if cap(op.buf) > 1<<20 || cap(op.spare) > 1<<20 {
		op.buf, op.spare = nil, nil
	}
	*op = popOp{
		s: op.s, buf: op.buf[:0], retry: op.retry[:0], offsets: op.offsets[:0], spare: op.spare[:0], mem: op.mem,
		resp: wire.PopResponse{StartOffsets: op.resp.StartOffsets[:0], MsgOffsets: op.resp.MsgOffsets[:0], OrderCounts: op.resp.OrderCounts[:0]},
		ck:   wire.PopCheckpoint{Diffs: op.ck.Diffs[:0]}, hold: hold{mem: op.hold.mem[:0]},
	}
	op.s.ops.Put(op)
}

// fail is false for the convenience of its callers.
func (op *popOp) fail(code int32, remark string) bool {
	op.code, op.remark = code, remark
	return false
}

// AppendResponse implements remoting.Responder.
func (op *popOp) AppendResponse(dst []byte, h wire.Head) []byte {
	h.Code, h.Remark = op.code, op.remark
	e := wire.Begin(dst, h)
	op.resp.EncodeExt(&e)
	return e.Finish(op.buf)
}

// late tells whether the client has given the request up, most likely.
func (op *popOp) late() bool {
	return op.s.age(op.req.BornTime)-op.req.PollMillis > lateness
}

// age is how long ago a request left its client, in ms, as far as clocks agree.
func (s *Service) age(born int64) int64 {
	if born <= 0 {
		return 0
	}
	return max(s.cfg.Liveness.Now().UnixMilli()-born, 0)
}

// check goes through the checks in Apache's order.
func (op *popOp) check() bool {
	s, req := op.s, &op.req
	if why := s.cfg.Host.MayRead(); why != "" {
		return op.fail(wire.RespNoPermission, why)
	}
	if req.MaxMsgs > maxMsgs {
		return op.fail(wire.RespInvalidParameter, "at most "+strconv.Itoa(maxMsgs)+" messages can be popped at once")
	}
	if req.InvisibleMillis < 0 || req.InvisibleMillis > maxInvisible {
		return op.fail(wire.RespInvalidParameter, "invisible time "+strconv.FormatInt(req.InvisibleMillis, 10)+" ms: it must be from 0 to 3 days")
	}
	t, g, code, remark := s.reader(req.Topic, req.Group, req.QueueID)
	if code != 0 {
		return op.fail(code, remark)
	}
	op.topic, op.group = t, g
	if op.want, code, remark = s.cfg.Host.Filter(req.Expr, req.ExprType); code != 0 {
		return op.fail(code, remark)
	}
	return true
}

// reader finds topic and group of a request that is about to read, or says why
// it may not.
func (s *Service) reader(topic, group []byte, queue int32) (t *topics.Topic, g *wire.SubscriptionGroup, code int32, remark string) {
	if t = s.cfg.Topics.Get(topic); t == nil {
		return nil, nil, wire.RespTopicNotExist, "topic " + string(topic) + " does not exist; create it first"
	}
	if !t.Readable() {
		return nil, nil, wire.RespNoPermission, "topic " + t.Name + " may not be read"
	}
	if queue >= t.ReadQueues {
		return nil, nil, wire.RespInvalidParameter, queueRange(t, queue)
	}
	if g = s.cfg.Host.Group(group); g == nil {
		return nil, nil, wire.RespSubscriptionGroupNotExist, "group " + string(group) + " does not exist; create it first"
	}
	if !g.ConsumeEnable {
		return nil, nil, wire.RespNoPermission, "group " + g.Name + " may not consume at present"
	}
	return t, g, 0, ""
}

func queueRange(t *topics.Topic, queue int32) string {
	return "queue " + strconv.Itoa(int(queue)) + " is out of range: topic " + t.Name + " has " + strconv.Itoa(int(t.ReadQueues)) + " read queues"
}

// pop takes messages from the queues and settles the answer.
func (op *popOp) pop() {
	s, req := op.s, &op.req
	op.buf, op.count = op.buf[:0], 0
	op.resp = wire.PopResponse{
		PopTime: s.now(), InvisibleMillis: req.InvisibleMillis, ReviveQueue: wire.PopOrderQueue,
		StartOffsets: op.resp.StartOffsets[:0], MsgOffsets: op.resp.MsgOffsets[:0], OrderCounts: op.resp.OrderCounts[:0],
	}
	if !req.Order {
		op.resp.ReviveQueue = int32(s.next.Add(1)-1) % reviveQueues
	}
	random := rand.Uint32N(100)
	early := random < popFromRetry
	if early {
		op.readRetries(random)
	}
	if req.QueueID < 0 {
		op.readTopic(op.topic, req.Topic, wire.PopNormal, random)
	} else {
		op.readQueue(op.topic, req.Topic, wire.PopNormal, req.QueueID)
	}
	if !early && op.count < req.MaxMsgs {
		op.readRetries(random)
	}
	if op.count == 0 {
		op.code, op.remark = wire.RespPollingTimeout, "NO_MESSAGE_IN_QUEUE"
		return
	}
	op.code, op.remark = wire.RespSuccess, "FOUND"
	s.cfg.Host.CountGot(int64(op.count), int64(len(op.buf)))
	if op.resp.Rest > 0 {
		s.polls.wake(op.topic.Name, op.group.Name, func(queue int32) bool { return queue == req.QueueID })
	}
}

// readRetries pops from the group's retry topics. In order nothing is retried
// by way of them.
func (op *popOp) readRetries(random uint32) {
	if op.req.Order {
		return
	}
	v2 := op.s.cfg.RetryV2
	if !v2 || random%2 == 0 {
		op.readRetry(wire.PopRetryV1, '_', random)
	}
	if v2 && random%2 != 0 {
		op.readRetry(wire.PopRetryV2, '+', random)
	}
}

func (op *popOp) readRetry(retry byte, between byte, random uint32) {
	op.retry = appendRetryTopic(op.retry[:0], op.group.Name, op.topic.Name, between)
	op.readTopic(op.s.cfg.Topics.Get(op.retry), op.retry, retry, random)
}

func appendRetryTopic(b []byte, group, topic string, between byte) []byte {
	b = append(append(b, wire.RetryPrefix...), group...)
	return append(append(b, between), topic...)
}
