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
	p.hide(m, 2*time.Second)
	advance(t, b, c, 2*time.Second)
	again := p.pop()
	require.Len(t, again, 1)
	again[0] = p.hide(again[0], 5*time.Minute)
	p.ack(again...)
	advance(t, b, c, time.Hour)
	require.Empty(t, p.pop())
}

func TestPopBatchAck(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 10 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	got := p.pop()
	require.Len(t, got, 10)
	h, err := wire.ParsePopHandle(got[0].handle)
	require.NoError(t, err)
	a := wire.PopAcks{
		Group: "CG", Topic: "T", Retry: wire.PopNormal, Start: h.Start, ReviveQueue: h.ReviveQueue, PopTime: h.PopTime, InvisibleMillis: h.InvisibleMillis,
	}
	for _, off := range []int64{0, 2, 9, 200} {
		require.True(t, a.Add(off))
	}
	gone := a
	gone.Topic = "nowhere"
	body := wire.BatchAck{Broker: "broker-a", Acks: []wire.PopAcks{gone, a}}
	p.must(wire.ReqBatchAckMessage, nil, body.AppendJSON(nil))
	require.EqualValues(t, wire.RespNoMessage, p.call(wire.ReqBatchAckMessage, nil, nil).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqBatchAckMessage, nil, []byte("{")).Code)
	advance(t, b, c, time.Minute)
	again := p.pop()
	require.Equal(t, []string{"1", "3", "4", "5", "6", "7", "8"}, popBodies(again))

	// those from the retry topic are acknowledged with its flag
	h, err = wire.ParsePopHandle(again[0].handle)
	require.NoError(t, err)
	a = wire.PopAcks{
		Group: "CG", Topic: "T", Retry: h.Retry, Start: h.Start, ReviveQueue: h.ReviveQueue, PopTime: h.PopTime, InvisibleMillis: h.InvisibleMillis,
	}
	for _, m := range again {
		require.True(t, a.Add(m.QueueOffset))
	}
	body.Acks = []wire.PopAcks{a}
	p.must(wire.ReqBatchAckMessage, nil, body.AppendJSON(nil))
	advance(t, b, c, time.Hour)
	require.Empty(t, p.pop())
}

func TestPopMovesToDeadLettersAfterTheMaximum(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	g := wire.NewSubscriptionGroup("CG")
	g.RetryMaxTimes = 2
	require.NoError(t, b.PutGroup(g))
	p := dialPop(t, b, "CG", "T")
	sent := p.send(b, "T", 0, "m", "TAGS", "TagA", "k", "v")
	for times := range int32(3) {
		got := p.pop()
		require.Equal(t, []string{"m"}, popBodies(got))
		require.Equal(t, times, got[0].ReconsumeTimes)
		require.Equal(t, "v", got[0].Properties.Text("k"))
		require.Equal(t, "TagA", got[0].Properties.Text("TAGS"))
		if times > 0 {
			require.Equal(t, "%RETRY%CG_T", got[0].topic)
			require.Equal(t, strconv.FormatInt(testStart.UnixMilli(), 10), got[0].Properties.Text(wire.PropFirstPopTime))
		}
		advance(t, b, c, time.Minute)
	}
	require.Empty(t, p.pop())
	f := p.must(wire.ReqPullMessage, pullHeaderOf("any", "%DLQ%CG", 0, 0), nil)
	var rec wire.Record
	_, err := wire.DecodeRecord(f.Body, &rec)
	require.NoError(t, err)
	require.Equal(t, "m", string(rec.Body))
	require.EqualValues(t, 3, rec.ReconsumeTimes)
	require.Equal(t, "T", rec.Properties.Text(wire.PropRetryTopic))
	require.NotEmpty(t, rec.Properties.Text(wire.PropOriginMessageID))
	require.NotEmpty(t, string(sent.OffsetMsgID))
	advance(t, b, c, time.Hour)
	require.Empty(t, p.pop())
}

func TestPopFilters(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i, tag := range []string{"A", "B", "A", "C", "A"} {
		p.send(b, "T", 0, tag+strconv.Itoa(i), "TAGS", tag, "n", strconv.Itoa(i))
	}
	tagA := func(h *wire.PopRequest) { h.Expr = []byte("A") }
	got := p.pop(tagA)
	require.Equal(t, []string{"A0", "A2", "A4"}, popBodies(got))
	p.ack(got[0], got[2])
	advance(t, b, c, time.Minute)
	got = p.pop(tagA)
	require.Equal(t, []string{"A2"}, popBodies(got), "only what was given out and not acknowledged")
	p.ack(got...)

	other := dialPop(t, b, "SQL", "T")
	sql := func(h *wire.PopRequest) { h.ExprType, h.Expr = []byte("SQL92"), []byte("n > 2") }
	require.Equal(t, []string{"C3", "A4"}, popBodies(other.pop(sql)))
	f := other.call(wire.ReqPopMessage, other.header(func(h *wire.PopRequest) { h.ExprType, h.Expr = []byte("SQL92"), []byte("n >") }), nil)
	require.EqualValues(t, wire.RespSubscriptionParseFailed, f.Code)
	f = other.call(wire.ReqPopMessage, other.header(func(h *wire.PopRequest) { h.Expr = []byte("||") }), nil)
	require.EqualValues(t, wire.RespSubscriptionParseFailed, f.Code)

	// a filter that wants nothing moves the offset all the same
	none := dialPop(t, b, "NONE", "T")
	require.Empty(t, none.pop(func(h *wire.PopRequest) { h.Expr = []byte("Z") }))
	off, ok := b.Offset("NONE", "T", 0)
	require.True(t, ok)
	require.EqualValues(t, 5, off)
}

func TestPopChecks(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.AutoCreateGroup = false })
	require.NoError(t, b.PutTopics(t.Context(), wire.TopicConfig{Name: "T", ReadQueues: 2, WriteQueues: 2, Perm: 6}, wire.TopicConfig{Name: "W", ReadQueues: 2, WriteQueues: 2, Perm: 2}))
	off := wire.NewSubscriptionGroup("OFF")
	off.ConsumeEnable = false
	require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
	require.NoError(t, b.PutGroup(off))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	for name, x := range map[string]struct {
		change func(*wire.PopRequest)
		code   int32
	}{
		"topic":       {func(h *wire.PopRequest) { h.Topic = []byte("no") }, wire.RespTopicNotExist},
		"permission":  {func(h *wire.PopRequest) { h.Topic = []byte("W") }, wire.RespNoPermission},
		"queue":       {func(h *wire.PopRequest) { h.QueueID = 2 }, wire.RespInvalidParameter},
		"count":       {func(h *wire.PopRequest) { h.MaxMsgs = 33 }, wire.RespInvalidParameter},
		"group":       {func(h *wire.PopRequest) { h.Group = []byte("no") }, wire.RespSubscriptionGroupNotExist},
		"forbidden":   {func(h *wire.PopRequest) { h.Group = []byte("OFF") }, wire.RespNoPermission},
		"below zero":  {func(h *wire.PopRequest) { h.InvisibleMillis = -1 }, wire.RespInvalidParameter},
		"beyond":      {func(h *wire.PopRequest) { h.InvisibleMillis = 4 * 24 * 3600 * 1000 }, wire.RespInvalidParameter},
		"late":        {func(h *wire.PopRequest) { h.BornTime = testStart.UnixMilli() - 1501; h.PollMillis = 1000 }, wire.RespPollingTimeout},
		"not so late": {func(h *wire.PopRequest) { h.BornTime = testStart.UnixMilli() - 1500; h.PollMillis = 1000 }, wire.RespSuccess},
	} {
		f := p.call(wire.ReqPopMessage, p.header(x.change), nil)
		require.Equal(t, x.code, f.Code, name)
		var resp wire.PopResponse
		require.NoError(t, resp.DecodeExt(f), "%s: java clients read the numbers of each answer", name)
	}
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqPopMessage, nil, nil).Code)

	good := wire.PopHandle{PopTime: testStart.UnixMilli(), InvisibleMillis: 60_000, Retry: wire.PopNormal, Broker: "broker-a"}
	for name, x := range map[string]struct {
		change func(*wire.AckRequest)
		ack    int32
		hide   int32
	}{
		"topic":         {func(h *wire.AckRequest) { h.Topic = "no" }, wire.RespTopicNotExist, wire.RespTopicNotExist},
		"queue":         {func(h *wire.AckRequest) { h.QueueID = 2 }, wire.RespMessageIllegal, wire.RespMessageIllegal},
		"negative":      {func(h *wire.AckRequest) { h.QueueID = -1 }, wire.RespMessageIllegal, wire.RespMessageIllegal},
		"offset":        {func(h *wire.AckRequest) { h.Offset = 2 }, wire.RespNoMessage, wire.RespNoMessage},
		"the end":       {func(h *wire.AckRequest) { h.Offset = 1 }, wire.RespSuccess, wire.RespNoMessage},
		"before":        {func(h *wire.AckRequest) { h.Offset = -1 }, wire.RespNoMessage, wire.RespNoMessage},
		"handle":        {func(h *wire.AckRequest) { h.Handle = "5 5" }, wire.RespSystemError, wire.RespSystemError},
		"revive":        {func(h *wire.AckRequest) { x := good; x.ReviveQueue = 8; h.Handle = x.String() }, wire.RespMessageIllegal, wire.RespMessageIllegal},
		"revive before": {func(h *wire.AckRequest) { x := good; x.ReviveQueue = -1; h.Handle = x.String() }, wire.RespMessageIllegal, wire.RespMessageIllegal},
	} {
		h := &wire.AckRequest{Group: "CG", Topic: "T", Handle: good.String()}
		x.change(h)
		require.Equal(t, x.ack, p.call(wire.ReqAckMessage, h, nil).Code, name)
		h.InvisibleMillis = 1000
		require.Equal(t, x.hide, p.call(wire.ReqChangeMessageInvisibletime, h, nil).Code, name)
	}
	h := &wire.AckRequest{Group: "CG", Topic: "T", Handle: good.String(), InvisibleMillis: -1}
	require.EqualValues(t, wire.RespInvalidParameter, p.call(wire.ReqChangeMessageInvisibletime, h, nil).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqAckMessage, nil, nil).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqChangeMessageInvisibletime, nil, nil).Code)
}

func TestPopRefusedByABrokerThatDrains(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.Permission = wire.PermWrite })
	p := dialPop(t, b, "CG", "T")
	for _, code := range []int32{wire.ReqPopMessage, wire.ReqPeekMessage, wire.ReqNotification, wire.ReqPollingInfo} {
		f := p.call(code, p.header(), nil)
		require.EqualValues(t, wire.RespNoPermission, f.Code, "%d %s", code, f.Remark)
	}
}

func TestPopStartsWhereItIsTold(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "MIN", "T")
	for i := range 3 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	require.Len(t, p.pop(), 3)
	fromMax := func(h *wire.PopRequest) { h.InitMode = wire.PopFromMax }
	p = dialPop(t, b, "MAX", "T")
	require.Len(t, p.pop(fromMax), 3, "the queue has all of its messages still")

	b = startBroker(t, func(c *Config) { c.Name, c.Store.MemoryBytes = "broker-b", 1 })
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p = dialPop(t, b, "MAX", "T")
	for i := range 3 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	require.Equal(t, []string{"2"}, popBodies(p.pop(fromMax)), "the first is not in memory")
}

func TestPopAndPullShareOffsets(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 6 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	require.Equal(t, []string{"0", "1"}, popBodies(p.pop(atMost(2))))
	var off wire.OffsetResponse
	require.NoError(t, off.DecodeExt(p.must(wire.ReqQueryConsumerOffset, &wire.QueryOffsetRequest{Group: "CG", Topic: "T"}, nil)))
	require.EqualValues(t, 2, off.Offset)
	p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 5}, nil)
	require.Equal(t, []string{"5"}, popBodies(p.pop()))

	f := p.must(wire.ReqGetConsumeStats, &wire.ConsumeStatsRequest{Group: "CG", Topic: "T"}, nil)
	stats, err := wire.DecodeConsumeStats(f.Body)
	require.NoError(t, err)
	w := stats.Offsets[wire.MessageQueue{Topic: "T", Broker: "broker-a"}]
	require.EqualValues(t, 6, w.BrokerOffset)
	require.EqualValues(t, 6, w.ConsumerOffset, "what is out is no lag")
	require.EqualValues(t, 5, w.PullOffset)
	advance(t, b, c, time.Minute)
	f = p.must(wire.ReqGetConsumeStats, &wire.ConsumeStatsRequest{Group: "CG"}, nil)
	stats, err = wire.DecodeConsumeStats(f.Body)
	require.NoError(t, err)
	w = stats.Offsets[wire.MessageQueue{Topic: "%RETRY%CG_T", Broker: "broker-a"}]
	require.EqualValues(t, 3, w.BrokerOffset-w.ConsumerOffset, "what comes again is")
	require.Len(t, p.pop(), 3)

	// a reset takes effect with the next POP
	p.must(wire.ReqInvokeBrokerToResetOffset, &wire.ResetOffsetRequest{Group: "CG", Topic: "T", OneQueue: true, Offset: 3, Timestamp: -1}, nil)
	require.Equal(t, []string{"3", "4", "5"}, popBodies(p.pop()))
}

func TestPopGoesOnBehindWhatWasCleanedAway(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 100}, nil)
	require.Empty(t, p.pop())
	off, _ := b.Offset("CG", "T", 0)
	require.EqualValues(t, 1, off)
	p.send(b, "T", 0, "next")
	require.Equal(t, []string{"next"}, popBodies(p.pop()))
}

func TestPopFromOneQueue(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	p := dialPop(t, b, "CG", "T")
	for i := range 4 {
		p.send(b, "T", int32(i), strconv.Itoa(i))
	}
	queue := func(id int32) func(*wire.PopRequest) { return func(h *wire.PopRequest) { h.QueueID = id } }
	require.Equal(t, []string{"2"}, popBodies(p.pop(queue(2))))
	f := p.must(wire.ReqPopMessage, p.header(atMost(2)), nil)
	var resp wire.PopResponse
	require.NoError(t, resp.DecodeExt(f))
	require.Len(t, p.messages(f), 2)
	require.EqualValues(t, 1, resp.Rest)
}

func TestPeekHasNoConsequences(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	p := dialPop(t, b, "CG", "T")
	for i := range 4 {
		p.send(b, "T", int32(i%2), strconv.Itoa(i))
	}
	peek := func(queue, n int32) *wire.Frame {
		return p.call(wire.ReqPeekMessage, &wire.PeekRequest{Group: "CG", Topic: "T", QueueID: queue, MaxMsgs: n}, nil)
	}
	for range 2 {
		f := peek(-1, 32)
		require.ElementsMatch(t, []string{"0", "1", "2", "3"}, bodies(t, f))
		var resp wire.PopResponse
		require.NoError(t, resp.DecodeExt(f))
		require.EqualValues(t, 4, resp.Rest)
	}
	require.Equal(t, []string{"1"}, bodies(t, peek(1, 1)))
	require.Len(t, p.pop(), 4)
	require.EqualValues(t, wire.RespPullNotFound, peek(-1, 32).Code)
	require.EqualValues(t, wire.RespInvalidParameter, peek(-1, 33).Code)
	require.EqualValues(t, wire.RespInvalidParameter, peek(2, 1).Code)
	advance(t, b, c, time.Minute)
	require.Len(t, bodies(t, peek(-1, 32)), 4, "what comes again")
}

func TestPopRetryTopicV2(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.RetryTopicV2 = true })
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	require.Len(t, p.pop(), 1)
	advance(t, b, c, time.Minute)
	var got []popped
	for len(got) == 0 { // each request reads one of the two retry topics
		got = p.pop()
	}
	require.Equal(t, "%RETRY%CG+T", got[0].topic)
	p.ack(got...)
	advance(t, b, c, time.Minute)
	for range 20 {
		require.Empty(t, p.pop())
	}
}

func TestDeletingATopicTakesItsRetryTopicsAlong(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	p.send(b, "T", 0, "n")
	require.Len(t, p.pop(atMost(1)), 1)
	advance(t, b, c, time.Minute)
	_, ok := b.Topic("%RETRY%CG_T")
	require.True(t, ok)
	require.Len(t, p.pop(), 2)
	require.NoError(t, b.DeleteTopic(t.Context(), "T"))
	_, ok = b.Topic("%RETRY%CG_T")
	require.False(t, ok)
	advance(t, b, c, time.Hour) // what is out has nowhere to come back to
	_, ok = b.Topic("%RETRY%CG_T")
	require.False(t, ok)
	_, ok = b.NextDelayed()
	require.False(t, ok)
}
