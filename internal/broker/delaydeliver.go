package broker

import (
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// deliver puts a copy of a level's next message to where it was sent, and moves
// on. The copy has what the message had when it was parked, properties
// included: like Apache's it still says DELAY, REAL_TOPIC and REAL_QID, which
// mean nothing any more.
func (r *delayRun) deliver(l *delayLevel, now int64) {
	var res store.PutResult
	problem := ""
	there := r.store.Record(l.unit, func(rec *wire.Record) {
		var m store.Message
		if m, problem = released(rec); problem == "" {
			res = r.put(&m)
		}
	})
	switch {
	case !there:
		problem = "its record is not in the log"
	case problem != "":
	case res.Status == store.MessageIllegal || res.Status == store.PropertiesSizeExceeded:
		problem = res.Err.Error() // and so it will be the next time
	case !res.Status.Stored():
		r.failed(l, now, res)
		return
	}
	if problem != "" {
		r.log.Error("delayed message cannot be delivered, skipping it", "level", l.queue+1, "offset", l.offset, "phy", l.unit.Phy, "why", problem)
	} else if l.fails > 0 {
		r.log.Info("delay level goes on", "level", l.queue+1, "offset", l.offset)
	}
	l.known, l.fails, l.resume = false, 0, 0
	l.offset++
	r.progress.set(l.queue, l.offset, res.End)
}

// failed lets a level wait.
func (r *delayRun) failed(l *delayLevel, now int64, res store.PutResult) {
	pause := pauseAfter(l.fails)
	if l.fails == 0 {
		r.log.Error("delayed message not delivered, trying again", "level", l.queue+1, "offset", l.offset, "status", res.Status, "err", res.Err)
	}
	l.fails++
	l.resume = now + pause.Milliseconds()
}

// pauseAfter is how long to wait when a message could not be stored, after a
// number of failures before.
func pauseAfter(fails int) time.Duration {
	if fails < 7 {
		return min(deliverAgain<<fails, deliverAgainMax)
	}
	return deliverAgainMax
}

// released is the message that a parked record stands for, or why it stands
// for none. Its slices are the record's.
func released(rec *wire.Record) (m store.Message, problem string) {
	topic, _ := rec.Properties.Lookup(wire.PropRealTopic)
	id, _ := rec.Properties.Lookup(wire.PropRealQueueID)
	queue, ok := wire.ParseInt(id)
	switch {
	case len(topic) == 0 || !ok || queue < 0 || queue != int64(int32(queue)):
		return m, "it does not say where it was to go"
	case !mayHold(topic):
		return m, "it was to go to " + string(topic) + ", which takes no messages"
	}
	body := rec.Body
	if body == nil {
		body = []byte{}
	}
	return store.Message{
		Topic: topic, QueueID: int32(queue), Flag: rec.Flag, SysFlag: rec.SysFlag, ReconsumeTimes: rec.ReconsumeTimes,
		BornTime: rec.BornTime, BornHost: rec.BornHost, Body: body, Properties: rec.Properties, NoWait: true,
	}, ""
}

// mayHold tells whether a delayed message may go to a topic: not to those that
// the broker reads itself.
func mayHold(topic []byte) bool {
	switch string(topic) {
	case wire.TopicHalf, wire.TopicOpHalf, wire.TopicSchedule, wire.TopicTimer:
		return false
	}
	return true
}
