package consumer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// Every member of the group gets the message, and each keeps its own offsets in a
// directory of its own.
func ExampleWithModel() {
	if err := broadcastExample(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// member 1 drops price list
	// member 2 drops price list
}

func broadcastExample(ctx context.Context) error {
	cluster, err := testbroker.Start(ctx, testbroker.Topic("invalidations", 1))
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Close(ctx) }()
	dir, err := os.MkdirTemp("", "offsets")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	client, err := rocketmq.NewClient(cluster.ClientOptions()...)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close(ctx) }()
	p, err := producer.New(client)
	if err != nil {
		return err
	}
	if _, err := p.Send(ctx, &rocketmq.Message{Topic: "invalidations", Body: []byte("price list")}); err != nil {
		return err
	}
	for _, member := range []string{"member 1", "member 2"} {
		running, end := context.WithCancel(ctx)
		defer end()
		c, err := consumer.NewPush(client, "cache", consumer.WithModel(consumer.Broadcasting), consumer.StartFrom(rocketmq.Earliest()),
			consumer.WithOffsetStore(consumer.FileOffsets(filepath.Join(dir, member))),
			consumer.Subscribe("invalidations", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				fmt.Println(member, "drops", string(m.Body))
				end()
				return nil
			})))
		if err != nil {
			return err
		}
		if err := c.Run(running); err != nil {
			return err
		}
	}
	return nil
}
