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
	add := func(name string, queues, perm int32) {
		if t.topics[name] == nil {
			t.put(wire.TopicConfig{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: perm, FilterType: "SINGLE_TAG"})
		}
	}
	const rw = wire.PermRead | wire.PermWrite
	usable := func(on bool) int32 {
		if on {
			return wire.PermInherit | rw
		}
		return wire.PermInherit
	}
	add("SELF_TEST_TOPIC", 1, rw)
	add("BenchmarkTest", 1024, rw)
	add(b.Cluster, 16, usable(b.ClusterTopic))
	add(b.Broker, 1, usable(b.BrokerTopic))
	add("OFFSET_MOVED_EVENT", 1, rw)
	add("SCHEDULE_TOPIC_XXXX", 18, rw)
	add(b.Cluster+"_REPLY_TOPIC", 1, rw)
	t.builtin[b.Cluster+"_REPLY_TOPIC"] = true
	add("rmq_sys_REVIVE_LOG_"+b.Cluster, 8, rw)
	add("rmq_sys_SYNC_BROKER_MEMBER_"+b.Broker, 1, wire.PermInherit)
	add("RMQ_SYS_TRANS_HALF_TOPIC", 1, rw)
	add("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1, rw)
	add("rmq_sys_wheel_timer", 1, rw)
	if b.TraceTopic {
		add("RMQ_SYS_TRACE_TOPIC", 1, rw)
	}
	if b.AutoCreate {
		// a table of an earlier run may have it without the inherit bit or with another size
		t.put(wire.TopicConfig{
			Name: wire.TopicDefault, ReadQueues: b.DefaultQueues, WriteQueues: b.DefaultQueues,
			Perm: wire.PermInherit | rw, FilterType: "SINGLE_TAG",
		})
	} else if t.topics[wire.TopicDefault] != nil {
		delete(t.topics, wire.TopicDefault)
		t.version = t.version.Next(t.clock.Now().UnixMilli())
	}
	// names set above were put before they were known as the broker's own
	for name := range t.builtin {
		if cfg := t.topics[name]; cfg != nil && !cfg.System {
			t.put(cfg.TopicConfig)
		}
	}
}
