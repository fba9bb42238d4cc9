package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/consume"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// Pull reads queues by offset, one request at a time: for tools, and for
// applications that keep offsets themselves and want no cache, no group and no
// background work. It imitates Java's DefaultMQPullConsumer without its rebalance.
// All methods are safe for concurrent use; there is nothing to close.
//
// Each call is bounded by its context, and by the client's request timeout.
type Pull struct {
	p *consume.Puller
}

// NewPull makes a bare pull consumer, which has no options of its own so far. The
// group is that in whose name brokers are asked; it is not joined. It does no I/O.
func NewPull(c *rocketmq.Client, group string, opts ...Option) (*Pull, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: the client is nil", rocketmq.ErrInvalidOption)
	}
	if _, err := newConfig(group, rolePull, opts); err != nil {
		return nil, err
	}
	return &Pull{consume.NewPuller(bridge.Of(c).Runtime, group)}, nil
}

// Request is what [Pull.Pull] asks for.
type Request struct {
	Queue  rocketmq.Queue
	Offset int64         // of the first message wanted
	Max    int           // messages at most; 0: 32. Brokers send fewer if they are large, and no more than their own limit.
	Wait   time.Duration // how long the broker waits for messages if there are none (long polling; Apache's up to 5 s longer); 0: not at all
	Expr   selector.Expr // which messages; the zero value is all
}

// Page is what one pull brought.
type Page struct {
	Messages []*rocketmq.MessageView // in the order of their offsets
	Next     int64                   // the offset to go on with, whatever the status
	Min, Max int64                   // the queue's range: of the oldest message, and behind the newest
	Status   PullStatus
}

// PullStatus says why a page is as it is.
type PullStatus uint8

// What a broker answers to a pull. Java: PullStatus.
const (
	PullFound       PullStatus = iota // messages; if all have been left out, because of their tags, an empty page
	PullNoNew                         // the queue has no message at the offset yet
	PullNoMatch                       // none of those the broker looked at is wanted; Next is behind them
	PullOffsetMoved                   // the offset is outside of the queue, Next is inside; comes with an error
)

// String is the status in lower case.
func (s PullStatus) String() string {
	switch s {
	case PullFound:
		return "found"
	case PullNoNew:
		return "no new message"
	case PullNoMatch:
		return "no matching message"
	case PullOffsetMoved:
		return "offset moved"
	}
	return fmt.Sprintf("pull status %d", uint8(s))
}

// Pull asks the broker for messages of one queue from one offset on. It takes up to
// the request timeout, with a Wait that and 5 s longer. An offset outside of the queue's range is a
// [*rocketmq.OffsetError] that comes with a page, whose Next says where to go on. A
// message that cannot be decompressed is a [*BodyError], with a page of those before
// it; Next is its offset. A broker that does not know the topic refuses with
// [rocketmq.ErrTopicNotFound].
func (p *Pull) Pull(ctx context.Context, r Request) (Page, error) {
	if err := r.check(); err != nil {
		return Page{}, err
	}
	if r.Max == 0 {
		r.Max = DefaultPollSize
	}
	f, err := p.p.Pull(ctx, consume.Fetch{Queue: r.Queue, Offset: r.Offset, Max: r.Max, Wait: r.Wait, Expr: r.Expr})
	page := Page{Messages: f.Messages, Next: f.Next, Min: f.Min, Max: f.Max}
	switch f.Code {
	case wire.RespPullNotFound:
		page.Status = PullNoNew
	case wire.RespPullRetryImmediately:
		page.Status = PullNoMatch
	case wire.RespPullOffsetMoved:
		page.Status = PullOffsetMoved
	}
	return page, liteError(err)
}

func (r *Request) check() error {
	err := checkQueue(r.Queue)
	switch {
	case err != nil:
	case r.Offset < 0:
		err = fmt.Errorf("offset %d is negative", r.Offset)
	case r.Max < 0:
		err = fmt.Errorf("maximum of %d messages is negative", r.Max)
	case r.Wait < 0:
		err = fmt.Errorf("wait of %s is negative", r.Wait)
	default:
		err = r.Expr.Validate()
	}
	if err != nil {
		return fmt.Errorf("%w: pull request: %w", rocketmq.ErrInvalidOption, err)
	}
	return nil
}

// Range is the offset of the oldest message of a queue and that behind the newest.
func (p *Pull) Range(ctx context.Context, q rocketmq.Queue) (low, high int64, err error) {
	if low, err = p.offset(ctx, q, rocketmq.Earliest()); err != nil {
		return 0, 0, err
	}
	high, err = p.offset(ctx, q, rocketmq.StrictLatest())
	return low, high, err
}

// SearchOffset is the offset of the first message of a queue that was stored at t
// or later, in milliseconds; if there is none, the one behind the newest.
func (p *Pull) SearchOffset(ctx context.Context, q rocketmq.Queue, t time.Time) (int64, error) {
	return p.offset(ctx, q, rocketmq.AtTime(t))
}

func (p *Pull) offset(ctx context.Context, q rocketmq.Queue, at rocketmq.Position) (int64, error) {
	if err := checkQueue(q); err != nil {
		return 0, fmt.Errorf("%w: %w", rocketmq.ErrInvalidOption, err)
	}
	off, err := p.p.Position(ctx, q, at)
	return off, bridge.PublicError(err)
}

// Committed asks the broker for the group's offset of a queue. found is false if it
// has none, which is not an error. Brokers before 5.0 say 0 then if the queue
// begins at 0.
func (p *Pull) Committed(ctx context.Context, q rocketmq.Queue) (off int64, found bool, err error) {
	off, found, err = p.p.Committed(ctx, q)
	return off, found, bridge.PublicError(err)
}

// Commit sets the group's offset of a queue, forwards or back, and waits until the
// broker has confirmed it. off is that of the first message that is not done. If
// members of the group are running, theirs follow.
func (p *Pull) Commit(ctx context.Context, q rocketmq.Queue, off int64) error {
	if off < 0 {
		return fmt.Errorf("%w: commit of queue %s: offset %d is negative", rocketmq.ErrInvalidOption, q, off)
	}
	return bridge.PublicError(p.p.Commit(ctx, q, off))
}
