package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestResetOffset(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	p.send(b, "T", 0, "one")
	p.send(b, "T", 0, "two")
	c.Advance(time.Hour)
	p.send(b, "T", 0, "three")
	p.heartbeat("CG", "id", 1, "T")

	reset := func(h *wire.ResetOffsetRequest) map[wire.MessageQueue]int64 {
		h.Topic, h.Group = "T", "CG"
		got, err := wire.DecodeOffsetTable(p.must(wire.ReqInvokeBrokerToResetOffset, h, nil).Body)
		require.NoError(t, err)
		return got.Offsets
	}
	q0, q1 := wire.MessageQueue{Topic: "T", Broker: "broker-a"}, wire.MessageQueue{Topic: "T", Broker: "broker-a", QueueID: 1}
	require.Equal(t, map[wire.MessageQueue]int64{q0: 3, q1: 0}, reset(&wire.ResetOffsetRequest{Timestamp: -1}))

	pull := func() *wire.PullRequest {
		h := holding(pullHeaderOf("CG", "T", 0, 3))
		return h
	}
	require.EqualValues(t, 3, pullResponse(t, p.call(wire.ReqPullMessage, pull(), nil)).NextOffset)
	got := p.async(wire.ReqPullMessage, pull())
	held(t, b, 1)
	halfAnHourAgo := c.Now().Add(-30 * time.Minute).UnixMilli()
	require.Equal(t, map[wire.MessageQueue]int64{q0: 2, q1: 0}, reset(&wire.ResetOffsetRequest{Timestamp: halfAnHourAgo}))
	f := <-got
	require.EqualValues(t, wire.RespPullOffsetMoved, f.Code, "a held pull is told at once")
	require.EqualValues(t, 2, pullResponse(t, f).NextOffset)

	require.Equal(t, map[wire.MessageQueue]int64{q0: 1},
		reset(&wire.ResetOffsetRequest{Timestamp: -1, OneQueue: true, QueueID: 0, Offset: 1}))
	require.Equal(t, map[wire.MessageQueue]int64{q0: 3},
		reset(&wire.ResetOffsetRequest{Timestamp: -1, OneQueue: true, QueueID: 0, Offset: -1, Force: true}))

	for name, c := range map[string]struct {
		h    wire.ResetOffsetRequest
		code int32
	}{
		"topic":  {wire.ResetOffsetRequest{Topic: "None", Group: "CG"}, wire.RespTopicNotExist},
		"group":  {wire.ResetOffsetRequest{Topic: "T", Group: "None"}, wire.RespSubscriptionGroupNotExist},
		"queue":  {wire.ResetOffsetRequest{Topic: "T", Group: "CG", OneQueue: true, QueueID: 2}, wire.RespSystemError},
		"offset": {wire.ResetOffsetRequest{Topic: "T", Group: "CG", OneQueue: true, Offset: 4}, wire.RespSystemError},
	} {
		require.Equal(t, c.code, p.call(wire.ReqInvokeBrokerToResetOffset, &c.h, nil).Code, name)
	}
}

// What a time says is only ever back, unless it is forced.
func TestC44_ForwardNeedsForce(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	for range 10 {
		p.send(b, "T", 0, "x")
		c.Advance(time.Minute)
	}
	p.heartbeat("CG", "id", 1, "T")
	b.offsets.Commit([]byte("CG"), []byte("T"), 0, 5)
	for name, test := range map[string]struct {
		h    wire.ResetOffsetRequest
		want int64
		told bool
	}{
		"back":                    {wire.ResetOffsetRequest{Timestamp: testStart.UnixMilli()}, 0, true},
		"forward":                 {wire.ResetOffsetRequest{Timestamp: -1}, 5, false},
		"forward, forced":         {wire.ResetOffsetRequest{Timestamp: -1, Force: true}, 10, true},
		"forward to an offset":    {wire.ResetOffsetRequest{Timestamp: -1, OneQueue: true, Offset: 7}, 7, true},
		"one queue, forward":      {wire.ResetOffsetRequest{Timestamp: -1, OneQueue: true, Offset: -1}, 5, false},
		"one queue, forward hard": {wire.ResetOffsetRequest{Timestamp: -1, OneQueue: true, Offset: -1, Force: true}, 10, true},
	} {
		h := test.h
		h.Topic, h.Group = "T", "CG"
		got, err := wire.DecodeOffsetTable(p.must(wire.ReqInvokeBrokerToResetOffset, &h, nil).Body)
		require.NoError(t, err)
		require.Equal(t, test.want, got.Offsets[wire.MessageQueue{Topic: "T", Broker: "broker-a"}], name)
		// A pull that commits, as those of a running group do: 5 is of the past.
		pull := pullHeaderOf("CG", "T", 0, 5)
		pull.SysFlag |= wire.PullCommitOffset
		pull.CommitOffset = 5
		f := p.call(wire.ReqPullMessage, pull, nil)
		require.Equal(t, test.told, f.Code == wire.RespPullOffsetMoved, name)
		off, _ := b.Offset("CG", "T", 0)
		require.Equal(t, test.want, off, name)
		p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 4}, nil)
		off, _ = b.Offset("CG", "T", 0)
		require.Equal(t, test.told, off == test.want, "%s: a commit that crosses the answer is of the past, too", name)
		p.call(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, test.want), nil)
		p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 5}, nil)
	}
}

// TestC05_ObjectKeysHarmNobody: bodies of the dialect with objects as keys,
// whole and cut off anywhere, sent where a body is expected. The broker answers
// each, and the connection lives.
func TestC05_ObjectKeysHarmNobody(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	conn := p.conn()
	for _, body := range []string{
		`{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:5}}`,
		`{"offsetTable":[[{"brokerName":"b","queueId":1,"topic":"T"},5]]}`,
		`{"offsetTable":{}}`,
		`{"clientId":"c","consumerGroup":"CG","mqSet":[{"brokerName":"b","queueId":1,"topic":"T"}]}`,
		`{"clientID":"c","consumerDataSet":[{"groupName":"CG","subscriptionDataSet":[{"topic":"T"}]}],"producerDataSet":[]}`,
	} {
		for n := range len(body) + 1 {
			for _, code := range []int32{
				wire.ReqHeartBeat, wire.ReqLockBatchMQ, wire.ReqUnlockBatchMQ, wire.ReqCheckClientConfig,
				wire.ReqUpdateAndCreateTopicList, wire.ReqUpdateAndCreateSubscriptiongroup,
			} {
				f := p.call(code, nil, []byte(body[:n]))
				require.NotContains(t, string(f.Remark), "panic")
			}
		}
	}
	require.Same(t, conn, p.conn())
	require.NoError(t, conn.Err())
}
