package testbroker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// Offsets are there at once, not when consumers would commit them.
func TestWaitConsumed(t *testing.T) { synctest.Test(t, waitConsumed) }

func waitConsumed(t *testing.T) {
	c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 4), testbroker.Brokers(2))
	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	p := newProducer(t, c)
	for round := range 3 {
		began := time.Now()
		send(t, p, "T", string(rune('a'+round)), 40)
		require.NoError(t, c.WaitConsumed(t.Context(), "G", "T", 40*(round+1)))
		require.Equal(t, 40*(round+1), got.count())
		require.Less(t, time.Since(began), 4*time.Second, "consumers commit every 5 s")
	}
	require.Zero(t, c.Lag("G", "T"))
	require.NoError(t, c.WaitIdle(t.Context()))
	stop()
}

func TestWaitConsumedGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 1))
		got := newBodies()
		stop := consume(t, c.Client(t), "G", "T", got)
		send(t, newProducer(t, c), "T", "m", 2)
		require.NoError(t, c.WaitConsumed(t.Context(), "G", "T", 2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.WaitConsumed(ctx, "G", "T", 3)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "testbroker: group G has finished 2 of 3 messages of T: context deadline exceeded")
		stop()
	})
}

// A handler that fails once keeps the cluster busy until the retry is due, and
// again until it is done.
func TestWaitIdle(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.ManualClock(start))
	var handled atomic.Int32
	gate := make(chan struct{})
	con, err := consumer.NewPush(c.Client(t), "G", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("T", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			<-gate
			handled.Add(1)
			if m.Attempt == 1 {
				return context.Canceled
			}
			return nil
		})))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- con.Run(context.Background()) }()
	<-con.Ready()
	require.Equal(t, []string{"G"}, c.Groups())
	require.Len(t, c.Members("G"), 1)
	require.Equal(t, []string{"T"}, c.Members("G")[0].Topics)
	require.Empty(t, c.Members("H"))
	send(t, newProducer(t, c), "T", "m", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = c.WaitIdle(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "group G has 1 messages of T to finish")
	gate <- struct{}{}
	require.NoError(t, c.WaitIdle(t.Context()))
	require.EqualValues(t, 1, handled.Load())
	require.Equal(t, 1, c.Delayed())
	_, err = c.AdvanceToNext(t.Context())
	require.NoError(t, err)
	close(gate)
	require.NoError(t, c.WaitIdle(t.Context()))
	require.EqualValues(t, 2, handled.Load())
	require.NoError(t, con.Close(context.Background()))
	require.NoError(t, <-ended)
	require.Equal(t, []string{"G"}, c.Groups(), "its offsets are there")
	require.Empty(t, c.Members("G"))
}

// Ordered consumers say how far they are in the same way.
func TestWaitConsumedInOrder(t *testing.T) { synctest.Test(t, waitConsumedInOrder) }

func waitConsumedInOrder(t *testing.T) {
	c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 2), testbroker.Strict())
	con, err := consumer.NewOrdered(c.Client(t), "G", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("T", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error { return nil })))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- con.Run(context.Background()) }()
	<-con.Ready()
	p := newProducer(t, c)
	began := time.Now()
	send(t, p, "T", "m", 20)
	require.NoError(t, c.WaitConsumed(t.Context(), "G", "T", 20))
	require.Less(t, time.Since(began), 4*time.Second)
	require.NoError(t, con.Close(context.Background()))
	require.NoError(t, <-ended)
	require.NoError(t, p.Close(t.Context()))
}
