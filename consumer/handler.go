package consumer

import (
	"context"
	"runtime/debug"

	"github.com/gorocketmq/rocketmq"
)

// Handler takes messages. It is called concurrently, up to [Concurrency] times
// at once, with 1 to [Batch] messages of one queue. What it returns decides
// what becomes of them:
//
//	nil                all are done
//	any other error    all are retried by the group's policy, the attempt counts
//	RetryAfter(d, err) retried, not before d
//	DeadLetter(err)    to the dead-letter topic now
//	BatchError{...}    one outcome per message, nil entries are done
//	Acked(n, err)      the first n are done, message n has outcome err, the
//	                   rest was not attempted and comes again at once
//
// To an [Ordered] consumer a failure suspends the queue: the message comes again,
// first, after a second or what RetryAfter says.
//
// With [Broadcasting] a failure is logged and the message dropped.
//
// A panic is a failure: it is logged with its stack, and to the policy it is a
// [rocketmq.PanicError].
//
// ctx ends when the queue was given to another member (its cause is
// [rocketmq.ErrRevoked]; running handlers get a second before that), at once when
// the lock of an ordered queue is lost (also ErrRevoked), when the
// consumer closes and its drain limit has passed ([rocketmq.ErrClosed]), and at
// the limit of [WithHandlerTimeout]. A handler that returns later than that is
// waited for no longer.
//
// The messages must not be changed. They may be kept: they are not reused.
type Handler interface {
	Handle(ctx context.Context, msgs []*rocketmq.MessageView) error
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, msgs []*rocketmq.MessageView) error

// Handle implements [Handler].
func (f HandlerFunc) Handle(ctx context.Context, msgs []*rocketmq.MessageView) error {
	return f(ctx, msgs)
}

// Each makes a [Handler] of a function for one message. With a [Batch] above 1
// it is called for one after the other, up to the first that fails.
func Each(f func(ctx context.Context, m *rocketmq.MessageView) error) Handler {
	if f == nil {
		return nil // reported by Subscribe
	}
	return each(f)
}

type each func(ctx context.Context, m *rocketmq.MessageView) error

func (f each) Handle(ctx context.Context, msgs []*rocketmq.MessageView) error {
	if len(msgs) == 1 {
		return f(ctx, msgs[0])
	}
	for i, m := range msgs {
		if err := f.one(ctx, m); err != nil {
			return Acked(i, err)
		}
	}
	return nil
}

// one keeps a panic from undoing the messages before it.
func (f each) one(ctx context.Context, m *rocketmq.MessageView) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &rocketmq.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f(ctx, m)
}
