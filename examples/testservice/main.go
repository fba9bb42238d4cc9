// Command testservice is a small service, and above all its test: main_test.go
// has the service work against a broker inside the test, lets the broker fail,
// moves its clock, and looks at what came of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

// biller writes an invoice for each order and announces it.
type biller struct {
	orders, invoices, group string // topics and the consumer group
	write                   func(ctx context.Context, order string) error
	send                    *producer.Producer
}

// run works until ctx ends.
func (b *biller) run(ctx context.Context, cl *rocketmq.Client) error {
	c, err := consumer.NewPush(cl, b.group, consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(3),
		consumer.Subscribe(b.orders, selector.Tags("placed"), consumer.Each(b.bill)))
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

var errNoSuchOrder = errors.New("no such order")

func (b *biller) bill(ctx context.Context, m *rocketmq.MessageView) error {
	switch err := b.write(ctx, string(m.Body)); {
	case errors.Is(err, errNoSuchOrder):
		return consumer.DeadLetter(err) // it will not be there later either
	case err != nil:
		return consumer.RetryAfter(10*time.Second, err)
	}
	_, err := b.send.Send(ctx, &rocketmq.Message{Topic: b.invoices, Keys: m.Keys, Body: fmt.Appendf(nil, "invoice for %s", m.Body)})
	return err
}

func example(ctx context.Context, e *demo.Env) (err error) {
	orders, err := e.Topic(ctx, "Orders", 4)
	if err != nil {
		return err
	}
	invoices, err := e.Topic(ctx, "Invoices", 4)
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

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b := &biller{orders: orders, invoices: invoices, group: e.Name("billing"), send: p, write: func(_ context.Context, order string) error {
		e.Say("writes the invoice for %s", order)
		stop()
		return nil
	}}
	if _, err := p.Send(ctx, &rocketmq.Message{Topic: orders, Tag: "placed", Keys: []string{"1001"}, Body: []byte("order 1001")}); err != nil {
		return err
	}
	return b.run(ctx, cl)
}
