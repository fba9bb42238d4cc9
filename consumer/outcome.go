package consumer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/consume"
)

// levels are the delays a broker knows unless it is configured otherwise; a
// level is one more than its index (messageDelayLevel of the broker).
var levels = [...]time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute,
	7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour,
}

// RetryAfter is a failure whose message is not to be retried before d has
// passed. An [Ordered] consumer suspends the message's queue for d. Otherwise the
// broker rounds d up to one of its delay levels (1 s 5 s 10 s 30 s
// 1 m 2 m ... 10 m 20 m 30 m 1 h 2 h); more than 2 h is 2 h. A nil err is
// still a failure.
func RetryAfter(d time.Duration, err error) error {
	return &retryAfter{d, err}
}

type retryAfter struct {
	d   time.Duration
	err error
}

func (e *retryAfter) Error() string { return fmt.Sprintf("retry after %s: %v", e.d, e.err) }
func (e *retryAfter) Unwrap() error { return e.err }

// level is the broker's delay level for d.
func level(d time.Duration) int32 {
	for i, l := range levels {
		if d <= l {
			return int32(i + 1)
		}
	}
	return int32(len(levels))
}

// DeadLetter is a failure whose message is not to be retried: it goes to the
// dead-letter topic, %DLQ%group, at once. A nil err is still a failure.
func DeadLetter(err error) error { return &deadLetter{err} }

type deadLetter struct{ err error }

func (e *deadLetter) Error() string { return fmt.Sprintf("dead letter: %v", e.err) }
func (e *deadLetter) Unwrap() error { return e.err }

// Acked is the outcome of a batch whose first n messages are done and whose
// message n ended with err. The others were not attempted: they come again at
// once, without a trip to the broker and without an attempt counted. (Java's
// ackIndex fails them all.) A nil err means that message n was not attempted
// either; an [Ordered] consumer rests the queue for a second if n is 0.
func Acked(n int, err error) error { return &acked{n, err} }

type acked struct {
	n   int
	err error
}

func (e *acked) Error() string { return fmt.Sprintf("first %d messages done, then: %v", e.n, e.err) }
func (e *acked) Unwrap() error { return e.err }

// BatchError is one outcome per message of a batch, in order: nil for done,
// else as a [Handler] may return for a single message. Messages beyond its
// length have failed. To an [Ordered] consumer it counts up to its first entry
// that is not nil: that message and all behind it come again.
type BatchError []error

// Error implements error.
func (e BatchError) Error() string {
	var b strings.Builder
	failed := 0
	for _, err := range e {
		if err != nil {
			failed++
		}
	}
	fmt.Fprintf(&b, "%d of %d messages failed", failed, len(e))
	for i, err := range e {
		if err != nil {
			fmt.Fprintf(&b, "; message %d: %v", i, err)
			if b.Len() > 512 {
				b.WriteString("; ...")
				break
			}
		}
	}
	return b.String()
}

// Unwrap returns the errors that are not nil.
func (e BatchError) Unwrap() []error {
	var errs []error
	for _, err := range e {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// judge says what a handler's error means for message i of n. The outermost of
// the outcomes counts; entries of a BatchError and the error of an Acked are
// judged as for a single message.
func judge(err error, i, n int) consume.Outcome {
	if err == nil {
		return consume.Outcome{Kind: consume.Done}
	}
	for e := err; e != nil && n > 0; e = errors.Unwrap(e) {
		switch e := e.(type) {
		case BatchError:
			if i >= len(e) {
				return consume.Outcome{Err: err}
			}
			return judge(e[i], 0, 0)
		case *acked:
			switch {
			case i < e.n:
				return consume.Outcome{Kind: consume.Done}
			case i > e.n || e.err == nil:
				return consume.Outcome{Kind: consume.Untried}
			}
			return judge(e.err, 0, 0)
		}
	}
	var dead *deadLetter
	if errors.As(err, &dead) {
		return consume.Outcome{Err: err, DelayLevel: -1}
	}
	var after *retryAfter
	if errors.As(err, &after) {
		d := max(after.d, time.Millisecond)
		return consume.Outcome{Err: err, DelayLevel: level(d), Delay: d}
	}
	return consume.Outcome{Err: err}
}
