package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// One random story, told to stores of many kinds against a slice of messages.
// The sizes of files and the kind of disk must make no difference but to what
// a power failure takes.
func TestMetamorphic(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	for _, c := range []struct {
		name       string
		fs         func() mfile.FS // nil: the system's
		log, queue int64
		sync       bool
	}{
		{"memory", func() mfile.FS { return mfile.NewMemory() }, 64 * kib, 2_000, false},
		{"memory, tiny files", func() mfile.FS { return mfile.NewMemory() }, 4 * kib, 20, false},
		{"memory, sync flush", func() mfile.FS { return mfile.NewMemory() }, 16 * kib, 400, true},
		{"crash", func() mfile.FS { return mfile.NewCrash() }, 32 * kib, 6_000, false},
		{"crash, small files", func() mfile.FS { return mfile.NewCrash() }, 8 * kib, 100, false},
		{"crash, sync flush", func() mfile.FS { return mfile.NewCrash() }, 16 * kib, 400, true},
		{"disk", nil, 32 * kib, 6_000, false},
		{"disk, sync flush", nil, 8 * kib, 400, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := seeds(t, 6)
			if c.fs == nil {
				n = max(1, n/25) // a disk is slow
			}
			for seed := range n {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					cfg := store.Config{
						Dir: "store", CommitLogFileSize: c.log, ConsumeQueueFileSize: c.queue, SyncFlush: c.sync,
					}
					if c.fs != nil {
						cfg.FS = c.fs()
					} else {
						cfg.Dir = t.TempDir()
					}
					var full atomic.Bool
					cfg.DiskUsage = func(string) (float64, error) {
						if full.Load() {
							return 0.87, nil
						}
						return 0, nil
					}
					cfg.DeleteBatch = 1
					tell(t, seed, cfg, func(g *saga) {
						for range 150 {
							g.step(&full)
						}
						g.check()
					})
				})
			}
		})
	}
}

// step does one random thing.
func (g *saga) step(full *atomic.Bool) {
	switch n := g.rand.IntN(100); {
	case n < 60:
		g.put(g.rand.IntN(int(g.cfg.CommitLogFileSize) / 8))
	case n < 68:
		g.putBatch(1 + g.rand.IntN(12))
	case n < 72: // to the next file
		g.put(int(g.cfg.CommitLogFileSize) / 2)
	case n < 78:
		time.Sleep(time.Duration(g.rand.IntN(70_000)) * time.Millisecond)
	case n < 84:
		g.check()
	case n < 88:
		g.clean(full)
	case n < 90:
		g.deleteTopic()
	case n < 93:
		g.wait()
		g.note("reopen")
		require.NoError(g.t, g.Close())
		g.wait()
		g.open()
		g.check()
	case n < 97 || g.crash == nil:
		g.wait()
		g.note("kill")
		g.Abandon()
		g.open()
		g.check()
	default:
		g.losePower()
	}
}

// clean removes the oldest file of the log.
func (g *saga) clean(full *atomic.Bool) {
	g.wait()
	full.Store(true)
	require.NoError(g.t, g.CleanNow(context.Background()))
	full.Store(false)
	g.note("clean: the log begins at %d", g.Stats().MinPhy)
	require.NoError(g.t, g.CleanNow(context.Background()))
	g.check()
}

// deleteTopic deletes one of the topics. It begins anew, whatever happens next.
func (g *saga) deleteTopic() {
	g.wait()
	topic := fmt.Sprintf("T%d", g.rand.IntN(3))
	g.note("delete %s", topic)
	require.NoError(g.t, g.DeleteTopic(context.Background(), topic))
	for i := range g.puts {
		if g.puts[i].topic == topic {
			g.puts[i].topic = "" // still in the log, and in no queue
		}
	}
	g.check()
}
