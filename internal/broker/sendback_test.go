package broker

import (
	"bytes"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// ladder is how long a message waits before each of its retries.
var ladder = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute,
	7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
}

// pulled is the only record of a queue at an offset, as a consumer gets it.
func (p *peer) pulled(group, topic string, offset int64) wire.Record {
	p.tb.Helper()
	f := p.must(wire.ReqPullMessage, pullHeaderOf(group, topic, 0, offset), nil)
	var rec wire.Record
	n, err := wire.DecodeRecord(f.Body, &rec)
	require.NoError(p.tb, err)
	require.Len(p.tb, f.Body, n)
	return rec
}

// sendBack hands a record back for a group.
func (p *peer) sendBack(rec *wire.Record, group string, change ...func(*wire.SendBackRequest)) *wire.Frame {
	p.tb.Helper()
	h := &wire.SendBackRequest{Offset: rec.PhyOffset, Group: group, OriginTopic: "T"}
	for _, f := range change {
		f(h)
	}
	return p.call(wire.ReqConsumerSendMsgBack, h, nil)
}

// TestRetryLadder: sixteen retries, 10 s to 2 h apart, then the dead letters,
// in the time of a clock that is moved by hand.
func TestRetryLadder(t *testing.T) {
	begin := time.Now()
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.Liveness = clock.Real() })
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p.heartbeat("CG", "c1", 1, "T", "%RETRY%CG")
	first := p.send(b, "T", 0, "poison", wire.PropTags, "TagA", wire.PropKeys, "k1", "user", "value", wire.PropUniqKey, "U1")

	rec := p.pulled("CG", "T", 0)
	for i, wait := range ladder {
		sent := c.Now()
		require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG").Code)
		require.NoError(t, b.SettleDelays(t.Context()))
		at, ok := b.NextDelayed()
		require.True(t, ok)
		require.Equal(t, wait, at.Sub(sent), "retry %d", i+1)
		pass(t, b, c, wait)
		rec = p.pulled("CG", "%RETRY%CG", int64(i))
		require.EqualValues(t, i+1, rec.ReconsumeTimes)
		for name, want := range map[string]string{
			wire.PropRetryTopic: "T", wire.PropOriginMessageID: string(first.OffsetMsgID), wire.PropDelay: strconv.Itoa(i + 3),
			wire.PropRealTopic: "%RETRY%CG", wire.PropRealQueueID: "0", wire.PropWait: "false",
			wire.PropUniqKey: "U1", wire.PropTags: "TagA", wire.PropKeys: "k1", "user": "value",
		} {
			require.Equal(t, want, rec.Properties.Text(name), name)
		}
		require.Equal(t, testStart.UnixMilli(), rec.BornTime)
	}
	require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG").Code)
	dead := records(t, b, "%DLQ%CG", 0)
	require.Len(t, dead, 1)
	require.EqualValues(t, 17, dead[0].ReconsumeTimes)
	require.Equal(t, "0", dead[0].Properties.Text(wire.PropDelay))
	require.Equal(t, "T", dead[0].Properties.Text(wire.PropRetryTopic))
	require.Equal(t, string(first.OffsetMsgID), dead[0].Properties.Text(wire.PropOriginMessageID))
	_, ok := b.NextDelayed()
	require.False(t, ok, "at once")
	cfg, ok := b.Topic("%DLQ%CG")
	require.True(t, ok)
	require.EqualValues(t, 1, cfg.ReadQueues)
	require.EqualValues(t, wire.PermRead|wire.PermWrite, cfg.Perm)
	require.Less(t, time.Since(begin), 5*time.Second, "of minutes and hours")
}

func TestC45_OneMessagesWayToTheDeadLetters(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	g := wire.NewSubscriptionGroup("CG")
	g.RetryMaxTimes = 3
	require.NoError(t, b.PutGroup(g))
	p.send(b, "T", 0, "poison")
	rec := p.pulled("CG", "T", 0)
	for i := range 3 {
		require.EqualValues(t, i, rec.ReconsumeTimes)
		require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG").Code)
		pass(t, b, c, ladder[i])
		rec = p.pulled("CG", "%RETRY%CG", int64(i))
	}
	require.EqualValues(t, 3, rec.ReconsumeTimes)
	require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG").Code)
	require.Equal(t, []string{"poison"}, bodiesOf(records(t, b, "%DLQ%CG", 0)))
}

func TestSendBackLevelsAndLimits(t *testing.T) {
	level := func(n int32) func(*wire.SendBackRequest) { return func(h *wire.SendBackRequest) { h.DelayLevel = n } }
	limit := func(n int32) func(*wire.SendBackRequest) {
		return func(h *wire.SendBackRequest) { h.MaxReconsumeTimes, h.HasMax = n, true }
	}
	for name, test := range map[string]struct {
		times  int32 // of the message
		change []func(*wire.SendBackRequest)
		level  int // 0: dead letter
	}{
		"broker decides":            {0, nil, 3},
		"broker decides, later":     {7, nil, 10},
		"as asked":                  {7, []func(*wire.SendBackRequest){level(2)}, 2},
		"more than there is":        {0, []func(*wire.SendBackRequest){level(99)}, 18},
		"to the dead letters":       {0, []func(*wire.SendBackRequest){level(-1)}, 0},
		"beyond the last level":     {16, []func(*wire.SendBackRequest){limit(100)}, 18},
		"group's limit":             {16, nil, 0},
		"below the group's limit":   {15, nil, 18},
		"limit of the request":      {2, []func(*wire.SendBackRequest){limit(2)}, 0},
		"none at all":               {0, []func(*wire.SendBackRequest){limit(0)}, 0},
		"limit before wanted level": {2, []func(*wire.SendBackRequest){limit(2), level(4)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, withClock(clock.NewManual(testStart)))
			p := dial(t, b)
			h := sendHeader("T", 0, wire.PropDelay, "-1")
			h.ReconsumeTimes = test.times
			p.must(wire.ReqSendMessageV2, h, []byte("x"))
			rec := records(t, b, "T", 0)[0]
			require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG", test.change...).Code)
			if test.level == 0 {
				require.Len(t, records(t, b, "%DLQ%CG", 0), 1)
				return
			}
			got := records(t, b, wire.TopicSchedule, int32(test.level-1))
			require.Len(t, got, 1)
			require.Equal(t, strconv.Itoa(test.level), got[0].Properties.Text(wire.PropDelay))
			require.Equal(t, test.times+1, got[0].ReconsumeTimes)
			require.Zero(t, b.Store().MaxOffset("%DLQ%CG", 0))
		})
	}
}

func TestSendBackOfOldClientsHasNoLimit(t *testing.T) {
	b := startBroker(t)
	dial(t, b).send(b, "T", 0, "x")
	rec := records(t, b, "T", 0)[0]
	nc, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	defer func() { _ = nc.Close() }()
	e := wire.Begin(nil, wire.Head{Code: wire.ReqConsumerSendMsgBack, Opaque: 1})
	(&wire.SendBackRequest{Offset: rec.PhyOffset, Group: "CG", HasMax: true}).EncodeExt(&e)
	frame := e.Finish(nil) // a JSON header
	at := bytes.Index(frame, []byte(`"version":479`))
	require.Positive(t, at)
	copy(frame[at:], `"version":120`)
	_, err = nc.Write(frame)
	require.NoError(t, err)
	f := readFrame(nc)
	require.NotNil(t, f)
	require.EqualValues(t, wire.RespSuccess, f.Code)
	require.Len(t, records(t, b, wire.TopicSchedule, 2), 1)
}

func TestSendBackRefusals(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.AutoCreateGroup = false })
	p := dial(t, b)
	for _, name := range []string{"CG", "Silent", "Locked"} {
		g := wire.NewSubscriptionGroup(name)
		if name == "Silent" {
			g.RetryQueues = 0
		}
		require.NoError(t, b.PutGroup(g))
	}
	ro := wire.NewTopicConfig("%RETRY%Locked")
	ro.Perm = wire.PermRead
	require.NoError(t, b.PutTopics(t.Context(), ro))
	p.send(b, "T", 0, "x")
	rec := records(t, b, "T", 0)[0]
	half, _ := b.Store().Put(&store.Message{Topic: []byte("T"), Body: []byte("half"), SysFlag: wire.SysTranPrepared}, nil)
	p.send(b, "T", 0, "parked", wire.PropDelay, "5")
	parked := records(t, b, wire.TopicSchedule, 4)[0]

	for name, test := range map[string]struct {
		phy    int64
		group  string
		code   int32
		remark string
	}{
		"no group":           {rec.PhyOffset, "Nobody", wire.RespSubscriptionGroupNotExist, "Nobody"},
		"empty group":        {rec.PhyOffset, "", wire.RespSubscriptionGroupNotExist, ""},
		"beyond the log":     {1 << 40, "CG", wire.RespSystemError, "look message by offset failed, 1099511627776"},
		"negative":           {-1, "CG", wire.RespSystemError, "look message"},
		"within a record":    {rec.PhyOffset + 1, "CG", wire.RespSystemError, "look message"},
		"half message":       {half.PhyOffset, "CG", wire.RespSystemError, "look message"},
		"parked":             {parked.PhyOffset, "CG", wire.RespSystemError, "look message"},
		"retry topic locked": {rec.PhyOffset, "Locked", wire.RespNoPermission, "%RETRY%Locked"},
		"no retries":         {rec.PhyOffset, "Silent", wire.RespSuccess, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := p.sendBack(&wire.Record{PhyOffset: test.phy}, test.group)
			require.Equal(t, test.code, f.Code, "%s", f.Remark)
			require.Contains(t, string(f.Remark), test.remark)
		})
	}
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqConsumerSendMsgBack, wire.ExtFields{"group": "CG"}, nil).Code)
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	require.Zero(t, b.Store().MaxOffset(wire.TopicSchedule, 2), "nothing was stored")
	_, made := b.Topic("%RETRY%Silent")
	require.False(t, made)

	drained := startBroker(t, func(c *Config) { c.Name, c.Permission = "drained", wire.PermRead })
	p = dial(t, drained)
	f := p.sendBack(&rec, "CG")
	require.EqualValues(t, wire.RespNoPermission, f.Code)
}

func TestSendBackThatIsNotStored(t *testing.T) {
	full := 0.0
	b := startBroker(t, func(c *Config) { c.Store.DiskUsage = func(string) (float64, error) { return full, nil } })
	p := dial(t, b)
	p.send(b, "T", 0, "x")
	rec := records(t, b, "T", 0)[0]
	full = 0.95
	require.NoError(t, b.Store().CheckDisk(t.Context()))
	f := p.sendBack(&rec, "CG")
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "SERVICE_NOT_AVAILABLE")
}

func TestSendBackWithSynchronousFlushIsOnDisk(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.Store.SyncFlush = true })
	p := dial(t, b)
	p.send(b, "T", 0, "x")
	rec := records(t, b, "T", 0)[0]
	require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG").Code)
	st := b.Store().Stats()
	require.Equal(t, st.MaxPhy, st.Flushed)
	require.Len(t, records(t, b, wire.TopicSchedule, 2), 1, "consumers could see it, too")
}

func TestSendBackToSeveralQueues(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	g := wire.NewSubscriptionGroup("CG")
	g.RetryQueues = 3
	require.NoError(t, b.PutGroup(g))
	p.send(b, "T", 0, "x")
	rec := records(t, b, "T", 0)[0]
	back := func() {
		for range 60 {
			require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG", func(h *wire.SendBackRequest) { h.UnitMode = true }).Code)
		}
		pass(t, b, c, 10*time.Second)
	}
	back()
	cfg, _ := b.Topic("%RETRY%CG")
	require.EqualValues(t, 3, cfg.ReadQueues)
	require.EqualValues(t, wire.TopicUnitSub, cfg.SysFlag)
	for id := range int32(3) {
		require.NotZero(t, b.Store().MaxOffset("%RETRY%CG", id), "queue %d", id)
	}
	g.RetryQueues = 10
	require.NoError(t, b.PutGroup(g))
	back()
	total := int64(0)
	for id := range int32(3) {
		total += b.Store().MaxOffset("%RETRY%CG", id)
	}
	require.EqualValues(t, 120, total, "none where no consumer looks")
}

func TestSendBackOfWhatWasDelayed(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	p.send(b, "T", 3, "x", wire.PropDelay, "1")
	pass(t, b, c, time.Second)
	rec := records(t, b, "T", 3)[0]
	require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG").Code)
	pass(t, b, c, 10*time.Second)
	got := records(t, b, "%RETRY%CG", 0)
	require.Len(t, got, 1, "its old REAL_TOPIC does not count")
	require.Equal(t, "T", got[0].Properties.Text(wire.PropRetryTopic))
	seen := map[string]int{}
	got[0].Properties.Each(func(k, _ []byte) bool { seen[string(k)]++; return true })
	for name, n := range seen {
		require.Equal(t, 1, n, name)
	}
}
