// Command producer sends a message in each of the three ways: and waits for the
// answer, gets it by a callback, or does not want one.
package main

import (
	"context"
	"errors"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
)

func main() { demo.Main(example) }

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Orders", 4)
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
	// Close waits for what is under way, also for one-way messages.
	defer func() { demo.Close(ctx, &err, p, cl) }()

	// 1. Send: it is stored when Send returns without an error.
	r, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Tag: "placed", Keys: []string{"order-1"}, Body: []byte("one tea")})
	if err != nil {
		return err
	}
	e.Say("sent and stored: %s at offset %d of queue %d", r.MessageID, r.Offset, r.Queue.ID)

	// 2. SendAsync: goes on at once; waits only while too many are under way.
	var all sync.WaitGroup
	for range 3 {
		all.Add(1)
		p.SendAsync(ctx, &rocketmq.Message{Topic: topic, Body: []byte("two teas")}, func(r producer.Result, err error) {
			defer all.Done()
			e.Say("called back: queue %d, error %v", r.Queue.ID, err)
		})
	}
	all.Wait()

	// 3. SendOneway: nobody tells whether it was stored.
	if err := p.SendOneway(ctx, &rocketmq.Message{Topic: topic, Body: []byte("a log line")}); err != nil {
		return err
	}
	e.Say("handed over, no answer asked for")

	// Errors tell what to do. A misspelt topic is one, and is not made.
	_, err = p.Send(ctx, &rocketmq.Message{Topic: e.Name("Odrers"), Body: []byte("lost?")})
	if !errors.Is(err, rocketmq.ErrTopicNotFound) {
		return errors.Join(errors.New("a topic that does not exist was found"), err)
	}
	e.Say("refused: %v", err)
	return nil
}
