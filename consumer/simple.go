package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/pop"
)

// How long a message may be invisible. Apache's brokers look once a second what is
// to come again, and let two seconds more pass.
const (
	MinInvisible = time.Second
	MaxInvisible = 12 * time.Hour
)

// Simple receives messages when it is asked to, and acknowledges each by itself. The
// brokers keep count (POP): any number of members share a topic's messages, however
// few its queues are, and nothing is shared out anew when one comes or goes. There
// is no order among messages. It is what the SimpleConsumer of Apache's newer
// clients is, over the remoting protocol, and needs brokers of Apache RocketMQ 5.0
// or later; what older ones answer is a [rocketmq.ErrUnsupported].
//
// A message that was received is invisible for the time that [Simple.Receive] says.
// It is received again, by any member, unless it is acknowledged by then: as the
// next Attempt. What has had all its attempts (see [WithMaxAttempts]) goes to the
// dead-letter topic, %DLQ%group, when it would be received once more.
//
// All methods are safe for concurrent use.
type Simple struct {
	handle *bridge.Handle
	c      *pop.Consumer
}

// NewSimple checks the options and makes a consumer. It does no I/O; the first
// [Simple.Receive] joins the group. At least one [SubscribeTo] is needed. With
// [StartFrom] a new group begins with the earliest message or, by default, the
// latest: brokers give it the last one of each queue then, and all of a queue that
// is young. Bad options are all reported at once, as [rocketmq.ErrInvalidOption]. One
// client can have one consumer of a group.
func NewSimple(c *rocketmq.Client, group string, opts ...Option) (*Simple, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: the client is nil", rocketmq.ErrInvalidOption)
	}
	cfg, err := newConfig(group, roleSimple, opts)
	if err != nil {
		return nil, err
	}
	h := bridge.Of(c)
	inner, err := pop.New(pop.Config{
		Runtime: h.Runtime, Group: group, Subscriptions: cfg.popSubscriptions(), FromEarliest: cfg.start.Kind() == rocketmq.PositionEarliest,
		MaxAttempts: cfg.attempts, DrainTimeout: cfg.drain, Logger: h.Logger, Adopt: h.Adopt,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", rocketmq.ErrInvalidOption, err)
	}
	return &Simple{h, inner}, nil
}

// Receive returns messages that nobody else gets for so long as invisible says,
// between [MinInvisible] and [MaxInvisible]. They are of one topic and one broker, at
// most limit of them, and never more than 32, which is what a broker gives at once.
// Topics and brokers take turns. If there are none it waits until some come. It
// returns at least one, or an error:
//
//   - ctx's, when it has ended. If brokers failed meanwhile that is wrapped, too.
//   - [rocketmq.ErrClosed] after Close.
//   - [rocketmq.ErrTopicNotFound] or [rocketmq.ErrNameServer] from the first call, if
//     a topic has no route. The next one tries again.
//   - what the brokers say, if all of them refuse for good: [rocketmq.ErrUnsupported]
//     if they are older than 5.0, [rocketmq.ErrNoPermission], and so on.
//
// Failures of single brokers and of connections are waited for, not returned. A
// request that was sent is waited for up to half a second longer than ctx, because
// the messages it brings would otherwise be invisible for nobody.
func (s *Simple) Receive(ctx context.Context, limit int, invisible time.Duration) ([]*Received, error) {
	if limit < 1 {
		return nil, fmt.Errorf("%w: a limit of %d messages must be 1 or more", rocketmq.ErrInvalidOption, limit)
	}
	if err := checkInvisible(invisible); err != nil {
		return nil, err
	}
	got, err := s.c.Receive(ctx, limit, invisible)
	if len(got) == 0 {
		return nil, bridge.PublicError(err)
	}
	all := make([]Received, len(got))
	out := make([]*Received, len(got))
	for i, d := range got {
		all[i] = Received{d.MessageView, d}
		out[i] = &all[i]
	}
	return out, nil
}

func checkInvisible(d time.Duration) error {
	if d < MinInvisible || d > MaxInvisible {
		return fmt.Errorf("%w: to be invisible for %s is not between %s and %s", rocketmq.ErrInvalidOption, d, MinInvisible, MaxInvisible)
	}
	return nil
}

// AckAll acknowledges messages, all that came from one broker with one request; a
// broker that knows no such request (before 5.1) gets them one by one. It returns
// nil or a [BatchError] with one entry per message, nil for those that are
// acknowledged. See [Received.Ack].
func (s *Simple) AckAll(ctx context.Context, msgs ...*Received) error {
	all := make([]*pop.Delivery, len(msgs))
	for i, m := range msgs {
		all[i] = m.d
	}
	errs := s.c.AckAll(ctx, all)
	if errs == nil {
		return nil
	}
	for i, err := range errs {
		errs[i] = bridge.PublicError(err)
	}
	return BatchError(errs)
}

// Close ends calls of Receive that wait, with [rocketmq.ErrClosed], lets those
// return their messages that are being answered, and leaves the group. If ctx has no
// deadline the drain timeout applies. Messages that were received can still be
// acknowledged as long as the client is open. Further calls return what the first
// one did.
func (s *Simple) Close(ctx context.Context) error { return bridge.PublicError(s.c.Close(ctx)) }

// Received is a message that was received. It is invisible to others until its
// deadline; Attempt says which delivery it is, as the broker counts. The
// message must not be changed. Methods are safe for concurrent use: calls for one
// message take turns.
type Received struct {
	*rocketmq.MessageView
	d *pop.Delivery
}

// Ack has the message not come again. After that Ack does nothing and returns nil.
// After the deadline it is a [rocketmq.ErrHandle], and nothing is sent: the message
// comes again, or has come already. So is an answer that the broker does not know
// the handle. With any other error the message may be acknowledged or not; Ack can be called
// again.
func (r *Received) Ack(ctx context.Context) error { return bridge.PublicError(r.d.Ack(ctx)) }

// Extend has the message stay invisible for so long from now, between
// [MinInvisible] and [MaxInvisible], be that longer or shorter than what was left.
// The handle that Ack uses is another one from then on, so the message must be
// acknowledged through this Received. Errors are those of Ack.
func (r *Received) Extend(ctx context.Context, invisible time.Duration) error {
	if err := checkInvisible(invisible); err != nil {
		return err
	}
	return bridge.PublicError(r.d.Extend(ctx, invisible))
}

// Deadline is until when the message is invisible to others, by this machine's
// clock.
func (r *Received) Deadline() time.Time { return r.d.Deadline() }
