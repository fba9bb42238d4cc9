package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tally counts what was sent and what arrived. All methods are safe for
// concurrent use.
type tally struct {
	start    time.Time
	messages []message

	sent    atomic.Int64 // acknowledged by a broker
	arrived atomic.Int64 // different messages that came
	again   atomic.Int64 // further deliveries of those
	altered atomic.Int64
	moved   chan struct{} // capacity 1: something arrived since the last look
}

// message is what is known of one message.
type message struct {
	deliveries atomic.Uint32
	sentAt     atomic.Int64  // nanoseconds after the tally's start
	sendTook   time.Duration // written by its sender; 0: not acknowledged
	transit    time.Duration // written by the receiver that had it first
}

func newTally(n int) *tally {
	return &tally{start: time.Now(), messages: make([]message, n), moved: make(chan struct{}, 1)}
}

// sending notes that message seq is on its way.
func (t *tally) sending(seq int) { t.messages[seq].sentAt.Store(int64(time.Since(t.start))) }

// acknowledged notes that a broker has it.
func (t *tally) acknowledged(seq int) {
	m := &t.messages[seq]
	m.sendTook = time.Since(t.start) - time.Duration(m.sentAt.Load())
	t.sent.Add(1)
}

// received notes a delivery.
func (t *tally) received(seq int) {
	m := &t.messages[seq]
	if m.deliveries.Add(1) > 1 {
		t.again.Add(1)
		return
	}
	m.transit = time.Since(t.start) - time.Duration(m.sentAt.Load())
	t.arrived.Add(1)
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// missing is how many acknowledged messages did not arrive. It is exact once
// nothing is sent any more.
func (t *tally) missing() int {
	n := 0
	for i := range t.messages {
		if m := &t.messages[i]; m.sendTook > 0 && m.deliveries.Load() == 0 {
			n++
		}
	}
	return n
}

// sendTimes and transitTimes are the durations of all acknowledged and of all
// arrived messages. Call them when nothing moves any more.
func (t *tally) sendTimes() []time.Duration {
	return t.durations(func(m *message) time.Duration { return m.sendTook })
}

func (t *tally) transitTimes() []time.Duration {
	return t.durations(func(m *message) time.Duration { return m.transit })
}

func (t *tally) durations(of func(*message) time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(t.messages))
	for i := range t.messages {
		if d := of(&t.messages[i]); d > 0 {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// quantile is the value below which the given share of sorted durations lies,
// 0 if there are none.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// once is a moment that is noted the first time that it happens.
type once struct {
	sync.Once
	done chan struct{}
	at   time.Time // valid once done is closed
}

func newOnce() *once { return &once{done: make(chan struct{})} }

func (o *once) now() {
	o.Do(func() {
		o.at = time.Now()
		close(o.done)
	})
}
