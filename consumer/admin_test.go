package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

func TestStatusAndRunningInfo(t *testing.T) {
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

		f, err = b.member().Call(context.Background(), &wire.Command{Code: wire.ReqGetConsumerRunningInfo, Ext: &wire.RunningInfoRequest{Group: "G", JStack: true}})
		require.NoError(t, err)
		info, err := wire.DecodeRunningInfo(f.Body)
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Queues[wire.MessageQueue{Topic: "T", Broker: "b", QueueID: 1}].CommitOffset)
		require.Equal(t, "20", info.Properties[wire.InfoPoolSize])
		require.Contains(t, info.Stack, "goroutine")
		require.Len(t, info.Subscriptions, 2)
		require.NoError(t, c.stop())
	})
}

func TestConsumeDirectly(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			switch string(m.Body) {
			case "bad":
				return errors.New("refused")
			case "worse":
				panic("at the disco")
			}
			return nil
		}))))
		call := func(body string) wire.ConsumeDirectlyResult {
			r := wire.Record{Topic: []byte("T"), Body: []byte(body), QueueOffset: 77}
			f, err := b.member().Call(context.Background(), &wire.Command{
				Code: wire.ReqConsumeMessageDirectly, Ext: &wire.ConsumeDirectlyRequest{Group: "G", BrokerName: "b"}, Body: wire.AppendRecord(nil, &r),
			})
			require.NoError(t, err)
			res, err := wire.DecodeConsumeDirectlyResult(f.Body)
			require.NoError(t, err)
			return res
		}
		require.Equal(t, wire.ResultSuccess, call("good").Result)
		bad := call("bad")
		require.Equal(t, wire.ResultLater, bad.Result)
		require.Equal(t, "refused", bad.Remark)
		require.Contains(t, call("worse").Remark, "at the disco")
		require.NoError(t, c.stop())
		require.Empty(t, b.sendBacks)
	})
}

// A thousand idle queues wait at the broker: that takes no goroutine each.
func TestIdleQueuesTakeNoGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1000)
		before := runtime.NumGoroutine()
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		synctest.Wait()
		require.Equal(t, 1000, assigned(c))
		require.Less(t, runtime.NumGoroutine()-before, 40)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Less(t, runtime.NumGoroutine()-before, 40)
		require.Equal(t, 1000, assigned(c))
		require.NoError(t, c.stop())
	})
}
