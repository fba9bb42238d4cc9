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
	until atomic.Int64 // UnixNano until when to avoid it; 0: healthy
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
	until := b.until.Load()
	if until == 0 {
		return true
	}
	if n := now.UnixNano(); n >= until {
		return b.until.CompareAndSwap(until, n+int64(attempt))
	}
	return false
}

// avoid never shortens an avoidance.
func (b *broker) avoid(until time.Time) {
	n := until.UnixNano()
	for {
		old := b.until.Load()
		if old >= n || b.until.CompareAndSwap(old, n) {
			return
		}
	}
}

// healthy ends an avoidance.
func (b *broker) healthy() {
	if b.until.Load() != 0 {
		b.until.Store(0)
	}
}
