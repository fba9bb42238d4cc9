package broker

import (
	"math/rand/v2"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Sending: SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320).
//
// Fields read: all of wire.SendRequest but unitMode and bname. Whether the
// body is a batch says the field m, not the code.
//
// Answers: 0; 1 malformed header, start-up gate, store failure; 13 too large,
// a batch that is delayed, a level that is no number, a time of delivery that is
// none or too far ahead; 14 store not writable; 16 reserved topic,
// drained broker with an order topic, half message with
// rejectTransactionMessage; 17 no
// topic and none may be made; 26 retry topic of an unknown group; 29 bad topic
// name or queue. All carry MSG_REGION and TRACE_ON, the first also the rest of
// wire.SendResponse.
//
// Unlike Apache 5.3.3: the items of a batch keep their own UNIQ_KEY (5.3.3
// appends the batch's to each, so the ids that its client reports are not
// found).
//
// A message of a transaction is stored as a half message (package trans). What
// is delayed is parked (park.go, timerpark.go), what goes to a retry topic may become a
// dead letter (retry.go).

// sendOp is one send under way. Ops are reused; while the store has the
// answer pending, it is the op's only owner.
type sendOp struct {
	b       *Broker
	req     wire.SendRequest
	msg     store.Message
	resp    wire.SendResponse
	replier remoting.Replier
	code    int32
	remark  string
	batch   bool
	queueID int32  // of the answer: where the message goes at last
	retried bool   // sent to a retry topic
	dead    bool   // sent to a retry topic once too often
	props   []byte // the message's properties as stored
	parked  []byte // what becomes of them if the message is delayed or a dead letter
	tx      []byte // its unique id
	ids     []byte // offset ids of the answer
	handle  []byte // to recall the message by, of timer messages
	phy     []int64
}

var _ store.Waiter = (*sendOp)(nil)

// handleSend runs on the connection's reader.
func (b *Broker) handleSend(r *remoting.Request) {
	op := b.sends.Get().(*sendOp)
	f := r.Frame()
	if err := op.req.DecodeExt(f); err != nil {
		op.fail(wire.RespSystemError, err.Error())
	} else if op.check() && op.prepare(r) {
		op.replier = r.Replier()
		op.msg.Body = f.Body
		var res store.PutResult
		later := false
		if op.batch {
			res, later = b.store.PutBatch(&op.msg, op.phy[:0], op)
		} else {
			res, later = b.store.Put(&op.msg, op)
		}
		if later {
			return // to Stored
		}
		op.stored(res)
	}
	r.ReplyAppend(op)
	op.release()
}

// Stored implements store.Waiter: the late answer.
func (op *sendOp) Stored(res store.PutResult) {
	op.stored(res)
	op.replier.ReplyAppend(op)
	op.release()
}

func (op *sendOp) release() {
	const keep = 64 << 10 // a large property string must not stay for ever
	if cap(op.props) > keep || cap(op.parked) > keep || cap(op.ids) > keep {
		op.props, op.parked, op.ids, op.phy = nil, nil, nil, nil
	}
	op.msg = store.Message{}
	op.req = wire.SendRequest{}
	op.replier = remoting.Replier{}
	op.b.sends.Put(op)
}

// fail is false for the convenience of its callers.
func (op *sendOp) fail(code int32, remark string) bool {
	op.code, op.remark = code, remark
	return false
}

// AppendResponse implements remoting.Responder.
func (op *sendOp) AppendResponse(dst []byte, h wire.Head) []byte {
	h.Code, h.Remark = op.code, op.remark
	e := wire.Begin(dst, h)
	switch op.code {
	case wire.RespSuccess, wire.RespFlushDiskTimeout, wire.RespFlushSlaveTimeout, wire.RespSlaveNotAvailable:
		op.resp.EncodeExt(&e)
	default:
		e.Bytes("MSG_REGION", op.b.region)
		e.Bool("TRACE_ON", op.b.cfg.TraceOn)
	}
	return e.Finish(nil)
}

// check goes through the checks in Apache's order and settles where the
// message goes.
func (op *sendOp) check() bool {
	b, req := op.b, &op.req
	if !b.cfg.AcceptSendFrom.IsZero() && b.clock.Now().Before(b.cfg.AcceptSendFrom) {
		return op.fail(wire.RespSystemError, "broker accepts messages from "+b.cfg.AcceptSendFrom.String()+" on, not yet")
	}
	t := b.topics.Get(req.Topic)
	if t != nil && t.Order && b.cfg.Permission&wire.PermWrite == 0 {
		return op.fail(wire.RespNoPermission, "the broker["+b.addr+"] takes no messages at present, its permission is read only")
	}
	if t == nil {
		if t = op.missing(); t == nil {
			return false
		}
	}
	if t.NoSend {
		return op.fail(wire.RespNoPermission, "topic "+t.Name+" is reserved for the broker, clients may not send to it")
	}
	if req.QueueID >= t.Queues() {
		return op.fail(wire.RespInvalidParameter, "queue "+strconv.Itoa(int(req.QueueID))+" is out of range: topic "+t.Name+
			" has "+strconv.Itoa(int(t.ReadQueues))+" read and "+strconv.Itoa(int(t.WriteQueues))+" write queues")
	}
	op.msg.Topic = req.Topic
	op.msg.QueueID = req.QueueID
	if req.QueueID < 0 {
		op.msg.QueueID = rand.Int32N(max(t.WriteQueues, 1))
	}
	op.queueID = op.msg.QueueID
	op.batch = req.Batch
	if op.batch && (len(req.Topic) > 127 || t.Retry) {
		return op.fail(wire.RespMessageIllegal, "a batch cannot go to topic "+t.Name+": its name is too long or it is a retry topic")
	}
	op.msg.SysFlag = req.SysFlag
	if t.FilterType == wire.FilterMultiTag {
		op.msg.SysFlag |= wire.SysMultiTags
	}
	op.props = op.props[:0]
	op.retried, op.dead = t.Retry, false
	if t.Retry {
		return op.retry(t)
	}
	return true
}

// missing makes a topic that does not exist, or says why not.
func (op *sendOp) missing() *topics.Topic {
	b := op.b
	name := string(op.req.Topic)
	if err := wire.ValidateTopic(name); err != nil {
		op.fail(wire.RespInvalidParameter, err.Error())
		return nil
	}
	if !wire.MaySendTo(name) {
		op.fail(wire.RespNoPermission, "topic "+name+" is reserved for the broker, clients may not send to it")
		return nil
	}
	if wire.IsRetryTopic(name) {
		return b.createTopic(name, 1, wire.PermRead|wire.PermWrite, 0)
	}
	like := b.topics.Get(op.req.DefaultTopic)
	if like == nil || like.Perm&wire.PermInherit == 0 {
		op.fail(wire.RespTopicNotExist, "topic "+name+" does not exist and may not be created by sending to it; create it first")
		return nil
	}
	queues := max(min(op.req.DefaultTopicQueues, like.WriteQueues), 0)
	return b.createTopic(name, queues, like.Perm&^wire.PermInherit, 0)
}

// createTopic makes a topic unless it is there by now, and has it saved and
// registered. It does no I/O.
func (b *Broker) createTopic(name string, queues, perm, sysFlag int32) *topics.Topic {
	t, created := b.topics.Create(wire.TopicConfig{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: perm, SysFlag: sysFlag})
	if created {
		b.topicChanged(name)
	}
	return t
}

// stored turns the store's result into the answer.
func (op *sendOp) stored(res store.PutResult) {
	op.code, op.remark = sendCode(res.Status), ""
	if !res.Status.Stored() {
		op.b.stats.putFailed.Add(1)
		op.remark = op.reason(res)
		return
	}
	b := op.b
	n := int64(1)
	op.ids = op.ids[:0]
	if op.batch {
		op.phy = res.PhyOffsets
		n = int64(len(op.phy))
		for i, phy := range op.phy {
			if i > 0 {
				op.ids = append(op.ids, ',')
			}
			op.ids = wire.AppendOffsetMsgID(op.ids, b.host, phy)
		}
	} else {
		op.ids = wire.AppendOffsetMsgID(op.ids, b.host, res.PhyOffset)
	}
	b.stats.put(n, res.End-res.PhyOffset)
	op.resp = wire.SendResponse{
		OffsetMsgID: op.ids, QueueID: op.queueID, QueueOffset: res.QueueOffset, TransactionID: op.tx,
		Region: b.region, TraceOn: b.cfg.TraceOn, RecallHandle: op.handle,
	}
}

// reason is the remark for a message that was not stored. The prefix of code 2
// is what operators look for.
func (op *sendOp) reason(res store.PutResult) string {
	s := res.Status.String()
	if res.Status == store.OSPageCacheBusy {
		s = "[PC_SYNCHRONIZED]broker busy, the log cannot keep up at present"
	}
	if res.Err != nil {
		s += ": " + res.Err.Error()
	}
	return s
}

func sendCode(s store.Status) int32 {
	switch s {
	case store.PutOK:
		return wire.RespSuccess
	case store.FlushDiskTimeout:
		return wire.RespFlushDiskTimeout
	case store.FlushSlaveTimeout:
		return wire.RespFlushSlaveTimeout
	case store.SlaveNotAvailable:
		return wire.RespSlaveNotAvailable
	case store.ServiceNotAvailable:
		return wire.RespServiceNotAvailable
	case store.MessageIllegal, store.PropertiesSizeExceeded:
		return wire.RespMessageIllegal
	case store.OSPageCacheBusy:
		return wire.RespSystemBusy
	default:
		return wire.RespSystemError
	}
}
