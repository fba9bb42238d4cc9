package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func (p *peer) offset(code int32, ext wire.ExtEncoder) int64 {
	p.tb.Helper()
	var resp wire.OffsetResponse
	require.NoError(p.tb, resp.DecodeExt(p.must(code, ext, nil)))
	return resp.Offset
}

// TestC33_StartOfANewGroup is the broker's part: what it answers to a group
// that asks where to begin.
func TestC33_StartOfANewGroup(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	ask := func(queue int32, strict bool) *wire.Frame {
		h := &wire.QueryOffsetRequest{Group: "New", Topic: "T", QueueID: queue, HasSetZero: strict}
		return p.call(wire.ReqQueryConsumerOffset, h, nil)
	}
	// an empty queue: 0, so that no message falls between two requests
	require.EqualValues(t, wire.RespSuccess, ask(0, false).Code)
	require.Equal(t, "0", ask(0, false).Text("offset"))
	require.EqualValues(t, wire.RespQueryNotFound, ask(0, true).Code, "strict latest is told the truth")
	// a queue or topic that is not there: as 5.3.3
	require.EqualValues(t, wire.RespQueryNotFound, ask(2, false).Code)
	require.EqualValues(t, wire.RespQueryNotFound,
		p.call(wire.ReqQueryConsumerOffset, &wire.QueryOffsetRequest{Group: "New", Topic: "None"}, nil).Code)

	for range 5 {
		p.send(b, "T", 0, "old")
	}
	c.Advance(time.Hour)
	for range 6 {
		p.send(b, "T", 0, "new")
	}
	// young topic: latest means the beginning here, as on real brokers
	require.Equal(t, "0", ask(0, false).Text("offset"))
	require.EqualValues(t, wire.RespQueryNotFound, ask(0, true).Code)
	require.EqualValues(t, 11, p.offset(wire.ReqGetMaxOffset, &wire.QueueRequest{Topic: "T"}))
	require.Zero(t, p.offset(wire.ReqGetMinOffset, &wire.QueueRequest{Topic: "T"}))

	at := func(zone *time.Location, ago time.Duration) int64 {
		ms := c.Now().In(zone).Add(-ago).UnixMilli()
		return p.offset(wire.ReqSearchOffsetByTimestamp, &wire.SearchOffsetRequest{Topic: "T", Timestamp: ms})
	}
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 8*3600), time.FixedZone("", -5*3600)} {
		require.EqualValues(t, 5, at(zone, 30*time.Minute), "exactly the newer ones")
		require.EqualValues(t, 0, at(zone, 2*time.Hour))
		require.EqualValues(t, 11, at(zone, -time.Hour))
	}
	upper := &wire.SearchOffsetRequest{Topic: "T", Timestamp: c.Now().Add(-30 * time.Minute).UnixMilli(), Boundary: "UPPER"}
	require.EqualValues(t, 4, p.offset(wire.ReqSearchOffsetByTimestamp, upper))
}

func TestCommitAndQuery(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	p.send(b, "T", 0, "x")
	p.heartbeat("CG", "id", 1, "T")
	commit := &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 7}
	p.must(wire.ReqUpdateConsumerOffset, commit, nil)
	require.EqualValues(t, 7, p.offset(wire.ReqQueryConsumerOffset, &wire.QueryOffsetRequest{Group: "CG", Topic: "T"}))

	require.NoError(t, p.conn().CallOneway(&wire.Command{Code: wire.ReqUpdateConsumerOffset,
		Ext: &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 3}}))
	require.EqualValues(t, 3, p.offset(wire.ReqQueryConsumerOffset, &wire.QueryOffsetRequest{Group: "CG", Topic: "T", HasSetZero: true}))

	require.EqualValues(t, wire.RespSubscriptionGroupNotExist,
		p.call(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "None", Topic: "T"}, nil).Code)
	require.EqualValues(t, wire.RespTopicNotExist,
		p.call(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "None"}, nil).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqUpdateConsumerOffset, wire.ExtFields{"topic": "T"}, nil).Code)

	b.offsets.Reset([]byte("CG"), []byte("T"), 0, 0)
	f := p.must(wire.ReqUpdateConsumerOffset, commit, nil)
	require.Contains(t, string(f.Remark), "reset")
	require.Zero(t, p.offset(wire.ReqQueryConsumerOffset, &wire.QueryOffsetRequest{Group: "CG", Topic: "T"}))
}

func TestEarliestStoreTime(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	p.send(b, "T", 0, "x")
	ask := func(queue int32) int64 {
		var resp wire.TimestampResponse
		require.NoError(t, resp.DecodeExt(p.must(wire.ReqGetEarliestMsgStoretime, &wire.QueueRequest{Topic: "T", QueueID: queue}, nil)))
		return resp.Timestamp
	}
	require.Equal(t, testStart.UnixMilli(), ask(0))
	require.EqualValues(t, -1, ask(1))
}
