// Command ordered sends the steps of several orders, each with the order's number
// as its sharding key, and consumes them: the steps of one order one after the
// other, those of different orders at the same time.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

const orders = 6

var steps = []string{"placed", "paid", "packed", "shipped"}

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Steps", 4)
	if err != nil {
		return err
	}
	cl, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { demo.Close(ctx, &err, cl) }()

	var mu sync.Mutex
	at := make(map[string]int) // steps that an order has made
	failedOnce := false
	all := make(chan struct{})
	c, err := consumer.NewOrdered(cl, e.Name("ordered"), consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(topic, selector.Tags("step"), consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			mu.Lock()
			defer mu.Unlock()
			if m.ShardingKey == "order-3" && string(m.Body) == "packed" && !failedOnce {
				failedOnce = true
				return errors.New("out of boxes") // the same message comes first again
			}
			if want := steps[at[m.ShardingKey]]; string(m.Body) != want {
				return consumer.DeadLetter(fmt.Errorf("%s: %s came before %s", m.ShardingKey, m.Body, want))
			}
			if at[m.ShardingKey]++; at[m.ShardingKey] == len(steps) {
				e.Say("%s has gone through %v (queue %d, last step at attempt %d)", m.ShardingKey, steps, m.Queue.ID, m.Attempt)
			}
			total := 0
			for _, n := range at {
				total += n
			}
			if total == orders*len(steps) {
				close(all)
			}
			return nil
		})))
	if err != nil {
		return err
	}
	p, err := producer.New(cl)
	if err != nil {
		return err
	}
	defer func() { demo.Close(ctx, &err, p) }()
	for _, step := range steps {
		for i := range orders {
			// Messages with one sharding key go to one queue.
			m := &rocketmq.Message{Topic: topic, Tag: "step", ShardingKey: fmt.Sprint("order-", i), Body: []byte(step)}
			if _, err := p.Send(ctx, m); err != nil {
				return err
			}
		}
	}
	stop, err := demo.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
