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

// A worker that takes one job at a time, as long as it likes. A job that it drops
// comes to another worker when its time is over.
func ExampleNewSimple() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("jobs", 1))
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
	for _, job := range []string{"resize", "convert"} {
		if _, err := p.Send(ctx, &rocketmq.Message{Topic: "jobs", Body: []byte(job)}); err != nil {
			fmt.Println(err)
			return
		}
	}

	s, err := consumer.NewSimple(client, "workers", consumer.SubscribeTo("jobs", selector.All), consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		jobs, err := s.Receive(ctx, 1, time.Minute) // nobody else gets it for a minute
		if err != nil {
			fmt.Println(err)
			return
		}
		job := jobs[0]
		fmt.Println("working on", string(job.Body), "attempt", job.Attempt)
		if err := job.Extend(ctx, time.Hour); err != nil { // it takes longer
			fmt.Println(err)
		}
		if err := job.Ack(ctx); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(s.Close(ctx))
	// Output:
	// working on resize attempt 1
	// working on convert attempt 1
	// <nil>
}
