package topics

import "github.com/gorocketmq/rocketmq/internal/wire"

// Builtin says which topics a broker has from its start.
type Builtin struct {
	Cluster, Broker string
	AutoCreate      bool  // whether TBW102, the template of new topics, exists
	DefaultQueues   int32 // queues of TBW102
	TraceTopic      bool  // whether RMQ_SYS_TRACE_TOPIC exists
	ClusterTopic    bool  // whether the topic named as the cluster may be used
	BrokerTopic     bool  // whether the topic named as the broker may be used
}

// AddBuiltin adds the topics that a broker of 5.3 has from its start, and
// keeps the ones that are there. TBW102 goes when auto-creation was switched
// off, so that name servers stop offering it. All these together also make a
// first registration that name servers of 5.x accept: they refuse one with a
// single topic.
func (t *Table) AddBuiltin(b Builtin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.builtin[b.Cluster], t.builtin[b.Broker] = true, true
	t.builtin[wire.ReplyTopic(b.Cluster)] = true
	for name := range t.builtin {
		if old := t.topics[name]; old != nil {
			t.put(old.TopicConfig) // now known as the broker's own
		}
	}
	fresh, changed := len(t.topics) == 0, false
	for _, cfg := range b.topics() {
		old := t.topics[cfg.Name]
		// A table of an earlier run may have TBW102 with another size or
		// without the inherit bit.
		if old == nil || cfg.Name == wire.TopicDefault && !equal(&old.TopicConfig, &cfg) {
			t.put(cfg)
			changed = true
		}
	}
	if !b.AutoCreate && t.topics[wire.TopicDefault] != nil {
		delete(t.topics, wire.TopicDefault)
		changed = true
	}
	if changed && !fresh {
		t.version = t.version.Next(t.clock.Now().UnixMilli())
	}
}

// topics lists the topics with their first configuration.
func (b *Builtin) topics() []wire.TopicConfig {
	const rw = wire.PermRead | wire.PermWrite
	usable := func(on bool) int32 {
		if on {
			return wire.PermInherit | rw
		}
		return wire.PermInherit
	}
	topic := func(name string, queues, perm int32) wire.TopicConfig {
		return wire.TopicConfig{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: perm, FilterType: wire.FilterSingleTag}
	}
	list := []wire.TopicConfig{
		topic(wire.TopicSelfTest, 1, rw),
		topic(wire.TopicBenchmark, 1024, rw),
		topic(b.Cluster, 16, usable(b.ClusterTopic)),
		topic(b.Broker, 1, usable(b.BrokerTopic)),
		topic(wire.TopicOffsetMoved, 1, rw),
		topic(wire.TopicSchedule, 18, rw),
		topic(wire.ReplyTopic(b.Cluster), 1, rw),
		topic(wire.ReviveTopic(b.Cluster), 8, rw),
		topic("rmq_sys_SYNC_BROKER_MEMBER_"+b.Broker, 1, wire.PermInherit),
		topic(wire.TopicHalf, 1, rw),
		topic(wire.TopicOpHalf, 1, rw),
		topic(wire.TopicTimer, 1, rw),
	}
	if b.TraceTopic {
		list = append(list, topic(wire.TopicTrace, 1, rw))
	}
	if b.AutoCreate {
		list = append(list, topic(wire.TopicDefault, b.DefaultQueues, wire.PermInherit|rw))
	}
	return list
}
