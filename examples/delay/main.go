// Command delay sends messages that are delivered later: after a time, at a time,
// or by one of the broker's levels; and takes one back before it is delivered.
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
	topic, err := e.Topic(ctx, "Reminders", 4)
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

	came := make(chan string, 10)
	c, err := consumer.NewPush(cl, e.Name("reminders"), consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(topic, selector.Tags("reminder"), consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			e.Say("%.1f s after it was sent: %s", time.Since(m.BornAt).Seconds(), m.Body)
			came <- string(m.Body)
			return nil
		})))
	if err != nil {
		return err
	}
	stop, err := demo.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	delays := []struct {
		text string
		d    rocketmq.Delay
	}{
		{"level 1, one second", rocketmq.DelayLevel(1)},
		{"after two seconds", rocketmq.DelayFor(2 * time.Second)}, // from 5.0 on, as all that follows
		{"at a time, in three seconds", rocketmq.DeliverAt(time.Now().Add(3 * time.Second))},
		{"never, as it is taken back", rocketmq.DelayFor(2 * time.Second)},
	}
	for _, d := range delays {
		r, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Tag: "reminder", Body: []byte(d.text), Delay: d.d})
		if err != nil {
			return err
		}
		if d.text[:5] == "never" {
			if _, err := p.Recall(ctx, topic, r.RecallHandle); err != nil {
				return err
			}
			e.Say("taken back: %s", r.MessageID)
		}
	}
	for range len(delays) - 1 {
		select {
		case text := <-came:
			if text == delays[len(delays)-1].text {
				return errors.New("what was taken back was delivered")
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
