package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

// ours drives this module's client with its defaults.
type ours struct {
	cl   *rocketmq.Client
	p    *producer.Producer
	end  context.CancelFunc
	done chan error
}

func (d *ours) startSender(nameServer, group string, inflight int) (err error) {
	if d.cl, err = rocketmq.NewClient(rocketmq.WithNameServers(nameServer)); err != nil {
		return err
	}
	opts := []producer.Option{producer.WithGroup(group), producer.WithRetries(2), producer.WithTimeout(10*time.Second, 10*time.Second)}
	if inflight > 0 {
		opts = append(opts, producer.WithInflight(inflight, 64<<20))
	}
	d.p, err = producer.New(d.cl, opts...)
	return err
}

func (d *ours) send(ctx context.Context, body []byte) error {
	_, err := d.p.Send(ctx, &rocketmq.Message{Topic: topic, Body: body})
	return err
}

func (d *ours) async(ctx context.Context, body []byte, done func(error)) {
	d.p.SendAsync(ctx, &rocketmq.Message{Topic: topic, Body: body}, func(_ producer.Result, err error) { done(err) })
}

func (d *ours) oneway(ctx context.Context, body []byte) error {
	return d.p.SendOneway(ctx, &rocketmq.Message{Topic: topic, Body: body})
}

func (d *ours) batch(ctx context.Context, body []byte, n int) error {
	ms := make([]*rocketmq.Message, n)
	for i := range ms {
		ms[i] = &rocketmq.Message{Topic: topic, Body: body}
	}
	res, err := d.p.SendBatch(ctx, ms)
	if err == nil && len(res) != n {
		err = fmt.Errorf("%d results of %d messages", len(res), n)
	}
	return err
}

func (d *ours) startConsumer(nameServer, group string, workers int, got func([]byte)) (err error) {
	if d.cl, err = rocketmq.NewClient(rocketmq.WithNameServers(nameServer)); err != nil {
		return err
	}
	c, err := consumer.NewPush(d.cl, group,
		consumer.Subscribe(topic, selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			got(m.Body)
			return nil
		}), consumer.Concurrency(workers)),
		consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, d.end = context.WithCancel(context.Background())
	d.done = make(chan error, 1)
	go func() { d.done <- c.Run(ctx) }()
	return nil
}

func (d *ours) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if d.end != nil {
		d.end()
		if err := <-d.done; err != nil {
			return err
		}
	}
	if d.p != nil {
		if err := d.p.Close(ctx); err != nil {
			return err
		}
	}
	return d.cl.Close(ctx)
}
