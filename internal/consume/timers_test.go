package consume

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/run"
)

func TestTimersRunInOrderAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run.NewGroup(context.Background())
		tm := newTimers()
		g.Go(tm.run)
		began := time.Now()
		var got []time.Duration
		note := func() { got = append(got, time.Since(began)) }
		tm.after(3*time.Second, note)
		tm.after(time.Second, func() { note(); tm.after(time.Second, note); tm.after(0, note) })
		tm.after(3*time.Second, note)
		tm.after(5*time.Hour, func() { t.Error("ran after the end") })
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		s := time.Second
		require.Equal(t, []time.Duration{s, s, 2 * s, 3 * s, 3 * s}, got)
		g.Stop()
		time.Sleep(2 * time.Hour)
	})
}
