package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
)

// till hears of placed orders and has each looked at when the time for its
// payment is over: by a message to itself that the broker keeps until then.
type till struct {
	names
	db      *sql.DB
	tl      *timeline
	send    *producer.Producer
	timeout time.Duration
}

func (s *till) placed(ctx context.Context, m *rocketmq.MessageView) error {
	e, err := readEvent(m)
	if err != nil {
		return err
	}
	e.ID = fmt.Sprint("timeout-", e.Order)
	look, err := e.message(s.timeouts, tagLook)
	if err != nil {
		return err
	}
	look.Delay = rocketmq.DelayFor(s.timeout)
	if _, err := s.send.Send(ctx, look); err != nil {
		return consumer.RetryAfter(time.Second, err)
	}
	if _, err := s.db.ExecContext(ctx, `insert or ignore into reminders values (?)`, e.Order); err != nil {
		return err
	}
	s.tl.some("till", "till", "order %d has %v to be paid", e.Order, s.timeout)
	return nil
}

// canceller cancels what is not paid in time.
type canceller struct {
	db *sql.DB
	tl *timeline
}

func (s *canceller) timeout(ctx context.Context, m *rocketmq.MessageView) error {
	e, err := readEvent(m)
	if err != nil {
		return err
	}
	ok, err := changed(ctx, s.db, `update orders set status = 'cancelled' where id = ? and status = 'placed'`, e.Order)
	if err == nil && ok {
		s.tl.some("cancel", "till", "order %d was not paid in time and is cancelled", e.Order)
	}
	return err
}

// ledger writes down payments and refunds as they come. It consumes in order:
// a refund that came before its payment would be seen here.
type ledger struct {
	db *sql.DB
	tl *timeline
}

func (s *ledger) book(ctx context.Context, m *rocketmq.MessageView) error {
	e, err := readEvent(m)
	if err != nil {
		return err
	}
	fresh, err := changed(ctx, s.db, `insert or ignore into ledger (event, order_id, cents) values (?, ?, ?)`, e.ID, e.Order, e.Cents)
	if err == nil && !fresh {
		s.tl.some("twice", "ledger", "%s came again and changes nothing", e.ID)
	}
	return err
}

// logistics ships what is paid, into a database of its own.
type logistics struct {
	db  *sql.DB
	tl  *timeline
	new atomic.Bool // understands addresses in the new format
}

// poisonAttempts is after how many an unreadable message is given up.
const poisonAttempts = 2

func (s *logistics) paid(ctx context.Context, m *rocketmq.MessageView) error {
	e, err := readEvent(m)
	if err != nil {
		return err
	}
	address, err := s.address(e.Address)
	switch {
	case err != nil && m.Attempt >= poisonAttempts:
		s.tl.some("dead", "logistics", "order %d, attempt %d: %v; to the dead letters", e.Order, m.Attempt, err)
		return consumer.DeadLetter(err)
	case err != nil:
		return consumer.RetryAfter(time.Second, err)
	}
	err = inTx(ctx, s.db, func(tx *sql.Tx) error {
		fresh, err := changed(ctx, tx, `insert or ignore into shipments values (?, ?)`, e.Order, address)
		if err != nil || !fresh {
			return err // it has left already
		}
		_, err = tx.ExecContext(ctx, `insert into parcels (order_id) values (?)`, e.Order)
		return err
	})
	if err != nil {
		s.tl.some("down", "logistics", "order %d cannot be shipped, again in a second: %v", e.Order, err)
		return consumer.RetryAfter(time.Second, err)
	}
	if m.Attempt > 1 {
		s.tl.some("recovered", "logistics", "order %d is shipped at attempt %d", e.Order, m.Attempt)
	} else {
		s.tl.some("shipped", "logistics", "order %d is shipped", e.Order)
	}
	return nil
}

// address reads one. A program of last year knows only plain text.
func (s *logistics) address(raw json.RawMessage) (text string, err error) {
	if err = json.Unmarshal(raw, &text); err == nil || !s.new.Load() {
		return text, err
	}
	var a struct{ Street, Town string }
	if err := json.Unmarshal(raw, &a); err != nil {
		return "", err
	}
	return a.Street + ", " + a.Town, nil
}

// outage keeps the logistics' database from being written to for a while, as
// another program's long transaction does.
func outage(ctx context.Context, dir string, d time.Duration, tl *timeline) error {
	db, err := openDB(ctx, dir, logisticsFile, "", 5000)
	if err != nil {
		return err
	}
	defer db.Close()
	tl.say("logistics", "somebody locks the database of the logistics for %v", d)
	err = inTx(ctx, db, func(*sql.Tx) error { // begin immediate: the lock is taken
		pause(ctx, d)
		return nil
	})
	tl.say("logistics", "the database is free again")
	return err
}
