package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
)

// C31: the handlers of one queue do not return for minutes. The other queues go
// on at full speed, the queue is seen to be stuck, memory is bounded, offsets and
// heartbeats go on, and so does the queue when its handlers return.
func TestC31_StuckHandlers(t *testing.T) {
	type made func(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) role
	for name, tc := range map[string]struct {
		make  made
		calls int // of the stuck queue
	}{
		"concurrent": {func(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) role {
			return newPush(t, cl, append(opts, consumer.StartFrom(rocketmq.Earliest()))...)
		}, 15},
		"ordered": {func(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) role {
			return newOrdered(t, cl, opts...)
		}, 1},
	} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/first=%t", name, alone), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, b *fake) {
					const queues = 4
					n := 2000
					if name == "concurrent" && !alone {
						n = 12_500
					}
					b.topic("T", queues)
					put := func(q int) {
						for i := range n {
							b.put("T", q, fmt.Sprint(i))
						}
					}
					put(0)
					if !alone {
						for q := 1; q < queues; q++ {
							put(q)
						}
					}
					gate := make(chan struct{})
					var stuck, done atomic.Int32
					c := start(t, tc.make(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
						if m.Queue.ID == 0 {
							stuck.Add(1)
							<-gate
						}
						time.Sleep(time.Millisecond)
						done.Add(1)
						return nil
					}, consumer.Cache(500, 1<<20))))
					synctest.Wait()
					if alone { // the stuck queue had all the time to take every place
						for q := 1; q < queues; q++ {
							put(q)
						}
					}
					began := time.Now()
					for done.Load() < int32((queues-1)*n) {
						time.Sleep(10 * time.Millisecond)
						require.Less(t, time.Since(began), 15*time.Second, "%d done", done.Load())
					}
					require.EqualValues(t, tc.calls, stuck.Load())
					time.Sleep(time.Until(began.Add(time.Minute)))
					h := health(t, c, 0)
					require.Equal(t, "cache full", h.State)
					require.Equal(t, rocketmq.StuckHandler, h.Stuck)
					require.InDelta(t, 60, time.Since(h.BusySince).Seconds(), 0.1)
					require.LessOrEqual(t, h.Cached, 500+32)
					require.Equal(t, tc.calls, h.InFlight)
					for q := 1; q < queues; q++ {
						require.EqualValues(t, n, b.stored("T", q))
						require.True(t, health(t, c, q).BusySince.IsZero())
					}
					b.mu.Lock()
					beats := len(b.beats)
					b.mu.Unlock()
					divided := c.Health().Rebalanced
					time.Sleep(time.Minute)
					b.mu.Lock()
					require.Greater(t, len(b.beats), beats)
					b.mu.Unlock()
					require.GreaterOrEqual(t, c.Health().Rebalanced.Sub(divided), 40*time.Second)
					close(gate)
					for done.Load() < int32(queues*n) {
						time.Sleep(100 * time.Millisecond)
						require.Less(t, time.Since(began), 3*time.Minute)
					}
					require.NoError(t, c.stop())
					require.EqualValues(t, n, b.stored("T", 0))
				})
			})
		}
	}
}

// A member with a single queue gives it all its places.
func TestOneQueueHasAllPlaces(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 100)
		gate := make(chan struct{})
		var busy atomic.Int32
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), each(func(context.Context, *rocketmq.MessageView) error {
			busy.Add(1)
			<-gate
			return nil
		})))
		synctest.Wait()
		require.EqualValues(t, 20, busy.Load())
		close(gate)
		require.NoError(t, c.stop())
	})
}
