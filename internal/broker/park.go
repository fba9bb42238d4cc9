package broker

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// park turns a message into what is stored of it until it is delivered after
// the delay of its level: a message of the schedule topic, whose queue says the
// level, with properties that say where it is to go. A level beyond the last
// one is the last one. The properties are appended to dst, which is returned.
func (b *Broker) park(dst []byte, m *store.Message, level int64) []byte {
	level = min(level, int64(len(b.cfg.Store.DelayLevels)))
	// A timer would be a second delay.
	dst = wire.Properties(m.Properties).Without(dst, wire.PropDelay, wire.PropRealTopic, wire.PropRealQueueID,
		wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs)
	dst = wire.AppendProperty(dst, wire.PropDelay, strconv.FormatInt(level, 10))
	dst = wire.AppendProperty(dst, wire.PropRealTopic, m.Topic)
	dst = wire.AppendProperty(dst, wire.PropRealQueueID, strconv.Itoa(int(m.QueueID)))
	m.Topic, m.QueueID, m.Properties = scheduleTopic(), int32(level-1), dst
	return dst
}

func scheduleTopic() []byte { return []byte(wire.TopicSchedule) }

// putDelayed stores a message whose time has come.
func (b *Broker) putDelayed(m *store.Message) store.PutResult {
	res, _ := b.store.Put(m, nil) // nobody waits for the disk, see delayOffsets
	if res.Status.Stored() {
		b.stats.put(1, res.End-res.PhyOffset)
	} else {
		b.stats.putFailed.Add(1)
	}
	return res
}
