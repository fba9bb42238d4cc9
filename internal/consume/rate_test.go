package consume

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLimiter(t *testing.T) {
	require.Nil(t, newLimiter(0))
	now := time.Unix(1000, 0)
	l := newLimiter(10)
	require.Zero(t, l.reserve(1, now), "the first goes at once")
	require.Zero(t, l.reserve(1, now), "and a tenth of a second is made up for")
	require.Equal(t, 100*time.Millisecond, l.reserve(1, now))
	require.Equal(t, 60*time.Millisecond, l.reserve(1, now.Add(40*time.Millisecond)), "asking costs nothing")
	now = now.Add(time.Hour)
	require.Zero(t, l.reserve(5, now), "a batch goes as a whole")
	require.Equal(t, 400*time.Millisecond, l.reserve(1, now), "and counts as its messages")
	l.giveBack(3)
	require.Equal(t, 100*time.Millisecond, l.reserve(1, now))

	l = newLimiter(0.1)
	require.Zero(t, l.reserve(1, now))
	require.Equal(t, 10*time.Second, l.reserve(1, now))
	l = newLimiter(math.SmallestNonzeroFloat64)
	require.Zero(t, l.reserve(1, now))
	require.Greater(t, l.reserve(1, now), 20*365*24*time.Hour)
	l = newLimiter(1e12)
	require.Zero(t, l.reserve(1e6, now))
}

// Whoever asks when, no more than the rate comes through, and no less if somebody
// asks when he was told to.
func TestLimiterKeepsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.5, 20000).Draw(t, "rate")
		l := newLimiter(rate)
		begin := time.Unix(1000, 0)
		now, taken := begin, 0
		for range 200 {
			n := rapid.IntRange(1, 8).Draw(t, "n")
			if wait := l.reserve(n, now); wait > 0 {
				now = now.Add(wait)
				require.Zero(t, l.reserve(n, now), "the wait is long enough")
			}
			taken += n
			most := rate*(now.Sub(begin)+rateAhead).Seconds() + float64(n) + 1
			require.LessOrEqual(t, float64(taken), most*1.001)
		}
		require.GreaterOrEqual(t, float64(taken)*1.001, rate*now.Sub(begin).Seconds(), "nothing is given away")
	})
}
