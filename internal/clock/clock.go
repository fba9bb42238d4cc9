// Package clock is the time that servers go by. [Real] is the machine's;
// [Manual] is moved by hand, so that a test makes two hours pass in no time.
package clock

import "time"

// Clock tells the time and schedules work. Implementations are safe for
// concurrent use.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f on a goroutine of its own once d has passed. A d of
	// zero or less means at once. f must not block for long.
	AfterFunc(d time.Duration, f func()) Timer
	// NewTicker delivers the time on C every d; ticks are dropped when the
	// receiver is slow. d must be positive.
	NewTicker(d time.Duration) Ticker
}

// Timer is one scheduled call.
type Timer interface {
	// Stop prevents the call and reports whether it did: false means that it
	// has been started or was stopped before.
	Stop() bool
	// Reset moves the call to d from now and reports whether the timer was
	// still pending.
	Reset(d time.Duration) bool
}

// Ticker is a repeating event.
type Ticker interface {
	C() <-chan time.Time
	Stop()
}

// Real returns the machine's clock.
func Real() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func (realClock) NewTicker(d time.Duration) Ticker { return realTicker{time.NewTicker(d)} }

type realTicker struct{ t *time.Ticker }

func (t realTicker) C() <-chan time.Time { return t.t.C }
func (t realTicker) Stop()               { t.t.Stop() }
