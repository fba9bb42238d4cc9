package testbroker_test

// The code of docs/TESTING.md: internal/archtest sees to it that each piece of
// the page is a piece of this file.

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// A Shop takes orders and has them shipped by whoever consumes the topic.
type Shop struct{ out *producer.Producer }

func (s *Shop) Order(ctx context.Context, id string) error {
	_, err := s.out.Send(ctx, &rocketmq.Message{Topic: "orders", Tag: "new", Keys: []string{id}, Body: []byte(id)})
	return err
}

// A Warehouse ships each order once.
type Warehouse struct {
	mu      sync.Mutex // guards all below
	closed  bool
	shipped map[string]int
}

func (w *Warehouse) Ship(ctx context.Context, m *rocketmq.MessageView) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.New("the warehouse is closed")
	}
	if w.shipped[string(m.Body)] == 0 {
		w.shipped[string(m.Body)]++
	}
	return nil
}

func (w *Warehouse) Shipped() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.shipped)
}

func (w *Warehouse) Close(closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = closed
}

func newShop(t *testing.T, c *testbroker.Cluster) *Shop {
	p, err := producer.New(c.Client(t), producer.WithGroup("shop"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return &Shop{out: p}
}

func newWarehouse(t *testing.T, c *testbroker.Cluster) *Warehouse {
	w := &Warehouse{shipped: map[string]int{}}
	con, err := consumer.NewPush(c.Client(t), "warehouse", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("orders", selector.Tags("new"), consumer.Each(w.Ship)))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- con.Run(t.Context()) }() // ends before the clean-up
	t.Cleanup(func() { require.NoError(t, <-ended) })
	<-con.Ready()
	return w
}

func TestRecipeWhatWasSent(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 4))
	shop := newShop(t, cluster)
	require.NoError(t, shop.Order(t.Context(), "1001"))
	sent := cluster.Messages("orders")
	require.Len(t, sent, 1)
	require.Equal(t, "new", sent[0].Tag)
	require.Equal(t, []string{"1001"}, sent[0].Keys)
}

func TestRecipeHandler(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 4))
	shop, warehouse := newShop(t, cluster), newWarehouse(t, cluster)
	require.NoError(t, shop.Order(t.Context(), "1001"))
	require.NoError(t, shop.Order(t.Context(), "1002"))
	require.NoError(t, cluster.WaitConsumed(t.Context(), "warehouse", "orders", 2))
	require.Equal(t, map[string]int{"1001": 1, "1002": 1}, warehouse.Shipped())
	require.Zero(t, cluster.Lag("warehouse", "orders"))
}

func TestRecipeBusyBroker(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 4))
	shop := newShop(t, cluster)
	busy := cluster.On(testbroker.SendMessage).Topic("orders").Times(2).Reply(rocketmq.CodeSystemBusy, "busy")
	require.NoError(t, shop.Order(t.Context(), "1001"), "the third attempt succeeds")
	require.Equal(t, 2, busy.Hits())

	cluster.On(testbroker.SendMessage).Reply(rocketmq.CodeNoPermission, "closed for today")
	var be *rocketmq.BrokerError
	require.ErrorAs(t, shop.Order(t.Context(), "1002"), &be)
	require.Equal(t, rocketmq.CodeNoPermission, be.Code)
}

func TestRecipeDuplicate(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 4))
	shop, warehouse := newShop(t, cluster), newWarehouse(t, cluster)
	cluster.On(testbroker.SendMessage).AfterApply().Times(1).Disconnect()
	require.NoError(t, shop.Order(t.Context(), "1001"))
	require.Len(t, cluster.Messages("orders"), 2, "stored twice")
	require.NoError(t, cluster.WaitConsumed(t.Context(), "warehouse", "orders", 2))
	require.Equal(t, map[string]int{"1001": 1}, warehouse.Shipped(), "shipped once")
}

func TestRecipeRetries(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 1), testbroker.ManualClock(time.Time{}))
	shop, warehouse := newShop(t, cluster), newWarehouse(t, cluster)
	warehouse.Close(true)
	require.NoError(t, shop.Order(t.Context(), "1001"))
	for range 16 { // 10 s, 30 s, 1 m ... 2 h: almost five hours
		_, err := cluster.AdvanceToNext(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, cluster.WaitIdle(t.Context()))
	require.Len(t, cluster.DeadLetters("warehouse"), 1)
}

func TestRecipeRecovery(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 1), testbroker.ManualClock(time.Time{}))
	shop, warehouse := newShop(t, cluster), newWarehouse(t, cluster)
	warehouse.Close(true)
	require.NoError(t, shop.Order(t.Context(), "1001"))
	require.NoError(t, cluster.WaitIdle(t.Context()))
	require.Equal(t, 1, cluster.Delayed(), "it waits for its retry")
	warehouse.Close(false)
	cluster.Advance(10 * time.Second)
	require.NoError(t, cluster.WaitIdle(t.Context()))
	require.Equal(t, map[string]int{"1001": 1}, warehouse.Shipped())
}

func TestRecipeInFlight(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 1))
	shop := newShop(t, cluster)
	parked := cluster.On(testbroker.SendMessage).Hold()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- shop.Order(ctx, "1001") }()
	require.NoError(t, parked.Wait(t.Context(), 1)) // it is on its way
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
}

func TestRecipeRestart(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 4), testbroker.Brokers(2), testbroker.NameServers(2))
	shop, warehouse := newShop(t, cluster), newWarehouse(t, cluster)
	cluster.Kill("broker-a", 0)
	cluster.KillNameServer(0)
	require.NoError(t, shop.Order(t.Context(), "1001"), "the other broker has it")
	cluster.Restart("broker-a", 0)
	require.NoError(t, cluster.WaitConsumed(t.Context(), "warehouse", "orders", 1))
	require.Equal(t, map[string]int{"1001": 1}, warehouse.Shipped())
}

func TestRecipePowerFailure(t *testing.T) {
	for seed := range uint64(3) {
		cluster := testbroker.New(t, testbroker.Topic("orders", 4), testbroker.CrashDisk(), testbroker.SyncFlush())
		require.NoError(t, newShop(t, cluster).Order(t.Context(), "1001"))
		cluster.Crash("broker-a", 0, seed)
		cluster.Restart("broker-a", 0)
		require.Len(t, cluster.Messages("orders"), 1, "without SyncFlush it may be gone")
	}
}

func TestRecipeFullDisk(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 4))
	shop := newShop(t, cluster)
	cluster.FillDisk("broker-a", 0.95)
	require.ErrorIs(t, shop.Order(t.Context(), "1001"), rocketmq.ErrUnavailable)
	cluster.FillDisk("broker-a", 0.5)
	require.NoError(t, shop.Order(t.Context(), "1001"))
}

func TestRecipeVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := testbroker.New(t, testbroker.Topic("orders", 4), testbroker.Virtual())
		shop, warehouse := newShop(t, cluster), newWarehouse(t, cluster)
		warehouse.Close(true)
		require.NoError(t, shop.Order(t.Context(), "1001"))
		time.Sleep(5 * time.Second)
		warehouse.Close(false)
		time.Sleep(10 * time.Second) // the first retry is 10 s after the failure
		require.Equal(t, map[string]int{"1001": 1}, warehouse.Shipped())
	})
}

func TestRecipeSlowBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := testbroker.New(t, testbroker.Topic("orders", 4), testbroker.Virtual())
		shop := newShop(t, cluster)
		cluster.On(testbroker.SendMessage).Delay(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, shop.Order(ctx, "1001"), context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(began).Round(100*time.Millisecond))
	})
}

func TestRecipeStrict(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("orders", 4), testbroker.Strict())
	shop, _ := newShop(t, cluster), newWarehouse(t, cluster)
	require.NoError(t, shop.Order(t.Context(), "1001"))
	require.NoError(t, cluster.WaitIdle(t.Context()))
}
