package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func (p *peer) assignments(change func(*wire.AssignmentRequest)) (queues []int32, mode string, known bool) {
	p.tb.Helper()
	req := wire.AssignmentRequest{ClientID: "c1", Group: "CG", Model: wire.Clustering, Strategy: "AVG", Topic: "T"}
	if change != nil {
		change(&req)
	}
	list, err := wire.DecodeAssignments(p.must(wire.ReqQueryAssignment, nil, req.AppendJSON(nil)).Body)
	require.NoError(p.tb, err)
	for _, a := range list.List {
		require.Equal(p.tb, "T", a.Queue.Topic)
		require.Equal(p.tb, "broker-a", a.Queue.Broker)
		queues, mode = append(queues, a.Queue.QueueID), a.Mode
	}
	return queues, mode, list.Known
}

func (p *peer) setMode(mode wire.RequestMode) *wire.Frame {
	return p.call(wire.ReqSetMessageRequestMode, nil, mode.AppendJSON(nil))
}

func TestAssignments(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 5))
	var peers []*peer
	for _, id := range []string{"c3", "c1", "c2"} {
		p := dial(t, b)
		p.heartbeat("CG", id, 1, "T")
		peers = append(peers, p)
	}
	p := peers[0]
	of := func(id string) func(*wire.AssignmentRequest) {
		return func(r *wire.AssignmentRequest) { r.ClientID = id }
	}
	got, mode, _ := p.assignments(nil)
	require.Equal(t, []int32{0, 1}, got)
	require.Equal(t, wire.ModePull, mode)
	got, _, _ = p.assignments(of("c3"))
	require.Equal(t, []int32{4}, got)
	got, _, _ = p.assignments(func(r *wire.AssignmentRequest) { r.Strategy = "AVG_BY_CIRCLE" })
	require.Equal(t, []int32{0, 3}, got)
	got, _, known := p.assignments(of("stranger"))
	require.Empty(t, got)
	require.True(t, known, "who is no member has nothing")
	got, _, _ = p.assignments(func(r *wire.AssignmentRequest) { r.Model, r.Group = wire.Broadcasting, "nobody" })
	require.Len(t, got, 5)
	for name, change := range map[string]func(*wire.AssignmentRequest){
		"strategy": func(r *wire.AssignmentRequest) { r.Strategy = "MACHINE_ROOM" },
		"group":    func(r *wire.AssignmentRequest) { r.Group = "nobody" },
		"topic":    func(r *wire.AssignmentRequest) { r.Topic = "no" },
	} {
		_, _, known := p.assignments(change)
		require.False(t, known, name)
	}

	require.EqualValues(t, wire.RespSuccess, p.setMode(wire.RequestMode{Group: "CG", Topic: "T", Mode: wire.ModePop}).Code)
	got, mode, _ = p.assignments(nil)
	require.Equal(t, []int32{-1}, got)
	require.Equal(t, wire.ModePop, mode)
	require.EqualValues(t, wire.RespSuccess, p.setMode(wire.RequestMode{Group: "CG", Topic: "T", Mode: wire.ModePop, ShareQueues: 1}).Code)
	got, _, _ = p.assignments(of("c3"))
	require.Equal(t, []int32{4, 0, 1}, got, "its own, and those of the next member")
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	got, _, _ = p.assignments(of("c3"))
	require.Equal(t, []int32{0}, got, "each member has one")
}

func TestRequestModes(t *testing.T) {
	cfg := testConfig(func(c *Config) { c.AutoCreateGroup = false })
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
	p := dial(t, b)
	for name, x := range map[string]struct {
		mode wire.RequestMode
		code int32
	}{
		"retry": {wire.RequestMode{Group: "CG", Topic: "%RETRY%CG", Mode: wire.ModePop}, wire.RespNoPermission},
		"topic": {wire.RequestMode{Group: "CG", Topic: "no", Mode: wire.ModePop}, wire.RespTopicNotExist},
		"group": {wire.RequestMode{Group: "no", Topic: "T", Mode: wire.ModePop}, wire.RespSubscriptionGroupNotExist},
		"mode":  {wire.RequestMode{Group: "CG", Topic: "T", Mode: "PUSH"}, wire.RespInvalidParameter},
		"good":  {wire.RequestMode{Group: "CG", Topic: "T", Mode: wire.ModePop, ShareQueues: 3}, wire.RespSuccess},
	} {
		require.Equal(t, x.code, p.setMode(x.mode).Code, name)
	}
	b.Kill()
	b = startWith(t, cfg)
	f := dial(t, b).must(wire.ReqGetAllMessageRequestMode, nil, nil)
	require.Equal(t, `{"messageRequestModeMap":{"T":{"CG":{"consumerGroup":"CG","mode":"POP","popShareQueueNum":3,"topic":"T"}}}}`, string(f.Body))
}

func TestAssignmentsCoverAllBrokers(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	b := startBroker(t, withClock(clock.NewManual(testStart)), func(c *Config) { c.NameServers = []string{ns.addr} })
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	route := wire.RouteData{
		Queues:  []wire.QueueData{{BrokerName: "broker-b", ReadQueues: 2, WriteQueues: 2, Perm: 6}, {BrokerName: "broker-a", ReadQueues: 1, WriteQueues: 1, Perm: 6}, {BrokerName: "w", ReadQueues: 9, Perm: 2}},
		Brokers: []wire.BrokerData{{Cluster: "C", BrokerName: "broker-a", Addrs: map[int64]string{0: "x:1"}}},
	}
	ns.mu.Lock()
	ns.body = route.AppendJSON(nil)
	ns.mu.Unlock()
	p := dial(t, b)
	p.heartbeat("CG", "c1", 1, "T")
	all := func() []wire.MessageQueue {
		req := wire.AssignmentRequest{ClientID: "c1", Group: "CG", Model: wire.Clustering, Strategy: "AVG", Topic: "T"}
		list, err := wire.DecodeAssignments(p.must(wire.ReqQueryAssignment, nil, req.AppendJSON(nil)).Body)
		require.NoError(t, err)
		var queues []wire.MessageQueue
		for _, a := range list.List {
			queues = append(queues, a.Queue)
		}
		return queues
	}
	require.Equal(t, []wire.MessageQueue{{Topic: "T", Broker: "broker-a"}, {Topic: "T", Broker: "broker-b"}, {Topic: "T", Broker: "broker-b", QueueID: 1}}, all())
	ns.mu.Lock()
	ns.body = []byte("nonsense")
	ns.mu.Unlock()
	require.Equal(t, []wire.MessageQueue{{Topic: "T", Broker: "broker-a"}}, all(), "what this broker knows by itself")
}
