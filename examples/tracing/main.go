// Command tracing records what becomes of the messages of a producer, as
// Apache's clients do, and reads the records back. The dashboard and "mqadmin
// queryMsgTraceById" show them, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

const messages = 3

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Orders", 4)
	if err != nil {
		return err
	}
	// RMQ_SYS_TRACE_TOPIC, the default, belongs to everybody; these are ours.
	traces, err := e.Topic(ctx, "Traces", 1)
	if err != nil {
		return err
	}
	cl, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { demo.Close(ctx, &err, cl) }()
	p, err := producer.New(cl, producer.WithGroup(e.Name("orders")), producer.WithTrace(traces))
	if err != nil {
		return err
	}
	for i := range messages {
		r, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Keys: []string{fmt.Sprint("order-", i)}, Body: []byte("tea")})
		if err != nil {
			return errors.Join(err, p.Close(ctx))
		}
		e.Say("sent   %s", r.MessageID)
	}
	if err := p.Close(ctx); err != nil { // hands over the last records
		return err
	}

	all := make(chan struct{})
	seen := 0
	c, err := consumer.NewPush(cl, e.Name("traces"), consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(traces, selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			for record := range strings.SplitSeq(strings.TrimSuffix(string(m.Body), "\x02"), "\x02") {
				// Pub, time, region, group, topic, id, tags, keys, store host, length, milliseconds, ...
				f := strings.Split(record, "\x01")
				if f[0] != "Pub" || len(f) < 14 {
					continue
				}
				e.Say("traced %s: %s, %s bytes stored by %s in %s ms, success %s", f[5], f[7], f[9], f[8], f[10], f[13])
				if seen++; seen == messages {
					close(all)
				}
			}
			return nil
		}), consumer.Concurrency(1)))
	if err != nil {
		return err
	}
	stop, err := demo.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
