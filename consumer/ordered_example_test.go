package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// Messages with the same sharding key are handled in the order in which they
// were sent, also if one of them fails at first.
func ExampleNewOrdered() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 4))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close(ctx) }()
	client, err := rocketmq.NewClient(cluster.ClientOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()
	p, err := producer.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range []string{"placed", "paid", "sent"} {
		if _, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte(step), ShardingKey: "order 7"}); err != nil {
			fmt.Println(err)
			return
		}
	}

	running, end := context.WithCancel(ctx)
	c, err := consumer.NewOrdered(client, "billing", consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(5),
		consumer.Subscribe("orders", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			fmt.Println(string(m.Body), "attempt", m.Attempt)
			switch {
			case string(m.Body) == "paid" && m.Attempt == 1:
				return consumer.RetryAfter(10*time.Millisecond, errors.New("the bank is closed"))
			case string(m.Body) == "sent":
				end()
			}
			return nil
		})))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Run(running))
	// Output:
	// placed attempt 1
	// paid attempt 1
	// paid attempt 2
	// sent attempt 1
	// <nil>
}
