// Command batch sends many small messages with few calls: as one batch, which is
// split where it is too large, and by a producer that gathers what comes within
// a few milliseconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
)

func main() { demo.Main(example) }

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Readings", 4)
	if err != nil {
		return err
	}
	cl, err := e.Client()
	if err != nil {
		return err
	}
	gathering, err := producer.New(cl, producer.WithLinger(5*time.Millisecond, 64<<10))
	if err != nil {
		return errors.Join(err, cl.Close(ctx))
	}
	defer func() { demo.Close(ctx, &err, gathering, cl) }()

	// One call, many messages: each has an id and an outcome of its own. These
	// are more than fit into one request.
	var ms []*rocketmq.Message
	for i := range 100 {
		ms = append(ms, &rocketmq.Message{Topic: topic, Keys: []string{fmt.Sprint("sensor-", i)}, Body: []byte(strings.Repeat("x", 100_000))})
	}
	results, err := gathering.SendBatch(ctx, ms)
	if err != nil {
		return err // says which of them failed
	}
	e.Say("a batch of %d messages: the first at offset %d, the last at offset %d", len(results), results[0].Offset, results[len(results)-1].Offset)

	// Or leave it to the producer: callers notice nothing but the delay.
	var all sync.WaitGroup
	var failed sync.Map
	for i := range 500 {
		all.Add(1)
		gathering.SendAsync(ctx, &rocketmq.Message{Topic: topic, Body: []byte("21.5")}, func(_ producer.Result, err error) {
			defer all.Done()
			if err != nil {
				failed.Store(i, err)
			}
		})
	}
	all.Wait()
	failed.Range(func(i, e any) bool {
		err = errors.Join(err, fmt.Errorf("message %v: %w", i, e.(error)))
		return true
	})
	e.Say("500 messages, gathered")
	return err
}
