package pop

import (
	"container/heap"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// deliver puts the messages of a checkpoint that nobody has acknowledged where
// they are popped again, and closes it. What cannot be stored now is tried
// again later.
func (r *revive) deliver(c *checkpoint, now int64) {
	s := r.s
	if c.fails > 0 && c.Acked&c.all == c.all {
		r.close(c)
		return
	}
	normal := wire.PopNormalTopic(c.Group, c.Topic)
	g := s.cfg.Groups.Lookup(c.Group)
	if g == nil || s.cfg.Topics.Lookup(normal) == nil {
		s.cfg.Log.Warn("popped messages are not delivered again, their topic or group is gone", "topic", c.Topic, "group", c.Group)
		r.close(c)
		return
	}
	var gone []int64
	for i := range c.Len() {
		if c.Acked&(1<<i) != 0 {
			continue
		}
		res, there := r.putAgain(c, g, normal, c.Offset(i))
		if there && !res.Status.Stored() && res.Status != store.MessageIllegal && res.Status != store.PropertiesSizeExceeded {
			r.later(c, now, res)
			break
		}
		if there && !res.Status.Stored() {
			s.cfg.Log.Error("popped message cannot be delivered again, skipping it", "topic", c.Topic, "queue", c.QueueID, "offset", c.Offset(i), "why", reason(res))
		}
		c.Acked |= 1 << i
		gone = append(gone, c.Offset(i))
	}
	if len(gone) > 0 {
		// So that it is not delivered once more when its checkpoint is read
		// again, after a restart.
		a := wire.PopAck{
			Offset: -1, Offsets: gone, StartOffset: c.StartOffset, Group: c.Group, Topic: c.Topic, QueueID: c.QueueID, PopTime: c.PopTime, Broker: c.Broker,
		}
		if res := s.putAck(&r.mem, c.queue.id, &a); !res.Status.Stored() {
			s.cfg.Log.Warn("messages were delivered again, which could not be noted: a restart may do so once more", "topic", c.Topic, "why", reason(res))
		}
	}
	if c.Acked&c.all == c.all {
		r.close(c)
	}
}

// later lets a checkpoint wait.
func (r *revive) later(c *checkpoint, now int64, res store.PutResult) {
	pause := againAtMost
	if c.fails < 7 {
		pause = min(againAfter<<c.fails, againAtMost)
	}
	if c.fails == 0 {
		r.s.cfg.Log.Error("popped message not delivered again, will try later", "topic", c.Topic, "queue", c.QueueID, "why", reason(res))
	}
	c.fails++
	c.due = now + pause.Milliseconds()
	heap.Fix(&r.due, c.index)
}

// putAgain puts a copy of a message into the group's retry topic, or after the
// group's maximum of attempts into its dead letters. There is nothing to do if
// the message has been cleaned away.
func (r *revive) putAgain(c *checkpoint, g *wire.SubscriptionGroup, normal string, offset int64) (res store.PutResult, there bool) {
	at, u, ok := r.s.store.NextUnit(c.Topic, c.QueueID, offset)
	if !ok || at != offset {
		return res, false
	}
	there = r.s.store.Record(u, func(rec *wire.Record) {
		m := store.Message{
			Flag: rec.Flag, SysFlag: rec.SysFlag, ReconsumeTimes: rec.ReconsumeTimes + 1, BornTime: rec.BornTime, Body: rec.Body, NoWait: true,
		}
		if m.Body == nil {
			m.Body = []byte{}
		}
		r.mem.props = retried(r.mem.props[:0], rec, c.PopTime)
		if rec.ReconsumeTimes >= g.RetryMaxTimes {
			m.Topic = []byte(r.s.cfg.Host.DeadLetters(c.Group).Name)
			r.mem.props = dead(r.mem.props, rec, normal)
		} else {
			m.Topic = []byte(r.s.retryTopic(c.Group, c.Topic))
		}
		m.Properties = r.mem.props
		res = r.s.put(&m)
	})
	return res, there
}

// retried appends the properties of a message that is delivered again: its own,
// and when it was popped first.
func retried(dst []byte, rec *wire.Record, popTime int64) []byte {
	var num [20]byte
	if _, ok := rec.Properties.Lookup(wire.PropFirstPopTime); ok && rec.ReconsumeTimes > 0 {
		return rec.Properties.Without(dst)
	}
	dst = rec.Properties.Without(dst, wire.PropFirstPopTime)
	return wire.AppendProperty(dst, wire.PropFirstPopTime, strconv.AppendInt(num[:0], popTime, 10))
}

// dead adds where a dead letter was first, as for those that consumers hand
// back.
func dead(p []byte, rec *wire.Record, normal string) []byte {
	if _, ok := rec.Properties.Lookup(wire.PropRetryTopic); !ok {
		p = wire.AppendProperty(p, wire.PropRetryTopic, normal)
	}
	if origin, _ := rec.Properties.Lookup(wire.PropOriginMessageID); len(origin) == 0 {
		p = wire.AppendProperty(p, wire.PropOriginMessageID, wire.AppendOffsetMsgID(nil, rec.StoreHost, rec.PhyOffset))
	}
	return p
}

// retryTopic is where messages of a topic are delivered again. It is made if it
// is missing; the group begins with its first message.
func (s *Service) retryTopic(group, topic string) string {
	if wire.IsRetryTopic(topic) {
		return topic
	}
	name := wire.PopRetryTopic(group, topic)
	if s.cfg.RetryV2 {
		name = wire.PopRetryTopicV2(group, topic)
	}
	if s.cfg.Topics.Lookup(name) == nil {
		s.cfg.Host.RetryTopic(name)
		if _, ok := s.cfg.Offsets.Offset([]byte(group), []byte(name), 0); !ok {
			s.cfg.Offsets.Commit([]byte(group), []byte(name), 0, 0)
		}
	}
	return name
}
