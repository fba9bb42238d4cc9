package clock

import (
	"sync"
	"time"
)

// Manual is a clock that stands still until it is moved. Functions of
// [Clock.AfterFunc] run one after another on the goroutine that calls
// [Manual.Advance], in the order of their times, each with Now at its own
// time; when Advance returns, all that was due has run.
type Manual struct {
	mu     sync.Mutex // guards all below; never held while a function runs
	now    time.Time
	seq    uint64
	events []*event
}

// event is a pending timer or ticker.
type event struct {
	c     *Manual
	at    time.Time
	seq   uint64 // ties are broken by age
	f     func() // timer
	tick  chan time.Time
	every time.Duration
}

// NewManual returns a clock that shows start.
func NewManual(start time.Time) *Manual { return &Manual{now: start} }

// Now implements [Clock].
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// AfterFunc implements [Clock]. With d of zero or less f runs at the next
// Advance, also one of zero.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &event{c: m, f: f}
	m.add(e, d)
	return e
}

// NewTicker implements [Clock].
func (m *Manual) NewTicker(d time.Duration) Ticker {
	if d <= 0 {
		panic("clock: ticker period must be positive")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &event{c: m, tick: make(chan time.Time, 1), every: d}
	m.add(e, d)
	return ticker{e}
}

// Advance moves the clock forward by d and runs what falls due on the way.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	m.advanceTo(m.now.Add(d))
}

// advanceTo must be entered with mu held; it releases it.
func (m *Manual) advanceTo(to time.Time) {
	for {
		e := m.next(to)
		if e == nil {
			break
		}
		if e.at.After(m.now) {
			m.now = e.at
		}
		m.remove(e)
		if e.tick != nil {
			select {
			case e.tick <- m.now:
			default:
			}
			m.add(e, e.every)
			continue
		}
		m.mu.Unlock()
		e.f()
		m.mu.Lock()
	}
	if to.After(m.now) {
		m.now = to
	}
	m.mu.Unlock()
}

// Pending is the number of timers and tickers that wait.
func (m *Manual) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.events)
}

func (m *Manual) add(e *event, d time.Duration) {
	m.seq++
	e.seq = m.seq
	e.at = m.now.Add(max(d, 0))
	m.events = append(m.events, e)
}

func (m *Manual) remove(e *event) bool {
	for i, x := range m.events {
		if x == e {
			m.events = append(m.events[:i], m.events[i+1:]...)
			return true
		}
	}
	return false
}

// next is the earliest event due at or before to.
func (m *Manual) next(to time.Time) *event {
	var best *event
	for _, e := range m.events {
		if e.at.After(to) {
			continue
		}
		if best == nil || e.at.Before(best.at) || e.at.Equal(best.at) && e.seq < best.seq {
			best = e
		}
	}
	return best
}

// Stop implements [Timer].
func (e *event) Stop() bool {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	return e.c.remove(e)
}

// Reset implements [Timer].
func (e *event) Reset(d time.Duration) bool {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	was := e.c.remove(e)
	e.c.add(e, d)
	return was
}

type ticker struct{ e *event }

func (t ticker) C() <-chan time.Time { return t.e.tick }
func (t ticker) Stop()               { t.e.Stop() }
