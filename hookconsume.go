package rocketmq

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// HookConsume is called with the outcome of every message that was given to the
// handler of a push or ordered consumer: when the call has returned, and before a
// copy for a retry or for the dead letters is stored. ctx is the handler's.
type HookConsume interface {
	OnConsume(ctx context.Context, c ConsumeInfo)
}

// ConsumeInfo is the outcome of one message. Its Attempt and StoredAt say how
// often it was tried and how old it is.
type ConsumeInfo struct {
	Group   string
	Message *MessageView
	Outcome ConsumeOutcome
	Err     error         // why it is not done
	Delay   time.Duration // of a retry, if the handler asked for one
	Took    time.Duration // the handler's call, for all messages of its batch
	Batch   int           // messages in that call
	Lag     int64         // messages behind it in its queue, as of the last pull
}

// ConsumeOutcome is what becomes of a message.
type ConsumeOutcome uint8

// The outcomes.
const (
	ConsumeDone       ConsumeOutcome = iota // handled
	ConsumeRetry                            // failed, comes again
	ConsumeDeadLetter                       // failed for good, goes to the dead-letter topic; if the limit is the broker's it is ConsumeRetry here
	ConsumeDropped                          // failed, and broadcasting retries nothing
	ConsumeUntried                          // not looked at by the handler, comes again at once
	ConsumeRevoked                          // failed, and the queue is not ours any more or the consumer closes: another member handles it
)

// String is a word for logs and labels of metrics.
func (o ConsumeOutcome) String() string {
	names := [...]string{"done", "retry", "dead-letter", "dropped", "untried", "revoked"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("outcome-%d", uint8(o))
}

// HookRebalance is called when the queues of a topic were divided anew among the
// members of a group and this member's changed, or when they could not be divided.
// That is before new queues are pulled and lost ones have been given up; to
// act at these moments use OnRebalance of package consumer.
type HookRebalance interface {
	OnRebalance(r RebalanceInfo)
}

// RebalanceInfo is a new division of a topic. Slices are sorted.
type RebalanceInfo struct {
	Group, Topic string
	Assigned     []Queue // all that this member is to have
	Gained, Lost []Queue // of these, what it did not have; what it had and is not to have
	Err          error   // why there is none; what the member has it keeps, and tries again
}

// HookStuck is called when a queue has messages and none has been done for a while,
// or when it cannot be known whether it has any. It is called once until the queue goes on.
type HookStuck interface {
	OnStuck(s StuckInfo)
}

// StuckReason is why a queue does not go on.
type StuckReason string

// The reasons, from what is told first if several apply.
const (
	StuckLock        StuckReason = "lock held elsewhere" // ordered: another member has the queue's lock, or it cannot be had
	StuckPredecessor StuckReason = "earlier handler"     // ordered: a handler from before the lock was lost, or the offset moved, has not returned
	StuckSuspended   StuckReason = "suspended"           // ordered: the same message fails again and again
	StuckHandler     StuckReason = "handler busy"        // handlers have the queue's messages and do not return
	StuckRetry       StuckReason = "retry not stored"    // failed messages that no broker takes a copy of
	StuckRate        StuckReason = "waiting for rate"    // the subscription's rate does not let it through
	StuckPlaces      StuckReason = "no free handler"     // handlers of other queues have all of the subscription's calls
	StuckBroker      StuckReason = "broker unreachable"  // pulls fail, see Err
	StuckPulling     StuckReason = "pulling"             // the broker says that there is more and does not give it
)

// StuckInfo is a queue that does not go on.
type StuckInfo struct {
	Group     string
	Queue     Queue
	Reason    StuckReason
	CacheFull bool      // it is not pulled either: Cached is at its limit
	Since     time.Time // no message has been done since then
	BusySince time.Time // when the oldest call of a handler began that has not returned; zero: there is none
	Committed int64     // the offset of the first message that is not done
	Lag       int64     // messages from there on, as of the last pull
	Cached    int       // of these, in memory
	InFlight  int       // of these, with handlers or waiting for a retry
	Err       error     // the last failure of a pull, if there was no success since
}

// String is the state for people, on one line.
func (s StuckInfo) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, nothing done since %s, lag %d from offset %d, cached %d, in flight %d",
		s.Queue, s.Reason, s.Since.Format(time.RFC3339), s.Lag, s.Committed, s.Cached, s.InFlight)
	if s.CacheFull {
		b.WriteString(", cache full")
	}
	if !s.BusySince.IsZero() {
		fmt.Fprintf(&b, ", handler busy since %s", s.BusySince.Format(time.RFC3339Nano))
	}
	if s.Err != nil {
		fmt.Fprintf(&b, ", last error: %v", s.Err)
	}
	return b.String()
}
