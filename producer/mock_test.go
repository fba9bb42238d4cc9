package producer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/mock/gomock"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/mocks"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

// A selector sees the queues sorted, and on the second attempt the broker of
// the first as the one to avoid.
func TestSelectorIsToldWhatToAvoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 2, "b2=b2:0", "b1=b1:0")
		c.broker("b1:0").on(wire.ReqSendMessageV2, func(q *remoting.Request) {
			q.Reply(wire.RespSystemBusy, "busy", nil, nil)
		})
		c.broker("b2:0")
		sorted := []rocketmq.Queue{
			{Topic: "orders", Broker: "b1", ID: 0}, {Topic: "orders", Broker: "b1", ID: 1},
			{Topic: "orders", Broker: "b2", ID: 0}, {Topic: "orders", Broker: "b2", ID: 1},
		}
		sel := mocks.NewMockQueueSelector(gomock.NewController(t))
		m := message("orders")
		gomock.InOrder(
			sel.EXPECT().Select(m, sorted, "").Return(1, nil),
			sel.EXPECT().Select(m, sorted, "b1").Return(2, nil),
		)
		res, err := c.producer().Send(t.Context(), m, producer.Via(sel))
		require.NoError(t, err)
		require.Equal(t, sorted[2], res.Queue)
	})
}

// Credentials are asked for again before each request, so that they can be
// rotated, and a provider that fails is the send's error.
func TestCredentialsAreAskedForEachSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "b1=b1:0")
		b := c.broker("b1:0")
		keys := mocks.NewMockCredentialsProvider(gomock.NewController(t))
		var mu sync.Mutex // guards all three; heartbeats are signed too
		current, failed := "", error(nil)
		var signedWith []string
		set := func(key string, err error) {
			mu.Lock()
			defer mu.Unlock()
			current, failed = key, err
		}
		set("key-1", nil)
		keys.EXPECT().Credentials(gomock.Any()).AnyTimes().DoAndReturn(
			func(context.Context) (rocketmq.Credentials, error) {
				mu.Lock()
				defer mu.Unlock()
				return rocketmq.Credentials{AccessKey: current, SecretKey: "secret"}, failed
			})
		p, err := producer.New(c.client(rocketmq.WithCredentials(keys)))
		require.NoError(t, err)
		defer p.Close(t.Context())

		stored := b.h[wire.ReqSendMessageV2]
		b.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
			mu.Lock()
			signedWith = append(signedWith, q.Frame().Text("AccessKey"))
			assert.NotEmpty(t, q.Frame().Text("Signature"))
			mu.Unlock()
			stored(q)
		})
		for _, key := range []string{"key-1", "key-2"} {
			set(key, nil)
			_, err = p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
		}
		sealed := errors.New("vault is sealed")
		set("", sealed)
		_, err = p.Send(t.Context(), message("orders"))
		require.ErrorIs(t, err, sealed)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{"key-1", "key-2"}, signedWith)
	})
}
