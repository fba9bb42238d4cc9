package producer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		b := c.broker("b1:0")
		b.answerBatches(wire.RespSuccess)
		p := c.producer(producer.WithLinger(10*time.Millisecond, 64<<10))
		_, err := p.Send(t.Context(), message("orders")) // does not wait
		require.NoError(t, err)
		start := time.Now()
		o := newOutcomes()
		for i := range 50 {
			p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: fmt.Append(nil, i)}, o.done(i))
		}
		p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("later"), Delay: rocketmq.DelayLevel(1)}, o.done(50))
		synctest.Wait()
		require.Equal(t, 1, o.seen(), "a delayed message goes alone and at once")
		require.NoError(t, o.err(50))
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, o.once(t, 51))
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		require.Equal(t, 1, b.batches)
		got := b.got()
		for i := range 50 {
			require.Equal(t, fmt.Sprint(i), got[i+2].body)
			require.Equal(t, got[i+2].id, o.res[i].MessageID)
			require.Equal(t, int64(i+2), o.res[i].Offset)
		}
		// Flush does not wait for the time.
		p.SendAsync(t.Context(), message("orders"), o.done(51))
		p.SendAsync(t.Context(), message("orders"), o.done(52))
		require.NoError(t, p.Flush(t.Context()))
		require.Empty(t, o.once(t, 53))
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		require.Equal(t, 2, b.batches)
		// One alone is no batch.
		p.SendAsync(t.Context(), message("orders"), o.done(53))
		// A member whose context has ended is not sent.
		why := errors.New("why")
		gone, cancel := context.WithCancelCause(t.Context())
		p.SendAsync(gone, message("orders"), o.done(54))
		cancel(why)
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, o.once(t, 55), 1)
		require.ErrorIs(t, o.err(54), why)
		require.Equal(t, 2, b.batches)
	})
}

// A batch is closed when it is full, and fails as a whole.
func TestLingerFullAndFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		b := c.broker("b1:0")
		b.answerBatches(wire.RespMessageIllegal)
		p := c.producer(producer.WithLinger(time.Second, 10_000))
		o := newOutcomes()
		for i := range 20 {
			p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: make([]byte, 2000)}, o.done(i))
		}
		synctest.Wait()
		require.Equal(t, 16, o.seen(), "four times four")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, o.once(t, 20), 20)
		var be *rocketmq.BrokerError
		require.ErrorAs(t, o.err(0), &be)
		require.NoError(t, p.Close(t.Context()))
	})
}

// Keys keep their queue and their order through lingering.
func TestLingerKeepsOrder(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 4))
	p := clusterProducer(t, c, producer.WithLinger(time.Millisecond, 8<<10))
	o := newOutcomes()
	const n = 2000
	for i := range n {
		p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: fmt.Append(nil, i), ShardingKey: fmt.Sprint(i % 7)}, o.done(i))
		if i == 0 {
			require.NoError(t, p.Flush(t.Context())) // the route is there from now on
		}
	}
	require.NoError(t, p.Flush(t.Context()))
	require.Empty(t, o.once(t, n))
	for k := range 7 {
		for i := k + 7; i < n; i += 7 {
			require.Equal(t, o.res[k].Queue, o.res[i].Queue)
			require.Greater(t, o.res[i].Offset, o.res[i-7].Offset, "message %d", i)
		}
	}
	require.Len(t, c.Messages("orders"), n)
}
