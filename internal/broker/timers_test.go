package broker

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// at is a time of delivery as a property.
func at(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// deliveredAt is when each message of a queue was stored, in ms after testStart.
func deliveredAt(t *testing.T, b *Broker, topic string, queue int32) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, r := range records(t, b, topic, queue) {
		_, twice := out[string(r.Body)]
		require.False(t, twice, "%s came twice", r.Body)
		out[string(r.Body)] = r.StoreTime - testStart.UnixMilli()
	}
	return out
}

func TestTimerMessageComesWhenDue(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	due := testStart.Add(90*time.Second + 345*time.Millisecond)
	resp := p.send(b, "T", 2, "later", wire.PropTimerDeliverMs, at(due), wire.PropTags, "TagA", wire.PropKeys, "k", wire.PropUniqKey, "ID", wire.PropWait, "true")
	require.EqualValues(t, 2, resp.QueueID, "the answer says where it is to go")
	slot := due.Truncate(time.Second).UnixMilli()
	h, err := wire.ParseRecallHandle(string(resp.RecallHandle))
	require.NoError(t, err)
	require.Equal(t, wire.RecallHandle{Topic: "T", Broker: "broker-a", DeliverTime: slot + 1, MessageID: "ID"}, h)

	require.NoError(t, b.SettleDelays(t.Context()))
	require.EqualValues(t, 1, b.Delayed())
	parked := records(t, b, wire.TopicTimer, 0)
	require.Len(t, parked, 1)
	require.Equal(t, "T", parked[0].Properties.Text(wire.PropRealTopic))
	require.Equal(t, "2", parked[0].Properties.Text(wire.PropRealQueueID))
	require.Equal(t, strconv.FormatInt(slot, 10), parked[0].Properties.Text(wire.PropTimerOutMs))

	pass(t, b, c, due.Sub(testStart)-time.Millisecond)
	require.Empty(t, records(t, b, "T", 2), "a millisecond early")
	held := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 2, 0)))
	require.Eventually(t, func() bool { return b.Held() == 1 }, 30*time.Second, time.Millisecond)
	pass(t, b, c, time.Millisecond)
	require.Equal(t, []string{"later"}, bodies(t, <-held), "a held pull is woken")

	got := records(t, b, "T", 2)
	require.Len(t, got, 1)
	m := got[0]
	require.Equal(t, due.UnixMilli(), m.StoreTime)
	want := parked[0].Properties.Map()
	want[wire.PropTimerEnqueueMs] = at(testStart)
	want[wire.PropTimerDequeueMs] = at(due)
	require.Equal(t, want, m.Properties.Map(), "all that it had, as Apache leaves it")
	require.Equal(t, parked[0].BornTime, m.BornTime)
	require.Equal(t, parked[0].BornHost, m.BornHost)
	_, u, ok := b.Store().NextUnit("T", 2, 0)
	require.True(t, ok)
	require.Equal(t, wire.TagsCode("TagA"), u.Tags)
	_, ok = b.NextDelayed()
	require.False(t, ok)
	require.Zero(t, b.Delayed())
}

func TestTimerProperties(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	const sec, ms, deliver = wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs
	past, future := at(testStart.Add(-time.Hour)), at(testStart.Add(time.Hour))
	want := map[string]int64{}
	for _, x := range []struct {
		name  string
		want  int64
		props []string
	}{
		{"seconds", 7000, []string{sec, "7"}},
		{"milliseconds", 1500, []string{ms, "1500"}},
		{"a millisecond", 1, []string{ms, "1"}},
		{"at the end of a slot", 2000, []string{deliver, at(testStart.Add(2 * time.Second))}},
		{"at the begin of a slot", 2001, []string{deliver, at(testStart.Add(2001 * time.Millisecond))}},
		{"the longest", 3 * 24 * 3600 * 1000, []string{sec, "259200"}},
		{"seconds first", 7000, []string{deliver, future, ms, "9", sec, "7"}},
		{"then milliseconds", 9, []string{deliver, future, ms, "9"}},
		{"in the past", 0, []string{deliver, past}},
		{"now", 0, []string{deliver, at(testStart)}},
		{"no delay", 0, []string{ms, "0"}},
		{"a negative delay", 0, []string{sec, "-9223372036854775808"}},
		{"a level counts more", 5000, []string{wire.PropDelay, "2", sec, "7", ms, "1", deliver, future}},
		{"level 0 does not", 7000, []string{wire.PropDelay, "0", sec, "7"}},
		{"delivered by a timer before", 0, []string{deliver, future, wire.PropTimerOutMs, "1"}},
	} {
		p.send(b, "T", 0, x.name, x.props...)
		want[x.name] = x.want
	}
	pass(t, b, c, 72*time.Hour)
	require.Equal(t, want, deliveredAt(t, b, "T", 0))
	for _, m := range records(t, b, "T", 0) {
		if string(m.Body) == "in the past" {
			require.Equal(t, past, m.Properties.Text(deliver))
			require.Empty(t, m.Properties.Text(wire.PropTimerOutMs), "never parked")
			require.Empty(t, m.Properties.Text(wire.PropRealTopic))
		}
	}
	h := sendHeader("T", 0, ms, "500")
	h.Batch = true
	item := wire.AppendBatchItem(nil, 0, []byte("x"), nil)
	require.Equal(t, wire.RespMessageIllegal, p.call(wire.ReqSendBatchMessage, h, item).Code)
	f := p.call(wire.ReqSendMessageV2, sendHeader("T", 0, ms, "500", "big", string(make([]byte, 32_700))), []byte("x"))
	require.Equal(t, wire.RespMessageIllegal, f.Code, "no room for what delivery adds: %s", f.Remark)
}

func TestTimersSwitchedOff(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.NoTimers = true })
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	f := p.call(wire.ReqSendMessageV2, sendHeader("T", 0, wire.PropTimerDelayMs, "500"), []byte("x"))
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "timerWheelEnable")
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Zero(t, b.Delayed())
	require.Equal(t, wire.RespSystemError, p.call(wire.ReqGetTimerCheckPoint, nil, nil).Code)
}

// TestTimersComeInOrder sends messages for times in no order, with
// the clock moving on between, and lets them come one by one and all at once.
func TestTimersComeInOrder(t *testing.T) {
	for name, step := range map[string]time.Duration{"one by one": 0, "late": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewManual(testStart)
			b := startBroker(t, withClock(c))
			p := dial(t, b)
			require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
			const n = 300
			for i := range n {
				due := testStart.Add(time.Duration(3000+i*7919%10007) * time.Millisecond)
				p.send(b, "T", 0, at(due), wire.PropTimerDeliverMs, at(due))
				if i%100 == 99 {
					c.Advance(time.Second)
				}
			}
			if step == 0 {
				pass(t, b, c, 20*time.Second)
			}
			for i := 0; step > 0 && i < 3; i++ {
				c.Advance(step)
				require.NoError(t, b.SettleDelays(t.Context()))
			}
			got := records(t, b, "T", 0)
			require.Len(t, got, n)
			last := ""
			for _, m := range got {
				due := string(m.Body)
				require.GreaterOrEqual(t, due, last, "the earliest first")
				last = due
				if step == 0 {
					require.Equal(t, due, strconv.FormatInt(m.StoreTime, 10))
				}
			}
		})
	}
}

func TestTimersThatAreFarAheadAreParkedAgain(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.TimerRollSlots, c.Recall = 12, true })
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	want := map[string]int64{}
	for _, s := range []int64{11, 12, 13, 14, 20, 30, 60} {
		due := s*1000 + 345
		p.send(b, "T", 0, strconv.FormatInt(s, 10), wire.PropTimerDeliverMs, at(testStart.Add(time.Duration(due)*time.Millisecond)))
		want[strconv.FormatInt(s, 10)] = due
	}
	gone := p.send(b, "T", 0, "gone", wire.PropTimerDelayMs, "47123")
	p.send(b, "T", 0, "delay", wire.PropTimerDelayMs, "47123")
	require.NoError(t, b.SettleDelays(t.Context()))
	require.EqualValues(t, len(want)+2, b.Delayed())
	p.must(wire.ReqRecallMessage, &wire.RecallRequest{Topic: "T", Handle: string(gone.RecallHandle)}, nil)
	pass(t, b, c, 31*time.Second)
	require.EqualValues(t, 2, b.Delayed())
	pass(t, b, c, 30*time.Second)
	got := deliveredAt(t, b, "T", 0)
	require.EqualValues(t, 48_000, got["delay"], "nobody knows any more when it was first stored: at the end of its slot")
	delete(got, "delay")
	require.Equal(t, want, got)
	times := map[string]string{}
	for _, m := range records(t, b, "T", 0) {
		times[string(m.Body)] = m.Properties.Text(wire.PropTimerRollTimes)
	}
	require.Equal(t, "", times["11"])
	require.Equal(t, "1", times["13"])
	require.Equal(t, "4", times["60"])
	require.Zero(t, b.Delayed())
}

func TestRecall(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.Recall = true })
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	recall := func(h []byte) *wire.Frame {
		return p.call(wire.ReqRecallMessage, &wire.RecallRequest{Group: "PG", Topic: "T", Handle: string(h)}, nil)
	}
	send := func(body string) []byte {
		return p.send(b, "T", 1, body, wire.PropTimerDelayMs, "5500", wire.PropUniqKey, "ID"+body).RecallHandle
	}
	a, other := send("a"), send("other")
	f := recall(a)
	require.Equal(t, wire.RespSuccess, f.Code, "%s", f.Remark)
	require.Equal(t, "IDa", f.Text("msgId"))
	require.Equal(t, "DefaultRegion", f.Text("MSG_REGION"))
	require.NoError(t, b.SettleDelays(t.Context()))
	require.EqualValues(t, 1, b.Delayed())
	require.Equal(t, wire.RespSuccess, recall(a).Code, "nobody knows that it has been recalled")
	nobody := wire.RecallHandle{Topic: "T", Broker: "broker-a", DeliverTime: testStart.UnixMilli() + 5001, MessageID: "nobody"}
	require.Equal(t, wire.RespSuccess, recall(nobody.Append(nil)).Code, "nor that it never was")

	pass(t, b, c, 5*time.Second)
	require.Equal(t, wire.RespSuccess, recall(send("late-slot")).Code, "its slot is 10 s")
	f = recall(other)
	require.Equal(t, wire.RespSuccess, f.Code, "in the first moment of its slot: %s", f.Remark)
	pass(t, b, c, time.Second)
	require.Empty(t, records(t, b, "T", 1))
	require.Equal(t, wire.RespIllegalOperation, recall(other).Code, "its slot is over")
	pass(t, b, c, 10*time.Second)
	require.Empty(t, records(t, b, "T", 0))
	require.Empty(t, records(t, b, "T", 1))
	require.Zero(t, b.Delayed())
}

func TestRecallRefusals(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.Recall = true })
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	good := wire.RecallHandle{Topic: "T", Broker: "broker-a", DeliverTime: testStart.UnixMilli() + 5001, MessageID: "ID"}
	handle := func(change func(h *wire.RecallHandle)) string {
		h := good
		change(&h)
		return string(h.Append(nil))
	}
	for name, x := range map[string]struct {
		topic, handle string
		code          int32
	}{
		"no topic":     {"Nowhere", handle(func(h *wire.RecallHandle) { h.Topic = "Nowhere" }), wire.RespTopicNotExist},
		"no handle":    {"T", "x", wire.RespIllegalOperation},
		"other topic":  {"T", handle(func(h *wire.RecallHandle) { h.Topic = "U" }), wire.RespIllegalOperation},
		"other broker": {"T", handle(func(h *wire.RecallHandle) { h.Broker = "broker-b" }), wire.RespIllegalOperation},
		"past":         {"T", handle(func(h *wire.RecallHandle) { h.DeliverTime = testStart.UnixMilli() }), wire.RespIllegalOperation},
		"too far":      {"T", handle(func(h *wire.RecallHandle) { h.DeliverTime += 72 * 3600 * 1000 }), wire.RespIllegalOperation},
	} {
		f := p.call(wire.ReqRecallMessage, &wire.RecallRequest{Topic: x.topic, Handle: x.handle}, nil)
		require.Equal(t, x.code, f.Code, "%s: %s", name, f.Remark)
		require.Equal(t, "DefaultRegion", f.Text("MSG_REGION"))
	}
	require.Equal(t, wire.RespSystemError, p.call(wire.ReqRecallMessage, wire.ExtFields{"topic": "T"}, nil).Code)
	require.Zero(t, b.Store().MaxOffset(wire.TopicTimer, 0))
}

func TestTimerMessageThatCannotBeDelivered(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	f := faultyTimers(t, b)
	out := at(testStart)
	put := func(body string, props ...string) {
		m := &store.Message{Topic: []byte(wire.TopicTimer), Body: []byte(body)}
		for i := 0; i < len(props); i += 2 {
			m.Properties = wire.AppendProperty(m.Properties, props[i], props[i+1])
		}
		res, _ := b.Store().Put(m, nil)
		require.NoError(t, res.Err)
	}
	put("for no time", wire.PropRealTopic, "T", wire.PropRealQueueID, "0")
	put("for a bad time", wire.PropTimerOutMs, "soon", wire.PropRealTopic, "T", wire.PropRealQueueID, "0")
	put("to nowhere", wire.PropTimerOutMs, out)
	put("round and round", wire.PropTimerOutMs, out, wire.PropRealTopic, wire.TopicTimer, wire.PropRealQueueID, "0")
	f.set("Illegal", store.MessageIllegal)
	put("illegal", wire.PropTimerOutMs, out, wire.PropRealTopic, "Illegal", wire.PropRealQueueID, "0")
	put("good", wire.PropTimerOutMs, out, wire.PropRealTopic, "T", wire.PropRealQueueID, "0")
	pass(t, b, c, time.Second)
	require.Equal(t, []string{"good"}, bodiesOf(records(t, b, "T", 0)), "none holds up the one behind")
	require.Zero(t, b.Delayed())
}

func faultyTimers(t *testing.T, b *Broker) *faultyPuts {
	b.timers.stop()
	f := &faultyPuts{put: b.timers.put, fault: map[string]store.PutResult{}}
	b.timers.put = f.Put
	b.timers.start()
	require.NoError(t, b.SettleDelays(t.Context()))
	return f
}

func TestTimersWaitForTheStore(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	f := faultyTimers(t, b)
	p := dial(t, b)
	f.set("T", store.ServiceNotAvailable)
	for i := range 5 {
		p.send(b, "T", 0, strconv.Itoa(i), wire.PropTimerDelayMs, strconv.Itoa(1000+i))
	}
	pass(t, b, c, 5*time.Second)
	require.Empty(t, records(t, b, "T", 0))
	require.EqualValues(t, 5, b.Delayed())
	f.set("T", store.PutOK)
	pass(t, b, c, 10*time.Second)
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, bodiesOf(records(t, b, "T", 0)))
}

func TestTimersWhenTheClockIsSetBack(t *testing.T) {
	c := &settable{Manual: clock.NewManual(testStart)}
	b := startBroker(t, func(cfg *Config) { cfg.Clock, cfg.Liveness = c, clock.Real() })
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	p.send(b, "T", 0, "before", wire.PropTimerDelayMs, "1200")
	pass(t, b, c.Manual, 2*time.Second)
	c.back.Store(int64(time.Hour))
	p.send(b, "T", 0, "after", wire.PropTimerDelayMs, "1200")
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Len(t, records(t, b, "T", 0), 1, "not early")
	pass(t, b, c.Manual, 1200*time.Millisecond)
	require.Equal(t, []string{"before", "after"}, bodiesOf(records(t, b, "T", 0)))
}

func TestTimerServiceStopsAndStarts(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	p.send(b, "T", 0, "one", wire.PropTimerDelayMs, "1500")
	p.send(b, "T", 0, "two", wire.PropTimerDelayMs, "1700")
	pass(t, b, c, 1600*time.Millisecond)
	b.timers.stop()
	b.timers.stop()
	p.send(b, "T", 0, "three", wire.PropTimerDelayMs, "1500")
	c.Advance(time.Minute)
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Len(t, records(t, b, "T", 0), 1, "a replica delivers nothing")
	b.timers.start()
	b.timers.start()
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Equal(t, []string{"one", "two", "three"}, bodiesOf(records(t, b, "T", 0)))
}
