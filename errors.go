package rocketmq

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/client"
)

// What went wrong, for [errors.Is]. The typed errors of this package match
// them and carry the details.
var (
	// ErrInvalidOption is wrapped by every bad option. A constructor reports
	// all of them at once.
	ErrInvalidOption = errors.New("rocketmq: invalid option")
	// ErrInvalidMessage is a message refused before sending, or by the broker
	// for what it is. It wraps the reason.
	ErrInvalidMessage = errors.New("rocketmq: invalid message")
	// ErrTooLarge is a body or property list beyond its limit.
	ErrTooLarge = errors.New("rocketmq: too large")
	// ErrClosed is a call on a client or role that was closed.
	ErrClosed = client.ErrClosed
	// ErrNameServer means that no name server gave an answer. See [RouteError].
	ErrNameServer = client.ErrNameServer
	// ErrTopicNotFound means that a name server or broker does not know the
	// topic. See [RouteError].
	ErrTopicNotFound = client.ErrTopicNotFound
	// ErrNoQueue means that the topic has a route but nothing in it can be
	// written to or read from.
	ErrNoQueue = errors.New("rocketmq: no usable queue")
	// ErrNoPermission is refused by the permission of broker, topic or group,
	// or by access control: brokers use one code for both.
	ErrNoPermission = errors.New("rocketmq: no permission")
	// ErrUnauthorized means that credentials are missing or were refused.
	ErrUnauthorized = errors.New("rocketmq: unauthorized")
	// ErrBusy is the broker's flow control. Retry later, more slowly.
	ErrBusy = errors.New("rocketmq: broker busy")
	// ErrUnavailable is a broker that is up but does not serve the request:
	// its role, a full disk, a shutdown.
	ErrUnavailable = errors.New("rocketmq: broker unavailable")
	// ErrConnection means that a server could not be reached or that the
	// connection was lost before it answered. It may have done what was asked.
	ErrConnection = client.ErrConnection
	// ErrTimeout means that a server did not answer in the time an attempt
	// has. It may have done what was asked. It matches
	// context.DeadlineExceeded, too.
	ErrTimeout = client.ErrTimeout
	// ErrNotDurable means that the master stored the message but did not flush
	// or replicate it in time. The result that comes along is complete.
	ErrNotDurable = errors.New("rocketmq: stored, but not flushed or replicated in time")
	// ErrOffset is an offset outside the queue's range. See [OffsetError].
	ErrOffset = errors.New("rocketmq: offset out of range")
	// ErrRevoked means that the queue was given to another member of the group.
	ErrRevoked = errors.New("rocketmq: queue revoked")
	// ErrNotFound is a query without a hit.
	ErrNotFound = errors.New("rocketmq: not found")
	// ErrNotRecallable means that a delayed message cannot be recalled: its
	// handle is none or belongs to another topic or broker, or it has been
	// delivered.
	ErrNotRecallable = errors.New("rocketmq: message cannot be recalled")
	// ErrHandle means that a received message can no longer be acknowledged: its
	// time is over, or the broker does not know the handle. See [HandleError].
	ErrHandle = errors.New("rocketmq: the handle of the message is not valid any more")
	// ErrUnsupported means that the server does not know this request; it may
	// be too old.
	ErrUnsupported = errors.New("rocketmq: not supported by the server")
)

// BrokerError is a refusal by a broker (or by a name server, for calls other
// than route queries).
type BrokerError struct {
	Op     string // the request, as RequestCode of Apache RocketMQ names it
	Addr   string
	Code   Code
	Remark string // the server's own words
}

// Error implements error.
func (e *BrokerError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Addr != "" {
		b.WriteString(" at " + e.Addr)
	}
	fmt.Fprintf(&b, ": %s (%d)", e.Code, int32(e.Code))
	if e.Remark != "" {
		b.WriteString(": " + e.Remark)
	}
	return b.String()
}

// sentinels is the one place that says which code means what.
var sentinels = map[Code]error{
	CodeSystemBusy:           ErrBusy,
	CodeFlowControl:          ErrBusy,
	CodeNotSupported:         ErrUnsupported,
	CodeFlushDiskTimeout:     ErrNotDurable,
	CodeSlaveNotAvailable:    ErrNotDurable,
	CodeFlushSlaveTimeout:    ErrNotDurable,
	CodeMessageIllegal:       ErrInvalidMessage,
	CodeServiceNotAvailable:  ErrUnavailable,
	CodeNotLeader:            ErrUnavailable,
	CodeGoAway:               ErrUnavailable,
	CodeNoPermission:         ErrNoPermission,
	CodeTopicNotExist:        ErrTopicNotFound,
	CodePullOffsetMoved:      ErrOffset,
	CodeQueryNotFound:        ErrNotFound,
	CodeGroupNotExist:        ErrNotFound,
	CodeSubscriptionMissing:  ErrNotFound,
	CodeSubscriptionOutdated: ErrUnavailable,
	CodeConsumerNotOnline:    ErrNotFound,
	CodeIllegalOperation:     ErrNotRecallable,
}

// Is maps the code to the errors of this package. Access control has no code
// of its own; its refusals are told apart by the words of the brokers' remarks.
func (e *BrokerError) Is(target error) bool {
	if target == ErrUnauthorized {
		return accessDenied(e.Code, e.Remark)
	}
	s, ok := sentinels[e.Code]
	return ok && s == target
}

// accessDenied recognizes the remarks of both generations of access control:
// AclException of 4.9, and AuthenticationException and AuthorizationException
// of 5.x.
func accessDenied(code Code, remark string) bool {
	if code != CodeNoPermission && code != CodeSystemError {
		return false
	}
	for _, word := range [...]string{"AclException", "AuthenticationException", "AuthorizationException", "signature", "access key", "accessKey", "AccessKey", "not authorized", "has no permission to access"} {
		if strings.Contains(remark, word) {
			return true
		}
	}
	return false
}

// RouteError says why the route of a topic is not known.
type RouteError struct {
	Topic string
	Asked []NameServerAnswer // in the order they were asked
}

// NameServerAnswer is what one name server said, or why it said nothing.
type NameServerAnswer struct {
	Addr   string
	Code   Code   // 0 if Err is set
	Remark string // the server's own words
	Took   time.Duration
	Err    error // no answer
}

// Error implements error.
func (e *RouteError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rocketmq: no route of topic %q", e.Topic)
	if len(e.Asked) == 0 {
		b.WriteString(": no name server is known")
	}
	for i, a := range e.Asked {
		b.WriteString([...]string{": ", "; "}[min(i, 1)])
		b.WriteString(a.String())
	}
	return b.String()
}

// String says what the name server answered.
func (a NameServerAnswer) String() string {
	if a.Err != nil {
		return fmt.Sprintf("name server %s: %v", a.Addr, a.Err)
	}
	return fmt.Sprintf("name server %s: %s (%d) %s", a.Addr, a.Code, int32(a.Code), a.Remark)
}

// Is matches [ErrTopicNotFound] if a name server does not know the topic and
// [ErrNameServer] if none answered.
func (e *RouteError) Is(target error) bool {
	answered := false
	for _, a := range e.Asked {
		answered = answered || a.Err == nil
		if a.Err == nil && (&BrokerError{Code: a.Code, Remark: a.Remark}).Is(target) {
			return true
		}
	}
	return target == ErrNameServer && !answered
}

// Unwrap returns why name servers did not answer.
func (e *RouteError) Unwrap() []error {
	var errs []error
	for _, a := range e.Asked {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// SendError is a send that failed in spite of its retries. [errors.Is] and
// [errors.As] look into the cause and into every attempt.
type SendError struct {
	Topic    string
	Attempts []Attempt
	Cause    error // why there was no further attempt: usually the last attempt's error, or the context's
}

// Attempt is one try of a send.
type Attempt struct {
	Queue Queue
	Addr  string
	Took  time.Duration
	Err   error
}

// Error implements error.
func (e *SendError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rocketmq: send to topic %q: ", e.Topic)
	if len(e.Attempts) == 0 {
		fmt.Fprintf(&b, "%v", e.Cause)
		return b.String()
	}
	last := e.Attempts[len(e.Attempts)-1].Err
	if e.Cause != nil && e.Cause != last {
		fmt.Fprintf(&b, "%v; ", e.Cause)
	}
	fmt.Fprintf(&b, "%d attempts", len(e.Attempts))
	for i, a := range e.Attempts {
		b.WriteString([...]string{": ", "; "}[min(i, 1)])
		fmt.Fprintf(&b, "%s/%d at %s after %s: %v", a.Queue.Broker, a.Queue.ID, a.Addr, a.Took.Round(time.Millisecond/10), a.Err)
	}
	return b.String()
}

// Unwrap returns the cause and the errors of all attempts.
func (e *SendError) Unwrap() []error {
	errs := make([]error, 0, len(e.Attempts)+1)
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	for _, a := range e.Attempts {
		if a.Err != nil && a.Err != e.Cause {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// OffsetError is an offset outside of what a queue has.
type OffsetError struct {
	Queue           Queue
	Asked, Min, Max int64
}

// Error implements error.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("rocketmq: offset %d of queue %s is outside of %d to %d", e.Asked, e.Queue, e.Min, e.Max)
}

// Is matches [ErrOffset].
func (e *OffsetError) Is(target error) bool { return target == ErrOffset }

// HandleError is a message that was received and can no longer be acknowledged or
// held back. It comes again, unless it was acknowledged before.
type HandleError struct {
	ID       string // the message's
	Queue    Queue
	Offset   int64
	Deadline time.Time // when it became visible to others, by this machine's clock
	Cause    error     // what the broker said; nil if it was not asked because the deadline has passed
}

// Error implements error.
func (e *HandleError) Error() string {
	s := fmt.Sprintf("%v: message %s, offset %d of queue %s, invisible until %s", ErrHandle, e.ID, e.Offset, e.Queue, e.Deadline.Format(time.RFC3339Nano))
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Is matches [ErrHandle].
func (e *HandleError) Is(target error) bool { return target == ErrHandle }

// Unwrap returns the cause.
func (e *HandleError) Unwrap() error { return e.Cause }

// PanicError is a panic of the application's code that was caught.
type PanicError struct {
	Value any
	Stack []byte // as of runtime/debug.Stack
}

// Error implements error. The stack is not part of it.
func (e *PanicError) Error() string { return fmt.Sprintf("rocketmq: panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// IsRetryable reports whether the same call may succeed later with nothing
// changed. A send that failed so may still have been stored.
func IsRetryable(err error) bool {
	var se *SendError
	if errors.As(err, &se) && se.Cause != nil {
		err = se.Cause
	}
	var be *BrokerError
	if errors.As(err, &be) {
		return retryableCode(be.Code) && !be.Is(ErrUnauthorized)
	}
	for _, no := range [...]error{ErrInvalidMessage, ErrInvalidOption, ErrClosed, ErrTopicNotFound, ErrNotRecallable, ErrHandle} {
		if errors.Is(err, no) {
			return false
		}
	}
	for _, yes := range [...]error{ErrBusy, ErrUnavailable, ErrConnection, ErrTimeout, ErrNameServer} {
		if errors.Is(err, yes) {
			return true
		}
	}
	return false
}

func retryableCode(c Code) bool {
	switch c {
	case CodeSystemError, CodeSystemBusy, CodeFlowControl, CodeServiceNotAvailable, CodeNotLeader, CodeGoAway:
		return true
	}
	return false
}
