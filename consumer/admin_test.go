package consumer_test

import (
	"context"
	"errors"
	"fmt"
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

// member is the connection of the only member.
func (f *fake) member() *remoting.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.members {
		return c
	}
	return nil
}

// An operator resets the offsets through the broker (code 220), back and then
// forward.
func TestResetFromTheBroker(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		for i := range 20 {
			b.put("T", i%2, fmt.Sprint(i))
		}
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Len(t, got.bodies(), 20)
		q := wire.MessageQueue{Topic: "T", Broker: "b", QueueID: 1}
		reset := func(topic string, off int64) {
			table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{q: off}}
			require.NoError(t, b.member().CallOneway(&wire.Command{
				Code: wire.ReqResetConsumerClientOffset, Ext: &wire.ResetOffsetRequest{Topic: topic, Group: "G", Force: true}, Body: table.AppendJSON(nil),
			}))
			synctest.Wait()
		}
		reset("T", 4)
		require.Equal(t, 2, got.bodies()["9"])
		require.Equal(t, 2, got.bodies()["19"])
		require.Equal(t, 1, got.bodies()["7"])
		require.Equal(t, 1, got.bodies()["8"])
		reset("other", 0)
		require.Equal(t, 1, got.bodies()["1"])
		require.NoError(t, c.stop())
		require.EqualValues(t, 10, b.stored("T", 1))
	})
}

func TestConsumerStatus(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.put("T", 1, "m")
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.Tags("a"), consumer.HandlerFunc(nop))))
		synctest.Wait()
		f, err := b.member().Call(context.Background(), &wire.Command{Code: wire.ReqGetConsumerStatusFromClient, Ext: &wire.ConsumerStatusRequest{Topic: "T", Group: "G"}})
		require.NoError(t, err)
		st, err := wire.DecodeConsumerStatus(f.Body)
		require.NoError(t, err)
		require.Equal(t, map[wire.MessageQueue]int64{{Topic: "T", Broker: "b"}: 0, {Topic: "T", Broker: "b", QueueID: 1}: 1}, st.Queues)
		require.NoError(t, c.stop())
	})
}

// runningInfo is what a broker gets to its question (code 307).
func (f *fake) runningInfo(stack bool) wire.RunningInfo {
	f.tb.Helper()
	a, err := f.member().Call(context.Background(), &wire.Command{Code: wire.ReqGetConsumerRunningInfo, Ext: &wire.RunningInfoRequest{Group: "G", JStack: stack}})
	require.NoError(f.tb, err)
	info, err := wire.DecodeRunningInfo(a.Body)
	require.NoError(f.tb, err)
	return info
}

// Every field of Java's ConsumerRunningInfo that there is something for.
func TestRunningInfo(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.topic("U", 1)
		began := time.Now()
		time.Sleep(time.Minute)
		var fail atomic.Bool
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(4),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(context.Context, []*rocketmq.MessageView) error {
				time.Sleep(20 * time.Millisecond)
				if fail.Load() {
					return errNo
				}
				return nil
			}), consumer.Concurrency(7), consumer.Batch(3), consumer.Cache(500, 8<<20), consumer.Span(900)),
			consumer.Subscribe("U", selector.Tags("a", "b"), consumer.HandlerFunc(nop))))
		for i := range 20 {
			putMany(b, 1, 3*i, 3*i+3)
			time.Sleep(time.Second)
		}
		fail.Store(true)
		putMany(b, 1, 60, 66)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		last := time.Now()
		time.Sleep(4 * time.Second)
		info := b.runningInfo(false)
		require.Empty(t, info.Stack)
		want := map[string]string{
			wire.InfoNameserver: fakeNameServer, wire.InfoPoolSize: "27", wire.InfoOrderly: "false", wire.InfoType: "CONSUME_PASSIVELY",
			wire.InfoVersion: "V5_3_3", wire.InfoStart: fmt.Sprint(began.Add(time.Minute).UnixMilli()),
			"consumerGroup": "G", "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
			"consumeThreadMin": "27", "consumeThreadMax": "27", "consumeMessageBatchMaxSize": "3", "pullBatchSize": "32",
			"pullThresholdForQueue": "500", "pullThresholdSizeForQueue": "8", "consumeConcurrentlyMaxSpan": "900",
			"maxReconsumeTimes": "3", "allocateMessageQueueStrategy": "AVG",
		}
		require.Equal(t, want, info.Properties)
		q := info.Queues[wire.MessageQueue{Topic: "T", Broker: "b", QueueID: 1}]
		require.InDelta(t, last.UnixMilli(), q.LastConsumeTime, 110)
		require.InDelta(t, last.UnixMilli(), q.LastPullTime, 110)
		q.LastConsumeTime, q.LastPullTime = 0, 0
		require.Equal(t, wire.ProcessQueueInfo{CommitOffset: 66}, q)
		require.Len(t, info.Queues, 3)
		st := info.Status["T"]
		require.InDelta(t, 66/24.1, st.PullTPS, 0.1)
		require.InDelta(t, 60/24.1, st.OKTPS, 0.1)
		require.InDelta(t, 6/24.1, st.FailedTPS, 0.05)
		require.EqualValues(t, 6, st.FailedCount)
		require.InDelta(t, 20, st.ConsumeRT, 1)
		require.Positive(t, st.PullRT)
		require.Len(t, info.Status, 3)
		require.Zero(t, info.Status["U"])
		require.Len(t, info.Subscriptions, 3)
		require.Equal(t, "a || b", info.Subscriptions[1].Expr)

		time.Sleep(5 * time.Minute)
		st = b.runningInfo(false).Status["T"]
		require.Zero(t, st.OKTPS, "of the last minute")
		require.EqualValues(t, 6, st.FailedCount, "of the last hour")
		require.InDelta(t, 20, st.ConsumeRT, 1, "of the last hour if there was nothing in the last minute")
		require.Contains(t, b.runningInfo(true).Stack, "goroutine")
		require.NoError(t, c.stop())
	})
}

// What an ordered consumer has in hand is not in its cache.
func TestRunningInfoInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 10)
		gate := make(chan struct{})
		c := start(t, newOrdered(t, b.client(), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(_ context.Context, ms []*rocketmq.MessageView) error {
			if ms[0].Offset == 3 {
				<-gate
			}
			return nil
		}), consumer.Batch(3))))
		began := time.Now()
		synctest.Wait()
		info := b.runningInfo(false)
		require.Equal(t, "true", info.Properties[wire.InfoOrderly])
		q := info.Queues[wire.MessageQueue{Topic: "T", Broker: "b"}]
		require.InDelta(t, began.UnixMilli(), q.LastPullTime, 100)
		require.InDelta(t, began.UnixMilli(), q.LastLockTime, 100)
		q.LastPullTime, q.LastLockTime = 0, 0
		require.Equal(t, wire.ProcessQueueInfo{
			CommitOffset: 3, Locked: true, CachedCount: 4, CachedMinOffset: 6, CachedMaxOffset: 9, TransactionCount: 3, TransactionMin: 3, TransactionMax: 5,
		}, q)
		close(gate)
		require.NoError(t, c.stop())
	})
}

func TestRunningInfoOfABroadcast(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		c := start(t, newPush(t, b.client(), consumer.WithModel(consumer.Broadcasting), consumer.WithHandlerTimeout(15*time.Minute),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		p := b.runningInfo(false).Properties
		require.Equal(t, "BROADCASTING", p["messageModel"])
		require.Equal(t, "15", p["consumeTimeout"])
		require.Equal(t, "-1", p["maxReconsumeTimes"])
		require.NoError(t, c.stop())
	})
}

// mqadmin cannot do without the time of its start.
func TestRunningInfoOfASimpleConsumer(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, _ *fakePop) {
		time.Sleep(time.Minute)
		began := time.Now()
		b.put("T", 0, "m")
		s := newSimple(t, b.client(), fromT)
		time.Sleep(time.Minute)
		receive(t, s, 1, time.Minute)
		info := b.runningInfo(true)
		require.Equal(t, map[string]string{
			wire.InfoOrderly: "false", wire.InfoType: "CONSUME_POP", wire.InfoVersion: "V5_3_3", wire.InfoStart: fmt.Sprint(began.UnixMilli()),
		}, info.Properties)
		require.Contains(t, info.Status, "T")
		require.Contains(t, info.Stack, "goroutine")
	})
}

// An operator has one message handled (code 309): by the handler of its topic, with
// the middleware, whatever the pause, and nothing else happens.
func TestConsumeDirectly(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		b.topic("U", 1)
		var wrapped, other atomic.Int32
		p := join(consumer.WithMiddleware(func(next consumer.Handler) consumer.Handler {
			return consumer.HandlerFunc(func(ctx context.Context, ms []*rocketmq.MessageView) error {
				wrapped.Add(1)
				return next.Handle(ctx, ms)
			})
		}), consumer.Subscribe("U", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error { other.Add(1); return nil })),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(ctx context.Context, ms []*rocketmq.MessageView) error {
				switch string(ms[0].Body) {
				case "bad":
					return errors.New("refused")
				case "worse":
					panic("at the disco")
				case "batch":
					return consumer.BatchError{nil}
				case "dead":
					return consumer.DeadLetter(errNo)
				case "retried":
					if ms[0].Topic != "T" || ms[0].Attempt != 4 || ms[0].Offset != 77 || ms[0].Queue.Broker != "b" {
						return fmt.Errorf("%+v", ms[0])
					}
				case "gone":
					return ctx.Err()
				}
				return nil
			})))
		require.NoError(t, p.(valve).Pause("T"))
		c := start(t, p)
		ask := func(record []byte) (wire.ConsumeDirectlyResult, *wire.Frame) {
			f, err := b.member().Call(context.Background(), &wire.Command{
				Code: wire.ReqConsumeMessageDirectly, Ext: &wire.ConsumeDirectlyRequest{Group: "G", BrokerName: "b"}, Body: record,
			})
			require.NoError(t, err)
			if f.Code != wire.RespSuccess {
				return wire.ConsumeDirectlyResult{}, f
			}
			res, err := wire.DecodeConsumeDirectlyResult(f.Body)
			require.NoError(t, err)
			return res, f
		}
		call := func(topic, body string, props ...string) wire.ConsumeDirectlyResult {
			r := wire.Record{Topic: []byte(topic), Body: []byte(body), QueueOffset: 77, ReconsumeTimes: 3}
			withProps(props...)(&r)
			res, _ := ask(wire.AppendRecord(nil, &r))
			return res
		}
		_, ordered := p.(*consumer.Ordered)
		require.Equal(t, wire.ConsumeDirectlyResult{Order: ordered, AutoCommit: true, Result: wire.ResultSuccess}, call("T", "good"))
		bad := call("T", "bad")
		require.Equal(t, wire.ResultLater, bad.Result)
		require.Equal(t, "refused", bad.Remark)
		worse := call("T", "worse")
		require.Equal(t, wire.ResultException, worse.Result, "as when a listener of Java's throws")
		require.Contains(t, worse.Remark, "at the disco")
		require.Equal(t, wire.ResultSuccess, call("T", "batch").Result)
		require.Equal(t, wire.ResultLater, call("T", "dead").Result)
		require.Equal(t, wire.ResultSuccess, call("%RETRY%G", "retried", "RETRY_TOPIC", "T").Result)
		require.EqualValues(t, 6, wrapped.Load())
		require.Equal(t, wire.ResultSuccess, call("U", "x").Result)
		require.EqualValues(t, 1, other.Load())
		_, f := ask([]byte("no record"))
		require.EqualValues(t, wire.RespSystemError, f.Code)
		require.NoError(t, c.stop())
		require.Empty(t, b.sendBacks)
		require.Empty(t, b.sends)
		require.LessOrEqual(t, b.stored("T", 0), int64(0))
	})
}

// A thousand idle queues wait at the broker: that takes no goroutine each.
func TestIdleQueuesTakeNoGoroutines(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1000)
		before := goroutines(t)
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		synctest.Wait()
		require.Equal(t, 1000, assigned(c))
		require.Less(t, goroutines(t)-before, 40)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Less(t, goroutines(t)-before, 40)
		require.Equal(t, 1000, assigned(c))
		require.NoError(t, c.stop())
	})
}
