package producer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/leak"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// clusterProducer is a producer of a real cluster. It is patient: on a starved
// machine an attempt that is given up may have been stored all the same.
func clusterProducer(t *testing.T, c *testbroker.Cluster, opts ...producer.Option) *producer.Producer {
	t.Helper()
	p, err := producer.New(c.Client(t), append([]producer.Option{producer.WithTimeout(time.Minute, 30*time.Second)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close(context.Background())) })
	return p
}

func TestClusterStoresWhatWasSent(t *testing.T) {
	leak.Check(t)
	c := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("orders", 2))
	p := clusterProducer(t, c)
	sent := make(map[string]*rocketmq.Message)
	results := make(map[string]producer.Result)
	for i, body := range []string{"plain", "caf\u00e9 \u4e2d\u6587", "\x00\x01\x02\xff", strings.Repeat("x", 1<<20)} {
		m := &rocketmq.Message{Topic: "orders", Body: []byte(body), Tag: fmt.Sprint("tag", i), Keys: []string{"a", fmt.Sprint("k", i)}, ShardingKey: "s", Properties: map[string]string{"name": "v\u00e9 \"\\\n"}}
		res, err := p.Send(t.Context(), m)
		require.NoError(t, err)
		sent[res.MessageID], results[res.MessageID] = m, res
	}
	got := c.Messages("orders")
	require.Len(t, got, len(sent))
	for _, v := range got {
		m, r := sent[v.ID], results[v.ID]
		require.NotNil(t, m)
		assert.Equal(t, m.Body, v.Body)
		assert.Equal(t, m.Tag, v.Tag)
		assert.Equal(t, m.Keys, v.Keys)
		assert.Equal(t, m.ShardingKey, v.ShardingKey)
		assert.Equal(t, m.Properties, v.Properties.User())
		assert.Equal(t, r.Queue, v.Queue)
		assert.Equal(t, r.Offset, v.Offset)
		assert.Equal(t, r.OffsetID, v.OffsetID)
	}
}

func TestClusterRefuses(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 1))
	p := clusterProducer(t, c)
	_, err := p.Send(t.Context(), message("typo"))
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
	var re *rocketmq.RouteError
	require.ErrorAs(t, err, &re)
	require.Equal(t, c.NameServers()[0], re.Asked[0].Addr)

	auto := clusterProducer(t, c, producer.WithAutoCreate(3))
	_, err = auto.Send(t.Context(), message("young"))
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound, "these brokers do not create topics")
}

func TestClusterCreatesTopics(t *testing.T) {
	c := testbroker.New(t, testbroker.AutoCreate(true))
	p := clusterProducer(t, c, producer.WithAutoCreate(3))
	for range 6 {
		_, err := p.Send(t.Context(), message("young"))
		require.NoError(t, err)
	}
	require.Len(t, c.Messages("young"), 6)
	strict := clusterProducer(t, c)
	var qs []rocketmq.Queue
	require.Eventually(t, func() bool { // the broker registers what it has created in the background
		var err error
		qs, err = strict.Queues(t.Context(), "young")
		return err == nil
	}, 30*time.Second, 2*time.Millisecond)
	require.Len(t, qs, 3)
}

func TestC09_NameServerRestartWithTheBrokerAlive(t *testing.T) {
	c := testbroker.New(t, testbroker.NameServers(1), testbroker.Topic("orders", 2))
	p := clusterProducer(t, c)
	n := 0
	send := func(times int) {
		t.Helper()
		for range times {
			_, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			n++
		}
	}
	send(100)
	c.KillNameServer(0)
	send(100)
	c.RestartNameServer(0)
	send(100)
	require.Len(t, c.Messages("orders"), n)
}

func TestClusterBrokerRestart(t *testing.T) {
	c := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("orders", 2))
	p := clusterProducer(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	ids := make(map[string]bool)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				res, err := p.Send(t.Context(), message("orders"))
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				ids[res.MessageID] = true
				mu.Unlock()
			}
		})
	}
	reached := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(ids) >= n
		}
	}
	require.Eventually(t, reached(200), 10*time.Second, time.Millisecond)
	c.Kill(c.Brokers()[0], 0)
	mu.Lock()
	before := len(ids)
	mu.Unlock()
	require.Eventually(t, reached(before+200), 10*time.Second, time.Millisecond)
	c.Restart(c.Brokers()[0], 0)
	cancel()
	wg.Wait()
	stored := make(map[string]bool)
	for _, v := range c.Messages("orders") {
		stored[v.ID] = true
	}
	for id := range ids {
		require.True(t, stored[id], "acknowledged and not there: %s", id)
	}
}
