// Command requestreply asks a service for something and waits for the answer:
// a call by way of two topics, for which the caller needs no queue of its own.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Quotes", 4)
	if err != nil {
		return err
	}
	cl, err := e.Client()
	if err != nil {
		return err
	}
	p, err := producer.New(cl)
	if err != nil {
		return errors.Join(err, cl.Close(ctx))
	}
	defer func() { demo.Close(ctx, &err, p, cl) }()

	// The service: a consumer that answers.
	service, err := consumer.NewPush(cl, e.Name("quote-service"), consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(topic, selector.Tags("quote"), consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
			reply, err := rocketmq.NewReply(m, append([]byte("12.40 EUR for "), m.Body...))
			if err != nil {
				return consumer.DeadLetter(err) // nobody waits for an answer
			}
			_, err = p.Send(ctx, reply)
			return err
		})))
	if err != nil {
		return err
	}
	stop, err := demo.Start(ctx, service)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	// The caller.
	for _, what := range []string{"one tea", "two coffees"} {
		begin := time.Now()
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		answer, err := p.Request(call, &rocketmq.Message{Topic: topic, Tag: "quote", Body: []byte(what)})
		cancel()
		if err != nil {
			return err
		}
		e.Say("%s: %s (%.1f ms)", what, answer.Body, float64(time.Since(begin).Microseconds())/1000)
	}
	return nil
}
