package main

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/internal/leak"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestExample(t *testing.T) {
	var out, diag bytes.Buffer
	require.Zero(t, demo.Run(t.Context(), nil, &out, &diag, example), &diag)
	require.Contains(t, out.String(), "writes the invoice for order 1001")
}

// start runs a biller on a cluster of its own, whose clock stands still.
func start(t *testing.T, write func(ctx context.Context, order string) error) (*testbroker.Cluster, *producer.Producer) {
	t.Helper()
	c := testbroker.New(t, testbroker.Topic("Orders", 2), testbroker.Topic("Invoices", 2), testbroker.ManualClock(time.Unix(1_800_000_000, 0)))
	cl := c.Client(t)
	p, err := producer.New(cl)
	require.NoError(t, err)
	b := &biller{orders: "Orders", invoices: "Invoices", group: "billing", write: write, send: p}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.run(ctx, cl) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return c, p
}

func place(t *testing.T, p *producer.Producer, order string) {
	t.Helper()
	_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "Orders", Tag: "placed", Body: []byte(order)})
	require.NoError(t, err)
}

// What the service has done is in the broker: look there.
func TestInvoiceIsAnnounced(t *testing.T) {
	c, p := start(t, func(context.Context, string) error { return nil })
	place(t, p, "order 1")
	require.NoError(t, c.WaitConsumed(t.Context(), "billing", "Orders", 1))
	got := c.Messages("Invoices")
	require.Len(t, got, 1)
	require.Equal(t, "invoice for order 1", string(got[0].Body))
}

// A retry after ten seconds takes no time if the broker's clock is yours.
func TestRetry(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	c, p := start(t, func(context.Context, string) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls < 3 {
			return errors.New("database is down")
		}
		return nil
	})
	place(t, p, "order 2")
	for range 2 {
		_, err := c.AdvanceToNext(t.Context()) // waits for the delayed message first
		require.NoError(t, err)
	}
	require.NoError(t, c.WaitIdle(t.Context()))
	require.Len(t, c.Messages("Invoices"), 1)
	require.Empty(t, c.DeadLetters("billing"))
}

func TestPoison(t *testing.T) {
	c, p := start(t, func(context.Context, string) error { return errNoSuchOrder })
	place(t, p, "order 3")
	require.NoError(t, c.WaitConsumed(t.Context(), "billing", "Orders", 1))
	require.Len(t, c.DeadLetters("billing"), 1)
	require.Empty(t, c.Messages("Invoices"))
}

// The broker has stored the invoice's announcement, but its answer is lost: the
// service sends it again. That is "at least once", and whoever reads invoices
// has to know.
func TestLostAnswer(t *testing.T) {
	c, p := start(t, func(context.Context, string) error { return nil })
	lost := c.On(testbroker.SendMessage).Topic("Invoices").Times(1).AfterApply().Disconnect()
	place(t, p, "order 4")
	require.NoError(t, c.WaitConsumed(t.Context(), "billing", "Orders", 1))
	require.Equal(t, 1, lost.Hits())
	got := c.Messages("Invoices")
	require.Len(t, got, 2)
	require.Equal(t, got[0].ID, got[1].ID) // by which they can be told to be one
}
