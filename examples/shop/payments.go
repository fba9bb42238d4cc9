package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq/producer"
)

// paymentService takes money and gives it back. Its events must reach others in
// the order in which it wrote them, so they go by an outbox: rows written with
// the payment, sent one after the other by relay.
type paymentService struct {
	names
	db   *sql.DB
	tl   *timeline
	send *producer.Producer
	wake chan struct{}
}

var errTooLate = errors.New("the order is cancelled")

// pay pays a placed order.
func (s *paymentService) pay(ctx context.Context, o order) error {
	err := inTx(ctx, s.db, func(tx *sql.Tx) error {
		ok, err := changed(ctx, tx, `update orders set status = 'paid' where id = ? and status = 'placed'`, o.id)
		if err == nil && !ok {
			err = errTooLate
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `insert into payments values (?, ?)`, o.id, o.cents); err != nil {
			return err
		}
		return s.put(ctx, tx, tagPaid, event{ID: fmt.Sprint("paid-", o.id), Order: o.id, Cents: o.cents, Address: o.address()})
	})
	switch {
	case err == nil:
		s.tl.some("paid", "payments", "order %d is paid: %s", o.id, euros(o.cents))
	case errors.Is(err, errTooLate):
		s.tl.some("late", "payments", "the payment for order %d comes too late and is refused", o.id)
	}
	return err
}

// refund gives a paid order's money back.
func (s *paymentService) refund(ctx context.Context, o order) error {
	err := inTx(ctx, s.db, func(tx *sql.Tx) error {
		ok, err := changed(ctx, tx, `update orders set status = 'refunded' where id = ? and status = 'paid'`, o.id)
		if err == nil && !ok {
			err = fmt.Errorf("order %d is not paid", o.id)
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `insert into refunds values (?, ?)`, o.id, o.cents); err != nil {
			return err
		}
		return s.put(ctx, tx, tagRefunded, event{ID: fmt.Sprint("refunded-", o.id), Order: o.id, Cents: -o.cents})
	})
	if err == nil {
		s.tl.some("refund", "payments", "order %d is refunded: %s", o.id, euros(o.cents))
	}
	return err
}

func (s *paymentService) put(ctx context.Context, tx *sql.Tx, kind string, e event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into outbox (order_id, kind, body) values (?, ?, ?)`, e.Order, kind, string(body))
	if err == nil {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return err
}

// relay sends what is in the outbox until ctx ends. A row that could not be sent
// is sent again, and the rows behind it wait: that is their order.
func (s *paymentService) relay(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := s.relaySome(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.tl.some("outbox", "payments", "the outbox waits: %s", brief(err))
			pause(ctx, 200*time.Millisecond)
		case n == 0:
			select {
			case <-s.wake:
			case <-time.After(time.Second): // written by a transaction that ended after its wake-up
			case <-ctx.Done():
			}
		}
	}
	return nil
}

func (s *paymentService) relaySome(ctx context.Context) (n int, err error) {
	type row struct {
		id         int64
		kind, body string
	}
	var rows []row
	rs, err := s.db.QueryContext(ctx, `select id, kind, body from outbox where sent = 0 order by id limit 200`)
	if err != nil {
		return 0, err
	}
	for rs.Next() {
		var r row
		if err := rs.Scan(&r.id, &r.kind, &r.body); err != nil {
			return 0, errors.Join(err, rs.Close())
		}
		rows = append(rows, r)
	}
	if err := errors.Join(rs.Err(), rs.Close()); err != nil {
		return 0, err
	}
	for _, r := range rows {
		var e event
		if err := json.Unmarshal([]byte(r.body), &e); err != nil {
			return n, err
		}
		m, err := e.message(s.names.payments, r.kind)
		if err != nil {
			return n, err
		}
		if _, err := s.send.Send(ctx, m); err != nil {
			return n, err
		}
		if _, err := s.db.ExecContext(ctx, `update outbox set sent = 1 where id = ?`, r.id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
