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
