package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRates(t *testing.T) {
	var s stats
	put := func(x sample) int64 { return x.put }
	now := testStart
	require.Equal(t, "0.0 0.0 0.0", s.rates(now, put))
	s.tick(now)
	for range 700 { // longer than the ring
		now = now.Add(time.Second)
		s.put(10, 1000)
		s.tick(now)
	}
	require.Equal(t, "10.0 10.0 10.0", s.rates(now, put))
	for range 10 {
		now = now.Add(time.Second)
		s.tick(now)
	}
	require.Regexp(t, `^0\.0 8\.\d 9\.8$`, s.rates(now, put))
}
