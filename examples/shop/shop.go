package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/txn"
)

const (
	shopFile      = "shop.db"
	ledgerFile    = "ledger.db"
	logisticsFile = "logistics.db"
)

// shop is all services, which know of each other by messages alone. In a house
// of many machines each would be a program.
type shop struct {
	*settings
	names
	out  io.Writer
	tl   *timeline
	db   *sql.DB // of orders and payments
	opts []rocketmq.Option

	placing    *orderService
	paying     *paymentService
	reminding  *till
	cancelling *canceller
	booking    *ledger
	shipping   *logistics
}

// role is a consumer.
type role interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
}

// run has the orders placed, waits until all is done, and checks the books. The
// chaos, if there is one, goes on meanwhile.
func (s *shop) run(ctx context.Context, chaos func(ctx context.Context, placed *atomic.Int64) error) (err error) {
	keep := func(close func(context.Context) error) {
		err = errors.Join(err, close(context.WithoutCancel(ctx)))
	}
	cl, err := rocketmq.NewClient(s.opts...)
	if err != nil {
		return err
	}
	defer keep(cl.Close)
	closeDBs, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer keep(closeDBs)
	send, err := producer.New(cl, producer.WithGroup(s.producers), producer.WithAutoCreate(8))
	if err != nil {
		return err
	}
	defer keep(send.Close)
	s.placing = &orderService{names: s.names, db: s.db, tl: s.tl}
	if s.placing.send, err = txn.NewProducer(cl, s.orderService, s.placing.check); err != nil {
		return err
	}
	defer keep(s.placing.send.Close)
	for _, topic := range s.topics() {
		if _, err := send.Send(ctx, &rocketmq.Message{Topic: topic, Tag: tagOpening, Body: []byte("soon")}); err != nil {
			return err
		}
	}
	s.paying = &paymentService{names: s.names, db: s.db, tl: s.tl, send: send, wake: make(chan struct{}, 1)}
	s.reminding = &till{names: s.names, db: s.db, tl: s.tl, send: send, timeout: s.timeout}
	roles, err := s.consumers(cl)
	if err != nil {
		return err
	}

	g, ctx := errgroup.WithContext(ctx)
	services, close := context.WithCancel(ctx)
	defer close()
	for _, r := range roles {
		g.Go(func() error { return r.Run(services) })
	}
	g.Go(func() error { return s.paying.relay(services) })
	g.Go(func() error {
		defer close()
		for _, r := range roles {
			select {
			case <-r.Ready():
			case <-ctx.Done():
				return nil // one has failed
			}
		}
		s.tl.say("shop", "open: %d orders, about %d a second", s.n, s.rate)
		if err := s.day(ctx, chaos); err != nil {
			return err
		}
		b, err := s.audit(ctx)
		if err != nil {
			return err
		}
		s.tl.say("shop", "closed")
		return b.report(s.out)
	})
	return g.Wait()
}

// open opens the databases.
func (s *shop) open(ctx context.Context) (close func(context.Context) error, err error) {
	ledgerDB, logisticsDB := (*sql.DB)(nil), (*sql.DB)(nil)
	close = func(context.Context) error {
		var errs []error
		for _, db := range []*sql.DB{s.db, ledgerDB, logisticsDB} {
			if db != nil {
				errs = append(errs, db.Close())
			}
		}
		return errors.Join(errs...)
	}
	s.db, err = openDB(ctx, s.dir, shopFile, shopSchema, 5000)
	if err == nil {
		ledgerDB, err = openDB(ctx, s.dir, ledgerFile, ledgerSchema, 5000)
	}
	if err == nil {
		logisticsDB, err = openDB(ctx, s.dir, logisticsFile, logisticsSchema, 20)
	}
	if err != nil {
		return nil, errors.Join(err, close(ctx))
	}
	s.cancelling = &canceller{db: s.db, tl: s.tl}
	s.booking = &ledger{db: ledgerDB, tl: s.tl}
	s.shipping = &logistics{db: logisticsDB, tl: s.tl}
	return close, nil
}

// consumers are the services' receiving halves.
func (s *shop) consumers(cl *rocketmq.Client) (roles []role, err error) {
	push := func(group, topic string, e selector.Expr, f func(context.Context, *rocketmq.MessageView) error) {
		c, e2 := consumer.NewPush(cl, group, consumer.Subscribe(topic, e, consumer.Each(f)), consumer.StartFrom(rocketmq.Earliest()))
		roles, err = append(roles, c), errors.Join(err, e2)
	}
	push(s.till, s.orders, selector.Tags(tagPlaced), s.reminding.placed)
	push(s.canceller, s.timeouts, selector.Tags(tagLook), s.cancelling.timeout)
	push(s.logistics, s.payments, selector.Tags(tagPaid), s.shipping.paid)
	ordered, e2 := consumer.NewOrdered(cl, s.ledger,
		consumer.Subscribe(s.payments, selector.Tags(tagPaid, tagRefunded), consumer.Each(s.booking.book)), consumer.StartFrom(rocketmq.Earliest()))
	return append(roles, ordered), errors.Join(err, e2)
}

// day is what happens between opening and closing.
func (s *shop) day(ctx context.Context, chaos func(context.Context, *atomic.Int64) error) error {
	var placed atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.customers(ctx, int64(s.n), &placed) })
	g.Go(func() error { return chaos(ctx, &placed) })
	g.Go(func() error {
		for placed.Load() < int64(s.n)/5 {
			if pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
				return nil
			}
		}
		return outage(ctx, s.dir, 2*time.Second, s.tl)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.limit, errors.New("the shop does not come to an end"))
	defer cancel()

	// All is done but what the logistics cannot read.
	poison, err := s.ordersOf(ctx, fatePoison)
	if err != nil {
		return err
	}
	if err := s.until(ctx, func(b books) bool {
		return b.known == b.orders && b.open == 0 && b.paid == b.shipped+int64(len(poison))
	}); err != nil {
		return err
	}
	if err := s.latecomers(ctx); err != nil {
		return err
	}
	if err := s.listDead(ctx, len(poison)); err != nil {
		return err
	}
	s.shipping.new.Store(true)
	s.tl.say("logistics", "a new version reads addresses of both formats")
	if err := s.resendDead(ctx, len(poison)); err != nil {
		return err
	}
	return s.until(ctx, func(b books) bool { return b.paid == b.shipped && b.booked == b.paid+b.refunded })
}

// ordersOf are the orders that there are with a fate.
func (s *shop) ordersOf(ctx context.Context, f fate) (out []order, err error) {
	n, err := number(ctx, s.db, `select coalesce(max(id), 0) from orders`)
	for id := int64(1); id <= n; id++ {
		if o := newOrder(id); o.fate == f {
			out = append(out, o)
		}
	}
	return out, err
}

// latecomers want to pay what was cancelled.
func (s *shop) latecomers(ctx context.Context) error {
	late, err := s.ordersOf(ctx, fateLate)
	for _, o := range late {
		if err := s.paying.pay(ctx, o); !errors.Is(err, errTooLate) {
			return fmt.Errorf("payment of order %d, which is cancelled: %w", o.id, err)
		}
	}
	return err
}

// until waits until the books are as wanted, and says every now and then how
// they are.
func (s *shop) until(ctx context.Context, done func(books) bool) error {
	for told := time.Now(); ; {
		b, err := s.count(ctx)
		if err != nil || done(b) {
			return errors.Join(err, context.Cause(ctx))
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			s.tl.say("shop", "orders %d, known to the till %d, not yet paid %d, paid %d, shipped %d, refunded %d, cancelled %d", b.orders, b.known, b.open, b.paid, b.shipped, b.refunded, b.cancelled)
		}
		if pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%w: orders %d, known to the till %d, not yet paid %d, paid %d, shipped %d, refunded %d, booked %d",
				context.Cause(ctx), b.orders, b.known, b.open, b.paid, b.shipped, b.refunded, b.booked)
		}
	}
}
