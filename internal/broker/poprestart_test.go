package broker

import (
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// drain pops and acknowledges everything, over hours, and counts bodies.
func (p *popPeer) drain(b *Broker, c *clock.Manual) map[string]int {
	p.tb.Helper()
	seen := map[string]int{}
	for range 6 {
		for {
			got := p.pop()
			if len(got) == 0 {
				break
			}
			for _, m := range got {
				seen[m.body]++
			}
			p.ack(got...)
		}
		advance(p.tb, b, c, 10*time.Minute)
	}
	require.Empty(p.tb, p.pop())
	_, out := b.NextDelayed()
	require.False(p.tb, out, "nothing is out any more")
	return seen
}

func TestPopSurvivesACleanRestart(t *testing.T) {
	for name, fs := range map[string]mfile.FS{"memory": mfile.NewMemory(), "disk": mfile.OS()} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewManual(testStart)
			cfg := testConfig(withClock(c))
			cfg.Store.FS, cfg.Store.Dir = fs, t.TempDir()
			cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 1<<20, 20_000
			b := startWith(t, cfg)
			require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
			p := dialPop(t, b, "CG", "T")
			for i := range 20 {
				p.send(b, "T", int32(i%2), strconv.Itoa(i))
			}
			long := p.pop(atMost(1), invisible(30*time.Minute)) // keeps the revive queues from moving on
			got := p.pop(atMost(12), invisible(time.Minute))
			require.Len(t, got, 12)
			p.ack(got[:4]...)
			hidden := p.hide(got[4], 20*time.Minute)
			advance(t, b, c, time.Minute) // 7 come again
			again := p.pop(atMost(3))
			require.Len(t, again, 3)
			p.ack(again[0])
			require.NoError(t, b.Close(t.Context()))

			b = startWith(t, cfg)
			p = dialPop(t, b, "CG", "T")
			advance(t, b, c, 0)
			p.ack(hidden, again[1]) // acks with handles from before
			seen := p.drain(b, c)
			done := append(popBodies(got[:5]), again[0].body, again[1].body)
			for i := range 20 {
				want := 1
				if body := strconv.Itoa(i); slices.Contains(done, body) {
					want = 0
				}
				require.Equal(t, want, seen[strconv.Itoa(i)], "%d; %v was out for long", i, popBodies(long))
			}
		})
	}
}

func TestPopLosesNothingWhenKilled(t *testing.T) {
	for _, saved := range []bool{false, true} {
		c := clock.NewManual(testStart)
		cfg := testConfig(withClock(c))
		b := startWith(t, cfg)
		require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
		require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
		p := dialPop(t, b, "CG", "T")
		const n = 100
		for i := range n {
			p.send(b, "T", int32(i%4), strconv.Itoa(i))
		}
		got := p.pop(atMost(32))
		p.ack(got[:16]...)
		p.hide(got[20], 5*time.Minute)
		if saved {
			advanceUntil(t, c, time.Second, func() bool {
				doc, err := b.saver.files.ReadFile("consumerOffset.json")
				return err == nil && slices.Contains([]byte(doc), 'T') && len(doc) > 200
			})
		}
		p.pop(atMost(20))
		b.Kill()

		b = startWith(t, cfg)
		p = dialPop(t, b, "CG", "T")
		seen := p.drain(b, c)
		for i := range n {
			body := strconv.Itoa(i)
			if !slices.Contains(popBodies(got[:16]), body) {
				require.Positive(t, seen[body], "%s is lost", body)
			}
		}
		if saved {
			for _, m := range got[:16] {
				require.Zero(t, seen[m.body], "acknowledged, and the offset was saved")
			}
		}
	}
}

// A message that has come again does not do so once more after a restart, also
// if an older checkpoint keeps the reader's offset back.
func TestRevivedMessagesComeOnce(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 20 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	for range 10 { // each revive queue has a long one and a short one
		p.pop(atMost(1), invisible(2*time.Hour))
	}
	require.Len(t, p.pop(invisible(time.Minute)), 10)
	advance(t, b, c, time.Minute)
	require.EqualValues(t, 10, b.store.MaxOffset("%RETRY%CG_T", 0))
	b.Kill()
	b = startWith(t, cfg)
	advance(t, b, c, time.Minute)
	require.EqualValues(t, 10, b.store.MaxOffset("%RETRY%CG_T", 0))
	advance(t, b, c, 2*time.Hour)
	require.EqualValues(t, 20, b.store.MaxOffset("%RETRY%CG_T", 0))
}

// A checkpoint that is open for long is written again, so that its reader's
// offset moves.
func TestLongCheckpointsAreWrittenAgain(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	for i := range 3 {
		p.send(b, "T", 0, strconv.Itoa(i))
	}
	got := p.pop(invisible(10 * time.Hour))
	require.Len(t, got, 3)
	p.ack(got[1])
	revive := wire.ReviveTopic(b.cfg.Cluster)
	h, err := wire.ParsePopHandle(got[0].handle)
	require.NoError(t, err)
	for range 5 {
		p.send(b, "T", 0, "x")
		p.ack(p.pop(atMost(1))...) // something for the reader to see
		advance(t, b, c, time.Hour)
		p.pop(atMost(1))
		advance(t, b, c, time.Minute)
	}
	require.NoError(t, b.Close(t.Context()))
	b = startWith(t, cfg)
	off, ok := b.Offset(wire.GroupRevive, revive, h.ReviveQueue)
	require.True(t, ok)
	require.Greater(t, off, int64(1), "the first record is no longer needed")
	advance(t, b, c, 10*time.Hour)
	p = dialPop(t, b, "CG", "T")
	require.Equal(t, []string{"0", "2"}, popBodies(p.pop()), "and knows what was acknowledged")
}

func TestReviveWaitsForRoom(t *testing.T) {
	c := clock.NewManual(testStart)
	var full atomic.Bool
	b := startBroker(t, withClock(c), func(c *Config) {
		c.Store.DiskUsage = func(string) (float64, error) {
			if full.Load() {
				return 0.99, nil
			}
			return 0, nil
		}
		c.Store.NoForcedClean = true
	})
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dialPop(t, b, "CG", "T")
	p.send(b, "T", 0, "m")
	p.send(b, "T", 0, "n")
	got := p.pop(atMost(1))
	require.Len(t, got, 1)
	full.Store(true)
	require.NoError(t, b.store.CheckDisk(t.Context()))
	f := p.call(wire.ReqAckMessage, p.ackHeader(got[0]), nil)
	require.EqualValues(t, wire.RespSystemError, f.Code, "the consumer is told")
	require.Contains(t, string(f.Remark), store.ServiceNotAvailable.String())
	h := p.ackHeader(got[0])
	h.InvisibleMillis = 1000
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqChangeMessageInvisibletime, h, nil).Code)
	require.Empty(t, p.pop(), "what has no checkpoint is not given out")
	off, _ := b.Offset("CG", "T", 0)
	require.EqualValues(t, 1, off)
	c.Advance(time.Minute)
	require.NoError(t, b.SettleDelays(t.Context()))
	at, ok := b.NextDelayed()
	require.True(t, ok)
	require.Equal(t, 100*time.Millisecond, at.Sub(c.Now()))
	full.Store(false)
	require.NoError(t, b.store.CheckDisk(t.Context()))
	advance(t, b, c, time.Second)
	require.ElementsMatch(t, []string{"m", "n"}, popBodies(p.pop()))
}

// What a power loss takes away is not counted: an offset is saved only with the
// checkpoint before it.
func TestPopLosesNothingWithThePower(t *testing.T) {
	for seed := range uint64(24) {
		c := clock.NewManual(testStart)
		disk := mfile.NewCrash()
		cfg := testConfig(withClock(c))
		cfg.Store.FS, cfg.Store.SyncFlush = disk, seed%4 == 0
		cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 64<<10, 20_000
		cfg.Store.IndexSlots, cfg.Store.IndexEntries = 100, 400
		cfg.OffsetFlushEvery = time.Second
		b := startWith(t, cfg)
		require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
		require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
		p := dialPop(t, b, "CG", "T")
		const n = 40
		for i := range n {
			p.send(b, "T", 0, strconv.Itoa(i))
		}
		require.NoError(t, b.Close(t.Context()))

		// From here on the system alone decides what gets to the disk.
		cfg.Store.FlushThorough, cfg.Store.FlushLeastPages = time.Hour, 1000
		b = startWith(t, cfg)
		p = dialPop(t, b, "CG", "T")
		for range 1 + seed%8 {
			p.pop(atMost(4))
			seq := b.saver.offsets.Ask()
			require.NoError(t, b.saver.offsets.Wait(t.Context(), seq))
			c.Advance(time.Duration(seed%3) * 400 * time.Millisecond)
		}
		b.Kill()
		cfg.Store.FS = disk.PowerLoss(seed)

		b = startWith(t, cfg)
		p = dialPop(t, b, "CG", "T")
		seen := p.drain(b, c)
		for i := range n {
			require.Positive(t, seen[strconv.Itoa(i)], "seed %d: %d is lost", seed, i)
		}
		b.Kill()
	}
}
