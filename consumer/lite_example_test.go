package consumer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// withOrders runs f with a cluster that has three orders in one queue.
func withOrders(f func(ctx context.Context, client *rocketmq.Client, q rocketmq.Queue) error) {
	err := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1))
		if err != nil {
			return err
		}
		defer func() { _ = cluster.Close(ctx) }()
		client, err := rocketmq.NewClient(cluster.ClientOptions()...)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close(ctx) }()
		p, err := producer.New(client)
		if err != nil {
			return err
		}
		for _, order := range []string{"tea", "coffee", "cocoa"} {
			if _, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte(order)}); err != nil {
				return err
			}
		}
		return f(ctx, client, rocketmq.Queue{Topic: "orders", Broker: cluster.Brokers()[0]})
	}()
	if err != nil {
		fmt.Println(err)
	}
}

// Messages are taken one by one, and each is committed when it has been worked on.
func ExampleLitePull_Messages() {
	withOrders(func(ctx context.Context, client *rocketmq.Client, _ rocketmq.Queue) error {
		l, err := consumer.NewLitePull(client, "kitchen", consumer.SubscribeTo("orders", selector.All),
			consumer.StartFrom(rocketmq.Earliest()), consumer.WithManualCommit())
		if err != nil {
			return err
		}
		defer func() { _ = l.Close(ctx) }()
		for m, err := range l.Messages(ctx) {
			if err != nil {
				return err
			}
			fmt.Println("make", string(m.Body))
			if err := l.Commit(ctx, m.Queue); err != nil {
				return err
			}
			if string(m.Body) == "cocoa" {
				break
			}
		}
		return nil
	})
	// Output:
	// make tea
	// make coffee
	// make cocoa
}

// Whoever polls again is done with what he got: that is committed in the
// background.
func ExampleLitePull_Poll() {
	withOrders(func(ctx context.Context, client *rocketmq.Client, _ rocketmq.Queue) error {
		l, err := consumer.NewLitePull(client, "kitchen", consumer.SubscribeTo("orders", selector.All), consumer.StartFrom(rocketmq.Earliest()))
		if err != nil {
			return err
		}
		defer func() { _ = l.Close(ctx) }()
		for made := 0; made < 3; {
			msgs, err := l.Poll(ctx)
			if err != nil {
				return err
			}
			for _, m := range msgs {
				fmt.Println("make", string(m.Body))
			}
			made += len(msgs)
		}
		return l.Commit(ctx) // those of the last poll, too
	})
	// Output:
	// make tea
	// make coffee
	// make cocoa
}

// One queue is read from a place of one's own choice, without a group.
func ExampleLitePull_Seek() {
	withOrders(func(ctx context.Context, client *rocketmq.Client, q rocketmq.Queue) error {
		l, err := consumer.NewLitePull(client, "audit", consumer.AssignTo(q))
		if err != nil {
			return err
		}
		defer func() { _ = l.Close(ctx) }()
		if err := l.Seek(ctx, q, rocketmq.AtOffset(2)); err != nil {
			return err
		}
		msgs, err := l.Poll(ctx)
		if err != nil {
			return err
		}
		fmt.Println(string(msgs[0].Body), "is the last")
		return nil
	})
	// Output: cocoa is the last
}

// A tool reads all of a queue.
func ExamplePull() {
	withOrders(func(ctx context.Context, client *rocketmq.Client, q rocketmq.Queue) error {
		p, err := consumer.NewPull(client, "tool")
		if err != nil {
			return err
		}
		low, high, err := p.Range(ctx, q)
		if err != nil {
			return err
		}
		for off := low; off < high; {
			page, err := p.Pull(ctx, consumer.Request{Queue: q, Offset: off, Max: 2})
			if err != nil {
				return err
			}
			for _, m := range page.Messages {
				fmt.Println(m.Offset, string(m.Body))
			}
			off = page.Next
		}
		return nil
	})
	// Output:
	// 0 tea
	// 1 coffee
	// 2 cocoa
}
