package consumer_test

import (
	"context"
	"errors"
	"log/slog"
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

// alarm takes the reports of stuck queues.
type alarm struct {
	mu   sync.Mutex
	list []consumer.Stuck
	at   []time.Time
}

func (a *alarm) ring(s consumer.Stuck) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list, a.at = append(a.list, s), append(a.at, time.Now())
}

func (a *alarm) option(d time.Duration) consumer.Option { return consumer.WithStuckAfter(d, a.ring) }

func (a *alarm) reports() []consumer.Stuck {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]consumer.Stuck(nil), a.list...)
}

// once waits until a first report could have come and returns it.
func (a *alarm) once(t *testing.T, d time.Duration) consumer.Stuck {
	t.Helper()
	time.Sleep(2 * d)
	synctest.Wait()
	require.Len(t, a.reports(), 1)
	return a.reports()[0]
}

func TestStuckHandler(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 2)
		putMany(b, 0, 0, 100)
		a := &alarm{}
		gate := make(chan struct{})
		c := start(t, join(a.option(10*time.Second), each(func(context.Context, *rocketmq.MessageView) error { <-gate; return nil })))
		began := time.Now()
		s := a.once(t, 10*time.Second)
		require.Equal(t, rocketmq.StuckHandler, s.Reason)
		require.Equal(t, rocketmq.Queue{Topic: "T", Broker: "b"}, s.Queue)
		require.Equal(t, "G", s.Group)
		require.EqualValues(t, 100, s.Lag)
		require.Equal(t, 100, s.Cached)
		require.InDelta(t, 0, s.BusySince.Sub(began).Seconds(), 0.1)
		require.InDelta(t, 11.2, a.at[0].Sub(began).Seconds(), 1.3)
		h := health(t, c, 0)
		require.Equal(t, rocketmq.StuckHandler, h.Stuck)
		require.Equal(t, s.Since, h.StuckSince)
		require.Contains(t, h.String(), "stuck since")
		require.Empty(t, health(t, c, 1).Stuck)
		time.Sleep(time.Minute)
		require.Len(t, a.reports(), 1, "once an episode")
		close(gate)
		time.Sleep(5 * time.Second)
		require.Empty(t, health(t, c, 0).Stuck)
		gate = make(chan struct{})
		putMany(b, 0, 100, 150)
		time.Sleep(20 * time.Second)
		require.Len(t, a.reports(), 2, "and once the next")
		close(gate)
		require.NoError(t, c.stop())
	})
}

// A handler that takes long is no alarm if nothing waits behind it, and neither is
// a queue without messages, or one that is slow and goes on.
func TestNotStuck(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 2)
		b.topic("U", 1)
		b.put("T", 0, "slow")
		for range 20 {
			b.put("U", 0, "one each 8 s")
		}
		a := &alarm{}
		c := start(t, join(a.option(10*time.Second), each(func(context.Context, *rocketmq.MessageView) error {
			time.Sleep(time.Minute)
			return nil
		}), consumer.Subscribe("U", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error {
			time.Sleep(8 * time.Second)
			return nil
		}), consumer.Concurrency(1))))
		time.Sleep(150 * time.Second)
		synctest.Wait()
		require.Empty(t, a.reports())
		require.NoError(t, c.stop())
	})
}

func TestPausedIsNotStuck(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		putMany(b, 0, 0, 100)
		a := &alarm{}
		p := join(a.option(10*time.Second), each(func(context.Context, *rocketmq.MessageView) error { time.Sleep(time.Second); return nil }))
		c := start(t, p)
		synctest.Wait()
		require.NoError(t, p.(valve).Pause("T"))
		time.Sleep(5 * time.Minute)
		require.Empty(t, a.reports())
		require.NoError(t, p.(valve).Resume("T"))
		time.Sleep(5 * time.Second)
		require.Empty(t, a.reports())
		require.NoError(t, c.stop())
	})
}

func TestStuckForRate(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		putMany(b, 0, 0, 10)
		a := &alarm{}
		c := start(t, join(a.option(10*time.Second), each(func(context.Context, *rocketmq.MessageView) error { return nil }, consumer.Rate(0.01))))
		require.Equal(t, rocketmq.StuckRate, a.once(t, 10*time.Second).Reason)
		require.NoError(t, c.stop())
	})
}

// The handlers of one queue have all the places: the others wait for them.
func TestStuckForPlaces(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 2)
		a := &alarm{}
		gate := make(chan struct{})
		c := start(t, join(a.option(10*time.Second), each(func(context.Context, *rocketmq.MessageView) error { <-gate; return nil }, consumer.Concurrency(1))))
		putMany(b, 0, 0, 1)
		synctest.Wait()
		putMany(b, 1, 0, 1)
		s := a.once(t, 10*time.Second)
		require.Equal(t, rocketmq.StuckPlaces, s.Reason)
		require.Equal(t, 1, s.Queue.ID)
		close(gate)
		require.NoError(t, c.stop())
	})
}

func TestStuckBecauseOfTheCache(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 100)
		a := &alarm{}
		gate := make(chan struct{})
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), a.option(10*time.Second),
			each(func(context.Context, *rocketmq.MessageView) error { <-gate; return nil }, consumer.Cache(20, 1<<20), consumer.Concurrency(40))))
		s := a.once(t, 10*time.Second)
		require.Equal(t, rocketmq.StuckHandler, s.Reason, "no message is in the cache that is not with a handler, but at the broker there are more")
		require.True(t, s.CacheFull)
		require.Contains(t, s.String(), "cache full")
		close(gate)
		require.NoError(t, c.stop())
	})
}

// A message that nobody takes back holds the offset.
func TestStuckForRetries(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "m")
		for _, code := range []int32{wire.ReqConsumerSendMsgBack, wire.ReqSendMessageV2} {
			b.on(code, func(r *remoting.Request) bool {
				r.Reply(wire.RespRequestCodeNotSupported, "", nil, nil)
				return true
			})
		}
		a := &alarm{}
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), a.option(10*time.Second),
			each(func(context.Context, *rocketmq.MessageView) error { return errNo })))
		require.Equal(t, rocketmq.StuckRetry, a.once(t, 10*time.Second).Reason)
		require.NoError(t, c.stop())
	})
}

func TestStuckInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 3)
		putMany(b, 0, 0, 10)
		a := &alarm{}
		gate := make(chan struct{})
		c := start(t, newOrdered(t, b.client(), a.option(15*time.Second), each(func(ctx context.Context, m *rocketmq.MessageView) error {
			if m.Queue.ID == 0 {
				return errNo
			}
			<-gate
			return nil
		})))
		require.Equal(t, rocketmq.StuckSuspended, a.once(t, 15*time.Second).Reason, "it fails again and again")
		b.steal("T", 1, "thief")
		time.Sleep(50 * time.Second)
		synctest.Wait()
		require.Len(t, a.reports(), 2)
		require.Equal(t, rocketmq.StuckLock, a.reports()[1].Reason)
		require.Equal(t, 1, a.reports()[1].Queue.ID)
		require.Equal(t, "lock lost", health(t, c, 1).State)
		require.Equal(t, rocketmq.StuckLock, health(t, c, 1).Stuck)

		// Its offset is moved while a handler is at it that does not return.
		putMany(b, 2, 0, 10)
		synctest.Wait()
		table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{{Topic: "T", Broker: "b", QueueID: 2}: 5}}
		require.NoError(t, b.member().CallOneway(&wire.Command{
			Code: wire.ReqResetConsumerClientOffset, Ext: &wire.ResetOffsetRequest{Topic: "T", Group: "G", Force: true}, Body: table.AppendJSON(nil),
		}))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Len(t, a.reports(), 3)
		require.Equal(t, rocketmq.StuckPredecessor, a.reports()[2].Reason)
		close(gate)
		require.NoError(t, c.stop())
	})
}

// A broker that is away, and one that takes pulls and does not answer.
func TestStuckForTheBroker(t *testing.T) {
	for name, h := range map[string]func(r *remoting.Request) bool{
		"refuses": func(r *remoting.Request) bool { r.Reply(wire.RespSystemError, "busy", nil, nil); return true },
		"silent":  func(r *remoting.Request) bool { r.Drop(); return true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				a, s := &alarm{}, &spy{}
				c := start(t, newPush(t, b.client(rocketmq.WithHooks(s)), consumer.StartFrom(rocketmq.Earliest()), a.option(20*time.Second),
					consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
				b.on(wire.ReqPullMessage, h)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				require.Len(t, a.reports(), 1)
				require.Equal(t, rocketmq.StuckBroker, a.reports()[0].Reason)
				require.Equal(t, a.reports(), s.stuck, "the hook is told the same")
				if name == "refuses" {
					require.ErrorContains(t, a.reports()[0].Err, "busy")
				}
				require.Equal(t, rocketmq.StuckBroker, health(t, c, 0).Stuck)
				b.on(wire.ReqPullMessage, nil)
				time.Sleep(50 * time.Second)
				require.Empty(t, health(t, c, 0).Stuck)
				time.Sleep(time.Minute)
				require.Len(t, a.reports(), 1)
				require.NoError(t, c.stop())
			})
		})
	}
}

// A broker that says that there are messages and gives none.
func TestStuckPulling(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			r.Reply(wire.RespPullNotFound, "", &wire.PullResponse{MaxOffset: 7}, nil)
			return true
		})
		a := &alarm{}
		c := start(t, newPush(t, b.client(), a.option(10*time.Second), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		s := a.once(t, 10*time.Second)
		require.Equal(t, rocketmq.StuckPulling, s.Reason)
		require.EqualValues(t, 7, s.Lag)
		require.NoError(t, c.stop())
	})
}

// A function that panics is no harm, and bad options are refused.
func TestStuckOptions(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		logs, s := &logRecords{}, &spy{}
		c := start(t, newPush(t, b.client(rocketmq.WithLogger(slog.New(logs)), rocketmq.WithHooks(s)), consumer.StartFrom(rocketmq.Earliest()),
			consumer.WithStuckAfter(10*time.Second, func(consumer.Stuck) { panic("at the disco") }), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool { r.Reply(wire.RespSystemError, "busy", nil, nil); return true })
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 2, logs.with("stack"))
		require.NoError(t, c.stop())
		_, err := consumer.NewPush(b.client(), "G", consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)), consumer.WithStuckAfter(0, nil))
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		_, err = consumer.NewPush(b.client(), "G", consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)), consumer.WithStuckAfter(time.Second, nil))
		require.NoError(t, err)
	})
}

// A handler that ends with its context has failed with the cause.
func TestHandlerTimeoutIsAFailure(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		putMany(b, 0, 0, 3)
		var causes, done atomic.Int32
		c := start(t, join(consumer.WithHandlerTimeout(5*time.Second), each(func(ctx context.Context, m *rocketmq.MessageView) error {
			if m.Offset == 1 && m.Attempt == 1 {
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), consumer.ErrHandlerTimeout) && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					causes.Add(1)
				}
				return context.Cause(ctx)
			}
			done.Add(1)
			return nil
		}, consumer.Concurrency(1))))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, causes.Load())
		require.NoError(t, c.stop())
		require.EqualValues(t, 3, b.stored("T", 0))
		require.EqualValues(t, 3, int(done.Load())+len(b.sendBacks), "the other messages are handled")
	})
}

// One that ignores its context: its message is retried, offset and queue go on,
// and what it returns later counts no more.
func TestHandlerThatIgnoresItsTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 100)
		s := &spy{}
		gate := make(chan struct{})
		var done atomic.Int32
		began := time.Now()
		c := start(t, newPush(t, b.client(rocketmq.WithHooks(s)), consumer.StartFrom(rocketmq.Earliest()), consumer.WithHandlerTimeout(5*time.Second),
			consumer.WithDrainTimeout(3*time.Second), each(func(_ context.Context, m *rocketmq.MessageView) error {
				if m.Offset == 10 {
					<-gate
					return nil
				}
				done.Add(1)
				return nil
			}, consumer.Concurrency(2))))
		time.Sleep(5500 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 99, done.Load())
		require.EqualValues(t, 10, b.stored("T", 0), "it may still return")
		b.mu.Lock()
		require.Empty(t, b.sendBacks)
		b.mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Len(t, b.sendBacks, 1)
		require.EqualValues(t, 10, b.sendBacks[0].Offset)
		require.Equal(t, "retry", s.of("10").Outcome.String())
		require.ErrorIs(t, s.of("10").Err, consumer.ErrHandlerTimeout)
		require.EqualValues(t, 100, health(t, c, 0).Committed)
		require.InDelta(t, 0, health(t, c, 0).BusySince.Sub(began).Seconds(), 0.1, "its place is taken all the same")
		putMany(b, 0, 100, 110)
		synctest.Wait()
		require.EqualValues(t, 109, done.Load())
		close(gate)
		synctest.Wait()
		require.Len(t, s.outcomes()["10"], 1)
		require.Len(t, b.sendBacks, 1)
		require.True(t, health(t, c, 0).BusySince.IsZero())
		require.NoError(t, c.stop())
		require.EqualValues(t, 110, b.stored("T", 0))
	})
}

// In order nothing comes before the handler has returned.
func TestOrderedHandlerThatIgnoresItsTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 3)
		var o order
		c := start(t, newOrdered(t, b.client(), consumer.WithHandlerTimeout(time.Second), each(func(_ context.Context, m *rocketmq.MessageView) error {
			o.see(m)
			if m.Offset == 1 {
				time.Sleep(20 * time.Second)
			}
			return nil
		})))
		time.Sleep(15 * time.Second)
		require.Equal(t, "0 1", o.String())
		time.Sleep(15 * time.Second)
		require.Equal(t, "0 1 2", o.String(), "and what it returns counts")
		require.NoError(t, c.stop())
	})
}

// Handlers that never return take the places one after the other; the messages go on as
// long as there is one, and the consumer says why it stands still then.
func TestHandlersThatNeverReturn(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 50)
		a := &alarm{}
		gate := make(chan struct{})
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), a.option(30*time.Second), consumer.WithDrainTimeout(time.Second),
			consumer.WithHandlerTimeout(time.Second), each(func(_ context.Context, m *rocketmq.MessageView) error {
				if m.Offset%10 == 0 {
					<-gate
				}
				return nil
			}, consumer.Concurrency(4))))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, b.sendBacks, 4)
		require.EqualValues(t, 31, health(t, c, 0).Committed)
		require.Len(t, a.reports(), 1)
		require.Equal(t, rocketmq.StuckHandler, a.reports()[0].Reason)
		close(gate)
		synctest.Wait()
		require.Len(t, b.sendBacks, 4)
		require.NoError(t, c.stop())
		require.EqualValues(t, 50, b.stored("T", 0))
	})
}
