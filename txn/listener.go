package txn

import (
	"context"
	"errors"

	"github.com/gorocketmq/rocketmq"
)

// Listener is both halves of a transaction in one place, named as in Apache's
// client (TransactionListener).
type Listener interface {
	// ExecuteLocalTransaction is the local transaction of a message that has been
	// stored as a half message, see [Producer.Send]. What else it needs is in ctx,
	// or in the properties of m.
	ExecuteLocalTransaction(ctx context.Context, m *rocketmq.Message, tx *Tx) (State, error)
	// CheckLocalTransaction is the [Checker].
	CheckLocalTransaction(ctx context.Context, half *rocketmq.MessageView) (State, error)
}

// ListenerProducer is a [Producer] whose local transactions are those of a
// [Listener].
type ListenerProducer struct {
	*Producer
	listener Listener
}

// NewListenerProducer returns a producer of a group, see [NewProducer].
func NewListenerProducer(c *rocketmq.Client, group string, l Listener, opts ...Option) (*ListenerProducer, error) {
	if l == nil {
		return nil, errors.Join(rocketmq.ErrInvalidOption, errors.New("txn: the listener is nil"))
	}
	p, err := NewProducer(c, group, l.CheckLocalTransaction, opts...)
	if err != nil {
		return nil, err
	}
	return &ListenerProducer{p, l}, nil
}

// SendMessageInTransaction sends m together with the listener's local
// transaction, see [Producer.Send].
func (p *ListenerProducer) SendMessageInTransaction(ctx context.Context, m *rocketmq.Message) (Result, error) {
	return p.Send(ctx, m, func(ctx context.Context, tx *Tx) (State, error) {
		return p.listener.ExecuteLocalTransaction(ctx, m, tx)
	})
}
