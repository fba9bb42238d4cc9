package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// The root package exports these values as its own.
var (
	ErrClosed        = errors.New("rocketmq: closed")
	ErrNameServer    = errors.New("rocketmq: no name server answered")
	ErrTopicNotFound = errors.New("rocketmq: topic not found")
	ErrConnection    = remoting.ErrConnection
	ErrTimeout       = remoting.ErrTimeout
)

// ErrGroupTaken is returned for a second consumer of a group: both would have
// one client id, and the broker would share queues between them by id.
var ErrGroupTaken = errors.New("the group already has a consumer in this client, use a client per member")

// ResponseError is an answer with a code other than success.
type ResponseError struct {
	Op     string // as wire.RequestName
	Addr   string
	Code   int32
	Remark string
}

// Error implements error.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("%s at %s: %s (%d): %s", e.Op, e.Addr, wire.ResponseName(e.Code), e.Code, e.Remark)
}

// Is matches [ErrTopicNotFound].
func (e *ResponseError) Is(target error) bool {
	return target == ErrTopicNotFound && e.Code == wire.RespTopicNotExist
}

// RouteError says why a topic has no route.
type RouteError struct {
	Topic string
	Asked []Answer // in the order they were asked
}

// Answer is what one name server said.
type Answer struct {
	Addr   string
	Code   int32
	Remark string
	Took   time.Duration
	Err    error // no answer
}

// Error implements error.
func (e *RouteError) Error() string {
	s := fmt.Sprintf("no route of topic %q", e.Topic)
	for _, a := range e.Asked {
		if a.Err != nil {
			s += fmt.Sprintf("; name server %s: %v", a.Addr, a.Err)
		} else {
			s += fmt.Sprintf("; name server %s: %s (%d): %s", a.Addr, wire.ResponseName(a.Code), a.Code, a.Remark)
		}
	}
	return s
}

// Is matches [ErrTopicNotFound] if a name server said so and [ErrNameServer] if
// none said anything.
func (e *RouteError) Is(target error) bool {
	answered := false
	for _, a := range e.Asked {
		if a.Err == nil {
			answered = true
			if target == ErrTopicNotFound && a.Code == wire.RespTopicNotExist {
				return true
			}
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
