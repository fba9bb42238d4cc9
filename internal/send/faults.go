package send

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// How long a broker is avoided after a failure, as far as there are others.
const (
	avoidDead = 10 * time.Second // no answer, or no connection
	avoidSick = 2 * time.Second  // it says that it does not serve
)

// broker is what the pipeline knows of one broker name.
type broker struct {
	name  string
	until atomic.Int64 // UnixNano until when to avoid it after a failure; 0: healthy
	slow  atomic.Int64 // the same after a slow answer; faster ones do not shorten it
}

// Avoidance says for how long to keep away from a broker whose answer took so
// long. Steps are in rising order of Latency.
type Avoidance []AvoidStep

// AvoidStep is the time For after an answer that took Latency or more.
type AvoidStep struct{ Latency, For time.Duration }

// DefaultAvoidance is the table of MQFaultStrategy since 5.1.4.
func DefaultAvoidance() Avoidance {
	const ms = time.Millisecond
	return Avoidance{{50 * ms, 0}, {100 * ms, 0}, {550 * ms, 2000 * ms}, {1800 * ms, 5000 * ms}, {3000 * ms, 6000 * ms}, {5000 * ms, 10000 * ms}, {15000 * ms, 30000 * ms}}
}

func (a Avoidance) after(latency time.Duration) time.Duration {
	for i := len(a) - 1; i >= 0; i-- {
		if latency >= a[i].Latency {
			return a[i].For
		}
	}
	return 0
}

// faults remembers brokers by name.
type faults struct {
	m  atomic.Pointer[map[string]*broker] // copied on write
	mu sync.Mutex                         // guards writes of m
}

func (f *faults) broker(name string) *broker {
	if m := f.m.Load(); m != nil {
		if b := (*m)[name]; b != nil {
			return b
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := make(map[string]*broker)
	if m := f.m.Load(); m != nil {
		next = maps.Clone(*m)
	}
	b := next[name]
	if b == nil {
		b = &broker{name: name}
		next[name] = b
		f.m.Store(&next)
	}
	return b
}

// usable reports whether the broker is worth an attempt. When the time to
// avoid it is over, one caller may try and the others go on avoiding it for as
// long as an attempt takes, so that a broker that is still dead delays one send
// and not all.
func (b *broker) usable(now time.Time, attempt time.Duration) bool {
	until, slow := b.until.Load(), b.slow.Load()
	if until == 0 && slow == 0 {
		return true
	}
	if slow > now.UnixNano() {
		return false
	}
	if until == 0 {
		return true
	}
	if n := now.UnixNano(); n >= until {
		return b.until.CompareAndSwap(until, n+int64(attempt))
	}
	return false
}

// avoid never shortens an avoidance.
func (b *broker) avoid(until time.Time) { raise(&b.until, until.UnixNano()) }

func raise(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if old >= to || v.CompareAndSwap(old, to) {
			return
		}
	}
}

// answered notes a success that took so long. It ends an avoidance after a
// failure.
func (b *broker) answered(a Avoidance, now time.Time, took time.Duration) {
	if b.until.Load() != 0 {
		b.until.Store(0)
	}
	if d := a.after(took); d > 0 {
		raise(&b.slow, now.Add(d).UnixNano())
	}
}
