package consumer_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
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
)

// refuse answers a code with an error.
func refuse(r *remoting.Request) bool {
	r.Reply(wire.RespSystemError, "no", nil, nil)
	return true
}

// A message that the broker does not take back is sent to the retry topic, with
// the count, the delay and the history that a send-back gives it.
func TestFailedMessageIsSentIfItCannotBeSentBack(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		had   int32 // reconsumeTimes of the message
		opts  []consumer.Option
		count int32
		limit int32
		delay string
	}{
		"first":                 {errors.New("no"), 0, nil, 1, 0, "3"},
		"third":                 {errors.New("no"), 2, nil, 3, 0, "5"},
		"with a delay":          {consumer.RetryAfter(time.Minute, nil), 2, nil, 3, 0, "5"},
		"with a maximum":        {errors.New("no"), 0, []consumer.Option{consumer.WithMaxAttempts(5)}, 1, 4, "3"},
		"at the maximum":        {errors.New("no"), 4, []consumer.Option{consumer.WithMaxAttempts(5)}, 5, 4, ""},
		"beyond the maximum":    {errors.New("no"), 9, []consumer.Option{consumer.WithMaxAttempts(5)}, 10, 4, ""},
		"dead letter":           {consumer.DeadLetter(nil), 0, nil, 2, 1, ""},
		"dead letter, later on": {consumer.DeadLetter(nil), 7, nil, 8, 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				b.topic("%RETRY%G", 1)
				b.on(wire.ReqConsumerSendMsgBack, refuse)
				b.put("T", 0, "m", withProps("UNIQ_KEY", "id", "TAGS", "a", "TRAN_MSG", "true", "TIMER_DELIVER_MS", "5", "MSG_REGION", "r"),
					func(r *wire.Record) { r.ReconsumeTimes, r.Flag = tc.had, 77 })
				var calls atomic.Int32
				c := start(t, newPush(t, b.client(), append(tc.opts, consumer.StartFrom(rocketmq.Earliest()), each(func(context.Context, *rocketmq.MessageView) error {
					calls.Add(1)
					return tc.err
				}))...))
				synctest.Wait()
				require.Len(t, b.sends, 1)
				s := b.sends[0]
				require.Equal(t, "%RETRY%G", s.topic)
				require.Equal(t, "m", s.body)
				require.Equal(t, "CLIENT_INNER_PRODUCER", s.group)
				require.Equal(t, tc.count, s.h.ReconsumeTimes)
				require.Equal(t, tc.limit, s.h.MaxReconsumeTimes)
				require.EqualValues(t, 77, s.h.Flag)
				require.Zero(t, s.h.SysFlag)
				want := map[string]string{"UNIQ_KEY": "id", "TAGS": "a", "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": "0A00000200002A9F0000000000000000", "WAIT": "false"}
				if tc.delay != "" {
					want["DELAY"] = tc.delay
				}
				require.Equal(t, want, s.props.Map())
				require.NoError(t, c.stop())
				require.EqualValues(t, 1, calls.Load())
				require.EqualValues(t, 1, b.stored("T", 0), "it counts as done")
			})
		})
	}
}

// The first message's id and topic stay what they were over further rounds.
func TestResentRetryKeepsItsHistory(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("NS%T", 1)
		b.topic("%RETRY%NS%G", 1)
		b.on(wire.ReqConsumerSendMsgBack, refuse)
		b.put("%RETRY%NS%G", 0, "m", withProps("RETRY_TOPIC", "NS%T", "ORIGIN_MESSAGE_ID", "origin", "DELAY", "4", "REAL_TOPIC", "x", "REAL_QID", "0"),
			func(r *wire.Record) { r.ReconsumeTimes = 1 })
		c := start(t, newPush(t, b.client(rocketmq.WithNamespace("NS")), each(func(context.Context, *rocketmq.MessageView) error { return errors.New("no") })))
		synctest.Wait()
		require.Len(t, b.sends, 1)
		require.Equal(t, "%RETRY%NS%G", b.sends[0].topic)
		require.Equal(t, map[string]string{"RETRY_TOPIC": "NS%T", "ORIGIN_MESSAGE_ID": "origin", "DELAY": "4", "WAIT": "false"}, b.sends[0].props.Map())
		require.NoError(t, c.stop())
	})
}

// What was decompressed is sent as it is; what could not be stays compressed.
func TestResentCompressedMessage(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.on(wire.ReqConsumerSendMsgBack, refuse)
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, _ = w.Write([]byte("plain"))
		_ = w.Close()
		packed := func(r *wire.Record) { r.SysFlag = wire.SysCompressed | wire.SysCompressionZLIB | wire.SysMultiTags }
		b.put("T", 0, z.String(), packed)
		b.put("T", 0, "broken", packed)
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), each(func(context.Context, *rocketmq.MessageView) error { return errors.New("no") })))
		synctest.Wait()
		require.Len(t, b.sends, 2)
		sent := map[string]int32{}
		for _, s := range b.sends {
			sent[s.body] = s.h.SysFlag
		}
		require.Equal(t, map[string]int32{"plain": 0, "broken": wire.SysCompressed | wire.SysCompressionZLIB}, sent)
		require.NoError(t, c.stop())
	})
}

// A broker that cannot be had any more: another one of the retry topic takes the
// message.
func TestFailedMessageGoesToAnotherBroker(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		const otherAddr = "other:10911"
		var mu sync.Mutex
		var got []string
		ln, err := b.net.Listen(otherAddr)
		require.NoError(t, err)
		other := remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: func(r *remoting.Request) {
			if r.Frame().Code != wire.ReqSendMessageV2 {
				b.serve(r)
				return
			}
			mu.Lock()
			got = append(got, string(r.Frame().Body))
			mu.Unlock()
			r.Reply(wire.RespSuccess, "", &wire.SendResponse{OffsetMsgID: []byte("0")}, nil)
		}}})
		require.NoError(t, other.Serve(ln))
		defer func() { _ = other.Close(context.Background()) }()
		b.topic("T", 1)
		b.topic("%RETRY%G", 1)
		b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool {
			var h wire.RouteRequest
			_ = h.DecodeExt(r.Frame())
			if h.Topic != "%RETRY%G" {
				return false
			}
			d := wire.RouteData{
				Queues: []wire.QueueData{{BrokerName: "b", ReadQueues: 1, WriteQueues: 1, Perm: 6}, {BrokerName: "other", ReadQueues: 0, WriteQueues: 1, Perm: 6}},
				Brokers: []wire.BrokerData{
					{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: fakeBroker}}, {Cluster: "c", BrokerName: "other", Addrs: map[int64]string{0: otherAddr}},
				},
			}
			r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
			return true
		})
		b.on(wire.ReqConsumerSendMsgBack, refuse)
		b.on(wire.ReqSendMessageV2, refuse)
		b.put("T", 0, "m")
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), each(func(context.Context, *rocketmq.MessageView) error { return errors.New("no") })))
		synctest.Wait()
		mu.Lock()
		require.Equal(t, []string{"m"}, got)
		mu.Unlock()
		require.NoError(t, c.stop())
		require.EqualValues(t, 1, b.stored("T", 0))
	})
}

// The answer to a send-back that never comes: the copy is sent when the time for
// it is over. And a copy that is stored and not flushed yet is stored.
func TestSendBackIsNotAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.on(wire.ReqConsumerSendMsgBack, func(r *remoting.Request) bool { r.Drop(); return true })
		var sends atomic.Int32
		b.on(wire.ReqSendMessageV2, func(r *remoting.Request) bool {
			sends.Add(1)
			r.Reply(wire.RespFlushDiskTimeout, "", &wire.SendResponse{OffsetMsgID: []byte("0")}, nil)
			return true
		})
		b.put("T", 0, "m")
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), each(func(context.Context, *rocketmq.MessageView) error { return errors.New("no") })))
		time.Sleep(2 * time.Second)
		require.Zero(t, sends.Load())
		require.Zero(t, health(t, c, 0).Committed)
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1, sends.Load())
		require.EqualValues(t, 1, health(t, c, 0).Committed)
		require.NoError(t, c.stop())
	})
}

// The maximum of attempts travels with a send-back, and is ours to see, too.
func TestMaxAttemptsAndDeadLetters(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for _, had := range []int32{0, 1, 2, 5} {
			b.put("T", 0, "m", func(r *wire.Record) { r.ReconsumeTimes = had })
		}
		b.put("T", 0, "dead")
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(3), each(func(_ context.Context, m *rocketmq.MessageView) error {
			if string(m.Body) == "dead" {
				return consumer.DeadLetter(errors.New("no"))
			}
			return errors.New("no")
		})))
		synctest.Wait()
		levels := map[int64]int32{}
		for _, s := range b.sendBacks {
			levels[s.Offset] = s.DelayLevel
			require.EqualValues(t, 2, s.MaxReconsumeTimes)
		}
		require.Equal(t, map[int64]int32{0: 0, 1: 0, 2: -1, 3: -1, 4: -1}, levels)
		require.NoError(t, c.stop())
	})
}
