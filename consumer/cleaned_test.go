package consumer_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// TestC42_CleanedUpQueue: all that the group has not consumed has expired. The
// broker says where to go on, in one of the ways that brokers have, and the
// consumer commits that without waiting for a message.
func TestC42_CleanedUpQueue(t *testing.T) {
	for name, code := range map[string]int32{
		"offset moved": wire.RespPullOffsetMoved, "no new message": wire.RespPullNotFound, "retry at once": wire.RespPullRetryImmediately,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				b.topics["T"].min[0] = 2020
				b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 0
				var pulls, told atomic.Int32
				b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
					pulls.Add(1)
					var h wire.PullRequest
					_ = h.DecodeExt(r.Frame())
					if h.Offset >= 2020 {
						return false
					}
					told.Add(1)
					r.Reply(code, "", &wire.PullResponse{NextOffset: 2020, MinOffset: 2020, MaxOffset: 2020}, nil)
					return true
				})
				var got received
				c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler())))
				time.Sleep(6 * time.Second)
				synctest.Wait()
				require.EqualValues(t, 2020, b.stored("T", 0))
				require.EqualValues(t, 1, told.Load(), "it is told once and follows")
				require.LessOrEqual(t, pulls.Load(), int32(2), "then it waits for messages")
				require.Empty(t, got.bodies())
				h := c.Health().Queues[0]
				require.NoError(t, h.LastError)
				require.Zero(t, h.Lag)
				b.put("T", 0, "first")
				synctest.Wait()
				require.Equal(t, map[string]int{"first": 1}, got.bodies())
				require.NoError(t, c.stop())
				require.EqualValues(t, 2021, b.stored("T", 0))
			})
		})
	}
}

// TestC42_OffsetBeyondTheMaximum: the topic was deleted and made again. The
// group's offset goes back to where the queue is.
func TestC42_OffsetBeyondTheMaximum(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 5000
		for range 3 {
			b.put("T", 0, "old")
		}
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler())))
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 3, b.stored("T", 0))
		b.put("T", 0, "new")
		synctest.Wait()
		require.Equal(t, map[string]int{"new": 1}, got.bodies())
		require.NoError(t, c.stop())
		require.EqualValues(t, 4, b.stored("T", 0))
	})
}
