package producer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func handle(topic, broker string) string {
	h := wire.RecallHandle{Topic: topic, Broker: broker, DeliverTime: 1700000000001, MessageID: "AC1100010000"}
	return string(h.Append(nil))
}

func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0", "b=b:0")
		a, b := c.broker("a:0"), c.broker("b:0")
		var got wire.RecallRequest
		b.on(wire.ReqRecallMessage, func(q *remoting.Request) {
			if err := got.DecodeExt(q.Frame()); err != nil {
				q.Reply(wire.RespSystemError, err.Error(), nil, nil)
				return
			}
			q.Reply(wire.RespSuccess, "", &wire.RecallResponse{MsgID: "AC1100010000"}, nil)
		})
		p := c.producer(producer.WithGroup("pg"))
		id, err := p.Recall(t.Context(), "orders", handle("orders", "b"))
		require.NoError(t, err)
		require.Equal(t, "AC1100010000", id)
		require.Equal(t, wire.RecallRequest{Group: "pg", Topic: "orders", Handle: handle("orders", "b"), BrokerName: "b"}, got)
		require.Zero(t, a.count(wire.ReqRecallMessage), "only the broker that has the message is asked")

		b.on(wire.ReqRecallMessage, func(q *remoting.Request) { q.Reply(wire.RespSuccess, "", nil, nil) })
		_, err = p.Recall(t.Context(), "orders", handle("orders", "b"))
		require.ErrorContains(t, err, "recalled, but")
	})
}

// What is wrong with a handle is found without asking anybody.
func TestRecallOfWhatIsNoHandle(t *testing.T) {
	c := newCluster(t)
	p := c.producer()
	for h, why := range map[string]string{
		"":                         "empty",
		"no handle":                "base64",
		handle("other", "a"):       `topic "other"`,
		"djIgVG9waWNBIGIgMSBBQzEx": "version",
	} {
		_, err := p.Recall(t.Context(), "orders", h)
		require.ErrorIs(t, err, rocketmq.ErrNotRecallable, h)
		require.ErrorContains(t, err, why)
		require.False(t, rocketmq.IsRetryable(err))
	}
	require.Zero(t, c.ns.count(wire.ReqGetRouteInfoByTopic))
	_, err := p.Recall(t.Context(), "orders", handle("orders", "a"))
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
	require.NoError(t, p.Close(t.Context()))
	_, err = p.Recall(t.Context(), "orders", handle("orders", "a"))
	require.ErrorIs(t, err, rocketmq.ErrClosed)
}

func TestRecallRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0")
		a := c.broker("a:0")
		p := c.producer()
		for _, x := range []struct {
			code int32
			want error
			asks int
		}{
			{wire.RespIllegalOperation, rocketmq.ErrNotRecallable, 1},
			{wire.RespNoPermission, rocketmq.ErrNoPermission, 1},
			{wire.RespTopicNotExist, rocketmq.ErrTopicNotFound, 1},
			{wire.RespRequestCodeNotSupported, rocketmq.ErrUnsupported, 1},
			{wire.RespSystemBusy, rocketmq.ErrBusy, 3},
			{wire.RespServiceNotAvailable, rocketmq.ErrUnavailable, 3},
			{wire.RespSlaveNotAvailable, rocketmq.ErrUnavailable, 3},
		} {
			before := a.count(wire.ReqRecallMessage)
			a.on(wire.ReqRecallMessage, func(q *remoting.Request) { q.Reply(x.code, "the broker's words", nil, nil) })
			_, err := p.Recall(t.Context(), "orders", handle("orders", "a"))
			require.ErrorIs(t, err, x.want)
			require.NotErrorIs(t, err, rocketmq.ErrNotDurable)
			require.ErrorContains(t, err, "the broker's words")
			require.ErrorContains(t, err, "AC1100010000")
			require.Equal(t, x.asks, a.count(wire.ReqRecallMessage)-before)
		}
		_, err := p.Recall(t.Context(), "orders", handle("orders", "z"))
		require.ErrorIs(t, err, rocketmq.ErrUnavailable)
		require.ErrorContains(t, err, `"z"`)
	})
}

func TestRecallDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0")
		a := c.broker("a:0")
		var asks atomic.Int32
		a.on(wire.ReqRecallMessage, func(q *remoting.Request) {
			if asks.Add(1) == 2 {
				q.Reply(wire.RespSuccess, "", &wire.RecallResponse{MsgID: "ID"}, nil)
				return
			}
			q.Drop()
		})
		p := c.producer(producer.WithTimeout(5*time.Second, time.Second))
		id, err := p.Recall(t.Context(), "orders", handle("orders", "a"))
		require.NoError(t, err, "the second attempt is answered")
		require.Equal(t, "ID", id)

		start := time.Now()
		_, err = p.Recall(t.Context(), "orders", handle("orders", "a"))
		require.ErrorIs(t, err, rocketmq.ErrTimeout)
		require.InDelta(t, 3*time.Second, time.Since(start), float64(300*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = p.Recall(ctx, "orders", handle("orders", "a"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(start), 200*time.Millisecond)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = p.Recall(cancelled, "orders", handle("orders", "a"))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestRecallInNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("dev%orders", 1, "a=a:0")
		a := c.broker("a:0")
		a.on(wire.ReqRecallMessage, func(q *remoting.Request) {
			q.Reply(wire.RespSuccess, "", &wire.RecallResponse{MsgID: q.Frame().Text("topic")}, nil)
		})
		p, err := producer.New(c.client(rocketmq.WithNamespace("dev")))
		require.NoError(t, err)
		id, err := p.Recall(t.Context(), "orders", handle("dev%orders", "a"))
		require.NoError(t, err)
		require.Equal(t, "dev%orders", id)
		_, err = p.Recall(t.Context(), "orders", handle("test%orders", "a"))
		require.ErrorIs(t, err, rocketmq.ErrNotRecallable)
	})
}

// TestRecallOnACluster takes one of two messages back.
func TestRecallOnACluster(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 1), testbroker.ManualClock(time.Time{}))
	p := clusterProducer(t, c)
	send := func(body string, d rocketmq.Delay) producer.Result {
		res, err := p.Send(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte(body), Delay: d})
		require.NoError(t, err)
		return res
	}
	gone := send("recalled", rocketmq.DelayFor(time.Minute))
	send("stays", rocketmq.DeliverAt(c.Now().Add(time.Minute)))
	require.Equal(t, 2, c.Delayed())
	id, err := p.Recall(t.Context(), "orders", gone.RecallHandle)
	require.NoError(t, err)
	require.Equal(t, gone.MessageID, id)
	require.Equal(t, 1, c.Delayed())
	c.Advance(time.Minute)
	got := c.Messages("orders")
	require.Len(t, got, 1)
	require.Equal(t, "stays", string(got[0].Body))
	_, err = p.Recall(t.Context(), "orders", gone.RecallHandle)
	require.ErrorIs(t, err, rocketmq.ErrNotRecallable, "its time is over")
	level := send("by level", rocketmq.DelayLevel(3))
	require.Empty(t, level.RecallHandle)
}
