package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// What a consumer costs when nothing happens, and how long a message is under
// way. These have limits in place of a ratio, and need a real broker.
var costWorkloads = []workload{
	{Name: "idle-1000", Op: "idle", Workers: 20, Queues: 1000, Text: "push consumer of 1,000 empty queues: CPU and resident memory of its process",
		limits: []limit{
			{"% of a core", 1, func(p point) float64 { return p.Busy }},
			{"MiB resident", 100, func(p point) float64 { return p.Resident }},
		}},
	{Name: "latency-5k", Op: "latency", Workers: 20, Rate: 5000, Body: 1024, Text: "5,000 messages of 1 KiB a second from the release of a send to the consumer's handler",
		limits: []limit{
			{"ms p99", 5, func(p point) float64 { return p.P99 }},
		}},
}

// A limit is the most that ours may cost, in the median of the rounds.
type limit struct {
	unit string
	most float64
	of   func(point) float64
}

// costLines are a cost's lines in the closing table.
func (r report) costLines() (lines []string) {
	for _, l := range r.limits {
		column := func(client int) float64 {
			_, mid, _ := r.spread(func(rd round) float64 { return l.of(rd.Points[client]) })
			return mid
		}
		least, mid, most := r.spread(func(rd round) float64 { return l.of(rd.Points[1]) })
		lines = append(lines, fmt.Sprintf("%-12s %6.2f / %6.2f / %6.2f %-12s must <= %g %s   official %.2f",
			r.Workload, least, mid, most, l.unit, l.most, verdict(mid <= l.most), column(0)))
	}
	return lines
}

// loadIdle consumes a topic without messages. A client that shares its queues
// out, asks for their offsets and opens its long polls does so in the warm-up,
// of which there must be enough.
func loadIdle(d driver, j job) (p point, err error) {
	var wrong atomic.Int64
	if err := d.startConsumer(j.NameServer, j.Group, j.Work.Workers, func([]byte) { wrong.Add(1) }); err != nil {
		return p, err
	}
	time.Sleep(4 * j.Warmup)
	from := take(0, j.BrokerPID)
	time.Sleep(4 * j.Window)
	to := take(0, j.BrokerPID)
	p = between(from, to)
	p.Busy = 100 * float64(to.cpu-from.cpu) / float64(to.at.Sub(from.at))
	p.Resident, _ = memory(os.Getpid())
	if wrong.Load() > 0 {
		return p, errors.New("messages of an empty topic")
	}
	return p, d.stop()
}

// loadLatency sends as loadPaced does, and takes the time when the message is in
// the handler of a consumer in the same process.
func loadLatency(d, sender driver, j job) (p point, err error) {
	start := time.Now()
	total := int64(float64(j.Work.Rate) * (j.Warmup + j.Window).Seconds())
	warm := int64(float64(j.Work.Rate) * j.Warmup.Seconds())
	var (
		mu       sync.Mutex
		took     []time.Duration
		handled  atomic.Int64
		finished = make(chan struct{})
		up       = make(chan struct{})
		isUp     sync.Once
	)
	got := func(b []byte) {
		released := time.Duration(binary.BigEndian.Uint64(b))
		if released == 0 {
			isUp.Do(func() { close(up) })
			return
		}
		lasted := time.Since(start) - released
		mu.Lock()
		took = append(took, lasted)
		mu.Unlock()
		if handled.Add(1) == total {
			close(finished)
		}
	}
	if err := d.startConsumer(j.NameServer, j.Group, j.Work.Workers, got); err != nil {
		return p, err
	}
	if err := sender.startSender(j.NameServer, j.Group+"_send", 0); err != nil {
		return p, err
	}
	// Messages without a time, one to each queue or more, until one has come.
	probes := int64(0)
	for waiting := true; waiting; probes++ {
		if probes == 1000 {
			return p, errors.New("the consumer has got nothing in 10 s")
		}
		if err := sender.send(context.Background(), make([]byte, j.Work.Body)); err != nil {
			return p, fmt.Errorf("first message: %w", err)
		}
		select {
		case <-up:
			waiting = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	var from sample
	err = pace(j, total, func() func(time.Time) error {
		b := body(j.Work.Body)
		return func(released time.Time) error {
			binary.BigEndian.PutUint64(b, uint64(released.Sub(start)))
			return sender.send(context.Background(), b)
		}
	}, func(sent int64) {
		if sent == warm {
			from = take(sent, j.BrokerPID)
		}
	})
	if err != nil {
		return p, err
	}
	select {
	case <-finished:
	case <-time.After(20 * time.Second):
		return p, fmt.Errorf("%d of %d messages have come in 20 s", handled.Load(), total)
	}
	p = between(from, take(total, j.BrokerPID))
	p.Total = total + probes
	mu.Lock()
	defer mu.Unlock()
	took = took[warm:] // handled in about the order of release
	slices.Sort(took)
	p.P50, p.P99 = percentile(took, 50), percentile(took, 99)
	return p, errors.Join(sender.stop(), d.stop())
}
