package broker

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// polling makes a POP wait.
func polling(d time.Duration) func(*wire.PopRequest) {
	return func(h *wire.PopRequest) { h.PollMillis = d.Milliseconds() }
}

// popLater is a POP whose answer is waited for elsewhere.
func (p *popPeer) popLater(change ...func(*wire.PopRequest)) <-chan *wire.Frame {
	p.tb.Helper()
	return p.async2(wire.ReqPopMessage, p.header(change...))
}

func (p *popPeer) async2(code int32, ext wire.ExtEncoder) <-chan *wire.Frame {
	p.tb.Helper()
	x := &jsonAnswer{answer{cmd: wire.Command{Code: code, Ext: ext}, ch: make(chan *wire.Frame, 1)}}
	_, err := p.conn().Start(x, time.Time{}, remoting.Inline)
	require.NoError(p.tb, err)
	return x.ch
}

// jsonAnswer is an answer to a request with a JSON header.
type jsonAnswer struct{ answer }

func (x *jsonAnswer) AppendFrame(dst []byte, opaque int32) []byte {
	return x.cmd.Append(dst, wire.Head{Opaque: opaque, Encoding: wire.JSON})
}

// parked waits until so many requests wait.
func parked(tb testing.TB, b *Broker, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool { return b.Held() == n }, 30*time.Second, time.Millisecond)
}

func awaited(tb testing.TB, ch <-chan *wire.Frame) *wire.Frame {
	tb.Helper()
	select {
	case f := <-ch:
		require.NotNil(tb, f)
		return f
	case <-tb.Context().Done():
		tb.Fatal("no answer")
		return nil
	}
}

func TestPopWaitsForAMessage(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	p := dialPop(t, b, "CG", "T")
	for _, queue := range []int32{-1, 3} {
		later := p.popLater(polling(15*time.Second), func(h *wire.PopRequest) { h.QueueID = queue })
		parked(t, b, 1)
		p.send(b, "T", 3, "m")
		f := awaited(t, later)
		require.EqualValues(t, wire.RespSuccess, f.Code)
		got := p.messages(f)
		require.Equal(t, []string{"m"}, popBodies(got))
		p.ack(got...)
	}
	later := p.popLater(polling(15*time.Second), func(h *wire.PopRequest) { h.QueueID = 2 })
	parked(t, b, 1)
	p.send(b, "T", 3, "another queue's")
	c.Advance(14*time.Second + 999*time.Millisecond)
	require.Equal(t, 1, b.Held())
	c.Advance(time.Millisecond)
	f := awaited(t, later)
	require.EqualValues(t, wire.RespPollingTimeout, f.Code)
	var resp wire.PopResponse
	require.NoError(t, resp.DecodeExt(f))
	require.Zero(t, b.Held())
}

func TestPopWaitsForAMessageItWants(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m0", "TAGS", "B")
	tagA := func(h *wire.PopRequest) { h.Expr = []byte("A") }
	later := p.popLater(polling(15*time.Second), tagA)
	parked(t, b, 1)
	for i := range 10 {
		p.send(b, "T", 0, "no"+strconv.Itoa(i), "TAGS", "B")
	}
	require.Equal(t, 1, b.Held())
	p.send(b, "T", 0, "yes", "TAGS", "A")
	require.Equal(t, []string{"yes"}, popBodies(p.messages(awaited(t, later))))
}

func TestPopWaitsForWhatComesAgain(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	require.Len(t, p.pop(invisible(10*time.Second)), 1)
	for _, queue := range []int32{-1, 2} { // any of them looks at the retry topic
		later := p.popLater(polling(15*time.Second), invisible(10*time.Second), func(h *wire.PopRequest) { h.QueueID = queue })
		parked(t, b, 1)
		advance(t, b, c, 10*time.Second)
		require.Equal(t, []string{"m"}, popBodies(p.messages(awaited(t, later))))
	}
}

func TestPopWakesOneAfterTheOther(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	var all []<-chan *wire.Frame
	for i := range 5 {
		all = append(all, p.popLater(polling(15*time.Second), atMost(1)))
		parked(t, b, i+1)
	}
	for i := range 5 {
		p.send(b, "T", 0, strconv.Itoa(i))
		f := awaited(t, all[i])
		require.Equal(t, []string{strconv.Itoa(i)}, popBodies(p.messages(f)), "who has waited longest is first")
	}
}

func TestWaitingPopsEndWithTheirConnection(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.popLater(polling(15 * time.Second))
	parked(t, b, 1)
	p.close()
	parked(t, b, 0)
	q := dialPop(t, b, "CG", "T")
	q.send(b, "T", 0, "m")
	require.Len(t, q.pop(), 1, "nobody took it for a client that is gone")
}

func TestWaitingPopsAreToldOfTheEnd(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	require.NoError(t, b.CreateTopic(t.Context(), "U", 1))
	p, u := dialPop(t, b, "CG", "T"), dialPop(t, b, "CG", "U")
	gone := u.popLater(polling(15 * time.Second))
	parked(t, b, 1)
	require.NoError(t, b.DeleteTopic(t.Context(), "U"))
	require.EqualValues(t, wire.RespTopicNotExist, awaited(t, gone).Code)
	later := p.popLater(polling(15 * time.Second))
	parked(t, b, 1)
	require.NoError(t, b.Close(t.Context()))
	require.EqualValues(t, wire.RespPollingTimeout, awaited(t, later).Code)
}

func TestPollingInfo(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	p := dialPop(t, b, "CG", "T")
	polls := func(queue int32) int32 {
		f := p.must(wire.ReqPollingInfo, &wire.PollingInfoRequest{Group: "CG", Topic: "T", QueueID: queue}, nil)
		var resp wire.PollingInfoResponse
		require.NoError(t, resp.DecodeExt(f))
		return resp.Polling
	}
	require.Zero(t, polls(-1))
	p.popLater(polling(15 * time.Second))
	p.popLater(polling(15*time.Second), func(h *wire.PopRequest) { h.QueueID = 1 })
	parked(t, b, 2)
	require.EqualValues(t, 1, polls(-1))
	require.EqualValues(t, 1, polls(1))
	require.Zero(t, polls(0))
	require.EqualValues(t, wire.RespInvalidParameter, p.call(wire.ReqPollingInfo, &wire.PollingInfoRequest{Group: "CG", Topic: "T", QueueID: 2}, nil).Code)
}

func TestTooManyWaitingPops(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	const limit = 1025 // Apache's limit is passed by one
	for range limit {
		p.popLater(polling(time.Hour))
	}
	parked(t, b, limit)
	require.EqualValues(t, wire.RespPollingFull, p.call(wire.ReqPopMessage, p.header(polling(time.Hour)), nil).Code)
	f := p.must(wire.ReqNotification, &wire.NotificationRequest{Group: "CG", Topic: "T", QueueID: -1, PollMillis: 1000}, nil)
	var resp wire.NotificationResponse
	require.NoError(t, resp.DecodeExt(f))
	require.True(t, resp.Full)
	require.Len(t, dialPop(t, b, "other", "T").header().Group, 5, "another group has a list of its own")
}

func TestNotification(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	p := dialPop(t, b, "CG", "T")
	ask := func(poll time.Duration) <-chan *wire.Frame {
		return p.async2(wire.ReqNotification, &wire.NotificationRequest{Group: "CG", Topic: "T", QueueID: -1, PollMillis: poll.Milliseconds()})
	}
	has := func(f *wire.Frame) bool {
		require.EqualValues(t, wire.RespSuccess, f.Code, string(f.Remark))
		var resp wire.NotificationResponse
		require.NoError(t, resp.DecodeExt(f))
		return resp.HasMsg
	}
	require.False(t, has(awaited(t, ask(0))))
	later := ask(time.Second)
	parked(t, b, 1)
	c.Advance(time.Second)
	require.False(t, has(awaited(t, later)))
	later = ask(time.Second)
	parked(t, b, 1)
	p.send(b, "T", 1, "m")
	require.True(t, has(awaited(t, later)))
	require.True(t, has(awaited(t, ask(time.Second))), "it is still there")
	require.Len(t, p.pop(invisible(10*time.Second)), 1)
	later = ask(time.Hour)
	parked(t, b, 1)
	advance(t, b, c, 10*time.Second)
	require.True(t, has(awaited(t, later)))
	require.EqualValues(t, wire.RespTopicNotExist, p.call(wire.ReqNotification, &wire.NotificationRequest{Group: "CG", Topic: "no"}, nil).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqNotification, nil, nil).Code)
}
