package producer_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/producer"
)

// The gates are limits of what a message costs in garbage and write calls, the
// broker at the other end of the loopback included (which has next to none).
// They do not depend on the machine's speed. What each costs when nothing
// disturbs it is in the comments.

// price is what a message costs.
type price struct{ allocs, bytes, writes float64 }

func (p price) String() string {
	return fmt.Sprintf("%.3f allocations, %.1f bytes, %.3f write calls per message", p.allocs, p.bytes, p.writes)
}

// below tells whether p is within the limits; 0 is no limit.
func (p price) below(limit price) bool {
	ok := func(is, most float64) bool { return most == 0 || is <= most }
	return ok(p.allocs, limit.allocs) && ok(p.bytes, limit.bytes) && ok(p.writes, limit.writes)
}

// cost runs f, which sends n messages, without the collector, whose work is to
// make pools forget.
func (r *rig) cost(t *testing.T, n int, f func() error) price {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var from, to runtime.MemStats
	writes := r.writes.Load()
	runtime.ReadMemStats(&from)
	require.NoError(t, f())
	runtime.ReadMemStats(&to)
	per := 1 / float64(n)
	return price{
		allocs: float64(to.Mallocs-from.Mallocs) * per,
		bytes:  float64(to.TotalAlloc-from.TotalAlloc) * per,
		writes: float64(r.writes.Load()-writes) * per,
	}
}

// gate warms up with f and then demands that it stays below the limit in one
// of five tries: how many messages share a write call, or wait for room, is
// the scheduler's choice, which other load on the machine can spoil. Code that
// does worse does so in all of them.
func (r *rig) gate(t *testing.T, n int, limit price, f func() error) {
	t.Helper()
	require.NoError(t, f())
	var p price
	for range 5 {
		if p = r.cost(t, n, f); p.below(limit) {
			t.Log(p)
			return
		}
	}
	t.Errorf("%v; the limits are %v", p, limit)
}

// gated skips a gate under the race detector and gives others two cores: with
// one for each sender there would be less to share.
func gated(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget on purpose under the race detector")
	}
	before := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// Senders that wait for their answers: 1 allocation, 64 bytes, and 1.0, 0.2
// and 0.05 write calls.
func TestSendCost(t *testing.T) {
	gated(t)
	for _, tt := range []struct {
		callers int
		writes  float64
	}{{1, 1.2}, {16, 0.5}, {128, 0.2}} {
		t.Run(fmt.Sprint(tt.callers), func(t *testing.T) {
			const n = 3200
			r := newRig(t)
			r.gate(t, n, price{2, 300, tt.writes}, func() error { return r.sync(n, tt.callers) })
		})
	}
}

// A context that can end costs nothing more. This one is exact.
func TestSendAllocations(t *testing.T) {
	gated(t)
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": context.Background(), "can end": ctx} {
		require.LessOrEqual(t, testing.AllocsPerRun(500, func() {
			if _, err := r.p.Send(ctx, r.m); err != nil {
				t.Error(err)
			}
		}), 2.0, name)
	}
}

// Asynchronous sends: 2 allocations, 85 bytes, and 0.01 write calls when the
// window is kept full.
func TestSendAsyncCost(t *testing.T) {
	gated(t)
	const window = 256
	t.Run("room", func(t *testing.T) {
		r := newRig(t, producer.WithInflight(window, 64<<20))
		r.gate(t, 10*window, price{3, 300, 0.2}, func() error {
			for range 10 {
				if err := r.async(window); err != nil {
					return err
				}
			}
			return nil
		})
	})
	t.Run("full window", func(t *testing.T) {
		const n = 25 * window
		r := newRig(t, producer.WithInflight(window, 64<<20))
		r.gate(t, n, price{3, 300, 0.2}, func() error { return r.async(n) })
	})
}

// One-way sends: hardly anything, also while they wait for room in the
// connection's output.
func TestSendOnewayCost(t *testing.T) {
	gated(t)
	const n = 10_000
	r := newRig(t)
	r.gate(t, n, price{1, 100, 0.2}, func() error { return r.oneway(n, 16) })
}

// Batches of 32, for each message: 0.28 allocations, 490 bytes, 0.02 write
// calls.
func TestSendBatchCost(t *testing.T) {
	gated(t)
	const batches, size = 400, 32
	r := newRig(t)
	r.gate(t, batches*size, price{0.5, 600, 1.2 / size}, func() error { return r.batch(batches, 4, size) })
}
