package consume

import (
	"math"
	"sync"
	"time"
)

// rateAhead is how much a subscription that was idle, or whose timer came late, can
// catch up at once.
const rateAhead = 100 * time.Millisecond

// limiter says when the next messages of a subscription may be handled. It counts
// no tokens but knows the time at which the next message is due: each one moves
// that on by its share of a second.
type limiter struct {
	share time.Duration // of one message

	mu  sync.Mutex // guards due
	due time.Time
}

// newLimiter is nil, no limit, for a rate of 0.
func newLimiter(perSecond float64) *limiter {
	if perSecond <= 0 {
		return nil
	}
	share := math.Min(float64(time.Second)/perSecond, math.MaxInt64/4)
	return &limiter{share: max(time.Duration(share), 1)}
}

// reserve takes n messages, or says how long to wait before asking again.
func (l *limiter) reserve(n int, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.due.Sub(now); wait > 0 {
		return wait
	}
	if behind := now.Add(-rateAhead); l.due.Before(behind) {
		l.due = behind
		if l.share > rateAhead {
			l.due = now
		}
	}
	l.due = l.due.Add(time.Duration(n) * l.share)
	return 0
}

// giveBack returns messages that were taken and not there.
func (l *limiter) giveBack(n int) {
	l.mu.Lock()
	l.due = l.due.Add(-time.Duration(n) * l.share)
	l.mu.Unlock()
}
