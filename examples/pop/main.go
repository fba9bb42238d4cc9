// Command pop has workers receive messages one by one, each acknowledged by
// itself (POP, for brokers from 5.0 on). Many workers share few queues, and one
// that takes its time holds nobody up.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

const (
	workers = 3
	jobs    = 12
)

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Jobs", 1) // one queue is enough for all workers
	if err != nil {
		return err
	}
	cl, err := e.Client()
	if err != nil {
		return err
	}
	p, err := producer.New(cl)
	if err != nil {
		return errors.Join(err, cl.Close(ctx))
	}
	defer func() { demo.Close(ctx, &err, p, cl) }()
	for i := range jobs {
		if _, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Tag: "job", Body: fmt.Append(nil, "job ", i)}); err != nil {
			return err
		}
	}

	s, err := consumer.NewSimple(cl, e.Name("workers"), consumer.SubscribeTo(topic, selector.Tags("job")), consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		return err
	}
	defer func() { demo.Close(ctx, &err, s) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var faults []error
	done := 0
	for w := range workers {
		wg.Go(func() {
			for {
				// For 10 s these belong to us. Who dies says nothing, and they
				// come to another.
				ms, err := s.Receive(ctx, 2, 10*time.Second)
				if err == nil {
					err = work(ctx, e, w, ms)
				}
				mu.Lock()
				if done += len(ms); done == jobs {
					stop()
				}
				if err != nil && ctx.Err() == nil {
					faults = append(faults, err)
					stop()
				}
				mu.Unlock()
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if done < jobs {
		return fmt.Errorf("%d of %d jobs: %w", done, jobs, context.Cause(ctx))
	}
	return nil
}

func work(ctx context.Context, e *demo.Env, worker int, ms []*consumer.Received) error {
	for _, m := range ms {
		if string(m.Body) == "job 7" {
			// This takes longer: nobody else is to get it meanwhile.
			if err := m.Extend(ctx, time.Minute); err != nil {
				return err
			}
			e.Say("worker %d needs more time for %s: until %s", worker, m.Body, m.Deadline().Format(time.TimeOnly))
		}
		if err := m.Ack(ctx); err != nil {
			return err
		}
		e.Say("worker %d has done %s (attempt %d)", worker, m.Body, m.Attempt)
	}
	return nil
}
