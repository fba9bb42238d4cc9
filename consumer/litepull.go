package consumer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/consume"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// LitePull is a consumer whose application asks for messages, with [LitePull.Poll]
// or [LitePull.Messages]. Messages are pulled ahead into a cache, in the background.
// With [SubscribeTo] it is a member of its group, which may have other members in
// Java; with [AssignTo] it reads given queues, in the name of the group but
// on its own. It imitates Java's DefaultLitePullConsumer.
//
// The first call that needs a broker connects, and [LitePull.Ready] for its own
// sake. All methods are safe for concurrent use.
//
// # What is done
//
// By default offsets are committed in the background, at least every 5 s. What
// counts as done is what was returned by polls before the latest: whoever asks for
// more is done with what he got. So a crash repeats at most what one poll returned
// and what was not committed yet, and loses nothing. If several goroutines poll,
// one of them says so for all; use [WithManualCommit] then, or one goroutine that
// polls and others that work.
//
// Closing commits what is done. What the last poll returned is not, unless
// [LitePull.Commit] is called, or Poll once more.
//
// # Queues that come and go
//
// No message of a queue is returned once the queue has been given to another
// member. What was returned before can be committed for a second longer, with
// Commit or by polling again; the other member, if it is one of this package,
// waits for that for a moment.
//
// Nothing is retried, and there is no retry topic: a message that could not be
// handled is the application's, which can [LitePull.Seek] back.
type LitePull struct {
	l     *consume.Lite
	asks  *consume.Puller
	group string
	given bool
	size  int
}

// NewLitePull checks the options and makes a consumer. It does no I/O. Bad options
// are all reported at once, as [rocketmq.ErrInvalidOption]. [SubscribeTo] or
// [AssignTo] is needed; others are [StartFrom], [WithStrategy], [WithManualCommit],
// [WithCache], [WithPollSize] and [OnRebalance].
func NewLitePull(c *rocketmq.Client, group string, opts ...Option) (*LitePull, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: the client is nil", rocketmq.ErrInvalidOption)
	}
	cfg, err := newConfig(group, roleLite, opts)
	if err != nil {
		return nil, err
	}
	h := bridge.Of(c)
	p := &LitePull{group: group, given: cfg.assign, size: cfg.pollSize, asks: consume.NewPuller(h.Runtime, group)}
	p.l, err = consume.NewLite(consume.Config{
		Runtime: h.Runtime, Group: group, Subscriptions: cfg.liteSubscriptions(), Start: cfg.start, Strategy: cfg.strat, Logger: h.Logger,
		Hooks: hooksOf(h.Hooks), OnRebalance: cfg.listener(),
	}, consume.LiteConfig{
		Manual: cfg.manual, Given: cfg.assign, Queues: cfg.queues,
		Settings: cfg.liteSettings(),
		Adopt:    func() (func(), error) { return h.Adopt(p.Close) },
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", rocketmq.ErrInvalidOption, err)
	}
	return p, nil
}

// Ready connects and waits until the first assignment is complete: every queue that
// belongs to this member has its start offset. From then on no message sent is
// missed, whatever the start position. It fails if a topic has no route:
// [rocketmq.ErrTopicNotFound] for one that no name server knows,
// [rocketmq.ErrNameServer] if none answered, [rocketmq.ErrNoQueue] for a queue of
// [AssignTo] that is not there. It can be called again then.
func (p *LitePull) Ready(ctx context.Context) error { return bridge.PublicError(p.l.Ready(ctx)) }

// Poll returns messages of one queue, in the order of their offsets: at least one,
// and at most the poll size. It waits for them until ctx ends, and returns ctx's
// error then; after Close it returns [rocketmq.ErrClosed]. Queues that have messages
// take turns, so one that is full of them holds up no other.
//
// A message that cannot be decompressed is a [*BodyError]; the next Poll goes on
// behind it. The first Poll, as long as it has not connected, fails as Ready does.
// Failures after that are waited out, see [LitePull.Health].
//
// The messages must not be changed. They may be kept: they are not reused.
func (p *LitePull) Poll(ctx context.Context) ([]*rocketmq.MessageView, error) {
	msgs, err := p.l.Poll(ctx, p.size)
	if err != nil {
		return nil, liteError(err)
	}
	return msgs, nil
}

// Messages ranges over the messages as they come. Each counts as handed out when
// the loop gets it, and as done when the loop asks for the next: so a
// [LitePull.Commit] in the loop covers exactly what was worked on, and a message at
// which the loop is left comes again. The loop ends when ctx ends or the
// consumer is closed, with the error that [LitePull.Poll] returns. After a
// [*BodyError] it can go on.
func (p *LitePull) Messages(ctx context.Context) iter.Seq2[*rocketmq.MessageView, error] {
	return func(yield func(*rocketmq.MessageView, error) bool) {
		for {
			msgs, err := p.l.Poll(ctx, 1)
			if err != nil {
				var body *consume.BodyError
				if !yield(nil, liteError(err)) || !errors.As(err, &body) {
					return
				}
				continue
			}
			if !yield(msgs[0], nil) {
				return
			}
		}
	}
}

// Commit commits all messages of these queues that were handed out, also by the
// latest poll, and waits until the brokers have confirmed it. Without queues it is
// all queues that were handed out of. Those which are committed already cost
// nothing. ctx bounds it, or 3 s if it has no deadline.
//
// A queue that is not assigned, or was lost more than a second ago, is
// [rocketmq.ErrRevoked]: its messages come to another member. The error joins those of all queues, and the
// others are committed. It is nothing more than that: the offset is committed again
// in the background, and with the next Commit.
func (p *LitePull) Commit(ctx context.Context, queues ...rocketmq.Queue) error {
	return bridge.PublicError(p.l.Commit(ctx, queues))
}

// Committed asks the broker for the group's offset of a queue: of the first message
// that is not done. found is false if it has none, which is not an error. Brokers
// before 5.0 say 0 then if the queue begins at 0.
func (p *LitePull) Committed(ctx context.Context, q rocketmq.Queue) (off int64, found bool, err error) {
	off, found, err = p.asks.Committed(ctx, q)
	return off, found, bridge.PublicError(err)
}

// Seek has an assigned queue go on at a position: for both kinds of latest that is
// its end. What is cached is dropped, so that after Seek no message from before is
// returned; unless another Poll is just returning it. An offset outside of the queue
// is a [*rocketmq.OffsetError]. Seek waits for a queue that is just being assigned;
// one that is not is [rocketmq.ErrRevoked].
//
// The new position is the group's from the next commit on, also one that lies
// behind: without [WithManualCommit] that is at once.
func (p *LitePull) Seek(ctx context.Context, q rocketmq.Queue, to rocketmq.Position) error {
	if to.Kind() == rocketmq.PositionUnset {
		return fmt.Errorf("%w: seek queue %s: the position is not set", rocketmq.ErrInvalidOption, q)
	}
	return bridge.PublicError(p.l.Seek(ctx, q, to))
}

// Pause keeps the messages of these queues from being returned until
// [LitePull.Resume], also if a queue goes and comes back meanwhile. They are pulled
// up to the limits of the cache. Without queues it does nothing.
func (p *LitePull) Pause(queues ...rocketmq.Queue) { p.l.Pause(queues) }

// Resume undoes [LitePull.Pause].
func (p *LitePull) Resume(queues ...rocketmq.Queue) { p.l.Resume(queues) }

// Assignment is the queues that messages come from at the moment, sorted. It is
// empty before the first Poll or Ready.
func (p *LitePull) Assignment() []rocketmq.Queue { return p.l.Assignment() }

// Assign has a consumer that was made with [AssignTo] read these queues and no
// others: messages of those are not returned any more. Those that stay go on where
// they are. It does no I/O; a queue that its
// topic does not have is reported in the log and waited for. It is
// [rocketmq.ErrInvalidOption] if queues are shared within the group.
func (p *LitePull) Assign(queues ...rocketmq.Queue) error {
	if !p.given {
		return fmt.Errorf("%w: the queues of this consumer are shared within its group, make one with AssignTo", rocketmq.ErrInvalidOption)
	}
	for _, q := range queues {
		if err := checkQueue(q); err != nil {
			return fmt.Errorf("%w: %w", rocketmq.ErrInvalidOption, err)
		}
	}
	return p.l.Assign(queues)
}

// Health is a snapshot of the assigned queues. It does no I/O. There are no
// handlers, so InFlight is 0; State can also be "paused".
func (p *LitePull) Health() Health {
	h := Health{Group: p.group}
	for _, q := range p.l.Health() {
		h.Queues = append(h.Queues, publicHealth(q))
	}
	return h
}

// Close ends all calls of Poll, commits what is done (see [LitePull]), leaves the
// group and ends the background work. ctx bounds that, or 3 s if it has no deadline
// or has ended already. It may be called again: all calls return what the first one
// did. The client's Close does it for those that were forgotten.
func (p *LitePull) Close(ctx context.Context) error { return bridge.PublicError(p.l.Close(ctx)) }

// BodyError is a message whose body cannot be decompressed.
type BodyError struct {
	Message *rocketmq.MessageView // with the body as it came
	Err     error
}

// Error implements error.
func (e *BodyError) Error() string {
	return fmt.Sprintf("message %s at offset %d of queue %s cannot be decompressed: %v", e.Message.ID, e.Message.Offset, e.Message.Queue, e.Err)
}

// Unwrap returns the cause.
func (e *BodyError) Unwrap() error { return e.Err }

// liteError makes the errors below this package those of its users.
func liteError(err error) error {
	var body *consume.BodyError
	if errors.As(err, &body) {
		return &BodyError{body.View, body.Err}
	}
	return bridge.PublicError(err)
}

func checkQueue(q rocketmq.Queue) error {
	if err := wire.ValidateTopic(q.Topic); err != nil {
		return err
	}
	if q.Broker == "" || q.ID < 0 {
		return fmt.Errorf("queue %s has no broker, or a negative number", q)
	}
	return nil
}
