package consumer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

func TestSQLSyntaxIsAnOption(t *testing.T) {
	_, err := consumer.NewPush(newFake(t).client(), "G", consumer.Subscribe("T", selector.SQL("a => 1"), ignore()))
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	require.ErrorContains(t, err, `topic "T": SQL92 expression, column 4: expected`)
}

func ignore() consumer.Handler {
	return consumer.Each(func(context.Context, *rocketmq.MessageView) error { return nil })
}

// The broker filters: whatever tags its messages have, they are handled.
func TestSQLSubscriptionOnTheWire(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var asked []wire.CheckClientConfigBody
		b.on(wire.ReqCheckClientConfig, func(r *remoting.Request) bool {
			body, err := wire.DecodeCheckClientConfigBody(r.Frame().Body)
			require.NoError(t, err)
			asked = append(asked, body)
			r.Reply(wire.RespSuccess, "", nil, nil)
			return true
		})
		var types []string
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			if r.Frame().Text("topic") == "T" {
				types = append(types, r.Frame().Text("expressionType"))
			}
			return false
		})
		b.put("T", 0, "first", withProps("TAGS", "a"))
		b.put("T", 0, "second", withProps("TAGS", "b", "n", "1"))
		var got []string
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.SQL("n > 0 OR TAGS = 'a'"), consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				got = append(got, string(m.Body))
				return nil
			}), consumer.Concurrency(1))))
		synctest.Wait()
		require.Equal(t, []string{"first", "second"}, got)
		require.Len(t, asked, 1)
		require.Equal(t, "G", asked[0].Group)
		require.NotEmpty(t, asked[0].ClientID)
		require.Contains(t, types, "SQL92")
		require.NotContains(t, types, "TAG")
		b.mu.Lock()
		beat := b.beats[len(b.beats)-1]
		b.mu.Unlock()
		require.Len(t, beat.Consumers, 1)
		subs := beat.Consumers[0].Subscriptions
		require.Len(t, subs, 2)
		want := wire.Subscription{Topic: "T", Expr: "n > 0 OR TAGS = 'a'", ExprType: "SQL92", Version: subs[0].Version}
		require.Equal(t, want, subs[0])
		require.Equal(t, want, asked[0].Subscription)
		require.Equal(t, "TAG", subs[1].ExprType, "of the retry topic")
		require.NoError(t, c.stop())
	})
}

func TestBrokerRefusesSQL(t *testing.T) {
	for _, answer := range []struct {
		code   int32
		remark string
		hint   string
	}{
		{wire.RespSystemError, "The broker does not support consumer to filter message by SQL92", "enablePropertyFilter=true"},
		{wire.RespSubscriptionParseFailed, "no such operator", "no such operator"},
	} {
		bubble(t, func(t *testing.T, b *fake) {
			b.topic("T", 1)
			b.on(wire.ReqCheckClientConfig, func(r *remoting.Request) bool {
				r.Reply(answer.code, answer.remark, nil, nil)
				return true
			})
			err := newPush(t, b.client(), consumer.Subscribe("T", selector.SQL("a = 1"), ignore())).Run(t.Context())
			var be *rocketmq.BrokerError
			require.ErrorAs(t, err, &be)
			require.EqualValues(t, answer.code, be.Code)
			require.ErrorContains(t, err, `topic "T"`)
			require.ErrorContains(t, err, answer.remark)
			require.ErrorContains(t, err, answer.hint)
			require.Empty(t, b.beats, "it has not joined")
		})
	}
}

// A broker that has no word on it, or is away, does not keep a consumer from
// starting.
func TestBrokerHasNoWordOnSQL(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "hello")
		got := 0
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.SQL("TRUE"), consumer.Each(func(context.Context, *rocketmq.MessageView) error {
				got++
				return nil
			}))))
		synctest.Wait()
		require.Equal(t, []int32{wire.ReqCheckClientConfig}, b.other)
		require.Equal(t, 1, got)
		require.NoError(t, c.stop())
	})
}
