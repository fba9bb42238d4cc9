package broker

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/vnet"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// TestC47_AccuracyAndBorders sends what is due soon, never, at once and in the
// past, by level and by time. In virtual time everything is exact.
func TestC47_AccuracyAndBorders(t *testing.T) {
	c := clock.NewManual(testStart.Add(250 * time.Millisecond))
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	want := map[string]int64{}
	send := func(name string, after time.Duration, props ...string) {
		t.Helper()
		p.send(b, "T", 0, name, props...)
		want[name] = (c.Now().Sub(testStart) + after).Milliseconds()
	}
	for i := range 1000 {
		send(fmt.Sprint("level 1 no. ", i), time.Second, wire.PropDelay, "1")
		if i%100 == 0 {
			c.Advance(time.Millisecond)
		}
	}
	send("past", 0, wire.PropTimerDeliverMs, at(c.Now().Add(-time.Hour)))
	send("long past", 0, wire.PropTimerDeliverMs, "0")
	send("now", 0, wire.PropTimerDeliverMs, at(c.Now()))
	send("now + 1.5 s", 1500*time.Millisecond, wire.PropTimerDeliverMs, at(c.Now().Add(1500*time.Millisecond)))
	send("level 99", 2*time.Hour, wire.PropDelay, "99")
	send("level 0", 0, wire.PropDelay, "0")

	// Sent earlier, stored later, and the other way round: each has its own time.
	send("sent first", 3*time.Second, wire.PropTimerDeliverMs, at(c.Now().Add(3*time.Second)))
	send("sent second", 2*time.Second, wire.PropTimerDeliverMs, at(c.Now().Add(2*time.Second)))
	send("level behind", time.Second, wire.PropDelay, "1")

	// A neighbour that is due much later than its level allows, and one without a
	// place to go to, hold up nobody.
	for _, props := range [][]string{{wire.PropDelay, "2"}, {wire.PropDelay, "2", wire.PropRealTopic, "T", wire.PropRealQueueID, "x"}} {
		m := &store.Message{Topic: []byte(wire.TopicSchedule), QueueID: 0, Body: []byte("wrong neighbour")}
		for i := 0; i < len(props); i += 2 {
			m.Properties = wire.AppendProperty(m.Properties, props[i], props[i+1])
		}
		res, _ := b.Store().Put(m, nil)
		require.NoError(t, res.Err)
	}
	p.send(b, "T", 0, "behind a wrong neighbour", wire.PropDelay, "1")
	sent := c.Now().Sub(testStart).Milliseconds()
	pass(t, b, c, 3*time.Hour)
	got := deliveredAt(t, b, "T", 0)
	late := got["behind a wrong neighbour"] - sent - 1000
	require.GreaterOrEqual(t, late, int64(0))
	require.LessOrEqual(t, late, int64(5000), "for no longer than the neighbour's own delay")
	delete(got, "behind a wrong neighbour")
	require.Equal(t, want, got)
}

// lateness is by how much messages came too late, in ms, sorted, and fails the
// test for one that is early.
func lateness(t testing.TB, b *Broker, queue int32) []int64 {
	t.Helper()
	var late []int64
	for _, m := range records(t, b, "T", queue) {
		due, err := strconv.ParseInt(string(m.Body), 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, m.StoreTime, due, "early")
		late = append(late, m.StoreTime-due)
	}
	slices.Sort(late)
	return late
}

// TestC47_AccuracyByTheMachinesClock: 1,000 timers that are due in one second,
// and 1,000 messages of level 1, with a disk and the clock that brokers have.
// In a bubble that does not wait for a machine that is busy with other things.
// [BenchmarkAccuracy] does wait for it.
func TestC47_AccuracyByTheMachinesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, late := range accuracyByTheClock(t) {
			require.Less(t, late[len(late)*99/100], int64(200), name)
		}
	})
}

// BenchmarkAccuracy says how late messages are by a real clock, in milliseconds.
func BenchmarkAccuracy(b *testing.B) {
	for b.Loop() {
		for name, late := range accuracyByTheClock(b) {
			b.ReportMetric(float64(late[len(late)/2]), name+"-p50-ms")
			b.ReportMetric(float64(late[len(late)*99/100]), name+"-p99-ms")
		}
	}
}

// accuracyByTheClock is by how many milliseconds messages were late, sorted.
func accuracyByTheClock(t testing.TB) map[string][]int64 {
	t.Helper()
	var net vnet.Network
	l, err := net.Listen("10.0.0.1:10911")
	require.NoError(t, err)
	b := startBroker(t, func(c *Config) {
		c.Listener, c.Dial = l, net.Dial
		c.Store.FS, c.Store.Dir = mfile.OS(), t.TempDir()
		c.Store.CommitLogFileSize, c.Store.ConsumeQueueFileSize = 8<<20, 200_000
		c.Store.IndexSlots, c.Store.IndexEntries = 10_000, 40_000
		c.TimerLogFileSize = 1 << 20
	})
	inside := func() *peer {
		p := &peer{tb: t, addr: b.Addr(), pool: remoting.NewPool(remoting.PoolConfig{Dial: net.Dial})}
		t.Cleanup(p.close)
		return p
	}
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	const n = 1000
	begin := time.Now().Add(800 * time.Millisecond)
	var wg sync.WaitGroup
	wg.Go(func() {
		p := inside()
		for i := range n {
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
			due := begin.Add(time.Duration(i*7919%n) * time.Millisecond)
			p.must(wire.ReqSendMessageV2, sendHeader("T", 0, wire.PropTimerDeliverMs, at(due)), []byte(at(due)))
		}
	})
	wg.Go(func() {
		p := inside()
		for i := range n {
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
			// It is stored after this moment, so it is due a little later.
			due := at(time.Now().Add(time.Second))
			p.must(wire.ReqSendMessageV2, sendHeader("T", 1, wire.PropDelay, "1"), []byte(due))
		}
	})
	wg.Wait()
	require.Eventually(t, func() bool {
		return b.Store().MaxOffset("T", 0) == n && b.Store().MaxOffset("T", 1) == n
	}, 30*time.Second, time.Millisecond)
	return map[string][]int64{"timers": lateness(t, b, 0), "levels": lateness(t, b, 1)}
}

// TestPendingMessagesCostLittle parks 100,000 messages, half of them by level,
// and measures what they cost in memory and in each round.
func TestPendingMessagesCostLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("measures memory")
	}
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) {
		c.Store.FS, c.Store.Dir, c.Store.NoIndex = mfile.OS(), t.TempDir(), true
		c.Store.CommitLogFileSize, c.TimerLogFileSize = 64<<20, 8<<20
	})
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	before := heap()
	const n = 100_000
	for i := range n {
		m := store.Message{Topic: []byte("T"), Body: []byte("x"), BornHost: b.host}
		if i%2 == 0 {
			b.park(nil, &m, int64(5+i%14))
		} else {
			// each in a slot of its own
			a := askedTime{at: []byte(at(testStart.Add(time.Hour + time.Duration(i*7919%n)*time.Second)))}
			_, _, code, remark := b.parkTimer(nil, &m, &a)
			require.Zero(t, code, remark)
		}
		res, _ := b.Store().Put(&m, nil)
		require.NoError(t, res.Err)
	}
	require.NoError(t, b.SettleDelays(t.Context()))
	require.EqualValues(t, n, b.Delayed())
	cost := heap() - before
	t.Logf("%d pending messages: %.1f MiB", n, float64(cost)/(1<<20))
	require.Less(t, cost, int64(50<<20))

	// What waits is not looked at: rounds of a second in which nothing is due cost
	// next to nothing.
	reads := b.timers.files.Taken()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	mallocs := m.Mallocs
	const rounds = 30
	for range rounds {
		c.Advance(time.Second)
		require.NoError(t, b.SettleDelays(t.Context()))
	}
	runtime.ReadMemStats(&m)
	require.Equal(t, reads, b.timers.files.Taken(), "no unit was read")
	require.Less(t, m.Mallocs-mallocs, uint64(rounds*1000))
	require.EqualValues(t, n, b.Delayed())
}

// heap is what is in use after a collection.
func heap() int64 {
	debug.FreeOSMemory() // collects
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
