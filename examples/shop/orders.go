package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/txn"
)

// orderService writes orders. An order and the message about it exist both or
// not at all: the message is stored first, invisible; the order is written; then
// the message is committed. Should that last step be lost, the broker asks, and
// the database knows.
type orderService struct {
	names
	db   *sql.DB
	tl   *timeline
	send *txn.Producer
}

var errNoStock = errors.New("out of stock")

// place places an order. The fate is what the demonstration has in mind for it.
func (s *orderService) place(ctx context.Context, o order) error {
	m, err := event{ID: fmt.Sprint("placed-", o.id), Order: o.id, Cents: o.cents}.message(s.orders, tagPlaced)
	if err != nil {
		return err
	}
	_, err = s.send.Send(ctx, m, func(ctx context.Context, tx *txn.Tx) (txn.State, error) {
		if o.fate == fateNoStock {
			return txn.Rollback, errNoStock
		}
		_, err := s.db.ExecContext(ctx, `insert into orders values (?, ?, ?, 'placed', ?)`, o.id, o.customer, o.cents, tx.ID())
		if err != nil {
			return txn.Rollback, err
		}
		if o.fate == fateForgetful {
			// As if the service died between its database and its answer.
			s.tl.some("forget", "orders", "order %d is written, but the answer to the broker is lost", o.id)
			return txn.Unknown, nil
		}
		s.tl.some("placed", "orders", "order %d of customer %d over %s: written and committed", o.id, o.customer, euros(o.cents))
		return txn.Commit, nil
	})
	switch {
	case errors.Is(err, errNoStock):
		s.tl.some("stock", "orders", "order %d is out of stock: its message is rolled back, nobody sees it", o.id)
		return errNoStock
	case err != nil:
		// Whatever was lost on the way: what counts is in the database.
		switch n, dbErr := number(ctx, s.db, `select count(*) from orders where id = ?`, o.id); {
		case dbErr != nil:
			return dbErr
		case n > 0:
			s.tl.some("unsure", "orders", "order %d is written, the broker will ask: %s", o.id, brief(err))
			return nil
		}
	}
	return err
}

// check answers the broker's question about a message that was neither committed
// nor rolled back.
func (s *orderService) check(ctx context.Context, half *rocketmq.MessageView) (txn.State, error) {
	e, err := readEvent(half)
	if err != nil {
		return txn.Rollback, err
	}
	var tx string
	switch err := s.db.QueryRowContext(ctx, `select tx from orders where id = ?`, e.Order).Scan(&tx); {
	case errors.Is(err, sql.ErrNoRows) || err == nil && tx != half.TransactionID:
		s.tl.some("check-rollback", "orders", "the broker asks about order %d: not written by that transaction, rolled back", e.Order)
		return txn.Rollback, nil
	case err != nil:
		return txn.Unknown, err // it asks again
	}
	s.tl.some("check-commit", "orders", "the broker asks about order %d: it is in the database, committed after %.1f s", e.Order, time.Since(half.BornAt).Seconds())
	return txn.Commit, nil
}
