package broker

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Replies to requests: SEND_REPLY_MESSAGE (324), SEND_REPLY_MESSAGE_V2 (325);
// sends PUSH_REPLY_MESSAGE_TO_CLIENT (326).
//
// Fields read: those of a send; of the properties REPLY_TO_CLIENT, which names
// the client that gets the reply. It must have a producer.
//
// Answers: those of a send up to the message's checks; 2 too many replies are
// under way; then 0 the client has the reply; 1 it has not, the remark says why.
// 0 and 1 come with wire.SendResponse: where the reply was stored, or msgId 0.
//
// The reply is handed over and stored at the same time, whatever becomes of the
// other; storeReplyMessageEnable=false leaves out storing. Nobody waits for the
// client: the reader of its connection ends the request. Unlike Apache 5.3.3 a
// reply may come without a body.

const (
	pushReplyTimeout = 10 * time.Second
	// maxReplies is how many replies may wait for their clients' answers
	// (replyThreadPoolQueueCapacity).
	maxReplies = 10_000
)

// replyOp is one reply under way. When it is handed over and stored, whoever is
// last answers.
type replyOp struct {
	sendOp
	to    string // client id
	ask   wire.PushReplyRequest
	left  atomic.Int32 // of handing over and storing, what has not ended
	fault string       // why it was not handed over; "" if it was
}

// handleReply runs on the connection's reader.
func (b *Broker) handleReply(r *remoting.Request) {
	op := &replyOp{sendOp: sendOp{b: b}}
	f := r.Frame()
	if err := op.req.DecodeExt(f); err != nil {
		op.fail(wire.RespSystemError, err.Error())
		r.ReplyAppend(&op.sendOp)
		return
	}
	op.req.Batch = false
	if !op.check() || !op.prepare(r) || !op.admit() {
		r.ReplyAppend(&op.sendOp)
		return
	}
	op.replier = r.Replier()
	if op.msg.Body = f.Body; op.msg.Body == nil {
		op.msg.Body = []byte{}
	}
	op.resp = wire.SendResponse{
		OffsetMsgID: []byte("0"), QueueID: op.msg.QueueID, TransactionID: op.tx, Region: b.region, TraceOn: b.cfg.TraceOn,
	}
	op.left.Store(2)
	op.push()
	if !b.cfg.StoreReplies {
		op.ended()
	} else if res, later := b.store.Put(&op.msg, op); !later {
		op.Stored(res)
	}
	// What is in the request's frame must not be held while the client thinks.
	op.req, op.msg, op.props, op.ask = wire.SendRequest{}, store.Message{}, nil, wire.PushReplyRequest{}
}

// admit bounds the replies under way.
func (op *replyOp) admit() bool {
	if op.b.replies.Add(1) > maxReplies {
		op.b.replies.Add(-1)
		return op.fail(wire.RespSystemBusy, remoting.Overloaded)
	}
	return true
}

// push hands the reply to the connection of the client that waits for it. The
// frame is encoded before push returns.
func (op *replyOp) push() {
	id, _ := op.req.Properties.Lookup(wire.PropReplyToClient)
	if len(id) == 0 {
		op.pushed(wire.PropReplyToClient + " is null, can not reply message")
		return
	}
	op.to = string(id)
	c, _ := op.b.clients.Sender(id).(*remoting.Conn)
	if c == nil {
		op.pushed("push reply message fail, channel of <" + op.to + "> not found.")
		return
	}
	op.question()
	// connections go by the machine's clock
	if _, err := c.Start(op, clock.Real().Now().Add(pushReplyTimeout), remoting.Try); err != nil {
		op.Done(nil, err)
	}
}

// question makes the header of the request to the client: the reply as it came,
// and when it was handed over.
func (op *replyOp) question() {
	b, req := op.b, &op.req
	now := b.clock.Now().UnixMilli()
	props := appendStored(make([]byte, 0, len(req.Properties)+64), req.Properties, false)
	props = wire.AppendProperty(props, wire.PropPushReplyTime, strconv.FormatInt(now, 10))
	op.ask = wire.PushReplyRequest{
		Group: string(req.Group), Topic: string(req.Topic), DefaultTopic: string(req.DefaultTopic),
		DefaultTopicQueues: req.DefaultTopicQueues, QueueID: op.msg.QueueID, SysFlag: req.SysFlag, Flag: req.Flag,
		ReconsumeTimes: req.ReconsumeTimes, BornTime: req.BornTime, StoreTime: now,
		Properties: string(props), UnitMode: req.UnitMode, BornHost: op.msg.BornHost.String(), StoreHost: b.host.String(),
	}
}

// AppendFrame implements remoting.Exchange.
func (op *replyOp) AppendFrame(dst []byte, opaque int32) []byte {
	cmd := wire.Command{Code: wire.ReqPushReplyMessageToClient, Ext: &op.ask, Body: op.msg.Body}
	return cmd.Append(dst, wire.Head{Opaque: opaque})
}

// Done implements remoting.Exchange: the client's answer.
func (op *replyOp) Done(f *wire.Frame, err error) {
	fault := ""
	switch {
	case err != nil:
		fault = "push reply message to " + op.to + " fail: " + err.Error()
	case f.Code != wire.RespSuccess:
		fault = "push reply message to " + op.to + " fail: it answered " + strconv.Itoa(int(f.Code)) + " " + string(f.Remark)
	}
	op.pushed(fault)
}

func (op *replyOp) pushed(fault string) {
	op.fault = fault
	op.ended()
}

// Stored implements store.Waiter. A reply that could not be stored has reached
// its client all the same.
func (op *replyOp) Stored(res store.PutResult) {
	if res.Status.Stored() {
		op.resp.OffsetMsgID = wire.AppendOffsetMsgID(nil, op.b.host, res.PhyOffset)
		op.resp.QueueOffset = res.QueueOffset
		op.b.stats.put(1, res.End-res.PhyOffset)
	} else {
		op.b.stats.putFailed.Add(1)
		op.b.log.Warn("reply not stored", "client", op.to, "reason", op.reason(res))
	}
	op.ended()
}

// ended answers when handing over and storing have both ended.
func (op *replyOp) ended() {
	if op.left.Add(-1) > 0 {
		return
	}
	op.b.replies.Add(-1)
	op.code, op.remark = wire.RespSuccess, ""
	if op.fault != "" {
		op.code, op.remark = wire.RespSystemError, op.fault
	}
	op.replier.ReplyAppend(op)
}

// AppendResponse implements remoting.Responder.
func (op *replyOp) AppendResponse(dst []byte, h wire.Head) []byte {
	h.Code, h.Remark = op.code, op.remark
	e := wire.Begin(dst, h)
	op.resp.EncodeExt(&e)
	return e.Finish(nil)
}
