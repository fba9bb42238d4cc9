package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/persist"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// pass moves the clock forward, stopping wherever a delayed message is due.
func pass(t *testing.T, b *Broker, c *clock.Manual, d time.Duration) {
	t.Helper()
	for to := b.clock.Now().Add(d); ; {
		require.NoError(t, b.SettleDelays(t.Context()))
		at, ok := b.NextDelayed()
		if !ok || at.After(to) {
			c.Advance(to.Sub(b.clock.Now()))
			require.NoError(t, b.SettleDelays(t.Context()))
			return
		}
		c.Advance(at.Sub(b.clock.Now()))
	}
}

// records are the records of a queue; they own their bytes.
func records(t testing.TB, b *Broker, topic string, queue int32) []wire.Record {
	t.Helper()
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	var out []wire.Record
	for off := b.Store().MinOffset(topic, queue); off < b.Store().MaxOffset(topic, queue); {
		buf, res := b.Store().Get(nil, store.GetRequest{Topic: []byte(topic), QueueID: queue, Offset: off, MaxMsgs: 32})
		require.Equal(t, store.Found, res.Status)
		for it := wire.Records(buf); ; {
			var r wire.Record
			more, err := it.Next(&r)
			require.NoError(t, err)
			if !more {
				break
			}
			out = append(out, r)
		}
		off = res.NextOffset
	}
	return out
}

func bodiesOf(recs []wire.Record) []string {
	var out []string
	for _, r := range recs {
		out = append(out, string(r.Body))
	}
	return out
}

func TestDelayedMessageComesWhenDue(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	resp := p.send(b, "T", 2, "later", wire.PropDelay, "3", wire.PropTags, "TagA", wire.PropKeys, "k", wire.PropWait, "true")
	require.EqualValues(t, 2, resp.QueueID, "the answer says where it is to go")
	require.Zero(t, resp.QueueOffset)
	require.Empty(t, records(t, b, "T", 2))

	parked := records(t, b, wire.TopicSchedule, 2)
	require.Len(t, parked, 1)
	require.Equal(t, "T", parked[0].Properties.Text(wire.PropRealTopic))
	require.Equal(t, "2", parked[0].Properties.Text(wire.PropRealQueueID))

	held := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 2, 0)))
	pass(t, b, c, 10*time.Second-time.Millisecond)
	require.Empty(t, records(t, b, "T", 2), "a millisecond early")
	pass(t, b, c, time.Millisecond)
	require.Equal(t, []string{"later"}, bodies(t, <-held), "a held pull is woken")

	got := records(t, b, "T", 2)
	require.Len(t, got, 1)
	m := got[0]
	require.Equal(t, testStart.Add(10*time.Second).UnixMilli(), m.StoreTime)
	require.Equal(t, parked[0].Properties, m.Properties, "all of them, as Apache leaves them")
	require.Equal(t, "3", m.Properties.Text(wire.PropDelay))
	require.Equal(t, "true", m.Properties.Text(wire.PropWait))
	require.Equal(t, parked[0].BornTime, m.BornTime)
	require.Equal(t, parked[0].BornHost, m.BornHost)
	_, u, ok := b.Store().NextUnit("T", 2, 0)
	require.True(t, ok)
	require.Equal(t, wire.TagsCode("TagA"), u.Tags, "its tags count again")
	h := &wire.QueryMessageRequest{Topic: "T", Key: "k", MaxNum: 10, End: 1 << 50}
	require.Eventually(t, func() bool { // the index follows the log
		f := p.call(wire.ReqQueryMessage, h, nil)
		return f.Code == wire.RespSuccess && len(bodies(t, f)) == 1
	}, 30*time.Second, time.Millisecond)
	_, ok = b.NextDelayed()
	require.False(t, ok)
}

func TestDelayLevelsAndOrder(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	want := map[string]time.Duration{}
	for i, d := range store.DefaultDelayLevels() {
		level := strconv.Itoa(i + 1)
		want[level] = d
		p.send(b, "T", 0, level, wire.PropDelay, level)
	}
	p.send(b, "T", 0, "99", wire.PropDelay, "99")
	want["99"] = 2 * time.Hour
	for _, now := range []string{"0", "-1"} {
		p.send(b, "T", 0, "level "+now, wire.PropDelay, now)
		want["level "+now] = 0
	}
	pass(t, b, c, 3*time.Hour)
	got := records(t, b, "T", 0)
	require.Len(t, got, len(want))
	last := int64(0)
	for _, m := range got {
		require.Equal(t, want[string(m.Body)].Milliseconds(), m.StoreTime-testStart.UnixMilli(), "level %s", m.Body)
		require.GreaterOrEqual(t, m.StoreTime, last)
		last = m.StoreTime
	}
	require.Equal(t, "18", records(t, b, wire.TopicSchedule, 17)[1].Properties.Text(wire.PropDelay), "99 became the last level")
}

// TestDelayCatchesUpInOrder: what is overdue is delivered at once when time
// jumps, the earliest first whatever the level.
func TestDelayCatchesUpInOrder(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	var want []string
	for i := range 200 {
		name := strconv.Itoa(i)
		p.send(b, "T", 0, name, wire.PropDelay, []string{"1", "2", "3"}[i%3])
		c.Advance(10 * time.Millisecond)
	}
	// due at 10 ms * i + 1 s, 5 s or 10 s
	for _, level := range []int{0, 1, 2} {
		for i := level; i < 200; i += 3 {
			want = append(want, strconv.Itoa(i))
		}
	}
	c.Advance(time.Hour)
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Equal(t, want, bodiesOf(records(t, b, "T", 0)))
}

func TestDelaySurvivesRestarts(t *testing.T) {
	for name, sync := range map[string]bool{"asynchronous": false, "synchronous": true} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewManual(testStart)
			cfg := testConfig(withClock(c))
			cfg.Store.SyncFlush = sync
			b := startWith(t, cfg)
			require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
			p := dial(t, b)
			for i := range 10 {
				p.send(b, "T", 0, "first "+strconv.Itoa(i), wire.PropDelay, "1")
			}
			pass(t, b, c, time.Second)
			for i := range 3 {
				p.send(b, "T", 0, "second "+strconv.Itoa(i), wire.PropDelay, "5")
			}
			require.Len(t, records(t, b, "T", 0), 10)
			require.NoError(t, b.Close(t.Context()))
			doc, err := cfg.Store.FS.ReadFile("/store/config/delayOffset.json")
			require.NoError(t, err)
			require.Contains(t, string(doc), "1:10")

			c.Advance(time.Hour) // while it is down
			b = startWith(t, cfg)
			require.NoError(t, b.SettleDelays(t.Context()))
			got := bodiesOf(records(t, b, "T", 0))
			require.Len(t, got, 13, "after a clean stop nothing comes twice")
			require.Equal(t, []string{"second 0", "second 1", "second 2"}, got[10:])

			b.Kill() // its last progress is not saved
			b = startWith(t, cfg)
			require.NoError(t, b.SettleDelays(t.Context()))
			got = bodiesOf(records(t, b, "T", 0))
			require.Equal(t, []string{"second 0", "second 1", "second 2"}, got[13:], "only what came after the last save comes again")
		})
	}
}

// TestDelayProgressIsSavedOnceTheCopiesAreOnDisk: the file never counts a copy
// that a power loss could take away.
func TestDelayProgressIsSavedOnceTheCopiesAreOnDisk(t *testing.T) {
	c := clock.NewManual(testStart)
	o := newDelayOffsets(c)
	o.set(0, 1, 1000)
	require.Nil(t, o.take(999))
	require.True(t, o.waits())
	o.set(0, 2, 2000)
	require.Contains(t, string(o.take(1500)), "{1:1}", "the state that may be saved")
	require.Nil(t, o.take(1999))
	require.True(t, o.waits())
	o.set(3, 7, 3000)
	require.Contains(t, string(o.take(3000)), "{1:2,4:7}", "the newest, if it may be saved")
	require.False(t, o.waits())
	require.Nil(t, o.take(1<<40), "nothing new")
	o.notSaved()
	require.NotNil(t, o.take(1<<40))
	v := o.version
	for range delayVersionStep {
		o.set(0, 9, 9)
	}
	require.Equal(t, v.Counter+1, o.version.Counter)
}

func TestDelayProgressIsSavedOnTheWay(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	p.send(b, "T", 0, "x", wire.PropDelay, "1")
	pass(t, b, c, time.Second)
	files := persist.In(cfg.Store.FS, "/store/config")
	saved := func(want int64) func() bool {
		return func() bool {
			o := newDelayOffsets(c)
			return o.load(files) == nil && o.offset(0) == want
		}
	}
	advanceUntil(t, c, time.Second, saved(1))
	p.send(b, "T", 0, "y", wire.PropDelay, "1")
	pass(t, b, c, time.Second)
	advanceUntil(t, c, time.Second, saved(2))

	// A crash in the middle of saving leaves the state before.
	require.NoError(t, cfg.Store.FS.WriteFile("/store/config/delayOffset.json", nil))
	b.Kill()
	b = startWith(t, cfg)
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Equal(t, []string{"x", "y", "y"}, bodiesOf(records(t, b, "T", 0)))
	f := dial(t, b).must(wire.ReqGetAllDelayOffset, nil, nil)
	d, err := wire.DecodeDelayOffsets(f.Body)
	require.NoError(t, err)
	require.EqualValues(t, 2, d.Offsets[1])
	require.Equal(t, "2,2", b.runtimeInfo()["scheduleMessageOffset_1"])
}

func TestDelayProgressThatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		doc  string
		want []string
	}{
		"ahead of the data": {`{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1},"offsetTable":{1:1000}}`, []string{"a", "new"}},
		"behind the data":   {`{"offsetTable":{1:-5}}`, []string{"a", "a", "new"}},
		"of no such level":  {`{"offsetTable":{1:1,77:3}}`, []string{"a", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewManual(testStart)
			cfg := testConfig(withClock(c))
			b := startWith(t, cfg)
			require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
			dial(t, b).send(b, "T", 0, "a", wire.PropDelay, "1")
			pass(t, b, c, time.Second)
			require.NoError(t, b.Close(t.Context()))
			require.NoError(t, cfg.Store.FS.WriteFile("/store/config/delayOffset.json", []byte(test.doc)))
			b = startWith(t, cfg)
			dial(t, b).send(b, "T", 0, "new", wire.PropDelay, "1")
			pass(t, b, c, time.Second)
			require.Equal(t, test.want, bodiesOf(records(t, b, "T", 0)))
		})
	}
	cfg := testConfig()
	require.NoError(t, cfg.Store.FS.MkdirAll("/store/config"))
	require.NoError(t, cfg.Store.FS.WriteFile("/store/config/delayOffset.json", []byte(`{"offsetTable":`)))
	_, err := Start(context.Background(), cfg)
	require.ErrorContains(t, err, "delayOffset.json", "to start without it would deliver everything again")
}

func TestDelayTableThatChanges(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	for _, level := range []string{"2", "4", "7", "18"} {
		p.send(b, "T", 0, "level "+level, wire.PropDelay, level)
	}
	require.NoError(t, b.Close(t.Context()))

	_, err := cfg.Set("messageDelayLevel", "1s 90s 1s 10s 1m 1m 5s")
	require.NoError(t, err)
	b = startWith(t, cfg)
	dial(t, b).send(b, "T", 0, "new level 2", wire.PropDelay, "2")
	dial(t, b).send(b, "T", 0, "level 9, there are 7", wire.PropDelay, "9")
	pass(t, b, c, 3*time.Hour)
	at := map[string]time.Duration{}
	for _, m := range records(t, b, "T", 0) {
		at[string(m.Body)] = time.Duration(m.StoreTime-testStart.UnixMilli()) * time.Millisecond
	}
	require.Equal(t, map[string]time.Duration{
		"level 2":              5 * time.Second,  // became longer: as it was stored
		"level 4":              30 * time.Second, // became shorter by 20 s: likewise
		"level 7":              0,                // became much shorter: later than any message of the level may be
		"level 18":             2 * time.Hour,    // a level that is gone
		"new level 2":          90 * time.Second,
		"level 9, there are 7": 5 * time.Second,
	}, at)
}

// faultyPuts stands between the service and the store.
type faultyPuts struct {
	put func(*store.Message) store.PutResult

	mu    sync.Mutex // guards fault
	fault map[string]store.PutResult
	tries int
}

func (f *faultyPuts) Put(m *store.Message) store.PutResult {
	f.mu.Lock()
	res, bad := f.fault[string(m.Topic)]
	f.tries++
	f.mu.Unlock()
	if bad {
		return res
	}
	return f.put(m)
}

func (f *faultyPuts) set(topic string, s store.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s == store.PutOK {
		delete(f.fault, topic)
		return
	}
	f.fault[topic] = store.PutResult{Status: s, Err: errors.New("out of order")}
}

func faulty(t *testing.T, b *Broker) *faultyPuts {
	b.delays.stop()
	f := &faultyPuts{put: b.delays.put, fault: map[string]store.PutResult{}}
	b.delays.put = f.Put
	b.delays.start()
	require.NoError(t, b.SettleDelays(t.Context()))
	return f
}

func TestDelayLevelThatFailsHoldsUpNoOther(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	f := faulty(t, b)
	p := dial(t, b)
	for _, topic := range []string{"Bad", "Good"} {
		require.NoError(t, b.CreateTopic(t.Context(), topic, 1))
	}
	f.set("Bad", store.ServiceNotAvailable)
	p.send(b, "Bad", 0, "waits", wire.PropDelay, "1")
	p.send(b, "Good", 0, "behind it", wire.PropDelay, "1")
	p.send(b, "Good", 0, "elsewhere", wire.PropDelay, "2")
	pass(t, b, c, 10*time.Second)
	require.Empty(t, records(t, b, "Bad", 0))
	require.Equal(t, []string{"elsewhere"}, bodiesOf(records(t, b, "Good", 0)))
	f.mu.Lock()
	require.Equal(t, 8, f.tries, "at 0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3 s after it was due, and the one that went well")
	f.mu.Unlock()

	f.set("Bad", store.PutOK)
	pass(t, b, c, 10*time.Second)
	require.Equal(t, []string{"waits"}, bodiesOf(records(t, b, "Bad", 0)))
	require.Equal(t, []string{"elsewhere", "behind it"}, bodiesOf(records(t, b, "Good", 0)))
}

func TestDelayedMessageThatCannotBeDelivered(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	f := faulty(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	park := func(body string, props ...string) {
		m := &store.Message{Topic: []byte(wire.TopicSchedule), Body: []byte(body)}
		m.Properties = wire.AppendProperty(nil, wire.PropDelay, "1")
		for i := 0; i < len(props); i += 2 {
			m.Properties = wire.AppendProperty(m.Properties, props[i], props[i+1])
		}
		res, _ := b.Store().Put(m, nil)
		require.NoError(t, res.Err)
	}
	park("to nowhere")
	park("to no queue", wire.PropRealTopic, "T")
	park("to a bad queue", wire.PropRealTopic, "T", wire.PropRealQueueID, "x")
	park("to a negative queue", wire.PropRealTopic, "T", wire.PropRealQueueID, "-1")
	park("to a queue beyond all", wire.PropRealTopic, "T", wire.PropRealQueueID, "4294967296")
	park("to the half messages", wire.PropRealTopic, wire.TopicHalf, wire.PropRealQueueID, "0")
	park("round and round", wire.PropRealTopic, wire.TopicSchedule, wire.PropRealQueueID, "0")
	park("out of the directory", wire.PropRealTopic, "../T", wire.PropRealQueueID, "0")
	f.set("Illegal", store.MessageIllegal)
	park("illegal", wire.PropRealTopic, "Illegal", wire.PropRealQueueID, "0")
	park("good", wire.PropRealTopic, "T", wire.PropRealQueueID, "0")
	pass(t, b, c, time.Second)
	require.Equal(t, []string{"good"}, bodiesOf(records(t, b, "T", 0)), "none holds up the one behind")
	require.Zero(t, b.Store().MaxOffset(wire.TopicHalf, 0))
	require.EqualValues(t, 10, b.delays.progress.offset(0))
}

// settable is a clock that also goes back, as machines' clocks do.
type settable struct {
	*clock.Manual
	back atomic.Int64
}

func (c *settable) Now() time.Time { return c.Manual.Now().Add(-time.Duration(c.back.Load())) }

func TestDelayWhenTheClockIsSetBack(t *testing.T) {
	for name, test := range map[string]struct {
		back time.Duration
		want time.Duration // by the clock that was not set back
	}{
		"a little": {50 * time.Millisecond, 10*time.Second + 50*time.Millisecond},
		"far":      {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := &settable{Manual: clock.NewManual(testStart)}
			b := startBroker(t, func(cfg *Config) { cfg.Clock, cfg.Liveness = c, clock.Real() })
			require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
			b.delays.stop() // it comes while nobody looks
			dial(t, b).send(b, "T", 0, "x", wire.PropDelay, "3")
			c.back.Store(int64(test.back))
			b.delays.start()
			pass(t, b, c.Manual, test.want-time.Millisecond)
			if test.want > 0 {
				require.Empty(t, records(t, b, "T", 0))
			}
			pass(t, b, c.Manual, time.Millisecond)
			require.Len(t, records(t, b, "T", 0), 1)
		})
	}
}

func TestDelayServiceStopsAndStarts(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	b.delays.stop()
	b.delays.stop()
	p.send(b, "T", 0, "one", wire.PropDelay, "1")
	c.Advance(time.Minute)
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Empty(t, records(t, b, "T", 0), "a replica delivers nothing")
	require.ErrorIs(t, b.AwaitDelayed(t.Context()), errNoDelays)
	b.delays.start()
	b.delays.start()
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Equal(t, []string{"one"}, bodiesOf(records(t, b, "T", 0)))

	waited := make(chan error, 1)
	go func() { waited <- b.AwaitDelayed(context.Background()) }()
	p.send(b, "T", 0, "two", wire.PropDelay, "1")
	require.NoError(t, <-waited)
	pass(t, b, c, time.Second)
	go func() { waited <- b.AwaitDelayed(context.Background()) }()
	b.delays.stop()
	require.ErrorIs(t, <-waited, errNoDelays)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.delays.start()
	require.ErrorIs(t, b.AwaitDelayed(ctx), context.Canceled)
}

// TestDelayWithTheMachinesClock sends while messages fall due: none is early,
// lost or twice.
func TestDelayWithTheMachinesClock(t *testing.T) {
	b := startBroker(t, func(c *Config) {
		c.Store.DelayLevels = []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 80 * time.Millisecond}
	})
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	const n = 300
	var wg sync.WaitGroup
	for level := 1; level <= 3; level++ {
		wg.Go(func() {
			p := dial(t, b)
			for i := range n {
				p.must(wire.ReqSendMessageV2, sendHeader("T", 0, wire.PropDelay, strconv.Itoa(level)), fmt.Appendf(nil, "%d-%d", level, i))
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return b.Store().MaxOffset("T", 0) == 3*n }, 30*time.Second, time.Millisecond)
	next := map[string]int{}
	due := map[string]int64{}
	for level := range int32(3) {
		for _, m := range records(t, b, wire.TopicSchedule, level) {
			due[string(m.Body)] = m.StoreTime + b.cfg.Store.DelayLevels[level].Milliseconds()
		}
	}
	for _, m := range records(t, b, "T", 0) {
		level := string(m.Body[:1])
		require.Equal(t, fmt.Sprintf("%s-%d", level, next[level]), string(m.Body), "in order within the level")
		next[level]++
		require.GreaterOrEqual(t, m.StoreTime, due[string(m.Body)])
	}
}

// TestDelayAfterPowerLoss: whatever is left of the parked messages is
// delivered, however much of the copies and of the progress is lost.
func TestDelayAfterPowerLoss(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			c := clock.NewManual(testStart)
			disk := mfile.NewCrash()
			cfg := testConfig(withClock(c))
			cfg.Store.FS, cfg.Store.SyncFlush = disk, seed%4 == 0
			cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 64<<10, 20_000
			cfg.Store.IndexSlots, cfg.Store.IndexEntries = 100, 400
			b := startWith(t, cfg)
			require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
			p := dial(t, b)
			const n = 40
			for i := range n {
				p.send(b, "T", 0, strconv.Itoa(i), wire.PropDelay, []string{"1", "2"}[i%2])
			}
			require.NoError(t, b.Close(t.Context()))

			// From here on the system alone decides what gets to the disk.
			cfg.Store.FlushThorough, cfg.Store.FlushLeastPages = time.Hour, 1000
			b = startWith(t, cfg)
			pass(t, b, c, 4*time.Second)
			require.Len(t, records(t, b, "T", 0), n/2)
			require.NoError(t, b.saver.delays.Wait(t.Context(), b.saver.delays.Ask()))
			pass(t, b, c, time.Second)
			b.Kill()
			cfg.Store.FS = disk.PowerLoss(seed)
			b = startWith(t, cfg)
			require.Len(t, records(t, b, wire.TopicSchedule, 0), n/2)
			pass(t, b, c, time.Second)
			seen := map[string]bool{}
			for _, m := range records(t, b, "T", 0) {
				seen[string(m.Body)] = true
			}
			require.Len(t, seen, n, "at least once")
		})
	}
}
