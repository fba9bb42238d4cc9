package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// loadPaced sends Rate messages a second; the time of each counts from its
// release to its acknowledgement.
func loadPaced(d driver, j job) (p point, err error) {
	if err := d.startSender(j.NameServer, j.Group, 0); err != nil {
		return p, err
	}
	b := body(j.Work.Body)
	if err := d.send(context.Background(), b); err != nil {
		return p, fmt.Errorf("first message: %w", err)
	}
	total := int64(float64(j.Work.Rate) * (j.Warmup + j.Window).Seconds())
	warm := int64(float64(j.Work.Rate) * j.Warmup.Seconds())
	took := make([]time.Duration, 0, total)
	var mu sync.Mutex
	var acked atomic.Int64
	acked.Add(1)
	var from sample
	err = pace(j, total, func() func(time.Time) error {
		return func(released time.Time) error {
			if err := d.send(context.Background(), b); err != nil {
				return err
			}
			lasted := time.Since(released)
			mu.Lock()
			took = append(took, lasted)
			mu.Unlock()
			acked.Add(1)
			return nil
		}
	}, func(sent int64) {
		if sent == warm {
			from = take(acked.Load(), j.BrokerPID)
		}
	})
	p = between(from, take(acked.Load(), j.BrokerPID))
	p.Total = acked.Load()
	if err != nil {
		return p, fmt.Errorf("after %d messages: %w", p.Total, err)
	}
	// Acknowledged in about the order of release: the first ones warmed up.
	took = took[min(int(warm), len(took)-1):]
	slices.Sort(took)
	p.P50, p.P99 = percentile(took, 50), percentile(took, 99)
	return p, d.stop()
}

// pace releases Rate sends a second whatever the broker does (open loop): every
// millisecond that millisecond's messages, which may wait for a free worker.
// Each worker sends with a function of its own. before is called before each
// release with the number of those ahead of it. pace ends when all are sent.
func pace(j job, total int64, worker func() func(released time.Time) error, before func(sent int64)) error {
	released := make(chan time.Time, total)
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	for range j.Work.Workers {
		send := worker()
		wg.Go(func() {
			for t := range released {
				if err := send(t); err != nil {
					failure.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	start := time.Now()
	for sent := int64(0); sent < total; {
		time.Sleep(time.Millisecond)
		now := time.Now()
		for due := min(total, int64(float64(j.Work.Rate)*now.Sub(start).Seconds())); sent < due; sent++ {
			before(sent)
			released <- now // has room for all
		}
	}
	close(released)
	wg.Wait()
	if e := failure.Load(); e != nil {
		return *e
	}
	return nil
}

// percentile is in milliseconds; took is sorted.
func percentile(took []time.Duration, n int) float64 {
	return float64(took[min(len(took)-1, len(took)*n/100)].Microseconds()) / 1000
}
