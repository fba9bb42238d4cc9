package consumer_test

import (
	"context"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// A topic is paused until the database that its handler needs is there, and begins
// slowly then.
func ExamplePush_Tune() {
	if err := tuneExample(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// paused: nothing handled
	// handled order 1
	// handled order 2
}

func tuneExample(ctx context.Context) error {
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
	for _, body := range []string{"order 1", "order 2"} {
		if _, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte(body)}); err != nil {
			return err
		}
	}

	handled := make(chan string)
	c, err := consumer.NewPush(client, "billing", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("orders", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			handled <- string(m.Body)
			return nil
		})))
	if err != nil {
		return err
	}
	if err := c.Pause("orders"); err != nil { // an unknown topic
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-c.Ready()
	select {
	case body := <-handled:
		return fmt.Errorf("handled %s", body)
	default:
		fmt.Println("paused: nothing handled")
	}
	if err := c.Tune("orders", consumer.Rate(100), consumer.Concurrency(1)); err != nil {
		return err
	}
	if err := c.Resume("orders"); err != nil {
		return err
	}
	for range 2 {
		fmt.Println("handled", <-handled)
	}
	if err := c.Close(ctx); err != nil {
		return err
	}
	return <-ended
}
