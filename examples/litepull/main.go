// Command litepull asks for messages when it wants them. It shares the queues
// with other members of its group, commits what it has done, and goes back to
// an earlier time.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func main() { demo.Main(example) }

const rows = 10

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Rows", 2)
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
	for i := range rows {
		if _, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Tag: "row", Body: fmt.Append(nil, "row ", i)}); err != nil {
			return err
		}
	}

	lp, err := consumer.NewLitePull(cl, e.Name("loader"), consumer.SubscribeTo(topic, selector.Tags("row")),
		consumer.StartFrom(rocketmq.Earliest()), consumer.WithManualCommit())
	if err != nil {
		return err
	}
	defer func() { demo.Close(ctx, &err, lp) }()

	// One by one, each committed when it is worked on.
	n := 0
	for m, err := range lp.Messages(ctx) {
		if err != nil {
			return err
		}
		e.Say("%s (queue %d, offset %d)", m.Body, m.Queue.ID, m.Offset)
		if err := lp.Commit(ctx, m.Queue); err != nil {
			return err
		}
		if n++; n == rows {
			break
		}
	}
	for _, q := range lp.Assignment() {
		off, _, err := lp.Committed(ctx, q)
		if err != nil {
			return err
		}
		e.Say("queue %d is committed up to %d", q.ID, off)
	}

	// Once more from the beginning, as many at a time as there are.
	for _, q := range lp.Assignment() {
		if err := lp.Seek(ctx, q, rocketmq.Earliest()); err != nil {
			return err
		}
	}
	for again := 0; again < rows; {
		ms, err := lp.Poll(ctx)
		if err != nil {
			return err
		}
		e.Say("again, %d at once", len(ms))
		again += len(ms)
	}
	return nil
}
