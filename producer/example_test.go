package producer_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func ExampleProducer_Send() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1)) // or an Apache RocketMQ cluster
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close(ctx) }()

	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(cluster.NameServers()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cl.Close(ctx) }()
	p, err := producer.New(cl)
	if err != nil {
		fmt.Println(err)
		return
	}

	res, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Tag: "paid", Body: []byte("order 1001")})
	fmt.Println(res.Queue, res.Offset, res.Status, err)

	_, err = p.Send(ctx, &rocketmq.Message{Topic: "oders", Body: []byte("order 1002")})
	fmt.Println("a typo:", errors.Is(err, rocketmq.ErrTopicNotFound))
	// Output:
	// orders/broker-a/0 0 SEND_OK <nil>
	// a typo: true
}

func ExampleProducer_SendAsync() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close(ctx) }()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(cluster.NameServers()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cl.Close(ctx) }()
	p, err := producer.New(cl, producer.WithInflight(1000, 8<<20))
	if err != nil {
		fmt.Println(err)
		return
	}

	stored := 0
	for i := range 100 {
		m := &rocketmq.Message{Topic: "orders", Body: fmt.Append(nil, "order ", i)}
		p.SendAsync(ctx, m, func(_ producer.Result, err error) { // one at a time, never on this goroutine
			if err == nil {
				stored++
			}
		})
	}
	if err := p.Flush(ctx); err != nil { // waits for the callbacks
		fmt.Println(err)
		return
	}
	fmt.Println(stored)
	// Output: 100
}

func ExampleProducer_SendBatch() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close(ctx) }()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(cluster.NameServers()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cl.Close(ctx) }()
	p, err := producer.New(cl)
	if err != nil {
		fmt.Println(err)
		return
	}

	results, err := p.SendBatch(ctx, []*rocketmq.Message{
		{Topic: "orders", Body: []byte("order 1001"), Keys: []string{"1001"}},
		{Topic: "orders", Body: []byte("order 1002"), Keys: []string{"1002"}},
	})
	for _, r := range results {
		fmt.Println(r.Queue, r.Offset, r.Status)
	}
	_, err2 := p.SendBatch(ctx, []*rocketmq.Message{
		{Topic: "orders", Body: []byte("order 1003")},
		{Topic: "refunds", Body: []byte("order 1003")},
	})
	fmt.Println(err, errors.Is(err2, rocketmq.ErrInvalidMessage))
	// Output:
	// orders/broker-a/0 0 SEND_OK
	// orders/broker-a/0 1 SEND_OK
	// <nil> true
}
