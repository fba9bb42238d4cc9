package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// Tx is a transaction whose message is stored but not delivered. All methods
// are safe for concurrent use; decisions take turns.
type Tx struct {
	p    *Producer
	half send.Half
	turn chan State // one slot: what the broker has confirmed
}

func newTx(p *Producer, h send.Half) *Tx {
	tx := &Tx{p: p, half: h, turn: make(chan State, 1)}
	tx.turn <- Unknown
	return tx
}

// ID is the transaction's id, which is the message's, too. Keep it with the
// outcome of the local transaction: a check asks for it.
func (t *Tx) ID() string { return t.half.MessageID }

// Queue is where the message goes when it is committed.
func (t *Tx) Queue() rocketmq.Queue { return t.half.Queue }

// Commit has the broker deliver the message, and waits until it has stored it.
// It returns nil also if that was done before, and [ErrDecided] after a
// rollback.
//
// After any other error the outcome is not known, and the broker asks the
// [Checker]: a commit whose answer was lost is not sent again, because Apache's
// broker would deliver the message twice. Busy brokers, and those that cannot
// be reached, are tried again within the total timeout.
func (t *Tx) Commit(ctx context.Context) error { return t.end(ctx, Commit) }

// Rollback has the broker drop the message, and waits until it is sure. It
// returns nil also if that was done before, and [ErrDecided] after a commit.
// After any other error the broker asks the [Checker].
func (t *Tx) Rollback(ctx context.Context) error { return t.end(ctx, Rollback) }

// decided is what the broker has confirmed.
func (t *Tx) decided() State {
	s := <-t.turn
	t.turn <- s
	return s
}

// end tells the broker.
func (t *Tx) end(ctx context.Context, s State) error {
	var before State
	select {
	case before = <-t.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now := before
	defer func() { t.turn <- now }()
	switch {
	case before == s && s != Unknown:
		return nil
	case before != Unknown && s != Unknown:
		return fmt.Errorf("%w: message %s: %s after %s", ErrDecided, t.half.MessageID, s, before)
	case before != Unknown:
		return nil
	}
	if err := t.p.pipe.End(ctx, t.p.pipe.EndingOf(&t.half, s.flag())); err != nil {
		if s == Unknown {
			t.p.log.Debug("broker not told that the outcome of a transaction is unknown", "id", t.half.MessageID, "err", err)
			return nil // it asks in any case
		}
		return fmt.Errorf("txn: %s of message %s to topic %q: %w", s, t.half.MessageID, t.half.Queue.Topic, err)
	}
	now = s
	return nil
}

// run calls the local transaction.
func (t *Tx) run(ctx context.Context, local func(ctx context.Context, tx *Tx) (State, error)) (State, error) {
	returned := false
	defer func() {
		if !returned { // it panics, or ends its goroutine
			told, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.p.cfg.attempt)
			defer cancel()
			_ = t.end(told, Unknown)
		}
	}()
	state, err := local(ctx, t)
	returned = true
	return outcome(state, err)
}

// outcome is what a state together with an error means.
func outcome(s State, err error) (State, error) {
	switch {
	case s > Rollback:
		return Unknown, errors.Join(err, errState)
	case s == Commit && err != nil:
		return Unknown, err
	}
	return s, err
}

func (t *Tx) result() Result {
	return Result{
		MessageID: t.half.MessageID, TransactionID: t.half.MessageID, OffsetID: t.half.OffsetID, Queue: t.half.Queue, State: t.decided(),
	}
}

// joined joins two errors, one alone stays as it is.
func joined(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return errors.Join(a, b)
}
