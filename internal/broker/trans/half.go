package trans

import (
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// AppendHalf appends the properties of a half message: those of the message,
// its transaction id, and where it is to go once it is committed.
func AppendHalf(dst []byte, p wire.Properties, id, topic []byte, queueID int32) []byte {
	dst = p.Without(dst, wire.PropRealTopic, wire.PropRealQueueID, wire.PropTransactionID, wire.PropTranPreparedOffset, wire.PropTranCheckTimes)
	dst = wire.AppendProperty(dst, wire.PropTransactionID, id)
	dst = wire.AppendProperty(dst, wire.PropRealTopic, topic)
	return wire.AppendProperty(dst, wire.PropRealQueueID, strconv.Itoa(int(queueID)))
}

// half is a stored half message.
type half struct {
	wire.Record
	id       []byte // UNIQ_KEY
	group    []byte // of its producer
	topic    []byte // where it is to go
	queueID  int32
	prepared int64 // half offset of the message it is a copy of; -1: it is the original
	checks   int32
	immunity time.Duration // 0: none of its own
	delayed  bool          // once it is committed
}

// read finds out what a record of the half topic stands for. It is false if it
// is no half message that can ever be decided.
func (h *half) read() bool {
	h.prepared = -1
	room := int64(-1)
	h.Properties.Each(func(k, v []byte) bool {
		switch string(k) {
		case wire.PropUniqKey:
			h.id = v
		case wire.PropProducerGroup:
			h.group = v
		case wire.PropRealTopic:
			h.topic = v
		case wire.PropRealQueueID:
			room, _ = wire.ParseInt(v)
		case wire.PropTranPreparedOffset:
			if n, ok := wire.ParseInt(v); ok && n >= 0 {
				h.prepared = n
			}
		case wire.PropTranCheckTimes:
			n, _ := wire.ParseInt(v)
			h.checks = int32(max(min(n, 1<<30), 0))
		case wire.PropDelay, wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs:
			h.delayed = true
		case wire.PropCheckImmunitySeconds:
			h.immunity = immunity(v)
		}
		return true
	})
	h.queueID = int32(room)
	return len(h.group) > 0 && len(h.topic) > 0 && room >= 0 && room == int64(h.queueID)
}

// immunity reads CHECK_IMMUNITY_TIME_IN_SECONDS. As in Apache what is no number,
// and -1, stands for the time that all messages have.
func immunity(v []byte) time.Duration {
	const most = 1000 * 24 * 3600
	n, ok := wire.ParseInt(v)
	if !ok || n <= 0 {
		return 0
	}
	return time.Duration(min(n, most)) * time.Second
}

// origin is the half offset by which the producer knows the transaction.
func (h *half) origin() int64 {
	if h.prepared >= 0 {
		return h.prepared
	}
	return h.QueueOffset
}

// since is when the transaction began, in ms by the broker's clock. Of a copy it
// is not known: then it is what the producer says.
func (h *half) since() int64 {
	if h.prepared >= 0 || h.checks > 0 {
		return h.BornTime
	}
	return h.StoreTime
}

// body is never nil, which the store would take for a mistake.
func body(r *wire.Record) []byte {
	if r.Body == nil {
		return []byte{}
	}
	return r.Body
}

// committed is the message that a half message becomes. Apache's has all its
// properties, too: TRAN_MSG, REAL_TOPIC and REAL_QID mean nothing any more.
func (h *half) committed() store.Message {
	return store.Message{
		Topic: h.topic, QueueID: h.queueID, Flag: h.Flag, SysFlag: h.SysFlag&^wire.SysTranMask | wire.SysTranCommit,
		ReconsumeTimes: h.ReconsumeTimes, BornTime: h.BornTime, BornHost: h.BornHost, PreparedOffset: h.PhyOffset,
		Body: body(&h.Record), Properties: h.Properties, NoWait: true,
	}
}

// copied is the half message once more, for the end of its queue. As in Apache
// flag and reconsumeTimes stay behind.
func (h *half) copied(origin int64, checks int32) store.Message {
	p := h.Properties.Without(nil, wire.PropTranPreparedOffset, wire.PropTranCheckTimes, wire.PropWait)
	p = wire.AppendProperty(p, wire.PropTranPreparedOffset, strconv.FormatInt(origin, 10))
	if checks > 0 {
		p = wire.AppendProperty(p, wire.PropTranCheckTimes, strconv.Itoa(int(checks)))
	}
	p = wire.AppendProperty(p, wire.PropWait, "false")
	return store.Message{
		Topic: []byte(wire.TopicHalf), SysFlag: h.SysFlag, BornTime: h.BornTime, BornHost: h.BornHost,
		Body: body(&h.Record), Properties: p, NoWait: true,
	}
}

// givenUp is what is left of a message that its producer never decides.
func (h *half) givenUp() store.Message {
	return store.Message{
		Topic: []byte(wire.TopicTranCheckMax), Flag: h.Flag, SysFlag: h.SysFlag, ReconsumeTimes: h.ReconsumeTimes,
		BornTime: h.BornTime, BornHost: h.BornHost, Body: body(&h.Record), Properties: h.Properties, NoWait: true,
	}
}

// Question is a check of a transaction: CHECK_TRANSACTION_STATE (39).
type Question struct {
	Header wire.CheckTransactionRequest
	Body   []byte // the half message, a record that has its real topic and queue
}

// question is the check number n of the message. Without host and broker name.
func (h *half) question(n int32) *Question {
	r := h.Record
	r.Topic, r.QueueID = h.topic, h.queueID
	p := h.Properties.Without(nil, wire.PropTranCheckTimes)
	r.Properties = wire.AppendProperty(p, wire.PropTranCheckTimes, strconv.Itoa(int(n)))
	id := string(h.id)
	return &Question{
		Header: wire.CheckTransactionRequest{
			Topic: wire.TopicHalf, TranStateOffset: h.QueueOffset, CommitLogOffset: h.PhyOffset, MsgID: id, TransactionID: id,
			OffsetMsgID: string(wire.AppendOffsetMsgID(nil, h.StoreHost, h.PhyOffset)),
		},
		Body: wire.AppendRecord(nil, &r),
	}
}

// Resumed is the half message that something given up becomes again.
func Resumed(rec *wire.Record) store.Message {
	p := rec.Properties.Without(nil, wire.PropTranCheckTimes, wire.PropTranPreparedOffset)
	return store.Message{
		Topic: []byte(wire.TopicHalf), Flag: rec.Flag, SysFlag: rec.SysFlag, ReconsumeTimes: rec.ReconsumeTimes,
		BornTime: rec.BornTime, BornHost: rec.BornHost, Body: body(rec), Properties: p,
	}
}
