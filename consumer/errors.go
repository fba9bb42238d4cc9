package consumer

import (
	"fmt"
	"strings"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/consume"
)

// ErrHandlerTimeout is the cause with which a handler's context ends at the limit
// of [WithHandlerTimeout]. It matches context.DeadlineExceeded.
var ErrHandlerTimeout = consume.ErrHandlerTimeout

// DrainError says what a closing consumer had to leave behind when its limit
// came. The messages are not lost: they are handled again by whichever member
// gets their queue. It matches the cause, usually context.DeadlineExceeded.
type DrainError struct {
	Group    string
	Queues   []Unfinished // sorted by queue
	Handlers int          // calls that had not returned; their context has ended
	Cause    error        // why the drain did not go on, and what else failed while closing
}

// Unfinished names messages that handlers had begun and not finished.
type Unfinished struct {
	Queue   rocketmq.Queue
	Offsets []int64
}

// Error implements error. It names at most a few queues and offsets.
func (e *DrainError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "consumer of group %q closed before its handlers were done: %d still running", e.Group, e.Handlers)
	for i, u := range e.Queues {
		if i == 4 {
			fmt.Fprintf(&b, "; and %d more queues", len(e.Queues)-i)
			break
		}
		offs := u.Offsets[:min(len(u.Offsets), 8)]
		fmt.Fprintf(&b, "; queue %s offsets %v", u.Queue, offs)
		if n := len(u.Offsets) - len(offs); n > 0 {
			fmt.Fprintf(&b, " and %d more", n)
		}
	}
	fmt.Fprintf(&b, ": %v", e.Cause)
	return b.String()
}

// Unwrap returns the cause.
func (e *DrainError) Unwrap() error { return e.Cause }
