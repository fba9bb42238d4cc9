package consumer_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// A member that hears of a change hands out nothing more of what it lost, and has
// a second to commit what it had handed out.
func TestLitePullRevokedQueue(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []consumer.Option
		done func(l *consumer.LitePull) error
		want int64
	}{
		{"commit", []consumer.Option{consumer.WithManualCommit()}, func(l *consumer.LitePull) error { return l.Commit(context.Background(), tq(1)) }, 32},
		{"commit all", []consumer.Option{consumer.WithManualCommit()}, func(l *consumer.LitePull) error { return l.Commit(context.Background()) }, 32},
		{"poll again", nil, func(l *consumer.LitePull) error {
			_, err := l.Poll(context.Background())
			return err
		}, 32},
		{"too late", nil, func(l *consumer.LitePull) error {
			time.Sleep(2 * time.Second)
			_, err := l.Poll(context.Background())
			return err
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				ctx := context.Background()
				b.topic("T", 2)
				for i := range 200 {
					b.put("T", 1, fmt.Sprint(i))
				}
				l := newLite(t, b.client(), append(test.opts, toT(), earliest)...)
				msgs, err := l.Poll(ctx)
				require.NoError(t, err)
				require.Len(t, msgs, 32)
				other := newLite(t, b.client(rocketmq.WithInstanceName("zzz")), toT()) // sorts behind, gets queue 1
				require.NoError(t, other.Ready(ctx))
				synctest.Wait()
				require.Equal(t, []rocketmq.Queue{tq(0)}, l.Assignment())
				b.put("T", 0, "mine")
				if test.name == "commit" {
					msgs, err = l.Poll(ctx)
					require.NoError(t, err)
					require.Equal(t, []string{"mine"}, bodiesOf(msgs), "the cache of a lost queue is void")
				}
				require.NoError(t, test.done(l))
				time.Sleep(10 * time.Millisecond) // before anybody else commits
				synctest.Wait()
				if test.want > 0 {
					require.Equal(t, test.want, b.stored("T", 1))
				}
				msgs, err = other.Poll(ctx)
				require.NoError(t, err)
				require.Equal(t, test.want, msgs[0].Offset, "the other waits for that")
				require.ErrorIs(t, l.Commit(ctx, tq(1)), rocketmq.ErrRevoked)
				require.NoError(t, other.Close(ctx))
				time.Sleep(2 * time.Second)
				require.Equal(t, []rocketmq.Queue{tq(0), tq(1)}, l.Assignment())
			})
		})
	}
}

// Messages of a topic are decompressed when they are handed out. One that is
// damaged is an error, and the way goes on behind it.
func TestLitePullDamagedBody(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 1)
		compressed := func(r *wire.Record) {
			var buf bytes.Buffer
			w := zlib.NewWriter(&buf)
			_, _ = w.Write(r.Body)
			_ = w.Close()
			r.Body, r.SysFlag = buf.Bytes(), r.SysFlag|wire.SysCompressed
		}
		damaged := func(r *wire.Record) {
			compressed(r)
			r.Body = r.Body[:4]
		}
		for i := range 10 {
			switch body := fmt.Sprint(i); i {
			case 0, 5:
				b.put("T", 0, body, damaged)
			case 3, 4, 8:
				b.put("T", 0, body, compressed)
			default:
				b.put("T", 0, body)
			}
		}
		l := newLite(t, b.client(), toT(), earliest)
		var got, bad []string
		var be *consumer.BodyError
		for len(got)+len(bad) < 10 {
			msgs, err := l.Poll(ctx)
			if err != nil {
				require.ErrorAs(t, err, &be)
				require.ErrorContains(t, err, "offset "+fmt.Sprint(be.Message.Offset))
				bad = append(bad, fmt.Sprint(be.Message.Offset))
			}
			got = append(got, bodiesOf(msgs)...)
		}
		require.Equal(t, []string{"1", "2", "3", "4", "6", "7", "8", "9"}, got)
		require.Equal(t, []string{"0", "5"}, bad)
		require.NoError(t, l.Commit(ctx))
		require.EqualValues(t, 10, b.stored("T", 0))

		require.NoError(t, l.Seek(ctx, tq(0), rocketmq.AtOffset(5)))
		var seen []any
		for m, err := range l.Messages(within(t, time.Second)) {
			if err != nil {
				seen = append(seen, "error")
				continue
			}
			seen = append(seen, m.Offset)
		}
		require.Equal(t, []any{"error", int64(6), int64(7), int64(8), int64(9), "error"}, seen, "the last is the end of the context")
	})
}

// Of each queue the cache has no more than allowed, and what is handed out makes
// room.
func TestLitePullCacheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 1)
		for i := range 1000 {
			b.put("T", 0, fmt.Sprint(i))
		}
		l := newLite(t, b.client(), toT(), earliest, consumer.WithCache(64, 1<<20), consumer.WithPollSize(10))
		require.NoError(t, l.Ready(ctx))
		synctest.Wait()
		require.Equal(t, 64, l.Health().Queues[0].Cached)
		n := 0
		for n < 1000 {
			msgs, err := l.Poll(ctx)
			require.NoError(t, err)
			require.LessOrEqual(t, len(msgs), 10)
			require.Equal(t, fmt.Sprint(n), string(msgs[0].Body))
			n += len(msgs)
			synctest.Wait()
			require.LessOrEqual(t, l.Health().Queues[0].Cached, 64+32)
		}
	})
}

func TestLitePullTakesNoGoroutines(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1000)
		cl := b.client()
		before := goroutines(t)
		l := newLite(t, cl, toT())
		require.Equal(t, before, goroutines(t))
		require.NoError(t, l.Ready(context.Background()))
		synctest.Wait()
		require.Len(t, l.Assignment(), 1000)
		require.Less(t, goroutines(t)-before, 40)
	})
}

// A listener can commit what was handed out of a queue that goes.
func TestLitePullTellsOfQueues(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 2)
		b.put("T", 1, "m")
		var l *consumer.LitePull
		events := make(chan string, 8)
		l = newLite(t, b.client(), toT(), earliest, consumer.WithManualCommit(), consumer.OnRebalance(func(ctx context.Context, r consumer.Rebalance) {
			if r.Kind == consumer.Revoked {
				assert.NoError(t, l.Commit(ctx, r.Queues...))
			}
			events <- fmt.Sprint(r.Kind, " ", r.Topic, " ", len(r.Queues))
		}))
		require.NoError(t, l.Ready(ctx))
		require.Equal(t, "assigned T 2", <-events)
		_, err := l.Poll(ctx)
		require.NoError(t, err)
		other := newLite(t, b.client(rocketmq.WithInstanceName("zzz")), toT())
		require.NoError(t, other.Ready(ctx))
		require.Equal(t, "revoked T 1", <-events)
		synctest.Wait()
		require.EqualValues(t, 1, b.stored("T", 1))
		_, err = other.Poll(within(t, time.Minute))
		require.ErrorIs(t, err, context.DeadlineExceeded, "so it does not come again")
		b.put("T", 0, "late")
		_, err = l.Poll(ctx)
		require.NoError(t, err)
		require.NoError(t, l.Close(ctx))
		require.Equal(t, "revoked T 1", <-events)
		require.EqualValues(t, 1, b.stored("T", 0))
	})
}
