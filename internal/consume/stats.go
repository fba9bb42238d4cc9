package consume

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Java's clients take a sample of their counters every 10 s for the last minute,
// and every 10 minutes for the last hour.
const (
	sampleEvery = 10 * time.Second
	samplesKept = 7
	hourlyEvery = 10 * time.Minute
)

// stats are the numbers of one topic that a broker can ask for. Counters are added
// to by page and by run of calls, not by message.
type stats struct {
	pages, pulled, pullTime atomic.Int64 // answers with messages, messages, ns
	calls, callTime         atomic.Int64 // of handlers; ns
	ok, failed              atomic.Int64 // messages

	mu     sync.Mutex // guards the two below
	minute []counts   // the oldest first
	hour   []counts
}

// counts are the counters at one time.
type counts struct {
	at                                                   time.Time
	pages, pulled, pullTime, calls, callTime, ok, failed int64
}

// gotPage counts an answer to a pull.
func (s *stats) gotPage(messages int, took time.Duration) {
	s.pages.Add(1)
	s.pulled.Add(int64(messages))
	s.pullTime.Add(int64(took))
}

// handled counts calls that have returned, and messages that were done.
func (s *stats) handled(calls int, took time.Duration, ok int) {
	s.calls.Add(int64(calls))
	s.callTime.Add(int64(took))
	s.ok.Add(int64(ok))
}

// judged counts a message of a call that did not return nil.
func (s *stats) judged(o Outcome) {
	switch o.Kind {
	case Done:
		s.ok.Add(1)
	case Failed:
		s.failed.Add(1)
	}
}

func (s *stats) counts(now time.Time) counts {
	return counts{
		now, s.pages.Load(), s.pulled.Load(), s.pullTime.Load(), s.calls.Load(), s.callTime.Load(), s.ok.Load(), s.failed.Load(),
	}
}

// sample keeps the counters if that is due.
func (s *stats) sample(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minute = keepSample(s.minute, s.counts(now), sampleEvery)
	s.hour = keepSample(s.hour, s.counts(now), hourlyEvery)
}

func keepSample(list []counts, c counts, every time.Duration) []counts {
	if n := len(list); n > 0 && c.at.Sub(list[n-1].at) < every {
		return list
	}
	if len(list) == samplesKept {
		list = append(list[:0], list[1:]...)
	}
	return append(list, c)
}

// status is what has happened since the oldest samples.
func (s *stats) status(now time.Time) (out wire.ConsumeStatus) {
	c := s.counts(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.minute) == 0 {
		return out
	}
	m, h := s.minute[0], s.hour[0]
	if secs := now.Sub(m.at).Seconds(); secs > 0 {
		out.PullTPS = float64(c.pulled-m.pulled) / secs
		out.OKTPS = float64(c.ok-m.ok) / secs
		out.FailedTPS = float64(c.failed-m.failed) / secs
	}
	out.PullRT = average(c.pullTime-m.pullTime, c.pages-m.pages)
	if c.calls == m.calls { // as Java: that of the last hour then
		m = h
	}
	out.ConsumeRT = average(c.callTime-m.callTime, c.calls-m.calls)
	out.FailedCount = c.failed - h.failed
	return out
}

// average is in ms.
func average(ns, n int64) float64 {
	if n <= 0 {
		return 0
	}
	return float64(ns) / float64(n) / 1e6
}
