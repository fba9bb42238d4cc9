package producer_test

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/leak"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// A reply is sent with a code of its own, also from within a namespace.
func TestReplyOnTheWire(t *testing.T) {
	for _, ns := range []string{"", "dev"} {
		synctest.Test(t, func(t *testing.T) {
			c, b := requestCluster(t)
			b.on(wire.ReqSendReplyMessageV2, func(q *remoting.Request) { b.store(q, wire.RespSuccess, "") })
			p, err := producer.New(c.client(rocketmq.WithNamespace(ns)))
			require.NoError(t, err)
			req := &rocketmq.MessageView{Properties: rocketmq.NewProperties(map[string]string{
				"CLUSTER": "c", "CORRELATION_ID": "cid", "REPLY_TO_CLIENT": "them", "TTL": "1500",
			})}
			for i, body := range [][]byte{[]byte("answer"), nil, bytes.Repeat([]byte("abc"), 3000)} {
				m, err := rocketmq.NewReply(req, body)
				require.NoError(t, err)
				m.Tag = "t"
				_, err = p.Send(t.Context(), m)
				require.NoError(t, err)
				got := b.got()[i]
				require.Equal(t, "c_REPLY_TOPIC", got.topic)
				for k, v := range map[string]string{"CORRELATION_ID": "cid", "REPLY_TO_CLIENT": "them", "TTL": "1500", "MSG_TYPE": "reply", "TAGS": "t"} {
					require.Equal(t, v, got.props[k], k)
				}
				if len(body) < 4096 {
					require.Equal(t, string(body), got.body)
				} else {
					require.NotZero(t, got.head.SysFlag&wire.SysCompressed)
				}
			}
		})
	}
}

// answering consumes topic orders and replies with what f makes of a request.
// What sending a reply comes to is in the channel.
func answering(t *testing.T, c *testbroker.Cluster, f func(m *rocketmq.MessageView) ([]byte, error)) <-chan error {
	t.Helper()
	cl := c.Client(t)
	p, err := producer.New(cl, producer.WithTimeout(time.Minute, 30*time.Second), producer.WithRetries(1))
	require.NoError(t, err)
	sent := make(chan error, 1000)
	push, err := consumer.NewPush(cl, "responders", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("orders", selector.All, consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
			body, err := f(m)
			if err != nil {
				return nil // no reply at all
			}
			reply, err := rocketmq.NewReply(m, body)
			if err == nil {
				_, err = p.Send(ctx, reply)
			}
			sent <- err
			return nil
		})))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- push.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	select {
	case <-push.Ready():
	case <-t.Context().Done():
		t.Fatal("not ready")
	}
	return sent
}

func TestClusterRequests(t *testing.T) {
	leak.Check(t)
	c := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("orders", 2))
	sent := answering(t, c, func(m *rocketmq.MessageView) ([]byte, error) {
		return append([]byte("re: "), m.Body...), nil
	})
	const requesters, each = 3, 40
	var wg sync.WaitGroup
	shared := c.Client(t) // of the last two
	for i := range requesters {
		cl := shared
		if i == 0 {
			cl = c.Client(t)
		}
		p, err := producer.New(cl, producer.WithTimeout(time.Minute, 30*time.Second))
		require.NoError(t, err)
		for k := range each {
			wg.Go(func() {
				body := strconv.Itoa(i) + "/" + strconv.Itoa(k)
				v, err := p.Request(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte(body)})
				if assert.NoError(t, err) {
					assert.Equal(t, "re: "+body, string(v.Body))
					assert.NotEmpty(t, v.Properties.Get("PUSH_REPLY_TIME"))
					assert.NotEmpty(t, v.Properties.Get("ARRIVE_TIME"))
					assert.NotEmpty(t, v.ID)
					assert.True(t, v.BornHost.IsValid())
				}
			})
		}
	}
	wg.Wait()
	for range requesters * each {
		require.NoError(t, <-sent)
	}
	require.Len(t, c.Messages("DefaultCluster_REPLY_TOPIC"), requesters*each, "replies are stored, too")
}

func TestClusterReplyBodies(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 1))
	large := bytes.Repeat([]byte("0123456789"), 50_000)
	sent := answering(t, c, func(m *rocketmq.MessageView) ([]byte, error) {
		if string(m.Body) == "large" {
			return large, nil
		}
		return nil, nil
	})
	p := clusterProducer(t, c)
	v, err := p.Request(t.Context(), message("orders"))
	require.NoError(t, err)
	require.Empty(t, v.Body)
	require.NoError(t, <-sent)
	v, err = p.Request(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("large")})
	require.NoError(t, err)
	require.Equal(t, large, v.Body)
	require.NoError(t, <-sent)
	got := c.Messages("DefaultCluster_REPLY_TOPIC")
	require.Len(t, got, 2)
	require.Empty(t, got[0].Body)
	require.Equal(t, large, got[1].Body)
}

// A reply that comes too late is dropped, and its sender hears nothing of it.
// One whose requester is gone is the sender's error.
func TestClusterLateReplies(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 1))
	hold := make(chan struct{}, 2)
	sent := answering(t, c, func(*rocketmq.MessageView) ([]byte, error) {
		<-hold
		return []byte("late"), nil
	})
	cl := c.Client(t)
	p, err := producer.New(cl)
	require.NoError(t, err)
	ask := func() {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := request(ctx, p)
		require.Eventually(t, func() bool { return c.Lag("responders", "orders") > 0 }, 30*time.Second, time.Millisecond)
		cancel(context.DeadlineExceeded)
		out := <-done
		require.ErrorIs(t, out.err, rocketmq.ErrTimeout)
	}
	ask()
	hold <- struct{}{}
	require.NoError(t, <-sent)
	require.Eventually(t, func() bool { return c.Lag("responders", "orders") == 0 }, 30*time.Second, time.Millisecond)

	ask()
	require.NoError(t, cl.Close(t.Context()))
	hold <- struct{}{}
	err = <-sent
	var be *rocketmq.BrokerError
	require.ErrorAs(t, err, &be)
	require.Equal(t, rocketmq.CodeSystemError, be.Code)
	require.Contains(t, be.Remark, "channel of <"+cl.ID()+"> not found")
}
