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

// popped is a message as a consumer sees it, with its handle.
type popped struct {
	wire.Record
	body   string
	handle string
	topic  string // where it is
}

// popPeer is a consumer that pops.
type popPeer struct {
	*peer
	group, topic string
}

func dialPop(tb testing.TB, b *Broker, group, topic string) *popPeer {
	tb.Helper()
	return &popPeer{dial(tb, b, func(c *remoting.Config) { c.Encoding = wire.JSON }), group, topic}
}

func (p *popPeer) header(change ...func(*wire.PopRequest)) *wire.PopRequest {
	h := &wire.PopRequest{
		Group: []byte(p.group), Topic: []byte(p.topic), QueueID: wire.AnyQueue, MaxMsgs: 32, InvisibleMillis: 60_000,
		ExprType: []byte("TAG"), Expr: []byte("*"),
	}
	for _, c := range change {
		c(h)
	}
	return h
}

// pop is one POP that does not wait.
func (p *popPeer) pop(change ...func(*wire.PopRequest)) []popped {
	p.tb.Helper()
	f := p.call(wire.ReqPopMessage, p.header(change...), nil)
	if f.Code == wire.RespPollingTimeout {
		return nil
	}
	require.EqualValues(p.tb, wire.RespSuccess, f.Code, string(f.Remark))
	return p.messages(f)
}

// messages reads an answer as consumers do.
func (p *popPeer) messages(f *wire.Frame) []popped {
	p.tb.Helper()
	var resp wire.PopResponse
	require.NoError(p.tb, resp.DecodeExt(f))
	var out []popped
	for b := f.Body; len(b) > 0; {
		var m popped
		n, err := wire.DecodeRecord(b, &m.Record)
		require.NoError(p.tb, err)
		b = b[n:]
		require.Equal(p.tb, p.topic, string(m.Topic))
		m.body, m.topic = string(m.Body), p.topic
		if h := m.Properties.Text(wire.PropPopCK); h != "" {
			m.handle = h
			parsed, err := wire.ParsePopHandle(h)
			require.NoError(p.tb, err)
			m.topic = wire.PopTopic(parsed.Retry, p.group, p.topic)
		} else {
			start, ok := wire.PopStart(resp.StartOffsets, wire.PopNormal, m.QueueID)
			require.True(p.tb, ok)
			h := wire.PopHandle{
				Start: start, PopTime: resp.PopTime, InvisibleMillis: resp.InvisibleMillis, ReviveQueue: resp.ReviveQueue, Retry: wire.PopNormal,
				Broker: "broker-a", QueueID: m.QueueID, Offset: m.QueueOffset,
			}
			m.handle = h.String()
		}
		out = append(out, m)
	}
	return out
}

func (p *popPeer) ackHeader(m popped) *wire.AckRequest {
	return &wire.AckRequest{Group: p.group, Topic: m.topic, QueueID: m.QueueID, Handle: m.handle, Offset: m.QueueOffset}
}

func (p *popPeer) ack(ms ...popped) {
	p.tb.Helper()
	for _, m := range ms {
		p.must(wire.ReqAckMessage, p.ackHeader(m), nil)
	}
}

// hide changes the invisible time of a message and returns it with its new handle.
func (p *popPeer) hide(m popped, d time.Duration) popped {
	p.tb.Helper()
	h := p.ackHeader(m)
	h.InvisibleMillis = d.Milliseconds()
	f := p.must(wire.ReqChangeMessageInvisibletime, h, nil)
	var resp wire.ChangeInvisibleResponse
	require.NoError(p.tb, resp.DecodeExt(f))
	old, err := wire.ParsePopHandle(m.handle)
	require.NoError(p.tb, err)
	old.Start, old.PopTime, old.InvisibleMillis, old.ReviveQueue = m.QueueOffset, resp.PopTime, resp.InvisibleMillis, resp.ReviveQueue
	m.handle = old.String()
	return m
}

func popBodies(ms []popped) []string {
	out := []string{}
	for _, m := range ms {
		out = append(out, m.body)
	}
	return out
}

func atMost(n int32) func(*wire.PopRequest) { return func(h *wire.PopRequest) { h.MaxMsgs = n } }

func invisible(d time.Duration) func(*wire.PopRequest) {
	return func(h *wire.PopRequest) { h.InvisibleMillis = d.Milliseconds() }
}

// advance moves the clock from one event to the next, as testbroker does.
func advance(tb testing.TB, b *Broker, c *clock.Manual, d time.Duration) {
	tb.Helper()
	to := c.Now().Add(d)
	for {
		require.NoError(tb, b.SettleDelays(tb.Context()))
		at, ok := b.NextDelayed()
		if !ok || at.After(to) {
			break
		}
		c.Advance(at.Sub(c.Now()))
	}
	c.Advance(to.Sub(c.Now()))
	require.NoError(tb, b.SettleDelays(tb.Context()))
}

func TestPopAndAck(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	p := dialPop(t, b, "CG", "T")
	for i := range 4 {
		p.send(b, "T", int32(i%2), "m"+strconv.Itoa(i))
	}
	got := p.pop()
	require.ElementsMatch(t, []string{"m0", "m1", "m2", "m3"}, popBodies(got))
	require.Empty(t, p.pop(), "they are hidden")
	for q := range int32(2) {
		off, ok := b.Offset("CG", "T", q)
		require.True(t, ok)
		require.EqualValues(t, 2, off)
	}
	p.ack(got[:3]...)
	advance(t, b, c, 59*time.Second+999*time.Millisecond)
	require.Empty(t, p.pop())
	advance(t, b, c, time.Millisecond)
	again := p.pop()
	require.Equal(t, []string{got[3].body}, popBodies(again))
	require.EqualValues(t, 1, again[0].ReconsumeTimes)
	require.Equal(t, strconv.FormatInt(testStart.UnixMilli(), 10), again[0].Properties.Text(wire.PropFirstPopTime))
	p.ack(again...)
	advance(t, b, c, time.Hour)
	require.Empty(t, p.pop())
}

func TestPopChangesInvisibleTime(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	m := p.pop()[0]
	m = p.hide(m, 10*time.Second) // in the same millisecond
	m = p.hide(m, 20*time.Second)
	advance(t, b, c, 19*time.Second)
	require.Empty(t, p.pop())
	m = p.hide(m, 2*time.Second)
	advance(t, b, c, 2*time.Second)
	again := p.pop()
	require.Len(t, again, 1)
	again[0] = p.hide(again[0], 5*time.Minute)
	p.ack(again...)
	advance(t, b, c, time.Hour)
	require.Empty(t, p.pop())
}
