package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// fate is what becomes of an order.
type fate int

const (
	fatePaid      fate = iota
	fateRefunded       // paid, and the money given back
	fatePoison         // paid; the logistics cannot read its address
	fateForgetful      // paid; the service loses its answer to the broker
	fateNeverPaid      // cancelled by the timeout
	fateLate           // the same, and then the customer wants to pay
	fateNoStock        // no order at all
)

// fates say of how many orders one has a fate, and which of them.
var fates = []struct {
	of, at int64
	fate   fate
}{{20, 3, fateRefunded}, {100, 7, fatePoison}, {25, 9, fateForgetful}, {20, 11, fateNeverPaid}, {50, 13, fateLate}, {40, 17, fateNoStock}}

// order is one that a customer places.
type order struct {
	id, customer, cents int64
	fate                fate
}

func newOrder(id int64) order {
	r := rand.New(rand.NewPCG(uint64(id), 1)) // the same in every run
	o := order{id: id, customer: r.Int64N(500), cents: 100 + r.Int64N(20_000)}
	for _, f := range fates {
		if id%f.of == f.at {
			o.fate = f.fate
		}
	}
	return o
}

func (o order) address() json.RawMessage {
	if o.fate == fatePoison {
		return fmt.Appendf(nil, `{"street":"%d Broad Street","town":"Lakeside"}`, o.customer)
	}
	return fmt.Appendf(nil, `"%d Broad Street, Lakeside"`, o.customer)
}

// customers have n orders placed, some at a time, about rate a second, and pay
// or not. placed is how many there are.
func (s *shop) customers(ctx context.Context, n int64, placed *atomic.Int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ids := make(chan int64)
	var wg sync.WaitGroup
	for range s.counters {
		wg.Go(func() {
			for id := range ids {
				if err := s.customer(ctx, newOrder(id), placed); err != nil {
					cancel(err)
				}
			}
		})
	}
	begin := time.Now()
	for id, accepted := int64(1), int64(0); accepted < n && ctx.Err() == nil; id++ {
		if newOrder(id).fate != fateNoStock {
			accepted++
		}
		pause(ctx, time.Until(begin.Add(time.Duration(id)*time.Second/time.Duration(s.rate))))
		select {
		case ids <- id:
		case <-ctx.Done():
		}
	}
	close(ids)
	wg.Wait()
	return context.Cause(ctx)
}

// customer places one order and does what its fate says. It does not give up
// while the shop is not to be reached.
func (s *shop) customer(ctx context.Context, o order, placed *atomic.Int64) error {
	for {
		err := s.placing.place(ctx, o)
		if errors.Is(err, errNoStock) {
			return nil
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.tl.some("again", "orders", "order %d is not placed, the customer tries again: %s", o.id, brief(err))
		pause(ctx, 250*time.Millisecond)
	}
	placed.Add(1)
	switch o.fate {
	case fateNeverPaid, fateLate:
		return nil
	}
	if err := s.paying.pay(ctx, o); err != nil {
		return err
	}
	if o.fate == fateRefunded {
		return s.paying.refund(ctx, o)
	}
	return nil
}
