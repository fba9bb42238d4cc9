package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

func newOrdered(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) *consumer.Ordered {
	t.Helper()
	p, err := consumer.NewOrdered(cl, "G", append([]consumer.Option{consumer.StartFrom(rocketmq.Earliest())}, opts...)...)
	require.NoError(t, err)
	return p
}

func each(f func(ctx context.Context, m *rocketmq.MessageView) error, opts ...consumer.SubOption) consumer.Option {
	return consumer.Subscribe("T", selector.All, consumer.Each(f), opts...)
}

// order is what handlers saw: bodies, with the attempt if it is not the first.
type order struct {
	mu   sync.Mutex
	seen []string
}

func (o *order) see(m *rocketmq.MessageView) (attempt int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := string(m.Body)
	if m.Attempt > 1 {
		s += fmt.Sprint("#", m.Attempt)
	}
	o.seen = append(o.seen, s)
	return m.Attempt
}

func (o *order) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.seen, " ")
}

func putMany(b *fake, queue, from, to int) {
	for i := from; i < to; i++ {
		b.put("T", queue, fmt.Sprint(i))
	}
}

// health is that of queue i of topic T.
func health(t testing.TB, c *running, i int) consumer.QueueHealth {
	t.Helper()
	for _, q := range c.Health().Queues {
		if q.Queue.Topic == "T" && q.Queue.ID == i {
			return q
		}
	}
	require.FailNow(t, "not assigned", "queue %d", i)
	return consumer.QueueHealth{}
}

// One call at a time for each queue, in order, and different queues beside each
// other.
func TestOrderedOneCallForEachQueue(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		const n = 200
		for i := range n {
			b.put("T", i%4, fmt.Sprint(i/4))
		}
		var inQueue [4]atomic.Int32
		var last [4]atomic.Int64
		var busy, most atomic.Int32
		c := start(t, newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			q := m.Queue.ID
			if inQueue[q].Add(1) != 1 {
				t.Error("two calls for one queue")
			}
			most.Store(max(most.Load(), busy.Add(1)))
			time.Sleep(time.Millisecond)
			busy.Add(-1)
			if got := last[q].Swap(m.Offset + 1); got != m.Offset {
				t.Errorf("queue %d: offset %d after %d", q, m.Offset, got-1)
			}
			inQueue[q].Add(-1)
			return nil
		})))
		began := time.Now()
		for last[3].Load() < n/4 {
			time.Sleep(time.Millisecond)
			require.Less(t, time.Since(began), time.Second)
		}
		require.EqualValues(t, 4, most.Load())
		require.NoError(t, c.stop())
		for q := range 4 {
			require.EqualValues(t, n/4, b.stored("T", q))
			require.Empty(t, b.owner("T", q), "unlocked")
			lock := b.calls(wire.ReqLockBatchMQ, "T", q)
			require.Len(t, lock, 1)
			require.Len(t, b.calls(wire.ReqUnlockBatchMQ, "T", q), 1)
		}
	})
}

func TestOrderedConcurrencyBoundsAllQueues(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 8)
		for i := range 80 {
			b.put("T", i%8, "m")
		}
		var busy, most, n atomic.Int32
		c := start(t, newOrdered(t, b.client(), each(func(context.Context, *rocketmq.MessageView) error {
			most.Store(max(most.Load(), busy.Add(1)))
			time.Sleep(time.Millisecond)
			busy.Add(-1)
			n.Add(1)
			return nil
		}, consumer.Concurrency(3))))
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 80, n.Load())
		require.EqualValues(t, 3, most.Load())
		require.NoError(t, c.stop())
	})
}

// C38: the handler fails message 2 of 5 twice, by error, panic, or by ending its
// goroutine.
func TestC38_RetryLaterInOrder(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":  func() error { return errors.New("no") },
		"panic":  func() error { panic("no") },
		"goexit": func() error { exit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				b.topic("%RETRY%G", 1)
				putMany(b, 0, 1, 6)
				var o order
				c := start(t, newOrdered(t, b.client(), consumer.WithMaxAttempts(3), each(func(_ context.Context, m *rocketmq.MessageView) error {
					if o.see(m) < 3 && string(m.Body) == "2" {
						return fail()
					}
					return nil
				})))
				synctest.Wait()
				require.Equal(t, "1 2", o.String())
				h := health(t, c, 0)
				require.Equal(t, "suspended", h.State)
				require.Equal(t, time.Second, time.Until(h.SuspendedUntil))
				require.Contains(t, h.String(), "suspended until")
				require.True(t, h.BusySince.IsZero())
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, "1 2 2#2", o.String())
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, "1 2 2#2 2#3 3 4 5", o.String())
				require.NoError(t, c.stop())
				require.Empty(t, b.sends)
				require.Empty(t, b.sendBacks, "nothing goes to the retry topic while attempts remain")
				require.EqualValues(t, 5, b.stored("T", 0))
			})
		})
	}
}

func TestOrderedRetryAfterSetsThePause(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 2)
		var times []time.Time
		c := start(t, newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			times = append(times, time.Now())
			switch len(times) {
			case 1:
				return consumer.RetryAfter(7*time.Second, errors.New("no"))
			case 2:
				return consumer.RetryAfter(20*time.Millisecond, nil)
			}
			return nil
		})))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, times, 4)
		require.Equal(t, 7*time.Second, times[1].Sub(times[0]))
		require.Equal(t, 20*time.Millisecond, times[2].Sub(times[1]))
		require.NoError(t, c.stop())
	})
}

// Batches: what comes again begins with the first message that was not done.
func TestOrderedBatches(t *testing.T) {
	no := errors.New("no")
	for _, tc := range []struct {
		name    string
		outcome error
		rests   bool
		want    string
	}{
		{"error", no, true, "0 1 2 3|0#2 1#2 2#2 3#2|4 5"},
		{"batch error", consumer.BatchError{nil, no, nil, nil}, true, "0 1 2 3|1#2 2 3 4|5"},
		{"two of a batch", consumer.BatchError{nil, no, nil, no}, true, "0 1 2 3|1#2 2 3#2 4|5"},
		{"short batch error", consumer.BatchError{nil, nil}, true, "0 1 2 3|2#2 3#2 4 5"},
		{"acked", consumer.Acked(2, no), true, "0 1 2 3|2#2 3 4 5"},
		{"acked, rest untried", consumer.Acked(3, nil), false, "0 1 2 3|3 4 5"},
		{"nothing tried", consumer.Acked(0, nil), true, "0 1 2 3|0 1 2 3|4 5"},
		{"all acked", consumer.Acked(4, no), false, "0 1 2 3|4 5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				putMany(b, 0, 0, 6)
				var mu sync.Mutex
				var calls []string
				c := start(t, newOrdered(t, b.client(), consumer.Subscribe("T", selector.All,
					consumer.HandlerFunc(func(_ context.Context, msgs []*rocketmq.MessageView) error {
						var o order
						for _, m := range msgs {
							o.see(m)
						}
						mu.Lock()
						defer mu.Unlock()
						if calls = append(calls, o.String()); len(calls) == 1 {
							return tc.outcome
						}
						return nil
					}), consumer.Batch(4))))
				handled := func() string {
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return strings.Join(calls, "|")
				}
				if tc.rests {
					require.Equal(t, "0 1 2 3", handled())
				}
				time.Sleep(3 * time.Second)
				require.Equal(t, tc.want, handled())
				require.NoError(t, c.stop())
				require.EqualValues(t, 6, b.stored("T", 0))
			})
		})
	}
}

// What a handler has kept of a failed attempt is not changed by the next.
func TestOrderedViewsAreNotChanged(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 2)
		var kept [][]*rocketmq.MessageView
		c := start(t, newOrdered(t, b.client(), consumer.Subscribe("T", selector.All,
			consumer.HandlerFunc(func(_ context.Context, msgs []*rocketmq.MessageView) error {
				if kept = append(kept, msgs); len(kept) < 3 {
					return errors.New("no")
				}
				return nil
			}), consumer.Batch(2))))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Len(t, kept, 3)
		for i, msgs := range kept {
			for k, m := range msgs {
				require.Equal(t, i+1, m.Attempt)
				require.EqualValues(t, k, m.Offset)
			}
		}
		require.NoError(t, c.stop())
	})
}

// After its attempts a message goes to the dead letters, and the queue goes on
// as soon as it is there.
func TestOrderedDeadLetter(t *testing.T) {
	for name, tc := range map[string]struct {
		attempts int
		err      error
		seen     string
		count    int32
		limit    int32
	}{
		"after three attempts": {3, errors.New("no"), "0 1 1#2 1#3 2 3", 3, 2},
		"after one":            {1, errors.New("no"), "0 1 2 3", 2, 1},
		"at once":              {3, consumer.DeadLetter(errors.New("no")), "0 1 2 3", 2, 1},
		"without a maximum":    {0, consumer.DeadLetter(nil), "0 1 2 3", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				b.topic("%RETRY%G", 1)
				for i := range 4 {
					b.put("T", 0, fmt.Sprint(i), withProps("UNIQ_KEY", fmt.Sprint("id", i), "KEYS", "k", "DELAY", "3", "WAIT", "true"))
				}
				var o order
				opts := []consumer.Option{each(func(_ context.Context, m *rocketmq.MessageView) error {
					if o.see(m); string(m.Body) == "1" {
						return tc.err
					}
					return nil
				})}
				if tc.attempts > 0 {
					opts = append(opts, consumer.WithMaxAttempts(tc.attempts))
				}
				c := start(t, newOrdered(t, b.client(), opts...))
				time.Sleep(5 * time.Second)
				synctest.Wait()
				require.Equal(t, tc.seen, o.String())
				require.Len(t, b.sends, 1)
				s := b.sends[0]
				require.Equal(t, "%RETRY%G", s.topic)
				require.Equal(t, "1", s.body)
				require.Equal(t, tc.count, s.h.ReconsumeTimes)
				require.Equal(t, tc.limit, s.h.MaxReconsumeTimes, "both rules, above and not below, send it to the dead letters")
				require.EqualValues(t, int64(1700000000000), s.h.BornTime)
				require.Equal(t, map[string]string{
					"UNIQ_KEY": "id1", "KEYS": "k", "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "0A00000200002A9F0000000000000001", "WAIT": "false",
				}, s.props.Map())
				require.NoError(t, c.stop())
				require.EqualValues(t, 4, b.stored("T", 0))
			})
		})
	}
}

// While a dead letter cannot be stored the queue waits: it is neither lost nor
// passed over.
func TestOrderedDeadLetterCannotBeStored(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 3)
		var refusing atomic.Bool
		refusing.Store(true)
		b.on(wire.ReqSendMessageV2, func(r *remoting.Request) bool {
			if refusing.Load() {
				r.Reply(wire.RespSystemError, "disk full", nil, nil)
			}
			return refusing.Load()
		})
		var o order
		c := start(t, newOrdered(t, b.client(), consumer.WithMaxAttempts(2), each(func(_ context.Context, m *rocketmq.MessageView) error {
			if o.see(m); string(m.Body) == "1" {
				return errors.New("no")
			}
			return nil
		})))
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, "0 1 1#2 1#3 1#4", o.String())
		require.Equal(t, "suspended", health(t, c, 0).State)
		require.EqualValues(t, 1, health(t, c, 0).Committed)
		refusing.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "0 1 1#2 1#3 1#4 1#5 2", o.String())
		require.Len(t, b.sends, 1)
		require.NoError(t, c.stop())
		require.EqualValues(t, 3, b.stored("T", 0))
	})
}

// A batch whose messages have all had their attempts goes to the dead letters in
// order.
func TestOrderedDeadLettersOfABatch(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 5)
		var calls []string
		c := start(t, newOrdered(t, b.client(), consumer.WithMaxAttempts(2), consumer.Subscribe("T", selector.All,
			consumer.HandlerFunc(func(_ context.Context, msgs []*rocketmq.MessageView) error {
				var o order
				for _, m := range msgs {
					o.see(m)
				}
				calls = append(calls, o.String())
				if string(msgs[0].Body) == "0" {
					return errors.New("no")
				}
				return nil
			}), consumer.Batch(3))))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"0 1 2", "0#2 1#2 2#2", "3 4"}, calls)
		require.Len(t, b.sends, 3)
		for i, s := range b.sends {
			require.Equal(t, fmt.Sprint(i), s.body)
		}
		require.NoError(t, c.stop())
		require.EqualValues(t, 5, b.stored("T", 0))
	})
}

// Messages of the group's retry topic are handled by the subscription of their
// topic, and one at a time, too.
func TestOrderedRetryTopic(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.topic("U", 1)
		b.topic("%RETRY%G", 1)
		for i := range 40 {
			b.put("%RETRY%G", 0, fmt.Sprint(i), withProps("RETRY_TOPIC", []string{"T", "U"}[i%2]))
		}
		var o order
		var busy atomic.Int32
		h := func(topic string) consumer.Handler {
			return consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				if busy.Add(1) != 1 {
					t.Error("two at a time")
				}
				defer busy.Add(-1)
				time.Sleep(time.Millisecond)
				if o.see(m); m.Topic != topic {
					t.Errorf("%s in the handler of %s", m.Topic, topic)
				}
				return nil
			})
		}
		c := start(t, newOrdered(t, b.client(), consumer.Subscribe("T", selector.All, h("T")), consumer.Subscribe("U", selector.All, h("U"))))
		time.Sleep(time.Second)
		synctest.Wait()
		want := make([]string, 40)
		for i := range want {
			want[i] = fmt.Sprint(i)
		}
		require.Equal(t, strings.Join(want, " "), o.String())
		require.NoError(t, c.stop())
	})
}

func TestOrderedOptions(t *testing.T) {
	_, err := consumer.NewOrdered(nil, "G")
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	bubble(t, func(t *testing.T, b *fake) {
		_, err := consumer.NewOrdered(b.client(), "G", consumer.WithMaxAttempts(0))
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		require.ErrorContains(t, err, "0 attempts")
	})
}

// An operator moves the offset while a handler runs: the queue goes on there,
// but not before the handler has ended.
func TestOrderedOffsetReset(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 6)
		var o order
		gate := make(chan struct{})
		causes := make(chan error, 1)
		c := start(t, newOrdered(t, b.client(), each(func(ctx context.Context, m *rocketmq.MessageView) error {
			if o.see(m); string(m.Body) == "4" {
				select {
				case <-ctx.Done():
					causes <- context.Cause(ctx)
					<-gate
				case <-gate:
				}
			}
			return nil
		})))
		synctest.Wait()
		require.Equal(t, "0 1 2 3 4", o.String())
		table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{{Topic: "T", Broker: "b"}: 1}}
		require.NoError(t, b.member().CallOneway(&wire.Command{
			Code: wire.ReqResetConsumerClientOffset, Ext: &wire.ResetOffsetRequest{Topic: "T", Group: "G"}, Body: table.AppendJSON(nil),
		}))
		require.ErrorIs(t, <-causes, rocketmq.ErrRevoked)
		time.Sleep(5 * time.Second)
		require.Equal(t, "0 1 2 3 4", o.String(), "the handler still runs")
		require.Equal(t, "waiting for handler", health(t, c, 0).State)
		require.EqualValues(t, 1, b.stored("T", 0))
		close(gate)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, "0 1 2 3 4 1 2 3 4 5", o.String())
		require.NoError(t, c.stop())
		require.EqualValues(t, 6, b.stored("T", 0))
	})
}

// The names that a broker and its tools know an ordered consumer by.
func TestOrderedLogsAndStates(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "m")
		gate := make(chan struct{})
		logs := &logRecords{}
		c := start(t, newOrdered(t, b.client(rocketmq.WithLogger(slog.New(logs))), each(func(context.Context, *rocketmq.MessageView) error {
			<-gate
			return nil
		})))
		synctest.Wait()
		began := time.Now()
		time.Sleep(90 * time.Second)
		h := health(t, c, 0)
		require.Equal(t, 90*time.Second, time.Since(h.BusySince).Round(time.Millisecond))
		require.Contains(t, h.String(), "handler busy since "+began.Format("2006-01-02T15:04"))
		require.Equal(t, 1, h.InFlight)
		close(gate)
		synctest.Wait()
		require.True(t, health(t, c, 0).BusySince.IsZero())
		require.NoError(t, c.stop())
		require.Zero(t, logs.with("reason"))
	})
}

// An offset that is moved while another member has the lock is his to move: when
// the lock comes back the queue goes on where he has got, be that before what was
// done here.
func TestOrderedOffsetResetWithoutTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 4)
		var o order
		c := start(t, newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			o.see(m)
			return nil
		})))
		synctest.Wait()
		require.Equal(t, "0 1 2 3", o.String())
		b.steal("T", 0, "thief")
		time.Sleep(21 * time.Second)
		require.Equal(t, "lock lost", health(t, c, 0).State)
		table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{{Topic: "T", Broker: "b"}: 1}}
		require.NoError(t, b.member().CallOneway(&wire.Command{
			Code: wire.ReqResetConsumerClientOffset, Ext: &wire.ResetOffsetRequest{Topic: "T", Group: "G"}, Body: table.AppendJSON(nil),
		}))
		synctest.Wait()
		require.Equal(t, "lock lost", health(t, c, 0).State)
		b.mu.Lock()
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 2
		b.mu.Unlock()
		b.steal("T", 0, "")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, "0 1 2 3 2 3", o.String())
		require.NoError(t, c.stop())
	})
}
