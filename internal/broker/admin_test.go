package broker

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func createTopic(name string, queues int32) *wire.CreateTopicRequest {
	return &wire.CreateTopicRequest{
		Topic: name, DefaultTopic: wire.TopicDefault, ReadQueues: queues, WriteQueues: queues, Perm: 6, FilterType: wire.FilterSingleTag,
	}
}

func TestTopicAdministration(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	b := startBroker(t, withNameServers(ns.addr))
	p := dial(t, b)
	h := createTopic("T", 3)
	h.Attributes = "+message.type=FIFO"
	p.must(wire.ReqUpdateAndCreateTopic, h, nil)
	require.Contains(t, ns.last().body.Topics, "T", "answered when the name server knows")

	cfg, err := wire.DecodeTopicConfig(p.must(wire.ReqGetTopicConfig, &wire.TopicRequest{Topic: "T"}, nil).Body)
	require.NoError(t, err)
	require.EqualValues(t, 3, cfg.ReadQueues)
	require.Equal(t, map[string]string{"message.type": "FIFO"}, cfg.Attributes)
	require.EqualValues(t, wire.RespTopicNotExist, p.call(wire.ReqGetTopicConfig, &wire.TopicRequest{Topic: "None"}, nil).Code)

	all, err := wire.DecodeTopicConfigs(p.must(wire.ReqGetAllTopicConfig, nil, nil).Body)
	require.NoError(t, err)
	require.Contains(t, all.Topics, "T")
	require.Contains(t, all.Topics, "TBW102")

	list := wire.TopicConfigList{Topics: []wire.TopicConfig{wire.NewTopicConfig("L1"), wire.NewTopicConfig("L2")}}
	p.must(wire.ReqUpdateAndCreateTopicList, nil, list.AppendJSON(nil))
	_, ok := b.Topic("L2")
	require.True(t, ok)

	p.send(b, "T", 0, "x")
	b.offsets.Commit([]byte("CG"), []byte("T"), 0, 1)
	p.must(wire.ReqDeleteTopicInBroker, &wire.TopicRequest{Topic: "T"}, nil)
	_, ok = b.Topic("T")
	require.False(t, ok)
	_, ok = b.Offset("CG", "T", 0)
	require.False(t, ok)
	require.Zero(t, b.Store().MaxOffset("T", 0))
	p.must(wire.ReqDeleteTopicInBroker, &wire.TopicRequest{Topic: "T"}, nil)

	system, err := wire.DecodeTopicList(p.must(wire.ReqGetSystemTopicListFromBroker, nil, nil).Body)
	require.NoError(t, err)
	require.Contains(t, system.Topics, "TBW102")
	require.Contains(t, system.Topics, "broker-a")
	require.NotContains(t, system.Topics, "L1")
}

func TestTopicAdministrationRefuses(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	attributes := func(change string) *wire.CreateTopicRequest {
		h := createTopic("T", 1)
		h.Attributes = change
		return h
	}
	p.must(wire.ReqUpdateAndCreateTopic, attributes("+queue.type=SimpleCQ"), nil)
	for name, c := range map[string]struct {
		header wire.ExtEncoder
		code   int32
	}{
		"bad name":          {createTopic("no spaces", 1), wire.RespInvalidParameter},
		"system":            {createTopic("TBW102", 1), wire.RespInvalidParameter},
		"negative":          {createTopic("N", -1), wire.RespInvalidParameter},
		"too many":          {createTopic("N", 1<<20), wire.RespInvalidParameter},
		"unknown attribute": {attributes("+color=red"), wire.RespSystemError},
		"no sign":           {attributes("message.type=FIFO"), wire.RespSystemError},
		"immutable":         {attributes("+queue.type=BatchCQ"), wire.RespSystemError},
		"immutable removed": {attributes("-queue.type"), wire.RespSystemError},
		"missing fields":    {wire.ExtFields{"topic": "N"}, wire.RespSystemError},
	} {
		f := p.call(wire.ReqUpdateAndCreateTopic, c.header, nil)
		require.Equal(t, c.code, f.Code, "%s: %s", name, f.Remark)
		require.NotEmpty(t, f.Remark, name)
	}
	_, ok := b.Topic("N")
	require.False(t, ok)
	for _, topic := range []string{"", "TBW102", "rmq_sys_wheel_timer"} {
		f := p.call(wire.ReqDeleteTopicInBroker, &wire.TopicRequest{Topic: topic}, nil)
		require.NotEqual(t, wire.RespSuccess, f.Code, topic)
	}
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqUpdateAndCreateTopicList, nil, []byte("{")).Code)
}

func TestAttributeChanges(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	h := createTopic("T", 1)
	for _, step := range []struct {
		change string
		want   map[string]string
	}{
		{"+message.type=FIFO,+reserve.time=5", map[string]string{"message.type": "FIFO", "reserve.time": "5"}},
		{"", map[string]string{"message.type": "FIFO", "reserve.time": "5"}},
		{"+message.type=NORMAL, -reserve.time", map[string]string{"message.type": "NORMAL"}},
	} {
		h.Attributes = step.change
		p.must(wire.ReqUpdateAndCreateTopic, h, nil)
		cfg, _ := b.Topic("T")
		require.Equal(t, step.want, cfg.Attributes)
	}
}

func TestStatistics(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	p.must(wire.ReqUpdateAndCreateTopic, createTopic("T", 2), nil)
	for range 3 {
		p.send(b, "T", 0, "x")
	}
	stats, err := wire.DecodeTopicStats(p.must(wire.ReqGetTopicStatsInfo, &wire.TopicRequest{Topic: "T"}, nil).Body)
	require.NoError(t, err)
	require.Len(t, stats.Offsets, 2, "every queue of a new topic, or tools wait for it")
	q0, q1 := wire.MessageQueue{Topic: "T", Broker: "broker-a"}, wire.MessageQueue{Topic: "T", Broker: "broker-a", QueueID: 1}
	require.EqualValues(t, 3, stats.Offsets[q0].MaxOffset)
	require.NotZero(t, stats.Offsets[q0].LastUpdate)
	require.Zero(t, stats.Offsets[q1])
	require.EqualValues(t, wire.RespTopicNotExist, p.call(wire.ReqGetTopicStatsInfo, &wire.TopicRequest{Topic: "None"}, nil).Code)

	p.must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 1), nil)
	b.offsets.Commit([]byte("CG"), []byte("T"), 0, 2)
	ask := func(h *wire.ConsumeStatsRequest) map[wire.MessageQueue]wire.OffsetWrapper {
		s, err := wire.DecodeConsumeStats(p.must(wire.ReqGetConsumeStats, h, nil).Body)
		require.NoError(t, err)
		return s.Offsets
	}
	got := ask(&wire.ConsumeStatsRequest{Group: "CG"})
	require.Len(t, got, 2)
	w := got[q0]
	require.NotZero(t, w.LastTimestamp)
	w.LastTimestamp = 0
	require.Equal(t, wire.OffsetWrapper{BrokerOffset: 3, ConsumerOffset: 2, PullOffset: 1}, w)
	require.Len(t, ask(&wire.ConsumeStatsRequest{Group: "CG", Topic: "T"}), 2)
	require.Len(t, ask(&wire.ConsumeStatsRequest{Group: "CG", TopicList: "T;None"}), 2)
	p.heartbeat("CG", "id", 1, "Other")
	require.Empty(t, ask(&wire.ConsumeStatsRequest{Group: "CG"}), "online, and not subscribed any more")

	groups, err := wire.DecodeGroupList(p.must(wire.ReqQueryTopicConsumeByWho, &wire.TopicRequest{Topic: "T"}, nil).Body)
	require.NoError(t, err)
	require.Equal(t, []string{"CG"}, groups.Groups)
	groups, err = wire.DecodeGroupList(p.must(wire.ReqQueryTopicConsumeByWho, &wire.TopicRequest{Topic: "Other"}, nil).Body)
	require.NoError(t, err)
	require.Equal(t, []string{"CG"}, groups.Groups)
}

func TestGroupAdministration(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.AutoCreateGroup = false })
	p := dial(t, b)
	g := wire.NewSubscriptionGroup("CG")
	g.RetryMaxTimes = 5
	p.must(wire.ReqUpdateAndCreateSubscriptiongroup, nil, g.AppendJSON(nil))
	got, err := wire.DecodeSubscriptionGroup(p.must(wire.ReqGetSubscriptiongroupConfig, &wire.SubscriptionGroupRequest{Group: "CG"}, nil).Body)
	require.NoError(t, err)
	require.EqualValues(t, 5, got.RetryMaxTimes)
	all, err := wire.DecodeSubscriptionGroups(p.must(wire.ReqGetAllSubscriptiongroupConfig, nil, nil).Body)
	require.NoError(t, err)
	require.Contains(t, all.Groups, "CG")
	require.Contains(t, all.Groups, "TOOLS_CONSUMER")

	b.offsets.Commit([]byte("CG"), []byte("T"), 0, 2)
	p.must(wire.ReqDeleteSubscriptiongroup, &wire.DeleteGroupRequest{Group: "CG"}, nil)
	_, ok := b.Offset("CG", "T", 0)
	require.True(t, ok)
	p.must(wire.ReqDeleteSubscriptiongroup, wire.ExtFields{"groupName": "CG", "removeOffset": "true"}, nil)
	_, ok = b.Offset("CG", "T", 0)
	require.False(t, ok)
	require.EqualValues(t, wire.RespSubscriptionGroupNotExist,
		p.call(wire.ReqGetSubscriptiongroupConfig, &wire.SubscriptionGroupRequest{Group: "CG"}, nil).Code)

	bad := wire.NewSubscriptionGroup("no spaces")
	require.EqualValues(t, wire.RespInvalidParameter, p.call(wire.ReqUpdateAndCreateSubscriptiongroup, nil, bad.AppendJSON(nil)).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqUpdateAndCreateSubscriptiongroup, nil, []byte("{")).Code)
}

func TestConnections(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	require.EqualValues(t, wire.RespConsumerNotOnline, p.call(wire.ReqGetConsumerConnectionList, &wire.GroupRequest{Group: "CG"}, nil).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqGetProducerConnectionList, &wire.ProducerGroupRequest{Group: "PG"}, nil).Code)
	p.heartbeat("CG", "id", 7, "T")
	hb := wire.Heartbeat{ClientID: "id", Producers: []string{"PG"}}
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))

	cc, err := wire.DecodeConsumerConnection(p.must(wire.ReqGetConsumerConnectionList, &wire.GroupRequest{Group: "CG"}, nil).Body)
	require.NoError(t, err)
	want := wire.Connection{ClientID: "id", ClientAddr: p.conn().LocalAddr().String(), Language: "GO", Version: wire.Version479}
	require.Equal(t, []wire.Connection{want}, cc.Connections)
	require.Equal(t, wire.ConsumePassively, cc.ConsumeType)
	require.EqualValues(t, 7, cc.Subscriptions["T"].Version)
	pc, err := wire.DecodeProducerConnection(p.must(wire.ReqGetProducerConnectionList, &wire.ProducerGroupRequest{Group: "PG"}, nil).Body)
	require.NoError(t, err)
	require.Equal(t, []wire.Connection{want}, pc.Connections)

	p.must(wire.ReqUnregisterClient, &wire.UnregisterClientRequest{ClientID: "id", ProducerGroup: "PG"}, nil)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqGetProducerConnectionList, &wire.ProducerGroupRequest{Group: "PG"}, nil).Code)
}

func TestRuntimeInfoHasWhatToolsRead(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	p.send(b, "T", 0, "x")
	p.must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil)
	info, err := wire.DecodeKVTable(p.must(wire.ReqGetBrokerRuntimeInfo, nil, nil).Body)
	require.NoError(t, err)
	for _, key := range []string{ // clusterList parses these as numbers, without a look whether they are there
		"sendThreadPoolQueueSize", "pullThreadPoolQueueSize", "ackThreadPoolQueueSize", "sendThreadPoolQueueHeadWaitTimeMills",
		"pullThreadPoolQueueHeadWaitTimeMills", "ackThreadPoolQueueHeadWaitTimeMills", "pageCacheLockTimeMills",
		"earliestMessageTimeStamp", "commitLogDiskRatio", "timerReadBehind", "timerOffsetBehind", "timerCongestNum", "timerEnqueueTps",
		"timerDequeueTps", "msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning", "msgPutTotalTodayNow",
		"msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning", "msgGetTotalTodayNow", "bootTimestamp", "dispatchBehindBytes",
	} {
		_, err := strconv.ParseFloat(info.Table[key], 64)
		require.NoError(t, err, key)
	}
	for _, key := range []string{"putTps", "getTransferredTps", "getTransferedTps", "getFoundTps", "getMissTps", "getTotalTps"} {
		require.Len(t, strings.Fields(info.Table[key]), 3, key)
	}
	require.Equal(t, "true", info.Table["brokerActive"])
	require.Equal(t, "V5_3_3", info.Table["brokerVersionDesc"])
	require.Equal(t, "1", info.Table["msgPutTotalTodayNow"])
	require.Equal(t, "1", info.Table["msgGetTotalTodayNow"])

	f := p.must(wire.ReqGetBrokerConfig, nil, nil)
	require.Contains(t, string(f.Body), "brokerName=broker-a\n")
	require.Contains(t, string(f.Body), "autoCreateTopicEnable=true\n")
	require.Contains(t, string(f.Body), "maxTransferCountOnMessageInMemory=32\n")
	_, err = wire.DecodeDataVersion([]byte(f.Text("version")))
	require.NoError(t, err)
}

func TestViewOfNothing(t *testing.T) {
	p := dial(t, startBroker(t))
	f := p.call(wire.ReqViewMessageByID, &wire.ViewMessageRequest{Offset: 99999999}, nil)
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Equal(t, "can not find message by the offset, 99999999", string(f.Remark))
}
