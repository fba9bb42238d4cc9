package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// popFrames are a POP of up to 32 messages and an ack, as clients send them.
func popFrames() (pop, ack []byte) {
	h := &wire.PopRequest{
		Group: []byte("CG"), Topic: []byte("T"), QueueID: wire.AnyQueue, MaxMsgs: 32, InvisibleMillis: 60_000, ExprType: []byte("TAG"), Expr: []byte("*"),
	}
	handle := wire.PopHandle{PopTime: testStart.UnixMilli(), InvisibleMillis: 60_000, Retry: wire.PopNormal, Broker: "broker-a"}
	a := &wire.AckRequest{Group: "CG", Topic: "T", Handle: handle.String()}
	x := wire.Command{Code: wire.ReqPopMessage, Ext: h}
	y := wire.Command{Code: wire.ReqAckMessage, Ext: a}
	return x.Append(nil, wire.Head{Encoding: wire.JSON}), y.Append(nil, wire.Head{Encoding: wire.JSON})
}

// BenchmarkPop pops messages of 1 KiB, 32 at a time.
func BenchmarkPop(b *testing.B) {
	br := benchBroker(b, false)
	require.NoError(b, br.CreateTopic(b.Context(), "T", 4))
	c := rawDial(b, br)
	send := sendFrame("T", make([]byte, 1024))
	c.exchange(b.N*32, send)
	require.NoError(b, br.Store().WaitDispatched(b.Context()))
	pop, _ := popFrames()
	b.ResetTimer()
	perMessage(b, b.N*32, func() { c.exchangeBy(8, b.N, pop) })
}

// BenchmarkPopAck acknowledges single messages.
func BenchmarkPopAck(b *testing.B) {
	br := benchBroker(b, false)
	require.NoError(b, br.CreateTopic(b.Context(), "T", 4))
	c := rawDial(b, br)
	_, ack := popFrames()
	c.exchange(100, ack)
	b.ResetTimer()
	perMessage(b, b.N, func() { c.exchange(b.N, ack) })
}

// TestPopAllocations keeps the way of a POP what it is: next to nothing for a
// message, and little for a request.
func TestPopAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget at random")
	}
	br := startBroker(t)
	require.NoError(t, br.CreateTopic(t.Context(), "T", 4))
	c := rawDial(t, br)
	send := sendFrame("T", make([]byte, 100))
	pop, ack := popFrames()
	const requests, rounds = 20, 5
	c.exchange((rounds+2)*requests*32, send)
	require.NoError(t, br.Store().WaitDispatched(t.Context()))
	c.exchangeBy(1, requests, pop)
	perPop := testing.AllocsPerRun(rounds-1, func() { c.exchangeBy(1, requests, pop) }) / requests
	require.Less(t, perPop, 4.0, "broker allocations per POP of 32 messages")
	c.exchange(1000, ack)
	perAck := testing.AllocsPerRun(rounds, func() { c.exchange(1000, ack) }) / 1000
	require.Less(t, perAck, 8.0, "broker allocations per ack")
	t.Logf("%.2f for a POP, %.2f for an ack", perPop, perAck)
}
