package rocketmq

import (
	"fmt"
	"strconv"
	"time"
)

// Delay says when a message may be delivered. The zero value is at once. There
// is one value and not three setters, so that they cannot contradict each
// other.
type Delay struct {
	kind  DelayKind
	value int64 // level, milliseconds, or milliseconds since 1970
}

// DelayKind tells the kinds of [Delay] apart.
type DelayKind uint8

// The kinds of delays.
const (
	DelayNone DelayKind = iota
	DelayByLevel
	DelayByDuration
	DelayUntil
)

// DelayLevel is one of the broker's fixed delays: 1 to 18 are 1s 5s 10s 30s 1m
// 2m ... 10m 20m 30m 1h 2h unless the broker is configured otherwise. A broker
// takes a level beyond its last one for the last one. Level 0 is at once.
func DelayLevel(n int) Delay {
	if n == 0 {
		return Delay{}
	}
	return Delay{DelayByLevel, int64(n)}
}

// DelayFor delivers d after the broker stored the message, rounded up to
// milliseconds. It needs a broker with timer messages (5.x). Zero is at once.
func DelayFor(d time.Duration) Delay {
	if d == 0 {
		return Delay{}
	}
	ms := d.Milliseconds()
	if time.Duration(ms)*time.Millisecond < d {
		ms++
	}
	return Delay{DelayByDuration, ms}
}

// DeliverAt delivers at t, at once if t has passed. It needs a broker with
// timer messages (5.x), and clocks that agree.
func DeliverAt(t time.Time) Delay { return Delay{DelayUntil, t.UnixMilli()} }

// IsZero reports whether there is no delay.
func (d Delay) IsZero() bool { return d.kind == DelayNone }

// Kind tells what the delay is.
func (d Delay) Kind() DelayKind { return d.kind }

// Level is the level of [DelayLevel], 0 for other kinds.
func (d Delay) Level() int {
	if d.kind != DelayByLevel {
		return 0
	}
	return int(d.value)
}

// Duration is the time of [DelayFor], 0 for other kinds.
func (d Delay) Duration() time.Duration {
	if d.kind != DelayByDuration {
		return 0
	}
	return time.Duration(d.value) * time.Millisecond
}

// Time is the time of [DeliverAt], the zero time for other kinds.
func (d Delay) Time() time.Time {
	if d.kind != DelayUntil {
		return time.Time{}
	}
	return time.UnixMilli(d.value)
}

// String describes the delay.
func (d Delay) String() string {
	switch d.kind {
	case DelayByLevel:
		return "level " + strconv.Itoa(d.Level())
	case DelayByDuration:
		return "for " + d.Duration().String()
	case DelayUntil:
		return "until " + d.Time().UTC().Format(time.RFC3339Nano)
	}
	return "none"
}

func (d Delay) validate() error {
	switch d.kind {
	case DelayByLevel:
		if d.value < 1 || d.value > 1<<20 {
			return fmt.Errorf("delay level %d: levels start at 1", d.value)
		}
	case DelayByDuration:
		if d.value < 0 {
			return fmt.Errorf("delay of %s is negative", d.Duration())
		}
	case DelayUntil:
		if d.value < 0 {
			return fmt.Errorf("delivery time %s is before 1970", d.Time().UTC().Format(time.RFC3339))
		}
	}
	return nil
}
