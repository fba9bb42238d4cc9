package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/admin"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// role is a running consumer.
type role interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
	Close(ctx context.Context) error
}

func run(t *testing.T, r role, err error) {
	t.Helper()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background()) }()
	t.Cleanup(func() {
		require.NoError(t, r.Close(context.Background()))
		require.NoError(t, <-ended)
	})
	select {
	case <-r.Ready():
	case err := <-ended:
		require.NoError(t, err)
	}
}

func next[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// burier is a handler that buries messages until it is told to be well.
type burier struct {
	calls chan *rocketmq.MessageView
	well  chan struct{} // closed
}

func newBurier() *burier { return &burier{make(chan *rocketmq.MessageView, 200), make(chan struct{})} }

func (b *burier) subscribe(topic string) consumer.Option {
	return consumer.Subscribe(topic, selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		defer func() { b.calls <- m }()
		select {
		case <-b.well:
			return nil
		default:
			return consumer.DeadLetter(errors.New("not well"))
		}
	}))
}

func send(t *testing.T, cl *rocketmq.Client, topic string, n int) {
	t.Helper()
	p, err := producer.New(cl, producer.WithCompression(producer.ZLIB, 5, 100))
	require.NoError(t, err)
	for i := range n {
		m := &rocketmq.Message{Topic: topic, Tag: "tag", Keys: []string{fmt.Sprint("key", i)}, Body: []byte(body(i))}
		m.Properties = map[string]string{"color": "red"}
		_, err = p.Send(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, p.Close(t.Context()))
}

// body i is compressed on the way if i is odd.
func body(i int) string { return fmt.Sprint(i, strings.Repeat("x", i%2*1000)) }

// buried waits until a group has n dead letters.
func buried(t *testing.T, b *testbroker.Cluster, group string, n int) []*rocketmq.MessageView {
	t.Helper()
	require.Eventually(t, func() bool { return len(b.DeadLetters(group)) == n }, 20*time.Second, time.Millisecond)
	return b.DeadLetters(group)
}

// Dead letters of concurrent groups and of groups in order come again to their
// own group, as new as when they were sent for the first time.
func TestC45_DeadLettersAreSentAgain(t *testing.T) {
	for name, ordered := range map[string]bool{"concurrent": false, "in order, online": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testbroker.New(t, testbroker.Topic("T", 2))
			one, other := newBurier(), newBurier()
			opts := []consumer.Option{consumer.StartFrom(rocketmq.Earliest()), one.subscribe("T")}
			if ordered {
				c, err := consumer.NewOrdered(b.Client(t), "G", opts...)
				run(t, c, err)
			} else {
				c, err := consumer.NewPush(b.Client(t), "G", opts...)
				run(t, c, err)
			}
			close(other.well)
			c, err := consumer.NewPush(b.Client(t), "Other", consumer.StartFrom(rocketmq.Earliest()), other.subscribe("T"))
			run(t, c, err)

			cl := b.Client(t)
			send(t, cl, "T", 4)
			first := map[string]*rocketmq.MessageView{}
			for range 4 {
				m := next(t, one.calls)
				first[m.ID] = m
				next(t, other.calls)
			}
			dead := buried(t, b, "G", 4)
			a := admin.New(cl)
			close(one.well)

			again := func(got []admin.ResendResult, err error, n int) {
				t.Helper()
				require.NoError(t, err)
				require.Len(t, got, n)
				for range got {
					m := next(t, one.calls)
					was := first[m.ID]
					require.Equal(t, 1, m.Attempt)
					require.Equal(t, "T", m.Topic)
					require.Equal(t, string(was.Body), string(m.Body))
					require.Equal(t, was.OffsetID, m.Properties.Get("ORIGIN_MESSAGE_ID"))
					require.Equal(t, was.BornAt, m.BornAt)
					require.Equal(t, was.Tag, m.Tag)
					require.Equal(t, was.Keys, m.Keys)
					require.Equal(t, "red", m.Properties.Get("color"))
				}
			}
			got, err := a.Resend(t.Context(), "G")
			again(got, err, 4)
			for i, r := range got {
				require.Equal(t, dead[i].ID, r.ID)
				require.Equal(t, first[r.ID].OffsetID, r.OriginID)
				require.Equal(t, admin.ResendResult{
					ID: r.ID, OriginID: r.OriginID, Topic: "T", Queue: rocketmq.Queue{Topic: "%DLQ%G", Broker: "broker-a"}, Offset: int64(i),
				}, r)
			}
			got, err = a.Resend(t.Context(), "G")
			again(got, err, 0)

			// Named ones, by each of their ids, also a second time.
			id := dead[2].ID
			got, err = a.Resend(t.Context(), "G", id, first[id].OffsetID, "unknown", dead[1].OffsetID)
			require.ErrorIs(t, err, rocketmq.ErrNotFound)
			require.ErrorContains(t, err, "unknown")
			again(got, nil, 2)
			require.Len(t, b.DeadLetters("G"), 4)
			require.Empty(t, other.calls, "nobody else sees them")
		})
	}
}

// More than a page, more than one broker, and a call that is repeated after it
// broke off.
func TestResendManyAndGoOn(t *testing.T) {
	b := testbroker.New(t, testbroker.SyncFlush(), testbroker.Brokers(2), testbroker.Topic("T", 1))
	h := newBurier()
	c, err := consumer.NewPush(b.Client(t), "G", consumer.StartFrom(rocketmq.Earliest()), h.subscribe("T"))
	run(t, c, err)
	cl := b.Client(t)
	send(t, cl, "T", 100)
	for range 100 {
		next(t, h.calls)
	}
	buried(t, b, "G", 100)
	close(h.well)
	a := admin.New(cl)
	b.Kill("broker-b", 0)
	got, _ := a.Resend(t.Context(), "G") // an error only as long as the name server has not noticed
	there := len(got)
	require.Greater(t, there, 32)
	for range got {
		next(t, h.calls)
	}
	b.Restart("broker-b", 0)
	got = nil
	require.Eventually(t, func() bool { // the client does not dial a broker that was down at once
		more, err := a.Resend(t.Context(), "G")
		got = append(got, more...)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	require.Len(t, got, 100-there, "of each broker what it has not sent yet")
	for range got {
		require.Equal(t, 1, next(t, h.calls).Attempt)
	}
}

func TestResendRefusals(t *testing.T) {
	b := testbroker.New(t)
	a := admin.New(b.Client(t))
	_, err := a.Resend(t.Context(), "G")
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound, "no dead letter ever")
	_, err = admin.New(nil).Resend(t.Context(), "G")
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	_, err = admin.New(nil).ResetOffset(t.Context(), "G", "T", rocketmq.Earliest())
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)

	// Whoever puts something there himself says no topic: it is passed over.
	b.CreateTopic("%DLQ%G", 1)
	b.CreateTopic("T", 1)
	c, err := consumer.NewPush(b.Client(t), "G", newBurier().subscribe("T"))
	run(t, c, err)
	send(t, b.Client(t), "%DLQ%G", 1)
	for i := range 2 {
		got, err := a.Resend(t.Context(), "G")
		require.Empty(t, got)
		if i == 0 {
			require.ErrorContains(t, err, "which topic")
		} else {
			require.NoError(t, err, "it holds nothing up")
		}
	}
}
