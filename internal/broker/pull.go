package broker

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Pulling: PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361).
//
// Fields read: all of wire.PullRequest but bname and maxMsgBytes, which
// Apache's broker does not use either.
//
// Answers: 0 with records; 19 nothing there, after the long poll; 20 all
// filtered out; 21 offset out of range or reset; these with the four offsets
// and both sysFlags, the remark naming the store's status. 1 malformed header,
// SQL filter while those are off; 16 with forbiddenType: 1 broker, 2 group, 3
// topic, 4 broadcasting; 17 no topic; 23 bad expression; 24 group offline or
// not subscribed; 25 subscription newer than the last heartbeat; 26 no group;
// 27 SQL of the heartbeat does not compile, 28 nor does its newer version; 29
// queue out of range.
//
// Unlike Apache: a held pull that wakes up for nothing but filtered messages
// goes on waiting, from behind them, until its time is over.

// pullHeader is a pull's response header.
type pullHeader struct {
	wire.PullResponse
	topicSysFlag, groupSysFlag int32
}

// EncodeExt implements wire.ExtEncoder.
func (h *pullHeader) EncodeExt(e *wire.Encoder) {
	h.PullResponse.EncodeExt(e)
	e.Int("topicSysFlag", int64(h.topicSysFlag))
	e.Int("groupSysFlag", int64(h.groupSysFlag))
}

// pullOp is one pull. Ops are reused. A pull that is held is owned by polls,
// which is why an op has room for a copy of its request.
type pullOp struct {
	b      *Broker
	req    wire.PullRequest
	resp   pullHeader
	code   int32
	remark string
	buf    []byte // records of the answer

	topic *topics.Topic
	group *wire.SubscriptionGroup
	want  pullFilter

	hold hold
}

// handlePull runs on the connection's reader.
func (b *Broker) handlePull(r *remoting.Request) {
	op := b.pulls.Get().(*pullOp)
	if err := op.req.DecodeExt(r.Frame()); err != nil {
		op.fail(wire.RespSystemError, err.Error())
	} else if op.check() {
		op.read(r.Conn(), false)
		if op.req.SysFlag&wire.PullCommitOffset != 0 {
			b.offsets.Commit(op.req.Group, op.req.Topic, op.req.QueueID, op.req.CommitOffset)
		}
		if op.code == wire.RespPullNotFound && op.req.SysFlag&wire.PullSuspend != 0 && !r.Frame().IsOneway() &&
			b.polls.park(op, r.Replier()) {
			return
		}
	}
	r.ReplyAppend(op)
	op.release()
}

func (op *pullOp) release() {
	if cap(op.buf) > 1<<20 {
		op.buf = nil
	}
	*op = pullOp{b: op.b, buf: op.buf[:0], hold: hold{mem: op.hold.mem[:0]}}
	op.b.pulls.Put(op)
}

// fail is false for the convenience of its callers.
func (op *pullOp) fail(code int32, remark string) bool {
	op.code, op.remark = code, remark
	return false
}

// forbid is a fail that says what forbids it.
func (op *pullOp) forbid(kind int32, remark string) bool {
	op.resp.ForbiddenType = kind
	return op.fail(wire.RespNoPermission, remark)
}

// AppendResponse implements remoting.Responder.
func (op *pullOp) AppendResponse(dst []byte, h wire.Head) []byte {
	h.Code, h.Remark = op.code, op.remark
	e := wire.Begin(dst, h)
	switch op.code {
	case wire.RespSuccess, wire.RespPullNotFound, wire.RespPullRetryImmediately, wire.RespPullOffsetMoved:
		op.resp.EncodeExt(&e)
	case wire.RespNoPermission:
		e.Int("forbiddenType", int64(op.resp.ForbiddenType))
	}
	return e.Finish(op.buf)
}

// check goes through the checks in Apache's order.
func (op *pullOp) check() bool {
	b, req := op.b, &op.req
	if b.cfg.Permission&wire.PermRead == 0 {
		return op.forbid(1, "the broker["+b.addr+"] may not be read from at present")
	}
	g, created := b.groups.Get(req.Group)
	if created {
		b.saveGroups()
	}
	if g == nil {
		return op.fail(wire.RespSubscriptionGroupNotExist, "group "+string(req.Group)+" does not exist; create it first")
	}
	op.group = g
	if !g.ConsumeEnable {
		return op.forbid(2, "group "+g.Name+" may not consume at present")
	}
	t := b.topics.Get(req.Topic)
	if t == nil {
		return op.fail(wire.RespTopicNotExist, "topic "+string(req.Topic)+" does not exist; create it first")
	}
	op.topic = t
	if !t.Readable() {
		return op.forbid(3, "topic "+t.Name+" may not be read")
	}
	if req.QueueID < 0 || req.QueueID >= t.ReadQueues {
		return op.fail(wire.RespInvalidParameter, "queue "+strconv.Itoa(int(req.QueueID))+" is out of range: topic "+t.Name+
			" has "+strconv.Itoa(int(t.ReadQueues))+" read queues")
	}
	op.want = pullFilter{any: req.SysFlag&wire.PullClassFilter != 0}
	if req.SysFlag&wire.PullSubscription != 0 {
		return op.subscription()
	}
	return op.subscribed()
}

// read takes the records from the store and settles the answer.
func (op *pullOp) read(conn *remoting.Conn, held bool) {
	b, req := op.b, &op.req
	op.buf = op.buf[:0]
	op.resp = pullHeader{topicSysFlag: op.topic.SysFlag, groupSysFlag: op.group.SysFlag}
	if off, reset := b.offsets.BeginPull(&offsets.Pull{
		Group: req.Group, Topic: req.Topic, QueueID: req.QueueID, Offset: req.Offset, Conn: conn, Held: held,
	}); reset {
		op.code, op.remark = wire.RespPullOffsetMoved, "OFFSET_RESET"
		op.resp.NextOffset = off
		op.resp.MinOffset = b.store.MinOffset(op.topic.Name, req.QueueID)
		op.resp.MaxOffset = b.store.MaxOffset(op.topic.Name, req.QueueID)
		return
	}
	var res store.GetResult
	op.buf, res = b.store.Get(op.buf, store.GetRequest{
		Topic: req.Topic, QueueID: req.QueueID, Offset: req.Offset, MaxMsgs: req.MaxMsgs, Filter: &op.want,
	})
	op.code, op.remark = pullCode(res.Status, req.Offset), res.Status.String()
	op.resp.NextOffset, op.resp.MinOffset, op.resp.MaxOffset = res.NextOffset, res.MinOffset, res.MaxOffset
	if b.cfg.SlaveRead {
		op.resp.SuggestBrokerID = op.group.BrokerID
		if res.SuggestSlave {
			op.resp.SuggestBrokerID = op.group.WhichBrokerWhenConsumeSlowly
		}
	}
	if op.code == wire.RespSuccess {
		b.stats.got(int64(res.Count), int64(len(op.buf)))
	} else {
		b.stats.getMissed.Add(1)
	}
}

func pullCode(s store.GetStatus, requested int64) int32 {
	switch s {
	case store.Found:
		return wire.RespSuccess
	case store.NoMatchedMessage, store.MessageWasRemoving:
		return wire.RespPullRetryImmediately
	case store.NoMessageInQueue, store.NoMatchedLogicQueue:
		if requested != 0 {
			return wire.RespPullOffsetMoved
		}
		return wire.RespPullNotFound
	case store.OffsetFoundNull, store.OffsetOverflowOne:
		return wire.RespPullNotFound
	case store.OffsetOverflowBadly, store.OffsetTooSmall:
		return wire.RespPullOffsetMoved
	default:
		return wire.RespSystemError
	}
}
