package consumer

import "github.com/gorocketmq/rocketmq"

// Ordered is a member of a consumer group in clustering mode that handles the
// messages of each queue one after the other, in the order in which they were
// stored. Messages of one sharding key are in one queue, so they are handled in
// order; a topic with one queue is handled in order altogether. It imitates
// Java's DefaultMQPushConsumer with a MessageListenerOrderly, and both can be
// members of one group. It does not broadcast ([WithModel]). All methods are safe for
// concurrent use.
//
// Options, [Handler] and methods are those of [Push]; what is different:
//
//   - One call at a time for each queue, on one goroutine. [Concurrency] bounds
//     the calls over all queues, [Batch] the messages of one call.
//   - A failure, or a panic, suspends the queue, for a second or what
//     [RetryAfter] says. Then the same message comes again, before any other. Its
//     Attempt counts up in this process; another member that takes the queue over
//     begins with 1 again.
//   - After [WithMaxAttempts], or with [DeadLetter], the message is sent to the
//     dead-letter topic, and the queue goes on when it is stored there. By default
//     there is no maximum: the queue waits for the handler to succeed.
//   - A failed call fails all its messages. BatchError counts up to its first
//     entry that is not nil, Acked to its count: what is behind comes again.
//
// A queue is consumed by whoever has its lock at the broker. It is taken before
// the first pull, renewed every 20 s, and let go of when the queue goes to another
// member or the consumer closes: after the running handler has returned and the
// offset is committed, and not before. A handler that does not return after its
// context has ended therefore holds its queue up, also for other members. A lock
// that another member turns out to have, or that could not be renewed for 40 s,
// is given up at once: the handler's context ends with [rocketmq.ErrRevoked], and
// the queue goes on when the lock comes back. The locks of a process that dies
// run out after 60 s.
type Ordered struct{ member }

// NewOrdered checks the options and makes an ordered consumer. It does no I/O;
// Run does. Bad options are all reported at once, as
// [rocketmq.ErrInvalidOption]. One client can have one consumer of a group:
// further members need clients of their own.
func NewOrdered(c *rocketmq.Client, group string, opts ...Option) (*Ordered, error) {
	m, err := newMember(c, group, roleOrdered, opts)
	if err != nil {
		return nil, err
	}
	return &Ordered{*m}, nil
}
