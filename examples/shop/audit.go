package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// books is what the shop's databases say.
type books struct {
	orders, known, open, paid, shipped, refunded, cancelled, booked int64
	faults                                                          []string
}

// count reads the figures that say whether all is done.
func (s *shop) count(ctx context.Context) (b books, err error) {
	var errs []error
	ask := func(n *int64, query string) {
		var err error
		*n, err = number(ctx, s.db, query)
		errs = append(errs, err)
	}
	ask(&b.orders, `select count(*) from orders`)
	ask(&b.known, `select count(*) from reminders`)
	ask(&b.open, `select count(*) from orders where status = 'placed'`)
	ask(&b.paid, `select count(*) from payments`)
	ask(&b.refunded, `select count(*) from refunds`)
	ask(&b.cancelled, `select count(*) from orders where status = 'cancelled'`)
	var err2, err3 error
	b.shipped, err2 = number(ctx, s.shipping.db, `select count(*) from parcels`)
	b.booked, err3 = number(ctx, s.booking.db, `select count(*) from ledger`)
	return b, errors.Join(append(errs, err2, err3)...)
}

// audit checks the books: what was placed against what became of it, in all
// three databases.
func (s *shop) audit(ctx context.Context) (b books, err error) {
	if b, err = s.count(ctx); err != nil {
		return b, err
	}
	var errs []error
	check := func(what string, got, want int64) {
		if got != want {
			b.faults = append(b.faults, fmt.Sprintf("%s: %d, want %d", what, got, want))
		}
	}
	shop := func(query string) int64 {
		n, err := number(ctx, s.db, query)
		errs = append(errs, err)
		return n
	}
	book := func(query string) int64 {
		n, err := number(ctx, s.booking.db, query)
		errs = append(errs, err)
		return n
	}
	check("orders", b.orders, int64(s.n))
	check("orders that the till has heard of", b.known, b.orders)
	check("orders that were rolled back, and the till has heard of", shop(`select count(*) from reminders where order_id not in (select id from orders)`), 0)
	check("orders that are neither paid nor cancelled", b.open, 0)
	check("orders paid or cancelled", b.paid+b.cancelled, b.orders)
	check("payments of orders that are not paid", shop(`select count(*) from payments p join orders o on o.id = p.order_id where o.status not in ('paid', 'refunded')`), 0)
	check("payments of another amount than the order's", shop(`select count(*) from payments p join orders o on o.id = p.order_id where o.cents <> p.cents`), 0)
	check("refunds of orders that are not refunded", shop(`select count(*) from refunds r join orders o on o.id = r.order_id where o.status <> 'refunded' or o.cents <> r.cents`), 0)
	check("events in the outbox", shop(`select count(*) from outbox where sent = 0`), 0)

	check("lines of the ledger", b.booked, b.paid+b.refunded)
	check("the ledger's money", book(`select coalesce(sum(cents), 0) from ledger`),
		shop(`select coalesce(sum(cents), 0) from payments`)-shop(`select coalesce(sum(cents), 0) from refunds`))
	check("refunds before their payment", book(`select count(*) from ledger r where r.cents < 0
		and not exists (select 1 from ledger p where p.order_id = r.order_id and p.cents > 0 and p.seq < r.seq)`), 0)

	out := func(query string) int64 {
		n, err := number(ctx, s.shipping.db, query)
		errs = append(errs, err)
		return n
	}
	check("parcels", b.shipped, b.paid)
	check("orders shipped", out(`select count(distinct order_id) from parcels`), b.paid)
	unpaid, err := s.shippedUnpaid(ctx)
	check("parcels of orders that are not paid", unpaid, 0)
	return b, errors.Join(append(errs, err)...)
}

// shippedUnpaid counts what left the house without a payment. Parcels and
// payments are in different databases.
func (s *shop) shippedUnpaid(ctx context.Context) (n int64, err error) {
	paid := make(map[int64]bool)
	for _, q := range []struct {
		db    querier
		query string
		row   func(id int64)
	}{
		{s.db, `select order_id from payments`, func(id int64) { paid[id] = true }},
		{s.shipping.db, `select order_id from parcels`, func(id int64) {
			if !paid[id] {
				n++
			}
		}},
	} {
		rows, err := q.db.QueryContext(ctx, q.query)
		if err != nil {
			return n, err
		}
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return n, errors.Join(err, rows.Close())
			}
			q.row(id)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return n, err
		}
	}
	return n, nil
}

// report prints the last line and says whether the books are balanced.
func (b books) report(out io.Writer) error {
	verdict := "books balanced"
	if len(b.faults) > 0 {
		verdict = "books NOT balanced"
		for _, f := range b.faults {
			if _, err := fmt.Fprintln(out, "fault:", f); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(out, "orders %d, paid %d, shipped %d, refunded %d, cancelled %d, %s\n",
		b.orders, b.paid, b.shipped, b.refunded, b.cancelled, verdict)
	if err == nil && len(b.faults) > 0 {
		err = errUnbalanced
	}
	return err
}

var errUnbalanced = errors.New("the books are not balanced")
