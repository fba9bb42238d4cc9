package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestManualRunsInOrderAtTheirTimes(t *testing.T) {
	c := clock.NewManual(start)
	var got []time.Duration
	note := func() { got = append(got, c.Now().Sub(start)) }
	c.AfterFunc(3*time.Second, note)
	c.AfterFunc(time.Second, func() { note(); c.AfterFunc(time.Second, note) })
	stopped := c.AfterFunc(2*time.Second, func() { t.Error("stopped timer ran") })
	require.True(t, stopped.Stop())
	require.False(t, stopped.Stop())
	c.Advance(2500 * time.Millisecond)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, got)
	require.Equal(t, start.Add(2500*time.Millisecond), c.Now())
	c.Advance(time.Hour)
	require.Len(t, got, 3)
	require.Zero(t, c.Pending())
}

func TestManualReset(t *testing.T) {
	c := clock.NewManual(start)
	n := 0
	tm := c.AfterFunc(time.Second, func() { n++ })
	require.True(t, tm.Reset(time.Minute))
	c.Advance(59 * time.Second)
	require.Zero(t, n)
	c.Advance(time.Second)
	require.Equal(t, 1, n)
	require.False(t, tm.Reset(0))
	c.Advance(0)
	require.Equal(t, 2, n)
}

func TestManualTickerDropsWhenSlow(t *testing.T) {
	c := clock.NewManual(start)
	tk := c.NewTicker(time.Second)
	c.Advance(5 * time.Second)
	require.Equal(t, start.Add(time.Second), <-tk.C())
	c.Advance(time.Second)
	require.Equal(t, start.Add(6*time.Second), <-tk.C())
	tk.Stop()
	c.Advance(time.Minute)
	require.Empty(t, tk.C())
}

func TestRealClock(t *testing.T) {
	c := clock.Real()
	before := time.Now()
	require.False(t, c.Now().Before(before))
	fired := make(chan struct{})
	c.AfterFunc(time.Millisecond, func() { close(fired) })
	<-fired
	tk := c.NewTicker(time.Millisecond)
	<-tk.C()
	tk.Stop()
}
