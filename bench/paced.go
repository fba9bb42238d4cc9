package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// loadPaced sends Rate messages a second whatever the broker does (open loop):
// every millisecond that millisecond's messages are released, and the time of
// each counts from its release, also while it waits for a free worker.
func loadPaced(d driver, j job) (p point, err error) {
	if err := d.startSender(j.NameServer, j.Group, 0); err != nil {
		return p, err
	}
	b := body(j.Work.Body)
	if err := d.send(context.Background(), b); err != nil {
		return p, fmt.Errorf("first message: %w", err)
	}
	total := int(float64(j.Work.Rate) * (j.Warmup + j.Window).Seconds())
	warm := int(float64(j.Work.Rate) * j.Warmup.Seconds())
	released := make(chan time.Time, total)
	took := make([]time.Duration, 0, total)
	var mu sync.Mutex
	var failure atomic.Pointer[error]
	var acked atomic.Int64
	acked.Add(1)
	var wg sync.WaitGroup
	for range j.Work.Workers {
		wg.Go(func() {
			for t := range released {
				if err := d.send(context.Background(), b); err != nil {
					failure.CompareAndSwap(nil, &err)
					continue
				}
				lasted := time.Since(t)
				mu.Lock()
				took = append(took, lasted)
				mu.Unlock()
				acked.Add(1)
			}
		})
	}
	var from sample
	start := time.Now()
	for sent := 0; sent < total; {
		time.Sleep(time.Millisecond)
		now := time.Now()
		for due := min(total, int(float64(j.Work.Rate)*now.Sub(start).Seconds())); sent < due; sent++ {
			if sent == warm {
				from = take(acked.Load(), j.BrokerPID)
			}
			released <- now // has room for all
		}
	}
	close(released)
	wg.Wait()
	p = between(from, take(acked.Load(), j.BrokerPID))
	p.Total = acked.Load()
	if e := failure.Load(); e != nil {
		return p, fmt.Errorf("after %d messages: %w", p.Total, *e)
	}
	// Acknowledged in about the order of release: the first ones warmed up.
	took = took[min(warm, len(took)-1):]
	slices.Sort(took)
	p.P50, p.P99 = percentile(took, 50), percentile(took, 99)
	return p, d.stop()
}

// percentile is in milliseconds; took is sorted.
func percentile(took []time.Duration, n int) float64 {
	return float64(took[min(len(took)-1, len(took)*n/100)].Microseconds()) / 1000
}
