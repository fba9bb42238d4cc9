package consume

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestStatsOfAMinuteAndAnHour(t *testing.T) {
	var s stats
	now := time.Unix(1000, 0)
	require.Zero(t, s.status(now), "no sample yet")
	pass := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); now = now.Add(time.Second) {
			s.sample(now)
		}
	}
	pass(time.Second)
	require.Zero(t, s.status(now))
	s.gotPage(30, 40*time.Millisecond)
	s.gotPage(30, 20*time.Millisecond)
	s.handled(10, 50*time.Millisecond, 50)
	s.judged(Outcome{Kind: Done})
	s.judged(Outcome{Kind: Failed})
	s.judged(Outcome{Kind: Untried})
	pass(29 * time.Second)
	require.Equal(t, wire.ConsumeStatus{PullRT: 30, PullTPS: 2, ConsumeRT: 5, OKTPS: 51.0 / 30, FailedTPS: 1.0 / 30, FailedCount: 1}, s.status(now))
	pass(time.Minute)
	require.Equal(t, wire.ConsumeStatus{ConsumeRT: 5, FailedCount: 1}, s.status(now), "of the hour")
	pass(70 * time.Minute)
	require.Zero(t, s.status(now))
	require.Len(t, s.minute, samplesKept)
	require.Len(t, s.hour, samplesKept)
}
