package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/consume"
)

// Push is a member of a consumer group: the brokers' queues are shared among the
// members, unless [WithModel] says that each gets all of them, and messages are
// handed to handlers as they come, many at a time and in no particular order. It imitates Java's
// DefaultMQPushConsumer with a MessageListenerConcurrently. All methods are
// safe for concurrent use.
type Push struct{ member }

// NewPush checks the options and makes a consumer. It does no I/O; [Push.Run]
// does. Bad options are all reported at once, as [rocketmq.ErrInvalidOption].
// One client can have one consumer of a group: further members need clients
// of their own.
func NewPush(c *rocketmq.Client, group string, opts ...Option) (*Push, error) {
	m, err := newMember(c, group, rolePush, opts)
	if err != nil {
		return nil, err
	}
	return &Push{*m}, nil
}

// member is what all kinds of members of a group have in common.
type member struct {
	group  string
	handle *bridge.Handle
	c      *consume.Consumer
	store  OffsetStore // nil: the brokers
	tuned  *tuned
}

func newMember(c *rocketmq.Client, group string, r role, opts []Option) (*member, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: the client is nil", rocketmq.ErrInvalidOption)
	}
	cfg, err := newConfig(group, r, opts)
	if err != nil {
		return nil, err
	}
	h := bridge.Of(c)
	inner, err := consume.New(consume.Config{
		Hooks: hooksOf(h.Hooks), OnRebalance: cfg.listener(), StuckAfter: cfg.stuckAfter, OnStuck: cfg.stuck(),
		Runtime: h.Runtime, Group: group, Subscriptions: cfg.subscriptions(), Start: cfg.start, Strategy: cfg.strat, Ordered: r == roleOrdered,
		Judge: judge, MaxAttempts: cfg.attempts, HandlerTimeout: cfg.timeout, DrainTimeout: cfg.drain, Offsets: cfg.store, Logger: h.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", rocketmq.ErrInvalidOption, err)
	}
	return &member{group: group, handle: h, c: inner, store: cfg.store, tuned: newTuned(cfg.subs)}, nil
}

// Run joins the group and handles messages until ctx ends or Close is
// called. Then it pulls no more, drops what no handler has begun, waits for
// running handlers within the drain timeout, commits the offsets, unlocks ordered
// queues, leaves the group and ends its goroutines. It returns nil if all of that went well, a
// [*DrainError] if handlers had to be left behind.
//
// Before that it fails if a subscribed topic has no route:
// [rocketmq.ErrTopicNotFound] for one that no name server knows,
// [rocketmq.ErrNameServer] if none answered, and with [FileOffsets] if there is a
// file that cannot be read. Once it runs it outlasts
// failures of brokers and name servers. It can be called once.
func (m *member) Run(ctx context.Context) error {
	release, err := m.handle.Adopt(m.Close)
	if err != nil {
		return err
	}
	defer release()
	if s, ok := m.store.(exclusive); ok {
		free, err := s.acquire(ctx, m.handle.Runtime.Wrap(m.group))
		if err != nil {
			return err
		}
		defer free()
	}
	return m.outcome(m.c.Run(ctx))
}

// Ready is closed once the first assignment is complete: every queue that
// belongs to this member has its start offset and is being pulled, or will be
// once the member before has had a moment to commit or, in order, has let go of
// the queue's lock. From then on no message
// sent is missed, whatever the start position. A member that
// gets no queue, because the group has more members than queues, is ready,
// too.
func (m *member) Ready() <-chan struct{} { return m.c.Ready() }

// Close ends Run, with a drain limit of its own: when ctx ends, running
// handlers have their context cancelled and are left behind, and the error is
// a [*DrainError]. If ctx has no deadline the drain timeout applies. Close
// waits until Run has returned and returns the same. It may be called from
// anywhere but a handler, and again, which does nothing.
func (m *member) Close(ctx context.Context) error { return m.outcome(m.c.Close(ctx)) }

// outcome makes the errors below this package those of its users.
func (m *member) outcome(err error) error {
	if err == nil {
		return nil
	}
	var a *consume.Abandoned
	if !errors.As(err, &a) {
		return bridge.PublicError(err)
	}
	d := &DrainError{Group: m.group, Handlers: a.Handlers, Cause: bridge.PublicError(a.Cause)}
	for _, l := range a.Queues {
		d.Queues = append(d.Queues, Unfinished{Queue: l.Queue, Offsets: l.Offsets})
	}
	return d
}
