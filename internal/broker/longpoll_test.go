package broker

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// held waits until the broker holds n pulls.
func held(tb testing.TB, b *Broker, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool { return b.Held() == n }, 30*time.Second, time.Millisecond)
}

func pollFixture(t *testing.T, opts ...func(*Config)) (*Broker, *peer, *clock.Manual) {
	c := clock.NewManual(testStart)
	b := startBroker(t, append(opts, withClock(c))...)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	return b, dial(t, b), c
}

// heldFrom is the offset that the only pull held waits at, -1 at a moment when
// none is held.
func heldFrom(b *Broker) int64 {
	b.polls.mu.Lock()
	defer b.polls.mu.Unlock()
	if b.polls.heap.Len() != 1 {
		return -1
	}
	return b.polls.heap.First().req.Offset
}

// openRequest is a request of the client that waits for its answer, and the
// right to answer it.
func openRequest(tb testing.TB, b *Broker, p *peer) (<-chan *wire.Frame, remoting.Replier) {
	tb.Helper()
	got := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 1, 0)))
	held(tb, b, 1)
	b.polls.mu.Lock()
	defer b.polls.mu.Unlock()
	op := b.polls.heap.First()
	b.polls.take(op)
	return got, op.hold.replier
}

func replierOf(tb testing.TB, b *Broker, p *peer) remoting.Replier {
	_, r := openRequest(tb, b, p)
	return r
}

func TestC64a_ArrivalAnswersAHeldPull(t *testing.T) {
	b, p, _ := pollFixture(t)
	got := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 0)))
	other := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 1, 0)))
	held(t, b, 2)
	p.send(b, "T", 0, "hello")
	f := <-got
	require.EqualValues(t, wire.RespSuccess, f.Code)
	require.Equal(t, []string{"hello"}, bodies(t, f))
	require.EqualValues(t, 1, pullResponse(t, f).NextOffset)
	held(t, b, 1)
	select {
	case <-other:
		t.Fatal("the pull of the other queue was answered")
	default:
	}
}

func TestC64b_ArrivalBetweenReadAndParking(t *testing.T) {
	b, p, _ := pollFixture(t)
	// The read has found nothing, the message comes, then the pull is parked:
	// played by parking an op whose read is older than the message.
	op := b.pulls.Get().(*pullOp)
	op.req = *holding(pullHeaderOf("CG", "T", 0, 0))
	require.True(t, op.check())
	op.read(p.conn(), false)
	require.EqualValues(t, wire.RespPullNotFound, op.code)
	p.send(b, "T", 0, "in between")
	got, r := openRequest(t, b, p)
	require.True(t, b.polls.park(op, r))
	require.Equal(t, []string{"in between"}, bodies(t, <-got))
	held(t, b, 0)
}

func TestC64c_OnlyTheMatchingTagAnswers(t *testing.T) {
	b, p, c := pollFixture(t)
	h := holding(pullHeaderOf("CG", "T", 0, 0))
	h.Subscription = []byte("TagA || TagB")
	got := p.async(wire.ReqPullMessage, h)
	held(t, b, 1)
	for range 3 {
		p.send(b, "T", 0, "not asked for", "TAGS", "TagX")
	}
	// The periodic look finds the filtered messages and goes on waiting behind them.
	advanceUntil(t, c, time.Second, func() bool { return heldFrom(b) == 3 })
	select {
	case f := <-got:
		t.Fatalf("answered with %d %s", f.Code, f.Remark)
	default:
	}
	p.send(b, "T", 0, "wanted", "TAGS", "TagB")
	f := <-got
	require.Equal(t, []string{"wanted"}, bodies(t, f))
	require.EqualValues(t, 4, pullResponse(t, f).NextOffset)
}

func TestC64d_WhatTheBrokerStoresItselfAnswersToo(t *testing.T) {
	// Delayed and committed messages are stored by the broker, not by a
	// client's request: all that counts is that they pass the log.
	b, p, c := pollFixture(t)
	got := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 0)))
	held(t, b, 1)
	res, later := b.Store().Put(&store.Message{Topic: []byte("T"), Body: []byte("delivered"), BornHost: b.host}, nil)
	require.False(t, later)
	require.True(t, res.Status.Stored())
	require.Equal(t, []string{"delivered"}, bodies(t, <-got))

	got = p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 1)))
	held(t, b, 1)
	p.send(b, "T", 0, "delayed", wire.PropDelay, "2")
	held(t, b, 1)
	pass(t, b, c, 5*time.Second)
	require.Equal(t, []string{"delayed"}, bodies(t, <-got))
}

func TestC64e_NothingUntilTheTimeIsOver(t *testing.T) {
	b, p, c := pollFixture(t)
	p.send(b, "T", 0, "old")
	got := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 1)))
	held(t, b, 1)
	c.Advance(20*time.Second - time.Millisecond)
	held(t, b, 1)
	c.Advance(time.Millisecond)
	f := <-got
	require.EqualValues(t, wire.RespPullNotFound, f.Code)
	require.Equal(t, "OFFSET_OVERFLOW_ONE", string(f.Remark))
	require.Equal(t, wire.PullResponse{NextOffset: 1, MaxOffset: 1}, pullResponse(t, f))
	held(t, b, 0)
}

func TestC64f_DisconnectFreesTheSlot(t *testing.T) {
	b, p, _ := pollFixture(t)
	other := dial(t, b)
	for q := range int32(2) {
		p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", q, 0)))
		other.async(wire.ReqPullMessage, holding(pullHeaderOf("CG2", "T", q, 0)))
	}
	held(t, b, 4)
	p.close()
	held(t, b, 2)
	b.polls.mu.Lock()
	defer b.polls.mu.Unlock()
	require.Len(t, b.polls.conns, 1)
}

func TestFilteredOutUntilTimeoutMovesOn(t *testing.T) {
	b, p, c := pollFixture(t)
	h := holding(pullHeaderOf("CG", "T", 0, 0))
	h.Subscription = []byte("TagA")
	got := p.async(wire.ReqPullMessage, h)
	held(t, b, 1)
	p.send(b, "T", 0, "no", "TAGS", "TagX")
	c.Advance(20 * time.Second)
	f := <-got
	require.Contains(t, []int32{wire.RespPullNotFound, wire.RespPullRetryImmediately}, f.Code)
	require.EqualValues(t, 1, pullResponse(t, f).NextOffset)
}

func TestHeldPullOfADeletedTopicIsTold(t *testing.T) {
	b, p, _ := pollFixture(t)
	got := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 0)))
	held(t, b, 1)
	require.NoError(t, b.DeleteTopic(t.Context(), "T"))
	require.EqualValues(t, wire.RespTopicNotExist, (<-got).Code)
}

func TestShortPolling(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.LongPolling = false })
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	got := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 0)))
	held(t, b, 1)
	c.Advance(time.Second)
	require.EqualValues(t, wire.RespPullNotFound, (<-got).Code)
}

func TestCloseAnswersHeldPulls(t *testing.T) {
	b, p, _ := pollFixture(t)
	got := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 0)))
	held(t, b, 1)
	require.NoError(t, b.Close(t.Context()))
	require.EqualValues(t, wire.RespPullNotFound, (<-got).Code)
}

func TestHeldPullsDoNotCostGoroutines(t *testing.T) {
	b, p, _ := pollFixture(t)
	p.send(b, "T", 0, "the connection is up")
	before := runtime.NumGoroutine()
	for range 500 {
		p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 1)))
	}
	held(t, b, 500)
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	p.send(b, "T", 0, "for all of them")
	held(t, b, 0)
}

// TestPollTables compares the tables with a plain list under random work.
func TestPollTables(t *testing.T) {
	b, p, _ := pollFixture(t)
	polls := newPolls(clock.NewManual(testStart), 1)
	conns := []remoting.Replier{replierOf(t, b, p), replierOf(t, b, dial(t, b)), replierOf(t, b, dial(t, b))}
	r := rand.New(rand.NewPCG(1, 2))
	var model []*pullOp
	for range 5000 {
		if len(model) == 0 || r.IntN(5) < 3 {
			op := &pullOp{b: b, topic: b.topics.Lookup([]string{"T", "TBW102"}[r.IntN(2)])}
			op.req.QueueID = r.Int32N(3)
			op.hold.replier = conns[r.IntN(3)]
			op.hold.deadline.At = testStart.Add(time.Duration(r.IntN(1000)) * time.Second)
			polls.mu.Lock()
			polls.insert(op)
			polls.mu.Unlock()
			model = append(model, op)
		} else {
			i := r.IntN(len(model))
			polls.mu.Lock()
			polls.take(model[i])
			polls.mu.Unlock()
			model = slices.Delete(model, i, i+1)
		}
		if len(model) > 0 {
			first := slices.MinFunc(model, func(a, b *pullOp) int { return a.hold.deadline.At.Compare(b.hold.deadline.At) })
			require.Equal(t, first.hold.deadline.At, polls.heap.Next())
		}
		require.EqualValues(t, len(model), polls.n.Load())
	}
	n, m := 0, 0
	for _, byID := range polls.queues {
		for _, q := range byID {
			n += len(q.held)
		}
	}
	for _, list := range polls.conns {
		m += len(list)
	}
	require.Equal(t, len(model), n)
	require.Equal(t, len(model), m)
	for _, op := range model {
		polls.take(op)
	}
	require.Zero(t, polls.n.Load())
	for _, r := range conns {
		require.Empty(t, polls.conns[r.Conn()])
		polls.drop(r.Conn())
	}
	require.Empty(t, polls.conns)
	polls.abandon()
}
