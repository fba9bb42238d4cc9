package broker

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Recalling a delayed message: RECALL_MESSAGE (370).
//
// Fields read: all of wire.RecallRequest but bname. What a recall does is to
// store a timer message for the slot of the one that is recalled, which takes
// that out when the slot's time has come (timerdeliver.go). So nobody learns
// whether there was such a message; and what has a delay level, or whose slot
// has begun, which it does up to a second before the message is due, cannot be
// recalled.
//
// Answers: 0 with the message's id; 1 malformed header, store failure; 14
// start-up gate; 16 recallMessageEnable=false, which is Apache's default; 17 no
// such topic; 604 a handle that is none or of another topic or broker, or a time
// that has passed or is too far ahead. All carry MSG_REGION.

const recallTag = "_RECALL_TAG_"

func (b *Broker) handleRecall(r *remoting.Request) {
	refuse := func(code int32, why string) { r.Reply(code, "recall failed, "+why, regionField{b.region}, nil) }
	var h wire.RecallRequest
	if err := h.DecodeExt(r.Frame()); err != nil {
		refuse(wire.RespSystemError, err.Error())
		return
	}
	now := b.clock.Now()
	switch {
	case !b.cfg.Recall:
		refuse(wire.RespNoPermission, "operation is forbidden")
		return
	case !b.cfg.AcceptSendFrom.IsZero() && now.Before(b.cfg.AcceptSendFrom):
		refuse(wire.RespServiceNotAvailable, "broker service not available")
		return
	case b.topics.Lookup(h.Topic) == nil:
		refuse(wire.RespTopicNotExist, "the topic["+h.Topic+"] not exist")
		return
	}
	handle, err := wire.ParseRecallHandle(h.Handle)
	left := handle.DeliverTime - now.UnixMilli()
	switch {
	case err != nil:
		refuse(wire.RespIllegalOperation, err.Error())
		return
	case handle.Topic != h.Topic:
		refuse(wire.RespIllegalOperation, "topic not match")
		return
	case handle.Broker != b.cfg.Name:
		refuse(wire.RespIllegalOperation, "broker service not available")
		return
	case left <= 0 || left >= b.cfg.TimerMaxDelay.Milliseconds():
		refuse(wire.RespIllegalOperation, "timestamp invalid")
		return
	}
	b.recall(r, &h, &handle)
}

// recall stores the message that takes another one back.
func (b *Broker) recall(r *remoting.Request, h *wire.RecallRequest, handle *wire.RecallHandle) {
	at := strconv.FormatInt(handle.DeliverTime, 10)
	var p []byte
	p = wire.AppendProperty(p, wire.PropTags, recallTag)
	p = wire.AppendProperty(p, wire.PropTimerDelUniqKey, handle.Topic+"+"+handle.MessageID)
	p = wire.AppendProperty(p, wire.PropUniqKey, handle.MessageID)
	p = wire.AppendProperty(p, wire.PropTimerDeliverMs, at)
	p = wire.AppendProperty(p, wire.PropProducerGroup, h.Group)
	m := store.Message{
		Topic: []byte(handle.Topic), Body: []byte("0"), BornTime: b.clock.Now().UnixMilli(), BornHost: b.bornHost(r.Conn()), Properties: p,
	}
	_, slot, code, _ := b.parkTimer(nil, &m, &askedTime{at: []byte(at), recall: true})
	op := &recallOp{b: b, id: handle.MessageID, replier: r.Replier()}
	if code != 0 || slot == 0 {
		op.Stored(store.PutResult{Status: store.MessageIllegal})
		return
	}
	if res, later := b.store.Put(&m, op); !later {
		op.Stored(res)
	}
}

// recallOp is a recall that is being stored.
type recallOp struct {
	b       *Broker
	id      string
	replier remoting.Replier
}

var _ store.Waiter = (*recallOp)(nil)

// Stored implements store.Waiter: the answer.
func (op *recallOp) Stored(res store.PutResult) {
	if !res.Status.Stored() {
		op.replier.Reply(wire.RespSystemError, "recall failed, execute error", regionField{op.b.region}, nil)
		return
	}
	op.replier.Reply(wire.RespSuccess, "", &wire.RecallResponse{MsgID: op.id, Region: string(op.b.region)}, nil)
}

// regionField is MSG_REGION alone.
type regionField struct{ region []byte }

// EncodeExt implements wire.ExtEncoder.
func (x regionField) EncodeExt(e *wire.Encoder) { e.Bytes("MSG_REGION", x.region) }
