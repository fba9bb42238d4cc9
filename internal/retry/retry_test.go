package retry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWaitingTimesDoubleUpToMax(t *testing.T) {
	for name, tc := range map[string]struct {
		p        Policy
		min, max time.Duration
	}{
		"defaults": {Policy{}, 100 * time.Millisecond, 10 * time.Second},
		"own":      {Policy{Min: time.Second, Max: 4 * time.Second}, time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := tc.p.New()
			for range 2 {
				want := tc.min
				for range 20 {
					assert.InEpsilon(t, want, b.Next(), 0.21)
					want = min(2*want, tc.max)
				}
				b.Reset()
			}
		})
	}
}

// Clients that lost the same server must not come back in step.
func TestWaitingTimesDiffer(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 20 {
		seen[Policy{}.New().Next()] = true
	}
	assert.Greater(t, len(seen), 10)
}
