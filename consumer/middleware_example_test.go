package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// errMalformed is what the handlers below return for a body that they cannot read.
var errMalformed = errors.New("malformed")

// giveUpOn is a middleware for all handlers: a failure of a kind that no retry
// cures goes to the dead letters at once.
func giveUpOn(hopeless error) consumer.Middleware {
	return func(next consumer.Handler) consumer.Handler {
		return consumer.HandlerFunc(func(ctx context.Context, msgs []*rocketmq.MessageView) error {
			err := next.Handle(ctx, msgs)
			if errors.Is(err, hopeless) {
				return consumer.DeadLetter(err)
			}
			return err
		})
	}
}

// A hook watches what becomes of each message.
type printOutcomes struct{}

func (printOutcomes) OnConsume(_ context.Context, c rocketmq.ConsumeInfo) {
	fmt.Printf("%s: %s\n", c.Message.Body, c.Outcome)
}

func ExampleWithMiddleware() {
	if err := middlewareExample(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// order 1: done
	// ordr 2: dead-letter
}

func middlewareExample(ctx context.Context) error {
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1))
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Close(ctx) }()
	client, err := rocketmq.NewClient(append(cluster.ClientOptions(), rocketmq.WithHooks(printOutcomes{}))...)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close(ctx) }()
	p, err := producer.New(client)
	if err != nil {
		return err
	}
	for _, body := range []string{"order 1", "ordr 2"} {
		if _, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte(body)}); err != nil {
			return err
		}
	}
	running, end := context.WithCancel(ctx)
	defer end()
	c, err := consumer.NewPush(client, "billing", consumer.StartFrom(rocketmq.Earliest()),
		consumer.WithMiddleware(giveUpOn(errMalformed)),
		consumer.Subscribe("orders", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			if !strings.HasPrefix(string(m.Body), "order ") {
				end()
				return errMalformed
			}
			return nil
		}), consumer.Concurrency(1)))
	if err != nil {
		return err
	}
	return c.Run(running)
}
