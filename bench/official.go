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
	p    rocketmq.Producer
	room chan struct{} // has no window of its own: a slot for each send under way
}

func (d *official) startSender(nameServer, group string, inflight int) (err error) {
	d.room = make(chan struct{}, inflight)
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
	return sendOK(d.p.SendSync(ctx, primitive.NewMessage(topic, body)))
}

func sendOK(res *primitive.SendResult, err error) error {
	if err == nil && res.Status != primitive.SendOK {
		err = fmt.Errorf("send status %d", res.Status)
	}
	return err
}

func (d *official) async(ctx context.Context, body []byte, done func(error)) {
	d.room <- struct{}{}
	err := d.p.SendAsync(ctx, func(_ context.Context, res *primitive.SendResult, err error) {
		<-d.room
		done(sendOK(res, err))
	}, primitive.NewMessage(topic, body))
	if err != nil {
		<-d.room
		done(err)
	}
}

func (d *official) oneway(ctx context.Context, body []byte) error {
	return d.p.SendOneWay(ctx, primitive.NewMessage(topic, body))
}

func (d *official) batch(ctx context.Context, body []byte, n int) error {
	ms := make([]*primitive.Message, n)
	for i := range ms {
		ms[i] = primitive.NewMessage(topic, body)
	}
	return sendOK(d.p.SendSync(ctx, ms...))
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
