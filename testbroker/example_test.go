package testbroker_test

import (
	"context"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
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
