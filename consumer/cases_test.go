package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// C29: one poison message, and a thousand. The broker takes them back: they
// are done here, and the offset passes them.
func TestC29_PanickingHandlerSentBack(t *testing.T) {
	for _, poison := range []int{1, 1000} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 4)
				const n = 4000
				for i := range n {
					body := "good"
					if i%(n/poison) == 0 {
						body = "poison"
					}
					b.put("T", i%4, body)
				}
				var good atomic.Int32
				logs := &logRecords{}
				c := start(t, newPush(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.StartFrom(rocketmq.Earliest()),
					consumer.Subscribe("T", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
						if string(m.Body) == "poison" {
							panic("poison")
						}
						good.Add(1)
						return nil
					}))))
				synctest.Wait()
				require.EqualValues(t, n-poison, good.Load(), "all others are consumed")
				require.Len(t, b.sendBacks, poison)
				require.Equal(t, poison, logs.with("stack"), "one stack each")
				require.NoError(t, c.stop())
				for q := range 4 {
					require.EqualValues(t, n/4, b.stored("T", q))
				}
			})
		})
	}
}

// C29 with a broker that takes messages neither back nor as new ones: they stay
// here, are tried again every 5 s with a rising attempt, and hold the offset. All
// 20 slots remain usable.
func TestC29_PanickingHandlerKeptHere(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for _, code := range []int32{wire.ReqConsumerSendMsgBack, wire.ReqSendMessageV2} {
			b.on(code, func(r *remoting.Request) bool {
				r.Reply(wire.RespRequestCodeNotSupported, "", nil, nil)
				return true
			})
		}
		for i := range 100 {
			b.put("T", 0, fmt.Sprint(i))
		}
		var mu sync.Mutex
		var attempts []int
		var views []*rocketmq.MessageView
		cured := false
		done := map[string]bool{}
		var busy, most atomic.Int32
		logs := &logRecords{}
		c := start(t, newPush(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				if n := busy.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer busy.Add(-1)
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if m.Offset == 7 {
					attempts, views = append(attempts, m.Attempt), append(views, m)
					if !cured {
						panic(errors.New("poison"))
					}
				}
				done[string(m.Body)] = true
				return nil
			}))))
		time.Sleep(17 * time.Second)
		synctest.Wait()
		mu.Lock()
		require.Equal(t, []int{1, 2, 3, 4}, attempts)
		require.Equal(t, 1, views[0].Attempt, "what a handler has is not changed under it")
		require.Len(t, done, 99)
		mu.Unlock()
		require.EqualValues(t, 7, b.stored("T", 0), "the offset waits for the poison message")
		require.Equal(t, 4, logs.with("stack"))
		most.Store(0)
		for i := range 100 {
			b.put("T", 0, fmt.Sprint("more", i))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 20, most.Load(), "all slots are still there")
		mu.Lock()
		cured = true
		mu.Unlock()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 200, b.stored("T", 0))
		require.NoError(t, c.stop())
	})
}

// C29 on our broker: the poison message is tried again with a rising count, and
// after the last attempt it is among the dead letters. All others are handled once.
func TestC29_PoisonEndsAmongTheDeadLetters(t *testing.T) {
	t.Parallel()
	const n, poison = 10_000, "777"
	b := testbroker.New(t, testbroker.Topic("T", 4), testbroker.ManualClock(clusterStart))
	logs := &logRecords{}
	attempts := make(chan int, 8)
	got := newCounter(n - 1)
	h := got.handler()
	sendBatches(t, b.Client(t), n)
	c := start(t, newPush(t, b.Client(t, rocketmq.WithLogger(slog.New(logs))), consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(3),
		consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(ctx context.Context, msgs []*rocketmq.MessageView) error {
			if string(msgs[0].Body) == poison {
				attempts <- msgs[0].Attempt
				panic(poison)
			}
			return h.Handle(ctx, msgs)
		}))))
	got.wait(t)
	require.Equal(t, 1, next(t, attempts))
	for _, want := range []int{2, 3} {
		_, err := b.AdvanceToNext(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, next(t, attempts))
	}
	require.Eventually(t, func() bool { return len(b.DeadLetters("G")) == 1 }, patience, time.Millisecond)
	require.NoError(t, c.stop())
	require.Equal(t, poison, string(b.DeadLetters("G")[0].Body))
	require.Zero(t, b.Lag("G", "T"), "the offset has passed it")
	require.Equal(t, 3, logs.with("stack"), "one stack for each panic")
	for body, times := range got.bodies() {
		require.Equal(t, 1, times, body)
	}
	require.Empty(t, attempts)
}

// A handler that ends its goroutine has failed like one that panics.
func TestGoexitInHandler(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 50 {
			b.put("T", 0, fmt.Sprint(i))
		}
		var ok atomic.Int32
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				if m.Offset%2 == 0 {
					exit()
				}
				ok.Add(1)
				return nil
			}), consumer.Concurrency(2))))
		synctest.Wait()
		require.EqualValues(t, 25, ok.Load())
		require.Len(t, b.sendBacks, 25)
		require.NoError(t, c.stop())
		require.EqualValues(t, 50, b.stored("T", 0))
	})
}

// C33: what each policy asks the broker, and where it begins. The fake answers
// code 14 as 5.3.3 does: 0 for a young queue unless told not to.
func TestC33_StartPolicyOfANewGroup(t *testing.T) {
	type want struct {
		first   int64 // offset of the first pull
		setZero bool  // the request says setZeroIfNotFound=false
		asked   []int32
	}
	cases := []struct {
		name     string
		position func() rocketmq.Position
		young    want // queue with minimum 0
		old      want // queue with minimum 100
		empty    want
	}{
		{"earliest", rocketmq.Earliest, want{0, false, nil}, want{100, false, []int32{wire.ReqGetMinOffset}}, want{0, false, nil}},
		{"latest", rocketmq.Latest, want{0, false, nil}, want{110, false, []int32{wire.ReqGetMaxOffset}}, want{0, false, nil}},
		{"strict latest", rocketmq.StrictLatest, want{10, true, []int32{wire.ReqGetMaxOffset}}, want{110, true, []int32{wire.ReqGetMaxOffset}}, want{0, true, []int32{wire.ReqGetMaxOffset}}},
		{"time", func() rocketmq.Position { return rocketmq.AtTime(time.Now().Add(-5500 * time.Millisecond)) },
			want{5, true, []int32{wire.ReqSearchOffsetByTimestamp}}, want{105, true, []int32{wire.ReqSearchOffsetByTimestamp}}, want{0, true, []int32{wire.ReqSearchOffsetByTimestamp}}},
		{"time in another zone", func() rocketmq.Position {
			return rocketmq.AtTime(time.Now().Add(-5500 * time.Millisecond).In(time.FixedZone("", 8*3600)))
		}, want{5, true, []int32{wire.ReqSearchOffsetByTimestamp}}, want{105, true, []int32{wire.ReqSearchOffsetByTimestamp}}, want{0, true, []int32{wire.ReqSearchOffsetByTimestamp}}},
		{"offset", func() rocketmq.Position { return rocketmq.AtOffset(3) }, want{3, true, nil}, want{3, true, nil}, want{3, true, nil}},
	}
	for _, c := range cases {
		for queue, w := range map[string]want{"young": c.young, "old": c.old, "empty": c.empty} {
			t.Run(c.name+" "+queue, func(t *testing.T) {
				bubble(t, func(t *testing.T, b *fake) {
					b.topic("T", 1)
					if queue == "old" {
						b.topics["T"].min[0] = 100
					}
					if queue != "empty" {
						for i := range 10 {
							b.put("T", 0, fmt.Sprint(i))
							time.Sleep(time.Second)
						}
					}
					var got received
					p := start(t, newPush(t, b.client(), consumer.StartFrom(c.position()), consumer.Subscribe("T", selector.All, got.handler())))
					synctest.Wait()
					require.EqualValues(t, w.first, b.pulls[0].Offset)
					require.Equal(t, w.setZero, b.queries[0].HasSetZero)
					require.False(t, b.queries[0].SetZero)
					require.Equal(t, w.asked, b.other)
					if w.asked != nil || c.name == "offset" {
						require.EqualValues(t, w.first, b.commits[0].Offset, "a computed start is stored before anything is handled")
					}
					if c.name != "offset" {
						b.put("T", 0, "next")
						synctest.Wait()
						require.Equal(t, 1, got.bodies()["next"], "what is sent after Ready is delivered")
					}
					require.NoError(t, p.stop())
				})
			})
		}
	}
}

// C33: a stored offset wins over the policy, and "could not ask" is no answer.
func TestC33_StoredOffsetAndFailureToAsk(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 10 {
			b.put("T", 0, fmt.Sprint(i))
		}
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 8
		var refusals atomic.Int32
		b.on(wire.ReqQueryConsumerOffset, func(r *remoting.Request) bool {
			if refusals.Add(1) > 3 {
				return false
			}
			r.Reply(wire.RespSystemError, "busy", nil, nil)
			return true
		})
		began := time.Now()
		var got received
		p := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Equal(t, map[string]int{"8": 1, "9": 1}, got.bodies())
		require.GreaterOrEqual(t, time.Since(began), time.Second, "ready only when the offset was had")
		require.NoError(t, p.stop())
	})
}

// slowTwenty starts a consumer with 20 handlers that take d, all busy, and a cache
// that is full.
func slowTwenty(t *testing.T, b *fake, d time.Duration) (*running, *received, *atomic.Int32) {
	b.topic("T", 4)
	for i := range 200 {
		b.put("T", i%4, fmt.Sprint(i))
	}
	var got received
	var cancelled atomic.Int32
	c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("T", selector.All, consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
			select {
			case <-time.After(d):
				got.add(m)
				return nil
			case <-ctx.Done():
				if errors.Is(context.Cause(ctx), rocketmq.ErrClosed) {
					cancelled.Add(1)
				}
				return context.Cause(ctx)
			}
		}), consumer.Cache(40, 1<<20))))
	synctest.Wait()
	inFlight := 0
	for _, q := range c.Health().Queues {
		inFlight += q.InFlight
		require.Equal(t, "cache full", q.State)
	}
	require.Equal(t, 20, inFlight)
	return c, &got, &cancelled
}

func TestC53_DrainingClose(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		c, got, cancelled := slowTwenty(t, b, 2*time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		began := time.Now()
		require.NoError(t, c.Close(ctx))
		assert.InDelta(t, 2, time.Since(began).Seconds(), 0.3)
		require.NoError(t, <-c.result)
		require.Zero(t, cancelled.Load())
		require.Len(t, got.bodies(), 20)
		require.NoError(t, c.Close(context.Background()), "a second call does nothing")

		// After a restart only what was not handled comes.
		again := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		for body, n := range got.bodies() {
			require.Equal(t, 1, n, "message %s", body)
		}
		require.Len(t, got.bodies(), 200)
		require.NoError(t, again.stop())
	})
}

func TestC53_DrainLimit(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		c, got, cancelled := slowTwenty(t, b, 2*time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := c.Close(ctx)
		assert.InDelta(t, 0.5, time.Since(began).Seconds(), 0.2)
		var de *consumer.DrainError
		require.ErrorAs(t, err, &de)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Same(t, de, err)
		require.Equal(t, 20, de.Handlers)
		n := 0
		for _, q := range de.Queues {
			require.Equal(t, "T", q.Queue.Topic)
			n += len(q.Offsets)
		}
		require.Equal(t, 20, n)
		require.ErrorAs(t, <-c.result, &de)
		synctest.Wait()
		require.EqualValues(t, 20, cancelled.Load(), "handlers are told")
		require.Empty(t, got.bodies())
		require.Empty(t, b.sendBacks, "what was cut short by us is no failure of the message")
		require.NoError(t, c.Close(context.Background()))
		for q := range 4 {
			require.LessOrEqual(t, b.stored("T", q), int64(0), "nothing counts as done")
		}
	})
}

func TestC53_DrainTimeoutOfRun(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "stuck")
		release := make(chan struct{})
		p := newPush(t, b.client(), consumer.WithDrainTimeout(3*time.Second), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error {
				<-release // ignores its context
				return nil
			})))
		c := start(t, p)
		synctest.Wait()
		began := time.Now()
		var de *consumer.DrainError
		require.ErrorAs(t, c.stop(), &de)
		assert.InDelta(t, 3, time.Since(began).Seconds(), 0.2)
		require.Equal(t, []int64{0}, de.Queues[0].Offsets)
		require.Contains(t, de.Error(), "T/b/0 offsets [0]")
		close(release)
	})
}

func TestC53_IdleClose(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 8)
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		time.Sleep(7 * time.Second)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, c.Close(context.Background()))
		require.Less(t, time.Since(began), 200*time.Millisecond)
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestCloseBeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		p := newPush(t, b.client(), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)))
		require.NoError(t, p.Close(context.Background()))
		require.ErrorIs(t, p.Run(context.Background()), rocketmq.ErrClosed)
	})
}

func TestClientCloseClosesItsConsumers(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		cl := b.client()
		c := start(t, newPush(t, cl, consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		require.NoError(t, cl.Close(context.Background()))
		require.NoError(t, <-c.result)
		require.Equal(t, []string{"G"}, b.left)
		require.ErrorIs(t, newPush(t, cl, consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))).Run(context.Background()), rocketmq.ErrClosed)
	})
}

// C33 on 4.9: the broker answers 0 whatever it is told, and says its version.
// That cannot be told from a stored 0; it is logged, once a topic.
func TestC33_OldBrokerIsWarnedAbout(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		b.on(wire.ReqQueryConsumerOffset, func(r *remoting.Request) bool {
			r.ReplyAppend(oldBroker{})
			return true
		})
		logs := &logRecords{}
		c := start(t, newPush(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.StartFrom(rocketmq.StrictLatest()),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		require.Equal(t, 1, logs.with("start"))
		require.NoError(t, c.stop())
	})
}

// oldBroker answers offset 0 as 4.9.7 does, version 407.
type oldBroker struct{}

func (oldBroker) AppendResponse(dst []byte, h wire.Head) []byte {
	at := len(dst)
	h.Code = wire.RespSuccess
	e := wire.Begin(dst, h)
	(&wire.OffsetResponse{}).EncodeExt(&e)
	out := e.Finish(nil)
	return append(out[:at], bytes.Replace(out[at:], []byte(`"version":479`), []byte(`"version":407`), 1)...)
}
