package producer_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/broker"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// stuckBroker joins a cluster with a broker whose disk stands still until
// release is called, and whose clock is the test's. More is waiting for the disk
// than it takes.
func stuckBroker(t *testing.T, c *testbroker.Cluster, topic string) (name string, clk *clock.Manual, release func()) {
	t.Helper()
	clk = clock.NewManual(time.Now())
	stuck, flushing := make(chan struct{}), make(chan struct{}, 100)
	release = sync.OnceFunc(func() { close(stuck) })
	cfg := broker.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.NameServers, cfg.Clock = "stuck", "127.0.0.1:0", c.NameServers(), clk
	cfg.Store.Dir, cfg.Store.SyncFlush = "/store", true
	cfg.Store.DiskUsage = func(string) (float64, error) { return 0, nil }
	cfg.Store.FS = mfile.Hooked(mfile.NewMemory(), func(op mfile.Op, path string, _, _ int64) error {
		if op == mfile.OpSync && strings.Contains(path, "commitlog") {
			select {
			case flushing <- struct{}{}:
			default:
			}
			<-stuck
		}
		return nil
	})
	b, err := broker.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		release()
		b.Kill()
	})
	require.NoError(t, b.CreateTopic(t.Context(), topic, 1))
	put := func(size int) store.Status {
		res, _ := b.Store().Put(&store.Message{Topic: []byte("filler"), Body: make([]byte, size), NoWait: true}, nil)
		return res.Status
	}
	require.Equal(t, store.PutOK, put(1))
	<-flushing // the disk is at it from now on
	for range 16 {
		require.Equal(t, store.PutOK, put(1<<20-256))
	}
	return cfg.Name, clk, release
}

// A broker that cannot keep up says so, and what was meant for it goes to
// another one; where there is no other it is the caller's error.
func TestClusterBusyBroker(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 1))
	name, clk, release := stuckBroker(t, c, "orders")
	p := clusterProducer(t, c)
	there := rocketmq.Queue{Broker: name, ID: 0}
	body := &rocketmq.Message{Topic: "orders", Body: make([]byte, 1<<20)}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range body.Body {
		body.Body[i] = byte(random.Uint32()) // does not get shorter
	}
	first := make(chan error, 1)
	go func() {
		_, err := p.Send(t.Context(), body, producer.To(there))
		first <- err
	}()
	require.Eventually(t, func() bool { // the disk has been at it for a second
		clk.Advance(100 * time.Millisecond)
		return len(first) > 0
	}, 30*time.Second, time.Millisecond)
	err := <-first
	require.ErrorIs(t, err, rocketmq.ErrBusy)
	require.True(t, rocketmq.IsRetryable(err))
	var be *rocketmq.BrokerError
	require.ErrorAs(t, err, &be)
	require.Equal(t, rocketmq.CodeSystemBusy, be.Code)
	require.Contains(t, be.Remark, "[PC_SYNCHRONIZED]")

	before := len(c.Messages("orders"))
	for range 10 {
		res, err := p.Send(t.Context(), body)
		require.NoError(t, err)
		require.Equal(t, c.Brokers()[0], res.Queue.Broker)
	}
	require.Len(t, c.Messages("orders"), before+10)

	release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err = p.Send(ctx, body, producer.To(there))
		if err == nil {
			break
		}
		require.ErrorIs(t, err, rocketmq.ErrBusy)
		clk.Advance(100 * time.Millisecond)
	}
}
