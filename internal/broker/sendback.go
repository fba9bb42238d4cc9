package broker

import (
	"math/rand/v2"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// A consumer hands a message back that it could not handle:
// CONSUMER_SEND_MSG_BACK (36). Fields read: offset, group, delayLevel,
// unitMode, maxReconsumeTimes (of clients since 3.4.9).
//
// A copy of the message goes to %RETRY%group after a delay: of the level that
// is asked for, or with 0 of level 3 + its reconsumeTimes, 10 s to 2 h. With a
// level below 0, or as many reconsumeTimes as maxReconsumeTimes or else the
// group's retryMaxTimes allow, it goes to %DLQ%group at once. Topics are made as
// needed.
//
// Answers: 0, also without doing anything if the group's retryQueueNums are 0 or
// less; 1 malformed header, no message at the offset, or not stored (the remark
// is the store's status); 16 broker or retry topic not writable; 26 no group.
//
// Unlike Apache: with synchronous flush the answer waits until the copy is on
// disk, because the consumer forgets the message then; copies go to queues that
// the retry topic has, also if retryQueueNums has been raised since it was made;
// what no consumer can have received is not a message.

// firstWithMax is V3_4_9: older clients mean nothing by maxReconsumeTimes.
const firstWithMax = 121

// unitSub marks the retry topics of clients in unit mode.
func unitSub(unitMode bool) int32 {
	if unitMode {
		return wire.TopicUnitSub
	}
	return 0
}

// sendBackOp is one message on its way back. Once the store has it, the store
// is its only owner.
type sendBackOp struct {
	b       *Broker
	replier remoting.Replier
}

func (b *Broker) handleSendBack(r *remoting.Request) {
	var req wire.SendBackRequest
	f := r.Frame()
	if malformed(r, req.DecodeExt(f)) {
		return
	}
	g, created := b.groups.Get([]byte(req.Group))
	if created {
		b.saveGroups()
	}
	switch {
	case g == nil:
		r.Reply(wire.RespSubscriptionGroupNotExist, "subscription group not exist, "+req.Group, nil, nil)
		return
	case b.cfg.Permission&wire.PermWrite == 0:
		r.Reply(wire.RespNoPermission, "the broker["+b.addr+"] sending message is forbidden", nil, nil)
		return
	case g.RetryQueues <= 0:
		r.Reply(wire.RespSuccess, "", nil, nil)
		return
	}
	t := b.createTopic(wire.RetryTopic(g.Name), g.RetryQueues, wire.PermRead|wire.PermWrite, unitSub(req.UnitMode))
	if !t.Writable() {
		r.Reply(wire.RespNoPermission, "the topic["+t.Name+"] sending message is forbidden", nil, nil)
		return
	}
	buf, ok := b.store.ViewMessage(nil, req.Offset)
	var rec wire.Record
	if ok {
		_, err := wire.DecodeRecord(buf, &rec)
		ok = err == nil && consumable(&rec)
	}
	if !ok {
		r.Reply(wire.RespSystemError, "look message by offset failed, "+strconv.FormatInt(req.Offset, 10), nil, nil)
		return
	}
	limit := g.RetryMaxTimes
	if req.HasMax && f.Version >= firstWithMax {
		limit = req.MaxReconsumeTimes
	}
	queues := max(min(g.RetryQueues, t.ReadQueues), 1)
	m := store.Message{
		Topic: []byte(t.Name), QueueID: rand.Int32N(queues), Flag: rec.Flag, SysFlag: rec.SysFlag, ReconsumeTimes: rec.ReconsumeTimes + 1,
		BornTime: rec.BornTime, BornHost: rec.BornHost, Body: rec.Body,
	}
	if m.Body == nil {
		m.Body = []byte{}
	}
	m.Properties = sentBack(&rec)
	if req.DelayLevel < 0 || rec.ReconsumeTimes >= limit {
		m.Topic, m.QueueID = []byte(b.deadLetters(g.Name).Name), 0
		m.Properties = wire.AppendProperty(wire.Properties(m.Properties).Without(nil, wire.PropDelay), wire.PropDelay, "0")
	} else {
		level := int64(req.DelayLevel)
		if level == 0 {
			level = 3 + int64(rec.ReconsumeTimes)
		}
		b.park(nil, &m, level)
	}
	op := &sendBackOp{b, r.Replier()}
	if res, later := b.store.Put(&m, op); !later {
		op.Stored(res)
	}
}

// Stored implements store.Waiter.
func (op *sendBackOp) Stored(res store.PutResult) {
	if !res.Status.Stored() {
		op.b.stats.putFailed.Add(1)
	} else {
		op.b.stats.put(1, res.End-res.PhyOffset)
	}
	if res.Status == store.PutOK {
		op.replier.Reply(wire.RespSuccess, "", nil, nil)
		return
	}
	remark := res.Status.String()
	if res.Err != nil {
		remark += ": " + res.Err.Error()
	}
	op.replier.Reply(wire.RespSystemError, remark, nil, nil)
}

// consumable tells whether a consumer can have got a record.
func consumable(rec *wire.Record) bool {
	tran := rec.SysFlag & wire.SysTranMask
	return tran != wire.SysTranPrepared && tran != wire.SysTranRollback && mayHold(rec.Topic)
}

// sentBack are the properties of the copy: those of the message, and where it
// was first.
func sentBack(rec *wire.Record) []byte {
	p := rec.Properties.Without(make([]byte, 0, len(rec.Properties)+128), wire.PropWait)
	if _, ok := rec.Properties.Lookup(wire.PropRetryTopic); !ok {
		p = wire.AppendProperty(p, wire.PropRetryTopic, rec.Topic)
	}
	if origin, _ := rec.Properties.Lookup(wire.PropOriginMessageID); len(origin) == 0 {
		p = wire.AppendProperty(p, wire.PropOriginMessageID, wire.AppendOffsetMsgID(nil, rec.StoreHost, rec.PhyOffset))
	}
	return wire.AppendProperty(p, wire.PropWait, "false")
}
