package rounds

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
)

func TestRunner(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := clock.NewManual(start)
	var next, rounds, last atomic.Int64 // last: when the last round was, in ms after start
	r := NewRunner(c, func(context.Context) int64 {
		rounds.Add(1)
		last.Store(c.Now().Sub(start).Milliseconds())
		if next.Load() <= c.Now().UnixMilli() {
			return 0
		}
		return next.Load()
	})
	r.Start()
	require.NoError(t, r.Settle(t.Context()))
	_, ok, changed := r.Due()
	require.False(t, ok, "nothing waits")

	next.Store(start.Add(5 * time.Second).UnixMilli())
	require.NoError(t, r.Settle(t.Context()))
	<-changed
	due, ok, _ := r.Due()
	require.True(t, ok)
	require.Equal(t, next.Load(), due.UnixMilli())
	c.Advance(5*time.Second - time.Millisecond)
	n := rounds.Load()
	require.Zero(t, last.Load(), "it sleeps")
	c.Advance(time.Millisecond)
	require.Eventually(t, func() bool { return rounds.Load() > n && last.Load() == 5000 }, 30*time.Second, time.Millisecond)

	_, _, changed = r.Due()
	r.Stop()
	<-changed
	require.NoError(t, r.Settle(t.Context()), "of one that has ended nobody waits for long")
	require.Zero(t, c.Pending())
}

// TestRunnerSleepsNotBeyondAClockThatMoves: the clock may be moved between the
// look at it and the setting of the timer.
func TestRunnerSleepsNotBeyondAClockThatMoves(t *testing.T) {
	c := clock.NewManual(time.UnixMilli(1000))
	done := make(chan struct{})
	r := NewRunner(c, func(context.Context) int64 {
		if c.Now().UnixMilli() < 3000 {
			c.Advance(time.Second)
			return 3000
		}
		close(done)
		return 0
	})
	r.Start()
	defer r.Stop()
	c.Advance(time.Second)
	<-done
}
