// Command transaction sends messages that are delivered if a local transaction
// commits, and only then. One process forgets to say how its transaction ended:
// the broker asks.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/txn"
)

func main() { demo.Main(example) }

// accounts stands for a database: a line for each transaction that committed.
type accounts struct {
	mu    sync.Mutex
	lines map[string]string
}

func (a *accounts) write(tx, line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines[tx] = line
}

func (a *accounts) has(tx string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lines[tx] != ""
}

func example(ctx context.Context, e *demo.Env) (err error) {
	topic, err := e.Topic(ctx, "Transfers", 4)
	if err != nil {
		return err
	}
	cl, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { demo.Close(ctx, &err, cl) }()

	db := &accounts{lines: make(map[string]string)}
	tp, err := txn.NewProducer(cl, e.Name("transfers"), func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
		// Any process of the group may be asked, after 6 s or more.
		if db.has(half.TransactionID) {
			e.Say("the broker asks about %q: it is in the database", half.Body)
			return txn.Commit, nil
		}
		return txn.Rollback, nil
	})
	if err != nil {
		return err
	}
	defer func() { demo.Close(ctx, &err, tp) }()

	came := make(chan string, 10)
	c, err := consumer.NewPush(cl, e.Name("bank"), consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(topic, selector.Tags("transfer"), consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			e.Say("delivered: %s", m.Body)
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

	message := func(text string) *rocketmq.Message {
		return &rocketmq.Message{Topic: topic, Tag: "transfer", Body: []byte(text)}
	}
	// 1. Both happen.
	_, err = tp.Send(ctx, message("10 EUR to Ann"), func(_ context.Context, tx *txn.Tx) (txn.State, error) {
		db.write(tx.ID(), "10 EUR to Ann")
		return txn.Commit, nil
	})
	if err != nil {
		return err
	}
	// 2. Neither happens.
	errPoor := errors.New("not enough money")
	_, err = tp.Send(ctx, message("1000000 EUR to Bob"), func(context.Context, *txn.Tx) (txn.State, error) {
		return txn.Rollback, errPoor
	})
	if !errors.Is(err, errPoor) {
		return fmt.Errorf("want the local transaction's own error, got %w", err)
	}
	e.Say("rolled back: %v", err)
	// 3. The same by hand, for code that spans functions.
	tx, err := tp.Begin(ctx, message("20 EUR to Cid"))
	if err != nil {
		return err
	}
	db.write(tx.ID(), "20 EUR to Cid")
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	// 4. Nobody tells the broker. It asks.
	_, err = tp.Send(ctx, message("30 EUR to Dee"), func(_ context.Context, tx *txn.Tx) (txn.State, error) {
		db.write(tx.ID(), "30 EUR to Dee")
		return txn.Unknown, nil
	})
	if err != nil {
		return err
	}

	ask := time.NewTicker(time.Second)
	defer ask.Stop()
	for got := 0; got < 3; {
		select {
		case text := <-came:
			if text == "1000000 EUR to Bob" {
				return errors.New("what was rolled back was delivered")
			}
			got++
		case <-ask.C:
			e.CheckTransactions()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
