package txn_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/testbroker"
	"github.com/gorocketmq/rocketmq/txn"
)

// orders stands for a data base that the local transactions write to.
type orders struct {
	mu    sync.Mutex
	byTxn map[string]string
}

func (o *orders) insert(id, order string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byTxn[id] = order
}

// check tells the outcome of a transaction from the data base.
func (o *orders) check(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.byTxn[half.TransactionID]; ok {
		return txn.Commit, nil
	}
	return txn.Rollback, nil
}

func ExampleProducer_Send() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1)) // or an Apache RocketMQ cluster
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close(ctx) }()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(cluster.NameServers()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cl.Close(ctx) }()
	db := &orders{byTxn: map[string]string{}}
	p, err := txn.NewProducer(cl, "order-service", db.check)
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, order := range []string{"order 1001", ""} {
		res, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte("created: " + order)},
			func(_ context.Context, tx *txn.Tx) (txn.State, error) {
				if order == "" {
					return txn.Rollback, fmt.Errorf("the order is empty")
				}
				db.insert(tx.ID(), order)
				return txn.Commit, nil
			})
		fmt.Println(res.State, err)
	}
	for _, m := range cluster.Messages("orders") {
		fmt.Println(string(m.Body))
	}
	// Output:
	// commit <nil>
	// rollback the order is empty
	// created: order 1001
}

// The process dies before it tells the broker what became of the local
// transaction. After 6 s the broker asks another one of the group.
func ExampleChecker() {
	ctx := context.Background()
	cluster, err := testbroker.Start(ctx, testbroker.Topic("orders", 1), testbroker.ManualClock(time.Time{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Close(ctx) }()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(cluster.NameServers()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cl.Close(ctx) }()
	db := &orders{byTxn: map[string]string{}}
	p, err := txn.NewProducer(cl, "order-service", db.check)
	if err != nil {
		fmt.Println(err)
		return
	}

	tx, err := p.Begin(ctx, &rocketmq.Message{Topic: "orders", Body: []byte("created: order 1001")})
	if err != nil {
		fmt.Println(err)
		return
	}
	db.insert(tx.ID(), "order 1001")
	// tx.Commit is never called.

	cluster.Advance(5 * time.Second)
	fmt.Println("after 5 s:", len(cluster.Messages("orders")), "messages,", cluster.Undecided(), "undecided")
	cluster.Advance(time.Second)
	fmt.Println("after 6 s:", len(cluster.Messages("orders")), "messages,", cluster.Undecided(), "undecided")
	// Output:
	// after 5 s: 0 messages, 1 undecided
	// after 6 s: 1 messages, 0 undecided
}
