package pop

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Records of the revive topic: checkpoints and acks. They have the bodies,
// tags and unique keys of Apache's. Unlike there they are put into the revive
// topic at once, not by way of the timer at the time at which they matter; so
// TIMER_DELIVER_MS, by which Apache's revive service tells how far time has come
// in the topic, is the time at which they are put.

// scratch is memory in which records are put together.
type scratch struct {
	body, props, id []byte
}

// putCheckpoint stores a checkpoint and tells the revive service of it.
func (s *Service) putCheckpoint(m *scratch, queue int32, ck *wire.PopCheckpoint) store.PutResult {
	m.body = ck.AppendJSON(m.body[:0])
	m.id = s.appendID(m.id[:0], ck.Topic, ck.QueueID, ck.Group, ck.PopTime, ck.Broker, ck.StartOffset)
	m.id = append(append(m.id, '@'), wire.PopTagCheckpoint...)
	res := s.putRecord(m, queue, wire.PopTagCheckpoint)
	if res.Status.Stored() {
		s.revive.expect(ck.ReviveTime())
	}
	return res
}

// putAck stores the acknowledgement of one message or of several.
func (s *Service) putAck(m *scratch, queue int32, a *wire.PopAck) store.PutResult {
	tag := wire.PopTagAck
	if a.Offsets != nil {
		tag = wire.PopTagBatchAck
	}
	m.body = a.AppendJSON(m.body[:0])
	m.id = s.appendID(m.id[:0], a.Topic, a.QueueID, a.Group, a.PopTime, a.Broker, a.Offset)
	m.id = append(append(m.id, '@'), wire.PopTagAck...)
	return s.putRecord(m, queue, tag)
}

// appendID is the unique key of a record, without its tag.
func (s *Service) appendID(b []byte, topic string, queue int32, group string, popTime int64, broker string, offset int64) []byte {
	b = append(append(b, topic...), '@')
	b = append(strconv.AppendInt(b, int64(queue), 10), '@')
	b = append(strconv.AppendInt(b, offset, 10), '@')
	b = append(append(b, group...), '@')
	b = append(strconv.AppendInt(b, popTime, 10), '@')
	return append(b, broker...)
}

func (s *Service) putRecord(m *scratch, queue int32, tag string) store.PutResult {
	now := s.now()
	var num [20]byte
	m.props = wire.AppendProperty(m.props[:0], wire.PropUniqKey, m.id)
	m.props = wire.AppendProperty(m.props, wire.PropTags, tag)
	m.props = wire.AppendProperty(m.props, wire.PropTimerDeliverMs, strconv.AppendInt(num[:0], now, 10))
	msg := store.Message{
		Topic: s.revives, QueueID: queue, BornTime: now, Body: m.body, Properties: m.props, NoWait: true,
	}
	return s.put(&msg)
}

// put stores a message of the service's own.
func (s *Service) put(m *store.Message) store.PutResult {
	res, _ := s.store.Put(m, nil)
	s.cfg.Host.CountPut(res)
	if res.Status.Stored() {
		for {
			old := s.written.Load()
			if res.End <= old || s.written.CompareAndSwap(old, res.End) {
				break
			}
		}
	}
	return res
}

func (s *Service) now() int64 { return s.clock.Now().UnixMilli() }

// reason says why something was not stored.
func reason(res store.PutResult) string {
	if res.Err != nil {
		return res.Status.String() + ": " + res.Err.Error()
	}
	return res.Status.String()
}
