package producer_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func ExampleProducer_Request() {
	ctx, stop := context.WithCancel(context.Background())
	cluster, err := testbroker.Start(ctx, testbroker.Topic("prices", 1)) // or an Apache RocketMQ cluster
	if err != nil {
		log.Fatal(err)
	}
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(cluster.NameServers()...))
	if err != nil {
		log.Fatal(err)
	}
	p, err := producer.New(cl)
	if err != nil {
		log.Fatal(err)
	}

	// Somewhere else: whoever answers.
	answers, err := consumer.NewPush(cl, "pricing", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("prices", selector.All, consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
			reply, err := rocketmq.NewReply(m, []byte("7.50"))
			if err != nil {
				return nil // not a request
			}
			_, err = p.Send(ctx, reply)
			return err
		})))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- answers.Run(ctx) }()

	// The reply may take what the context leaves.
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	price, err := p.Request(limited, &rocketmq.Message{Topic: "prices", Body: []byte("coffee")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", price.Body)

	stop()
	err = <-ended
	fmt.Println(err, cl.Close(context.Background()), cluster.Close(context.Background()))
	// Output:
	// 7.50
	// <nil> <nil> <nil>
}
