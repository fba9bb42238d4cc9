package topics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var builtin = topics.Builtin{
	Cluster: "DefaultCluster", Broker: "broker-a", AutoCreate: true, DefaultQueues: 8, ClusterTopic: true, BrokerTopic: true,
}

func topic(name string, queues int32) wire.TopicConfig {
	return wire.TopicConfig{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: wire.PermRead | wire.PermWrite}
}

func TestVersionCountsChangesOnly(t *testing.T) {
	c := clock.NewManual(start)
	table := topics.New(c)
	v0 := table.Version()
	require.Equal(t, wire.DataVersion{Timestamp: start.UnixMilli()}, v0)

	c.Advance(time.Second)
	_, changed := table.Put(topic("T", 4))
	require.True(t, changed)
	v1 := table.Version()
	require.Equal(t, wire.DataVersion{Timestamp: start.Add(time.Second).UnixMilli(), Counter: 1}, v1)

	old, changed := table.Put(topic("T", 4))
	require.False(t, changed)
	require.Same(t, table.Lookup("T"), old)
	require.Equal(t, v1, table.Version())

	_, created := table.Create(topic("T", 9))
	require.False(t, created)
	require.EqualValues(t, 4, table.Get([]byte("T")).ReadQueues)

	require.True(t, table.Delete("T"))
	require.False(t, table.Delete("T"))
	require.EqualValues(t, 2, table.Version().Counter)
	require.Nil(t, table.Lookup("T"))
}

func TestBuiltin(t *testing.T) {
	table := topics.New(clock.NewManual(start))
	table.AddBuiltin(builtin)
	require.Greater(t, len(table.Names()), 1, "a first registration of one topic is refused by name servers of 5.x")
	tbw := table.Lookup("TBW102")
	require.EqualValues(t, 7, tbw.Perm)
	require.EqualValues(t, 8, tbw.WriteQueues)
	require.True(t, tbw.System)
	for name, noSend := range map[string]bool{
		"SELF_TEST_TOPIC": true, "SCHEDULE_TOPIC_XXXX": true, "OFFSET_MOVED_EVENT": true, "RMQ_SYS_TRANS_HALF_TOPIC": true,
		"BenchmarkTest": false, "DefaultCluster": false, "broker-a": false, "DefaultCluster_REPLY_TOPIC": false,
	} {
		x := table.Lookup(name)
		require.NotNil(t, x, name)
		require.True(t, x.System, name)
		require.Equal(t, noSend, x.NoSend, name)
		require.True(t, table.IsSystem(name), name)
	}
	require.True(t, table.IsSystem("rmq_sys_anything"))
	require.False(t, table.IsSystem("T"))
	require.NotContains(t, table.SystemNames(), "T")
}

func TestAutoCreateSwitchedOffDropsTheTemplate(t *testing.T) {
	table := topics.New(clock.NewManual(start))
	table.AddBuiltin(builtin)
	off := builtin
	off.AutoCreate = false
	v := table.Version()
	table.AddBuiltin(off)
	require.Nil(t, table.Lookup("TBW102"))
	require.NotEqual(t, v, table.Version(), "name servers must notice")
	v = table.Version()
	table.AddBuiltin(off)
	require.Equal(t, v, table.Version(), "a restart alone is no change")

	more := builtin
	more.DefaultQueues = 16
	table.AddBuiltin(builtin)
	table.AddBuiltin(more)
	require.EqualValues(t, 16, table.Lookup("TBW102").WriteQueues)
	require.EqualValues(t, v.Counter+2, table.Version().Counter)
}

func TestSpecialTopicsMayBeSwitchedOff(t *testing.T) {
	table := topics.New(clock.NewManual(start))
	table.AddBuiltin(topics.Builtin{Cluster: "C", Broker: "b", TraceTopic: true})
	require.Equal(t, wire.PermInherit, table.Lookup("C").Perm)
	require.Equal(t, wire.PermInherit, table.Lookup("b").Perm)
	require.NotNil(t, table.Lookup("RMQ_SYS_TRACE_TOPIC"))
	require.Nil(t, table.Lookup("TBW102"))
}

func TestFileRoundTrip(t *testing.T) {
	c := clock.NewManual(start)
	table := topics.New(c)
	table.AddBuiltin(builtin)
	cfg := topic("T", 4)
	cfg.Attributes = map[string]string{"message.type": "FIFO"}
	cfg.Order = true
	table.Put(cfg)

	again := topics.New(c)
	require.NoError(t, again.Decode(table.Encode()))
	require.Equal(t, table.Version(), again.Version())
	require.Equal(t, table.Names(), again.Names())
	require.Equal(t, "FIFO", again.Lookup("T").Attributes["message.type"])
	require.True(t, again.Lookup("T").Order)
	require.Error(t, again.Decode([]byte("{")))
}

func TestGetDoesNotAllocate(t *testing.T) {
	table := topics.New(clock.NewManual(start))
	table.Put(topic("T", 4))
	name := []byte("T")
	require.Zero(t, testing.AllocsPerRun(100, func() { table.Get(name) }))
}
