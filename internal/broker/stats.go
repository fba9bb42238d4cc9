package broker

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// stats counts what the broker did. Counting is lock-free; rates come from
// samples taken once a second.
type stats struct {
	putCount, putBytes, putFailed atomic.Int64
	getCount, getBytes, getMissed atomic.Int64
	getFound                      atomic.Int64 // pulls answered with messages

	mu      sync.Mutex // guards the ring
	ring    [601]sample
	samples int // taken in all
}

// sample is the counters at one moment.
type sample struct {
	at                      time.Time
	put, got, found, missed int64
}

func (s *stats) put(n, bytes int64) {
	s.putCount.Add(n)
	s.putBytes.Add(bytes)
}

func (s *stats) got(n, bytes int64) {
	s.getFound.Add(1)
	s.getCount.Add(n)
	s.getBytes.Add(bytes)
}

func (s *stats) take(now time.Time) sample {
	return sample{now, s.putCount.Load(), s.getCount.Load(), s.getFound.Load(), s.getMissed.Load()}
}

// tick takes a sample. It is called about once a second.
func (s *stats) tick(now time.Time) {
	x := s.take(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring[s.samples%len(s.ring)] = x
	s.samples++
}

// rates is a value's growth per second over about the last 10, 60 and 600
// seconds, in the form that clusterList and the dashboard read.
func (s *stats) rates(now time.Time, value func(sample) int64) string {
	cur := s.take(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	for i, span := range [...]int{10, 60, 600} {
		if i > 0 {
			b = append(b, ' ')
		}
		rate := 0.0
		if s.samples > 0 {
			old := s.ring[(s.samples-min(span, s.samples, len(s.ring)))%len(s.ring)]
			if d := now.Sub(old.at).Seconds(); d > 0 {
				rate = float64(value(cur)-value(old)) / d
			}
		}
		b = strconv.AppendFloat(b, rate, 'f', 1, 64)
	}
	return string(b)
}
