package broker

import (
	"math"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// askedTime is what a message's properties say about when it is to be
// delivered. Of several the first one counts.
type askedTime struct {
	sec, ms, at []byte // TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS; nil: not there
	recall      bool   // TIMER_DEL_UNIQKEY
}

// set notes a property.
func (a *askedTime) set(name string, value []byte) {
	if value == nil {
		value = []byte{}
	}
	switch name {
	case wire.PropTimerDelaySec:
		a.sec = value
	case wire.PropTimerDelayMs:
		a.ms = value
	case wire.PropTimerDeliverMs:
		a.at = value
	}
}

func (a *askedTime) asked() bool { return a.sec != nil || a.ms != nil || a.at != nil }

// due is the time asked for in ms; false if it is none.
func (a *askedTime) due(now int64) (int64, bool) {
	text, unit := a.at, int64(0)
	switch {
	case a.sec != nil:
		text, unit = a.sec, 1000
	case a.ms != nil:
		text, unit = a.ms, 1
	}
	n, ok := wire.ParseInt(text)
	if !ok {
		return 0, false
	}
	if unit == 0 {
		return n, true
	}
	const most = math.MaxInt64 / 2000 // beyond all limits, and no sum overflows
	return now + min(max(n, -most), most)*unit, true
}

// timerStamps is what a timer message's properties grow by until it is
// delivered, at most.
const timerStamps = 120

// refuseTimer is why a message may not be delivered at the time that it asks
// for, code 0 if it may; else when that is, and what time it is, in ms.
func (b *Broker) refuseTimer(a *askedTime) (due, now int64, code int32, remark string) {
	if b.timers.files == nil {
		return 0, 0, wire.RespSystemError, "timer messages are not enabled, timerWheelEnable is false"
	}
	now = b.clock.Now().UnixMilli()
	due, ok := a.due(now)
	most := b.cfg.TimerMaxDelay.Milliseconds()
	if !ok || due-now > most || due <= now && a.recall {
		return 0, 0, wire.RespMessageIllegal, "timer message illegal, its time is no number, more than " +
			strconv.FormatInt(most, 10) + " ms from now, or that of a recall which is over"
	}
	return due, now, 0, ""
}

// parkTimer turns a message into what is stored of it until the time that its
// properties ask for: a message of the timer topic, with properties that say
// where it is to go and in which slot of time. The properties are appended to
// dst, which is returned. slot is 0, and nothing is changed, if the time has
// passed. A code that is not 0, and the remark that goes with it, refuse the
// message.
func (b *Broker) parkTimer(dst []byte, m *store.Message, a *askedTime) (parked []byte, slot int64, code int32, remark string) {
	due, now, code, remark := b.refuseTimer(a)
	if code != 0 || due <= now {
		return dst, 0, code, remark
	}
	slot = b.timers.files.SlotOf(due)
	dst = wire.Properties(m.Properties).Without(dst, wire.PropRealTopic, wire.PropRealQueueID)
	dst = wire.AppendProperty(dst, wire.PropTimerOutMs, strconv.FormatInt(slot, 10))
	dst = wire.AppendProperty(dst, wire.PropRealTopic, m.Topic)
	dst = wire.AppendProperty(dst, wire.PropRealQueueID, strconv.Itoa(int(m.QueueID)))
	if len(dst)+timerStamps > math.MaxInt16 {
		return dst, 0, wire.RespMessageIllegal, "the properties of a timer message may have " + strconv.Itoa(math.MaxInt16-timerStamps) + " bytes"
	}
	m.Topic, m.QueueID, m.Properties = []byte(wire.TopicTimer), 0, dst
	return dst, slot, 0, ""
}

// timerRecord is what the record of a timer message says.
type timerRecord struct {
	topic   []byte // where it is to go
	id      []byte // UNIQ_KEY
	recalls []byte // the message that it takes back; nil: it is one to be delivered
	due     int64  // ms
	problem string // why it cannot be delivered
}

// maxSlot is the width of the widest slot in ms.
const maxSlot = 1000

// parkedTimer reads a record of the timer topic. Its slices are the record's.
func parkedTimer(rec *wire.Record) (p timerRecord) {
	var out []byte
	var a askedTime
	rec.Properties.Each(func(k, v []byte) bool {
		switch string(k) {
		case wire.PropTimerOutMs:
			out = v
		case wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs:
			a.set(string(k), v)
		case wire.PropTimerDelUniqKey:
			p.recalls = v
			if v == nil {
				p.recalls = []byte{}
			}
		case wire.PropRealTopic:
			p.topic = v
		case wire.PropUniqKey:
			p.id = v
		}
		return true
	})
	slot, ok := wire.ParseInt(out)
	if !ok || slot < 0 || slot > math.MaxInt64/4 {
		p.problem = "it does not say when it is due"
		return p
	}
	// The slot was made of the time asked for. For a delay that counts from the
	// broker's time when the message came, just before it was stored; a message
	// that was parked again is stored much later, and comes at the slot's end.
	due, ok := a.due(rec.StoreTime)
	if !ok {
		due = slot + maxSlot
	}
	p.due = min(max(due, slot+1), slot+maxSlot)
	return p
}
