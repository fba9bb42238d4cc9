package broker

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// inOrder pops in order, as one attempt.
func inOrder(attempt string) func(*wire.PopRequest) {
	return func(h *wire.PopRequest) {
		h.Order, h.AttemptID = true, []byte(attempt)
	}
}

// popOrdered pops in order and returns what the answer says of attempts.
func (p *popPeer) popOrdered(attempt string, change ...func(*wire.PopRequest)) (got []popped, counts string) {
	p.tb.Helper()
	f := p.call(wire.ReqPopMessage, p.header(append(change, inOrder(attempt))...), nil)
	if f.Code == wire.RespPollingTimeout {
		return nil, ""
	}
	require.EqualValues(p.tb, wire.RespSuccess, f.Code, string(f.Remark))
	var resp wire.PopResponse
	require.NoError(p.tb, resp.DecodeExt(f))
	require.Equal(p.tb, wire.PopOrderQueue, resp.ReviveQueue)
	return p.messages(f), string(resp.OrderCounts)
}

func TestPopInOrder(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 5 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	got, counts := p.popOrdered("a1", atMost(3))
	require.Equal(t, []string{"0", "1", "2"}, popBodies(got))
	require.Equal(t, "0 0 0", counts)
	none, _ := p.popOrdered("a2")
	require.Empty(t, none, "the queue is blocked")
	same, _ := p.popOrdered("a1", atMost(3))
	require.Equal(t, []string{"0", "1", "2"}, popBodies(same), "but not for a repetition")
	got = same
	p.ack(got[1])
	off, _ := b.Offset("CG", "T", 0)
	require.EqualValues(t, 0, off, "the first one is not done")
	p.ack(got[0])
	off, _ = b.Offset("CG", "T", 0)
	require.EqualValues(t, 2, off)
	none, _ = p.popOrdered("a2")
	require.Empty(t, none)

	// the one that is not done comes again, and those after it
	c.Advance(time.Minute)
	got, counts = p.popOrdered("a3", atMost(2))
	require.Equal(t, []string{"2", "3"}, popBodies(got))
	require.Equal(t, "0 qo0%2 1;0 0 0", counts)
	require.EqualValues(t, wire.RespMessageIllegal, p.call(wire.ReqAckMessage, p.ackHeader(popped{
		Record: wire.Record{QueueOffset: 4}, topic: "T", handle: got[0].handle,
	}), nil).Code, "that one was not popped")
	p.ack(same[2]) // with a handle that is no longer valid
	off, _ = b.Offset("CG", "T", 0)
	require.EqualValues(t, 2, off)
	p.ack(got...)
	got, _ = p.popOrdered("a4")
	require.Equal(t, []string{"4"}, popBodies(got))
}

func TestPopInOrderChangesInvisibleTime(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	got, _ := p.popOrdered("a1")
	c.Advance(5 * time.Second)
	m := p.hide(got[0], 10*time.Second)
	h, err := wire.ParsePopHandle(m.handle)
	require.NoError(t, err)
	require.EqualValues(t, testStart.UnixMilli(), h.PopTime)
	require.EqualValues(t, 15_000, h.InvisibleMillis)
	later := p.popLater(polling(time.Minute), inOrder("a2"))
	parked(t, b, 1)
	c.Advance(9*time.Second + 999*time.Millisecond)
	require.Equal(t, 1, b.Held())
	c.Advance(time.Millisecond)
	again := p.messages(awaited(t, later))
	require.Equal(t, []string{"m"}, popBodies(again))
	p.hide(again[0], time.Millisecond)
	c.Advance(time.Millisecond)
	got, counts := p.popOrdered("a3")
	require.Equal(t, []string{"m"}, popBodies(got))
	require.Equal(t, "0 qo0%0 2;0 0 2", counts)
	p.ack(got...)
	p.hide(got[0], time.Second) // it is done
	later = p.popLater(polling(time.Minute), inOrder("a4"))
	parked(t, b, 1)
	p.send(b, "T", 0, "n")
	require.Equal(t, []string{"n"}, popBodies(p.messages(awaited(t, later))))
}

func TestAckInOrderWakesWhoWaits(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "0")
	p.send(b, "T", 0, "1")
	got, _ := p.popOrdered("a1", atMost(1))
	require.Len(t, got, 1)
	later := p.popLater(polling(time.Minute), inOrder("a2"), atMost(1))
	parked(t, b, 1)
	p.ack(got...)
	require.Equal(t, []string{"1"}, popBodies(p.messages(awaited(t, later))))
}

func TestOrderSurvivesARestart(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 3 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	got, _ := p.popOrdered("a1")
	require.Len(t, got, 3)
	p.ack(got[0])
	require.NoError(t, b.Close(t.Context()))
	b = startWith(t, cfg)
	p = dialPop(t, b, "CG", "T")
	none, _ := p.popOrdered("a2")
	require.Empty(t, none, "still blocked")
	p.ack(got[1])
	c.Advance(time.Minute)
	got, counts := p.popOrdered("a3")
	require.Equal(t, []string{"2"}, popBodies(got))
	require.Equal(t, "0 qo0%2 1;0 0 1", counts)
	require.NoError(t, b.DeleteTopic(t.Context(), "T"))
	require.NoError(t, b.Close(t.Context()))
	doc, err := cfg.Store.FS.ReadFile("/store/config/consumerOrderInfo.json")
	require.NoError(t, err)
	require.NotContains(t, string(doc), "T@CG")
}

func TestResetEndsABlock(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 3 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	got, _ := p.popOrdered("a1", atMost(1))
	require.Len(t, got, 1)
	later := p.popLater(polling(time.Minute), inOrder("a2"))
	parked(t, b, 1)
	p.must(wire.ReqInvokeBrokerToResetOffset, &wire.ResetOffsetRequest{Group: "CG", Topic: "T", OneQueue: true, Offset: 2, Timestamp: -1}, nil)
	require.Equal(t, []string{"2"}, popBodies(p.messages(awaited(t, later))))
}

func TestBatchAckInOrder(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 3 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	got, _ := p.popOrdered("a1")
	h, err := wire.ParsePopHandle(got[0].handle)
	require.NoError(t, err)
	a := wire.PopAcks{Group: "CG", Topic: "T", Retry: wire.PopNormal, Start: h.Start, ReviveQueue: h.ReviveQueue, PopTime: h.PopTime}
	require.True(t, a.Add(0))
	require.True(t, a.Add(1))
	body := wire.BatchAck{Acks: []wire.PopAcks{a}}
	p.must(wire.ReqBatchAckMessage, nil, body.AppendJSON(nil))
	off, _ := b.Offset("CG", "T", 0)
	require.EqualValues(t, 2, off)
}
