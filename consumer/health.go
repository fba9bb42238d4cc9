package consumer

import (
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
)

// Health is the state of a consumer at one moment.
type Health struct {
	Group  string
	Queues []QueueHealth // those assigned to this member, sorted
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
	// "connecting", "backing off" (see LastError), "revoked".
	State     string
	LastPull  time.Time // last good answer of the broker
	LastError error     // failure since then, nil if there was none
}

// Health is a snapshot of the assigned queues. It does no I/O.
func (p *Push) Health() Health {
	h := Health{Group: p.group}
	for _, q := range p.c.Health() {
		h.Queues = append(h.Queues, QueueHealth{
			Queue: q.Queue, Committed: q.Committed, Lag: max(q.Max-q.Committed, 0), Cached: q.Cached, CachedBytes: q.CachedBytes,
			InFlight: q.Begun, State: q.State, LastPull: q.LastPull, LastError: bridge.PublicError(q.LastError),
		})
	}
	return h
}
