// Command sqlfilter subscribes with conditions on the messages' properties. The
// broker looks at them: what does not fit is not sent.
package main

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Offers", 4)
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

	var all sync.WaitGroup
	// An Apache broker needs enablePropertyFilter=true for this.
	c, err := consumer.NewPush(cl, e.Name("bargains"), consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(topic, selector.SQL("price between 5 and 10 and region in ('north', 'west')"),
			consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				e.Say("%s for %s in the %s", m.Body, m.Properties.Get("price"), m.Properties.Get("region"))
				all.Done()
				return nil
			})))
	if err != nil {
		return err
	}
	regions := []string{"north", "east", "south", "west"}
	for i := range 20 {
		price, region := i, regions[i%len(regions)]
		if price >= 5 && price <= 10 && (region == "north" || region == "west") {
			all.Add(1)
		}
		_, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Body: []byte("tea"),
			Properties: map[string]string{"price": strconv.Itoa(price), "region": region}})
		if err != nil {
			return err
		}
	}
	stop, err := demo.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
