package broker

import (
	"bytes"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/broker/store/timer"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// small makes everything roll over soon.
func small(fs mfile.FS, dir string) func(*Config) {
	return func(c *Config) {
		c.Store.FS, c.Store.Dir = fs, dir
		c.Store.CommitLogFileSize, c.Store.ConsumeQueueFileSize = 64<<10, 2_000
		c.Store.IndexSlots, c.Store.IndexEntries = 100, 400
		c.TimerLogFileSize, c.TimerSlots = 520, 600
	}
}

// TestTimersSurviveRestarts sends 60 messages for the next 30 s, and stops the
// broker again and again: none is lost, early, or comes twice.
func TestTimersSurviveRestarts(t *testing.T) {
	for name, fs := range map[string]func() mfile.FS{"memory": func() mfile.FS { return mfile.NewMemory() }, "disk": func() mfile.FS { return mfile.OS() }} {
		for _, end := range []string{"close", "kill"} {
			restarts := 90
			if name == "disk" {
				restarts = 9 // each costs several flushes
			}
			t.Run(name+" "+end, func(t *testing.T) {
				c := clock.NewManual(testStart)
				cfg := testConfig(withClock(c), small(fs(), t.TempDir()))
				b := startWith(t, cfg)
				require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
				want := map[string]int64{}
				for i := range 60 {
					due := int64(500 + i*7919%30011)
					p := dial(t, b)
					p.send(b, "T", 0, strconv.Itoa(i), wire.PropTimerDeliverMs, at(testStart.Add(time.Duration(due)*time.Millisecond)))
					p.close()
					want[strconv.Itoa(i)] = due
				}
				for n := range restarts {
					pass(t, b, c, 30*time.Second/time.Duration(restarts)+time.Millisecond)
					if n%3 == 0 {
						require.NoError(t, b.saver.timers.Wait(t.Context(), b.saver.timers.Ask()))
					}
					before := b.Delayed()
					if end == "kill" {
						b.Kill()
					} else {
						require.NoError(t, b.Close(t.Context()))
					}
					b = startWith(t, cfg)
					require.NoError(t, b.SettleDelays(t.Context()))
					require.Equal(t, before, b.Delayed())
				}
				pass(t, b, c, time.Second)
				require.Equal(t, want, deliveredAt(t, b, "T", 0))
				require.Zero(t, b.Delayed())
			})
		}
	}
}

// TestTimersAfterADowntime: what was due meanwhile is delivered at once, in
// order, also what had not been read when the broker ended.
func TestTimersAfterADowntime(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	for _, ms := range []string{"5000", "3000", "90000"} {
		p.send(b, "T", 0, ms, wire.PropTimerDelayMs, ms)
	}
	pass(t, b, c, time.Second)
	b.timers.stop()
	p.send(b, "T", 0, "not read", wire.PropTimerDelayMs, "3000")
	require.NoError(t, b.Close(t.Context()))
	c.Advance(time.Minute)
	b = startWith(t, cfg)
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Equal(t, []string{"3000", "not read", "5000"}, bodiesOf(records(t, b, "T", 0)))
	require.EqualValues(t, 1, b.Delayed())
	pass(t, b, c, 30*time.Second)
	require.EqualValues(t, 90_000, deliveredAt(t, b, "T", 0)["90000"])
}

// TestTimersAfterPowerLoss: whatever is left of the parked messages is
// delivered, however much of the copies, and of the timers' files, is lost; and
// none is early.
func TestTimersAfterPowerLoss(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			c := clock.NewManual(testStart)
			disk := mfile.NewCrash()
			cfg := testConfig(withClock(c), small(disk, "/store"))
			cfg.Store.SyncFlush = seed%4 == 0
			b := startWith(t, cfg)
			require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
			p := dial(t, b)
			due := map[string]int64{}
			send := func(name string, ms int64) {
				at := c.Now().Sub(testStart).Milliseconds() + ms
				due[name] = at
				p.send(b, "T", 0, name, wire.PropTimerDelayMs, strconv.FormatInt(ms, 10))
			}
			for i := range int64(30) {
				send(strconv.FormatInt(i, 10), 1+i*7919%10007)
			}
			pass(t, b, c, time.Duration(seed%5)*time.Second)
			require.NoError(t, b.Close(t.Context()))
			p.close()

			// From here on the system alone decides what gets to the disk.
			cfg.Store.FlushThorough, cfg.Store.FlushLeastPages = time.Hour, 1000
			b = startWith(t, cfg)
			p = dial(t, b)
			pass(t, b, c, time.Second)
			send("new", 1500)
			send("short", 10)
			pass(t, b, c, 1700*time.Millisecond)
			require.NoError(t, b.saver.timers.Wait(t.Context(), b.saver.timers.Ask()))
			pass(t, b, c, 700*time.Millisecond)
			b.Kill()
			cfg.Store.FS = disk.PowerLoss(seed)
			b = startWith(t, cfg)
			for _, m := range records(t, b, wire.TopicTimer, 0) {
				require.Contains(t, due, string(m.Body))
			}
			pass(t, b, c, 12*time.Second)
			first := map[string]int64{}
			for _, m := range records(t, b, "T", 0) {
				if _, twice := first[string(m.Body)]; !twice {
					first[string(m.Body)] = m.StoreTime - testStart.UnixMilli()
				}
			}
			for _, m := range records(t, b, wire.TopicTimer, 0) {
				at, there := first[string(m.Body)]
				require.True(t, there, "%s is lost", m.Body)
				require.GreaterOrEqual(t, at, due[string(m.Body)], "%s is early", m.Body)
			}
			require.Zero(t, b.Delayed())
		})
	}
}

// TestTimerFaults lets each operation of the timers' files fail, one after the
// other: the broker does not start, or goes on, and nothing is lost.
func TestTimerFaults(t *testing.T) {
	c := clock.NewManual(testStart)
	disk := mfile.NewCrash()
	cfg := testConfig(withClock(c), small(disk, "/store"))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	want := map[string]bool{}
	fails := 0
	for i := range 60 {
		nth := 0
		disk.SetFault(func(op mfile.CrashOp) error {
			if !bytes.Contains([]byte(op.Path), []byte("timer")) {
				return nil
			}
			if nth++; nth == i%12 {
				fails++
				return mfile.ErrLocked
			}
			return nil
		})
		name := strconv.Itoa(i)
		p.send(b, "T", 0, name, wire.PropTimerDelayMs, "1500")
		want[name] = true
		pass(t, b, c, 500*time.Millisecond)
		require.NoError(t, b.saver.timers.Wait(t.Context(), b.saver.timers.Ask()))
		if i%5 == 4 {
			b.Kill()
			p.close()
			next, err := Start(t.Context(), cfg)
			if err != nil {
				require.ErrorIs(t, err, mfile.ErrLocked)
				disk.SetFault(nil)
				next = startWith(t, cfg)
			}
			t.Cleanup(next.Kill)
			b, p = next, dial(t, next)
		}
	}
	disk.SetFault(nil)
	pass(t, b, c, 30*time.Second)
	require.Greater(t, fails, 10)
	got := map[string]bool{}
	for _, m := range records(t, b, "T", 0) {
		got[string(m.Body)] = true
	}
	require.Equal(t, want, got)
}

// TestTimerLogIsCleaned: files whose slots are over go.
func TestTimerLogIsCleaned(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c), small(mfile.NewMemory(), "/store"))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	files := func() int {
		list, err := cfg.Store.FS.ReadDir("/store/timerlog")
		require.NoError(t, err)
		return len(list)
	}
	for i := range 100 {
		p.send(b, "T", 0, strconv.Itoa(i), wire.PropTimerDelayMs, strconv.Itoa(1000+i))
	}
	require.NoError(t, b.SettleDelays(t.Context()))
	require.Equal(t, 12, files(), "9 units in a file, and an end")
	pass(t, b, c, 3*time.Second)
	advanceUntil(t, c, time.Second, func() bool { return b.timers.files.State().Phy <= b.store.FlushedTo() })
	require.NoError(t, b.saver.timers.Wait(t.Context(), b.saver.timers.Ask()))
	pass(t, b, c, time.Second)
	require.Equal(t, 1, files())
	p.send(b, "T", 0, "new", wire.PropTimerDelayMs, "1000")
	b.Kill()
	b = startWith(t, cfg)
	pass(t, b, c, time.Second)
	require.Len(t, records(t, b, "T", 0), 101)
}

func TestTimerCheckpointAndMetrics(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	p.send(b, "T", 0, "x", wire.PropTimerDelayMs, "3600000")
	p.send(b, "T", 0, "y", wire.PropTimerDelayMs, "1")
	pass(t, b, c, time.Second)
	f := p.must(wire.ReqGetTimerMetrics, nil, nil)
	d, err := wire.DecodeTimerMetrics(f.Body)
	require.NoError(t, err)
	require.Equal(t, map[string]wire.TimerMetric{"T": {Count: 1, Timestamp: testStart.UnixMilli() + 1}}, d.Topics)
	f = p.must(wire.ReqGetTimerCheckPoint, nil, nil)
	require.Len(t, f.Body, 56)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 2}, f.Body[16:24], "both have been read")
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 2 * timer.UnitSize}, f.Body[8:16])
	require.Equal(t, "1", b.runtimeInfo()["timerCongestNum"])
	require.Equal(t, "0", b.runtimeInfo()["timerOffsetBehind"])
	require.NoError(t, b.Close(t.Context()))
	check, err := cfg.Store.FS.ReadFile(filepath.Join(cfg.Store.Dir, "config/timercheck"))
	require.NoError(t, err)
	require.Equal(t, f.Body[:32], check[:32])
	b = startWith(t, cfg)
	require.Equal(t, d.Topics["T"].Count, b.timers.counts.all())
	d, err = wire.DecodeTimerMetrics(dial(t, b).must(wire.ReqGetTimerMetrics, nil, nil).Body)
	require.NoError(t, err)
	require.EqualValues(t, 1, d.Topics["T"].Count)
}
