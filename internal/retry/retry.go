// Package retry says how long to wait before something that failed is tried
// again. It is the only user of the backoff package.
package retry

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Policy is how waiting times grow. The zero value is usable.
type Policy struct {
	// Min is the first waiting time. Zero means 100 ms.
	Min time.Duration
	// Max bounds the waiting time. Zero means 10 s.
	Max time.Duration
}

const (
	factor = 2
	// jitter spreads each waiting time by this share up and down, so that
	// clients which lost the same server do not come back in step.
	jitter = 0.2
)

// Backoff is one sequence of failures. It is not safe for concurrent use.
type Backoff struct{ b *backoff.ExponentialBackOff }

// New starts a sequence. There is no end to it: Next never gives up.
func (p Policy) New() *Backoff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(orDefault(p.Min, 100*time.Millisecond)),
		backoff.WithMaxInterval(orDefault(p.Max, 10*time.Second)),
		backoff.WithMultiplier(factor),
		backoff.WithRandomizationFactor(jitter),
		backoff.WithMaxElapsedTime(0),
	)
	return &Backoff{b}
}

// Next is how long to wait after one more failure: about double the time
// before, up to the policy's Max, give or take a fifth.
func (b *Backoff) Next() time.Duration { return b.b.NextBackOff() }

// Reset begins anew after a success.
func (b *Backoff) Reset() { b.b.Reset() }

func orDefault(v, def time.Duration) time.Duration {
	if v <= 0 {
		return def
	}
	return v
}
