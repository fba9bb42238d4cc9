package testbroker_test

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

// A program can carry its cluster with it.
func ExampleStart() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close(ctx)
	client, err := rocketmq.NewClient(cluster.ClientOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	p, err := producer.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte("order 1001")})
	fmt.Println(res.Queue, res.Offset, err)
	fmt.Println(len(cluster.Messages("orders")), "stored")
	// Output:
	// orders/broker-a/0 0 <nil>
	// 1 stored
}

// The broker stores a message, but its answer is lost. The producer tries
// again, and the message is there twice.
func ExampleCluster_On() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close(ctx)
	client, err := rocketmq.NewClient(cluster.ClientOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	p, err := producer.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	lost := cluster.On(testbroker.SendMessage).AfterApply().Times(1).Disconnect()
	_, err = p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte("order 1001")})
	fmt.Println("error:", err, "answers lost:", lost.Hits(), "stored:", len(cluster.Messages("orders")))
	// Output:
	// error: <nil> answers lost: 1 stored: 2
}

// A message fails again and again. Its retries would take almost five hours.
func ExampleCluster_AdvanceToNext() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1), testbroker.ManualClock(time.Time{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close(ctx)
	client, err := rocketmq.NewClient(cluster.ClientOptions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	failing := consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		return fmt.Errorf("attempt %d failed", m.Attempt)
	})
	c, err := consumer.NewPush(client, "billing", consumer.Subscribe("orders", selector.All, failing),
		consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(4))
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	p, err := producer.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte("poison")}); err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		waited, err := cluster.AdvanceToNext(ctx)
		fmt.Println(waited, err)
	}
	err = cluster.WaitIdle(ctx)
	fmt.Println(len(cluster.DeadLetters("billing")), "dead letter", err)
	_ = c.Close(ctx)
	<-ended
	// Output:
	// 10s <nil>
	// 30s <nil>
	// 1m0s <nil>
	// 1 dead letter <nil>
}
