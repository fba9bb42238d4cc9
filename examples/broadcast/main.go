// Command broadcast has every member of a group get every message, as for caches
// that all have to be emptied. Each keeps its own offsets, here in files, and so
// goes on where it was after a restart.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

const (
	members  = 3
	messages = 4
)

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Evict", 2)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "broadcast-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	var all sync.WaitGroup
	all.Add(members * messages)
	for i := range members {
		// Members are usually different processes; here each has a client.
		cl, err := e.Client()
		if err != nil {
			return err
		}
		defer func() { demo.Close(ctx, &err, cl) }()
		c, err := consumer.NewPush(cl, e.Name("caches"),
			consumer.WithModel(consumer.Broadcasting),
			consumer.WithOffsetStore(consumer.FileOffsets(filepath.Join(dir, fmt.Sprint("member-", i)))),
			consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe(topic, selector.Tags("evict"), consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				e.Say("member %d evicts %s", i, m.Body)
				all.Done()
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
	for i := range messages {
		if _, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Tag: "evict", Body: fmt.Append(nil, "page-", i)}); err != nil {
			return err
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
