package consumer

import (
	"fmt"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/consume"
)

// Health is the state of a consumer at one moment.
type Health struct {
	Group  string
	Queues []QueueHealth // those assigned to this member, sorted
	// Rebalanced is when the queues of all topics were divided last without a
	// failure; zero is never. It is tried every 20 s, and when members or routes change.
	Rebalanced time.Time
	// RebalanceError is why a later division did not succeed: a route, members or an
	// offset that could not be had, or the strategy. What the member has it keeps.
	RebalanceError error
}

// QueueHealth is the state of one queue.
type QueueHealth struct {
	Queue       rocketmq.Queue
	Committed   int64 // the offset of the first message that is not done
	Lag         int64 // messages from there to the end of the queue, as of the last pull
	Cached      int   // messages in memory that are not done
	CachedBytes int64
	InFlight    int // of these, begun by a handler or waiting for a retry
	// State is what pulling does: "pulling", "cache full" (handlers are slower
	// than the broker), "taking over" (gives another member a moment to commit),
	// "connecting", "backing off" (see LastError), "paused", "revoked". In order also
	// "waiting for lock" (another member has it still), "lock lost" (another member
	// has it, or it could not be renewed), "waiting for handler" (one that began
	// before the lock was lost, or the offset was moved, has not returned) and
	// "suspended" (after a failure).
	State string
	// BusySince is when the oldest call of a handler began that has not returned,
	// zero if there is none. If many quick calls went before it can be early by a
	// millisecond.
	BusySince time.Time
	// SuspendedUntil is when a suspended queue goes on; zero if it is not suspended,
	// or waits until a dead letter is stored.
	SuspendedUntil time.Time
	LastPull       time.Time // last good answer of the broker
	LastError      error     // failure since then, nil if there was none
	// Stuck is why the queue has not gone on since StuckSince, empty if it is not
	// stuck. See [WithStuckAfter].
	Stuck      rocketmq.StuckReason
	StuckSince time.Time
}

// Health is a snapshot of the assigned queues. It does no I/O.
func (m *member) Health() Health {
	h := Health{Group: m.group}
	last, err := m.c.Balance()
	h.Rebalanced, h.RebalanceError = last, bridge.PublicError(err)
	for _, q := range m.c.Health() {
		h.Queues = append(h.Queues, publicHealth(q))
	}
	return h
}

func publicHealth(q consume.QueueHealth) QueueHealth {
	return QueueHealth{
		Queue: q.Queue, Committed: q.Committed, Lag: max(q.Max-q.Committed, 0), Cached: q.Cached, CachedBytes: q.CachedBytes,
		InFlight: q.Begun, BusySince: q.Busy, SuspendedUntil: q.Until, State: q.State, LastPull: q.LastPull, LastError: bridge.PublicError(q.LastError),
		Stuck: q.Stuck, StuckSince: q.StuckSince,
	}
}

// String is the state for people, on one line.
func (q QueueHealth) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", q.Queue, q.State)
	if !q.SuspendedUntil.IsZero() {
		fmt.Fprintf(&b, " until %s", q.SuspendedUntil.Format(time.RFC3339Nano))
	}
	if !q.BusySince.IsZero() {
		fmt.Fprintf(&b, ", handler busy since %s", q.BusySince.Format(time.RFC3339Nano))
	}
	if q.Stuck != "" {
		fmt.Fprintf(&b, ", stuck since %s: %s", q.StuckSince.Format(time.RFC3339Nano), q.Stuck)
	}
	fmt.Fprintf(&b, ", lag %d, cached %d, in flight %d", q.Lag, q.Cached, q.InFlight)
	if q.LastError != nil {
		fmt.Fprintf(&b, ", last error: %v", q.LastError)
	}
	return b.String()
}
