package broker

import (
	"github.com/gorocketmq/rocketmq/internal/broker/trans"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// propScan is what one look at a message's properties finds.
type propScan struct {
	id     []byte // UNIQ_KEY
	half   bool   // TRAN_MSG=true
	group  bool   // PGROUP is there
	level  int64  // DELAY
	bad    bool   // DELAY is no number
	timer  askedTime
	timed  bool // has been delivered by a timer, so what timer says is over
	noWait bool // WAIT=false
	dirty  bool // has properties that the broker sets or removes itself
}

func scan(p wire.Properties) (s propScan) {
	p.Each(func(k, v []byte) bool {
		switch string(k) {
		case wire.PropUniqKey:
			s.id = v
		case wire.PropTranMsg:
			s.half = wire.ParseBool(v)
		case wire.PropProducerGroup:
			s.group = len(v) > 0
		case wire.PropWait:
			s.noWait = !wire.ParseBool(v)
		case wire.PropDelay:
			n, ok := wire.ParseInt(v)
			s.level, s.bad = n, !ok
		case wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs:
			s.timer.set(string(k), v)
		case wire.PropTimerDelUniqKey:
			s.timer.recall = true
		case wire.PropTimerOutMs:
			s.timed = true
		case wire.PropCluster, wire.PropMsgRegion, wire.PropTraceOn, wire.PropPopCK:
			s.dirty = true
		}
		return true
	})
	return s
}

// prepare completes the message: properties as a broker of 5.3 stores them,
// times and hosts.
func (op *sendOp) prepare(r *remoting.Request) bool {
	b, req := op.b, &op.req
	s := scan(req.Properties)
	level := max(s.level, 0)
	timer := s.timer.asked() && !s.timed && level == 0 && !op.dead
	if op.dead {
		level = 0
	}
	half := s.half && !op.retried // a retried one has been committed
	switch {
	case op.batch && (s.half || level > 0 || timer):
		return op.fail(wire.RespMessageIllegal, "a batch cannot be transactional or delayed")
	case half && b.cfg.RejectTransactions:
		return op.fail(wire.RespNoPermission, "the broker["+b.addr+"] takes no transactional messages (rejectTransactionMessage)")
	case half && !s.group:
		return op.fail(wire.RespMessageIllegal, "a transactional message needs property "+wire.PropProducerGroup+", the group that decides")
	case s.bad:
		return op.fail(wire.RespMessageIllegal, "property "+wire.PropDelay+" is not a number")
	case half && timer: // it is parked when it is committed, and nobody can be told then
		if _, _, code, remark := b.refuseTimer(&s.timer); code != 0 {
			return op.fail(code, remark)
		}
	}
	if op.batch {
		// the items have properties of their own; the batch's stay out of them
		op.props = append(op.props, b.tail...)
	} else {
		op.props = appendStored(op.props, req.Properties, s.dirty)
		op.props = append(op.props, b.tail...)
	}
	if s.id == nil {
		op.tx = b.ids.Append(op.tx[:0], b.clock.Now())
		if !op.batch {
			op.props = wire.AppendProperty(op.props, wire.PropUniqKey, op.tx)
		}
	} else {
		op.tx = append(op.tx[:0], s.id...)
	}
	op.msg.Properties = op.props
	op.handle = op.handle[:0]
	switch {
	case op.dead:
		op.parked = appendDead(op.parked[:0], op.props)
		op.msg.Properties = op.parked
	case half: // a delay begins when it is committed
		op.parked = trans.AppendHalf(op.parked[:0], op.props, op.tx, op.msg.Topic, op.msg.QueueID)
		op.msg.Properties = op.parked
		op.msg.Topic, op.msg.QueueID, op.msg.SysFlag = []byte(wire.TopicHalf), 0, op.msg.SysFlag&^wire.SysTranMask
	case level > 0:
		op.parked = b.park(op.parked[:0], &op.msg, level)
	case timer:
		parked, slot, code, remark := b.parkTimer(op.parked[:0], &op.msg, &s.timer)
		if op.parked = parked; code != 0 {
			return op.fail(code, remark)
		}
		if slot > 0 && !op.retried {
			h := wire.RecallHandle{Topic: string(req.Topic), Broker: b.cfg.Name, DeliverTime: slot + 1, MessageID: string(op.tx)}
			op.handle = h.Append(op.handle)
		}
	}
	op.msg.NoWait = s.noWait
	op.msg.Flag = req.Flag
	op.msg.ReconsumeTimes = req.ReconsumeTimes
	op.msg.BornTime = req.BornTime
	op.msg.BornHost = b.bornHost(r.Conn())
	return true
}

// appendStored appends the client's properties, ended by a separator, without
// those that are the broker's to set.
func appendStored(dst []byte, p wire.Properties, dirty bool) []byte {
	if dirty {
		return p.Without(dst, wire.PropCluster, wire.PropMsgRegion, wire.PropTraceOn, wire.PropPopCK)
	}
	dst = append(dst, p...)
	if n := len(p); n > 0 && p[n-1] != propEnd {
		dst = append(dst, propEnd)
	}
	return dst
}

// propEnd ends each property in the encoded string.
const propEnd = 2
