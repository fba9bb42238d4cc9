package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
)

// load is one run.
type load struct {
	*settings
	began time.Time // of the program
	opts  []rocketmq.Option
	bar   *bar

	probe uint64 // run number of the first message, which is not counted
	id    uint64 // run number of all others
	first *once  // first message consumed
	tally *tally

	sendBegan, sendEnded, recvEnded time.Time
}

// sendPatience is how long a broker may take for one message.
const sendPatience = 20 * time.Second

// run sends and consumes everything.
func (l *load) run(ctx context.Context) (err error) {
	l.probe, l.id, l.first, l.tally = rand.Uint64(), rand.Uint64(), newOnce(), newTally(l.n)
	cl, err := rocketmq.NewClient(l.opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close(context.WithoutCancel(ctx))) }()
	// A send that is repeated because its answer is late may leave two copies.
	// Here that is not wanted unless the broker is really gone.
	p, err := producer.New(cl, producer.WithAutoCreate(queues), producer.WithTimeout(2*sendPatience, sendPatience))
	if err != nil {
		return err
	}
	// The first message shows that the way is free. On a cluster that creates
	// topics by itself it also brings the topic into being, so that there is
	// something to subscribe to.
	if _, err := p.Send(ctx, l.message(l.probe, 0)); err != nil {
		return fmt.Errorf("first message: %w", err)
	}
	g := &group{load: l, name: l.topic + "-group"}
	defer func() { err = errors.Join(err, g.stop(context.WithoutCancel(ctx))) }()
	if err := g.start(ctx); err != nil {
		return err
	}
	l.sendBegan = time.Now()
	if err := l.sendAll(ctx, p, g); err != nil {
		return err
	}
	return l.drain(ctx, g)
}

// message is message seq of a run, with a body of its own.
func (l *load) message(run, seq uint64) *rocketmq.Message {
	return &rocketmq.Message{Topic: l.topic, Body: appendBody(make([]byte, 0, l.size+8), run, seq, l.size)}
}

// sendAll sends from several goroutines. It stops at the first failure: Send
// has then tried all that it may.
func (l *load) sendAll(ctx context.Context, p *producer.Producer, g *group) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopShowing := l.show(ctx)
	defer stopShowing()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range l.senders {
		wg.Go(func() {
			m := l.message(l.id, 0)
			for ctx.Err() == nil {
				seq := int(next.Add(1)) - 1
				if seq >= l.n {
					return
				}
				// Send does not keep the message, so the next one may use its
				// memory.
				m.Body = appendBody(m.Body[:0], l.id, uint64(seq), l.size)
				l.tally.sending(seq)
				if _, err := p.Send(ctx, m); err != nil && !errors.Is(err, rocketmq.ErrNotDurable) {
					cancel(fmt.Errorf("message %d: %w", seq, err))
					return
				}
				l.tally.acknowledged(seq)
			}
		})
	}
	wg.Wait()
	l.sendEnded = time.Now()
	return context.Cause(ctx)
}

// show moves the progress bar until the returned function is called.
func (l *load) show(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.bar.set(l.tally.arrived.Load())
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// drain waits until all that was sent has arrived, or nothing has for as long
// as the patience lasts.
func (l *load) drain(ctx context.Context, g *group) error {
	stopShowing := l.show(ctx)
	defer stopShowing()
	for l.tally.arrived.Load() < l.tally.sent.Load() {
		select {
		case <-l.tally.moved:
		case <-time.After(l.patience):
			return fmt.Errorf("nothing arrived for %s", l.patience)
		case <-g.members[0].ended:
			return fmt.Errorf("consumer: %w", g.members[0].err)
		case <-g.members[1].ended:
			return fmt.Errorf("consumer: %w", g.members[1].err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.recvEnded = time.Now()
	return nil
}

// report prints the figures and the verdict, and returns whether all is well.
func (l *load) report(w io.Writer) bool {
	t := l.tally
	sent, arrived, missing, again := t.sent.Load(), t.arrived.Load(), t.missing(), t.again.Load()
	where := "embedded cluster"
	if l.namesrv != "" {
		where = l.namesrv
	}
	fmt.Fprintf(w, "cluster    %s, topic %s\n", where, l.topic)
	select {
	case <-l.first.done:
		fmt.Fprintf(w, "start-up   %.1f ms from the start to the first consumed message\n", ms(l.first.at.Sub(l.began)))
	default:
	}
	fmt.Fprintf(w, "sent       %s\n", rate(sent, l.size, l.sendEnded.Sub(l.sendBegan)))
	fmt.Fprintf(w, "consumed   %s\n", rate(arrived, l.size, l.recvEnded.Sub(l.sendBegan)))
	fmt.Fprintf(w, "latency    %s\n", latency("send", t.sendTimes()))
	fmt.Fprintf(w, "           %s\n", latency("send to handler", t.transitTimes()))
	if n := t.altered.Load(); n > 0 {
		fmt.Fprintf(w, "altered    %d\n", n)
	}
	fmt.Fprintf(w, "sent %d, received %d, missing %d, duplicates %d\n", sent, arrived, missing, again)
	return missing == 0 && t.altered.Load() == 0 && sent == int64(l.n)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func rate(n int64, size int, d time.Duration) string {
	if n == 0 || d <= 0 {
		return fmt.Sprintf("%d messages", n)
	}
	s := d.Seconds()
	return fmt.Sprintf("%d messages in %.2f s: %.0f msg/s, %.1f MiB/s", n, s, float64(n)/s, float64(n)*float64(size)/s/(1<<20))
}

func latency(name string, sorted []time.Duration) string {
	return fmt.Sprintf("%-16s p50 %.2f ms, p99 %.2f ms, max %.2f ms", name,
		ms(quantile(sorted, 0.5)), ms(quantile(sorted, 0.99)), ms(quantile(sorted, 1)))
}
