package main

import (
	"context"
	"fmt"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// official drives github.com/apache/rocketmq-client-go/v2 with its defaults.
type official struct {
	p rocketmq.Producer
}

func (d *official) startSender(nameServer, group string) (err error) {
	d.p, err = rocketmq.NewProducer(
		producer.WithNameServer([]string{nameServer}),
		producer.WithGroupName(group),
		producer.WithRetry(2),
		producer.WithSendMsgTimeout(10*time.Second))
	if err != nil {
		return err
	}
	return d.p.Start()
}

func (d *official) send(ctx context.Context, body []byte) error {
	res, err := d.p.SendSync(ctx, primitive.NewMessage(topic, body))
	if err == nil && res.Status != primitive.SendOK {
		err = fmt.Errorf("send status %d", res.Status)
	}
	return err
}

func (d *official) startConsumer(nameServer, group string, workers int, got func([]byte)) error {
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer([]string{nameServer}),
		consumer.WithGroupName(group),
		consumer.WithConsumeGoroutineNums(workers),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			got(m.Body)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return err
	}
	return c.Start()
}

// stop leaves a consumer to the end of the process: its shutdown waits.
func (d *official) stop() error {
	if d.p == nil {
		return nil
	}
	return d.p.Shutdown()
}
