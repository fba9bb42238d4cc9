package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A driver makes one client do the work.
type driver interface {
	// startSender makes the client ready to send to the topic. At most so many
	// asynchronous sends will be under way.
	startSender(nameServer, group string, inflight int) error
	// send sends one message and waits for the acknowledgement.
	send(ctx context.Context, body []byte) error
	// async sends one message and calls done with the outcome. It waits while
	// as many as allowed are under way.
	async(ctx context.Context, body []byte, done func(error))
	// oneway sends one message without acknowledgement.
	oneway(ctx context.Context, body []byte) error
	// batch sends n messages at once and waits for the acknowledgement.
	batch(ctx context.Context, body []byte, n int) error
	// startConsumer consumes the topic from its first message with the group,
	// workers handlers at a time; each message is given to got.
	startConsumer(nameServer, group string, workers int, got func(body []byte)) error
	// stop ends the client.
	stop() error
}

func loadMain(args []string) error {
	var j job
	if len(args) != 1 {
		return errors.New("one argument, the job, is needed")
	}
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return err
	}
	fresh := map[string]func() driver{"official": func() driver { return &official{} }, "ours": func() driver { return &ours{} }}[j.Client]
	if fresh == nil {
		return fmt.Errorf("no client %q", j.Client)
	}
	d := fresh()
	var p point
	var err error
	switch j.Work.Op {
	case "send", "batch", "oneway", "async":
		p, err = loadSend(d, j)
	case "paced":
		p, err = loadPaced(d, j)
	case "consume":
		p, err = loadConsume(d, j)
	case "idle":
		p, err = loadIdle(d, j)
	case "latency":
		p, err = loadLatency(d, fresh(), j)
	default:
		err = fmt.Errorf("no op %q", j.Work.Op)
	}
	if err != nil {
		return err
	}
	p.Client = j.Client
	return json.NewEncoder(os.Stdout).Encode(p)
}

// body is the same for every message of a load.
func body(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('a' + i%26)
	}
	return b
}

// loadSend sends from each worker until the window is over, or Count messages
// if that is set.
func loadSend(d driver, j job) (p point, err error) {
	ctx := context.Background()
	if err := d.startSender(j.NameServer, j.Group, j.Work.Inflight); err != nil {
		return p, err
	}
	b := body(j.Work.Body)
	// One message ahead of the workers: the official client loses sends that
	// start together before it knows the topic, which is not what is compared.
	if err := d.send(ctx, b); err != nil {
		return p, fmt.Errorf("first message: %w", err)
	}
	var l sendLoad
	l.sent.Add(1)
	l.acked.Add(1)
	count := l.acked.Load
	var unread error // of the broker's offsets
	if j.Work.Op == "oneway" {
		at := &broker{addr: j.Broker, queues: queues}
		count = func() int64 {
			n, err := at.stored()
			unread = errors.Join(unread, err)
			return n
		}
	}
	var wg sync.WaitGroup
	for range j.Work.Workers {
		wg.Go(func() { l.work(ctx, d, j.Work, b) })
	}
	if j.Work.Count == 0 {
		time.Sleep(j.Warmup)
		sent, from := l.sent.Load(), take(count(), j.BrokerPID)
		time.Sleep(j.Window)
		to := take(count(), j.BrokerPID)
		p = between(from, to)
		if j.Work.Op == "oneway" {
			p.Calls = float64(l.sent.Load()-sent) / to.at.Sub(from.at).Seconds()
		}
		l.stopped.Store(true)
	}
	wg.Wait()
	p.Total = l.sent.Load()
	// What is under way arrives: callbacks, or one-way messages at the broker.
	for end := time.Now().Add(20 * time.Second); l.failure.Load() == nil && count() != p.Total; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			l.failed(fmt.Errorf("%d of %d messages have arrived in 20 s", count(), p.Total))
		}
	}
	if e := l.failure.Load(); e != nil {
		return p, fmt.Errorf("after %d messages: %w", l.acked.Load(), *e)
	}
	if unread != nil {
		return p, unread
	}
	return p, d.stop()
}

// sendLoad is what the workers of a sender share.
type sendLoad struct {
	sent, acked atomic.Int64 // messages; one-way ones are never acked
	stopped     atomic.Bool
	failure     atomic.Pointer[error]
}

func (l *sendLoad) failed(err error) {
	l.failure.CompareAndSwap(nil, &err)
	l.stopped.Store(true)
}

// work is one worker.
func (l *sendLoad) work(ctx context.Context, d driver, w workload, b []byte) {
	n := int64(max(1, w.Batch))
	acked := func(err error) {
		if err != nil {
			l.failed(err)
			return
		}
		l.acked.Add(n)
	}
	for !l.stopped.Load() {
		if sent := l.sent.Add(n); w.Count > 0 && sent > int64(w.Count) {
			l.sent.Add(-n)
			return
		}
		switch w.Op {
		case "async":
			d.async(ctx, b, acked)
		case "batch":
			acked(d.batch(ctx, b, w.Batch))
		case "oneway":
			if err := d.oneway(ctx, b); err != nil {
				l.failed(err)
			}
		default:
			acked(d.send(ctx, b))
		}
	}
}

// loadConsume reads Count messages. The first tenth is the warm-up.
func loadConsume(d driver, j job) (p point, err error) {
	var n atomic.Int64
	total := int64(j.Work.Count)
	warm := total / 10
	started, finished := make(chan struct{}), make(chan struct{})
	var wrong atomic.Int64
	got := func(b []byte) {
		if len(b) != j.Work.Body {
			wrong.Add(1)
		}
		switch n.Add(1) {
		case warm:
			close(started)
		case total:
			close(finished)
		}
	}
	if err := d.startConsumer(j.NameServer, j.Group, j.Work.Workers, got); err != nil {
		return p, err
	}
	limit := time.After(90 * time.Second)
	var from sample
	select {
	case <-started:
		from = take(n.Load(), j.BrokerPID)
	case <-limit:
		return p, fmt.Errorf("%d of %d messages in 90 s", n.Load(), total)
	}
	select {
	case <-finished:
	case <-limit:
		return p, fmt.Errorf("%d of %d messages in 90 s", n.Load(), total)
	}
	p = between(from, take(total, j.BrokerPID))
	p.Total = n.Load()
	if wrong.Load() > 0 {
		return p, fmt.Errorf("%d bodies have another length than was sent", wrong.Load())
	}
	return p, d.stop()
}

// A sample is the state of all counters at one moment.
type sample struct {
	at              time.Time
	count           int64
	cpu, broker     time.Duration
	mallocs, bytes  uint64
	reads, writes   float64
	stolen, machine float64
}

func take(count int64, brokerPID int) sample {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := sample{count: count, mallocs: m.Mallocs, bytes: m.TotalAlloc, cpu: ownCPU(), broker: processCPU(brokerPID)}
	s.reads, s.writes = socketCalls()
	s.stolen, s.machine = stolenTime()
	s.at = time.Now()
	return s
}

func between(from, to sample) point {
	n := float64(max(1, to.count-from.count))
	return point{
		Rate:      float64(to.count-from.count) / to.at.Sub(from.at).Seconds(),
		CPU:       float64((to.cpu - from.cpu).Microseconds()) / n,
		BrokerCPU: float64((to.broker - from.broker).Microseconds()) / n,
		Allocs:    float64(to.mallocs-from.mallocs) / n,
		Bytes:     float64(to.bytes-from.bytes) / n,
		Writes:    (to.writes - from.writes) / n,
		Reads:     (to.reads - from.reads) / n,
		Stolen:    100 * (to.stolen - from.stolen) / max(1, to.machine-from.machine),
	}
}
