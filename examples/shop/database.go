package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// The shop's own database: orders and payments. What other services have to
// hear of a payment is written into the outbox in the same transaction.
const shopSchema = `
create table orders   (id integer primary key, customer integer, cents integer, status text, tx text);
create table payments (order_id integer primary key, cents integer);
create table refunds  (order_id integer primary key, cents integer);
create table reminders (order_id integer primary key);
create table outbox   (id integer primary key autoincrement, order_id integer, kind text, body text, sent integer default 0);
create index unsent on outbox (id) where sent = 0;`

// The ledger's: one line for each payment and refund, in the order in which
// they came.
const ledgerSchema = `
create table ledger (seq integer primary key autoincrement, event text unique, order_id integer, cents integer);`

// The logistics': what is to leave the house, and what has left it.
const logisticsSchema = `
create table shipments (order_id integer primary key, address text);
create table parcels   (id integer primary key autoincrement, order_id integer);`

// openDB makes a database. Its writers wait for each other, for busy
// milliseconds when they are of different processes or connections.
func openDB(ctx context.Context, dir, name, schema string, busy int) (*sql.DB, error) {
	q := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busy), "journal_mode(wal)", "synchronous(normal)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, name))+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if schema != "" {
		if _, err := db.ExecContext(ctx, schema); err != nil {
			return nil, errors.Join(fmt.Errorf("database %s: %w", name, err), db.Close())
		}
	}
	return db, nil
}

// inTx runs f in a transaction, which is rolled back if f fails.
func inTx(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// querier and execer are a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// changed executes a statement and reports whether it changed a row.
func changed(ctx context.Context, tx execer, query string, args ...any) (bool, error) {
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// number asks for one number.
func number(ctx context.Context, db *sql.DB, query string, args ...any) (n int64, err error) {
	err = db.QueryRowContext(ctx, query, args...).Scan(&n)
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.TrimSpace(query), err)
	}
	return n, err
}
