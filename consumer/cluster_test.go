package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// These tests run against our own name server and broker over loopback.

// counter counts messages by body and says when it has seen so many different
// ones.
type counter struct {
	received
	want int
	seen map[string]bool
	full chan struct{}
}

func newCounter(want int) *counter {
	return &counter{want: want, seen: map[string]bool{}, full: make(chan struct{})}
}

func (c *counter) handler() consumer.Handler {
	return consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.msgs = append(c.msgs, m)
		if c.seen[string(m.Body)] {
			return nil
		}
		c.seen[string(m.Body)] = true
		if len(c.seen) == c.want {
			close(c.full)
		}
		return nil
	})
}

func (c *counter) wait(t testing.TB) {
	t.Helper()
	select {
	case <-c.full:
	case <-time.After(60 * time.Second):
		t.Fatalf("%d of %d messages", len(c.bodies()), c.want)
	}
}

// patient is a producer on a busy machine: an attempt that is given up may have been
// stored all the same.
var patient = producer.WithTimeout(time.Minute, 30*time.Second)

func sendMany(t testing.TB, cl *rocketmq.Client, topic string, from, to int) {
	t.Helper()
	p, err := producer.New(cl, patient)
	require.NoError(t, err)
	for i := from; i < to; i++ {
		_, err := p.Send(context.Background(), &rocketmq.Message{Topic: topic, Body: fmt.Append(nil, i), Tag: fmt.Sprint("t", i%2), Keys: []string{"k"}})
		require.NoError(t, err)
	}
	require.NoError(t, p.Close(context.Background()))
}

func TestClusterTwoMembersShareEverything(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("T", 4))
	const n = 1000
	got := newCounter(n)
	sub := consumer.Subscribe("T", selector.All, got.handler())
	first, second := newPush(t, b.Client(t), sub, consumer.StartFrom(rocketmq.Earliest())), newPush(t, b.Client(t), sub, consumer.StartFrom(rocketmq.Earliest()))
	a, c := start(t, first), start(t, second)
	require.Eventually(t, func() bool { return assigned(a) == 4 && assigned(c) == 4 }, patience, time.Millisecond)
	sendMany(t, b.Client(t), "T", 0, n)
	got.wait(t)
	require.NoError(t, a.stop())
	require.NoError(t, c.stop())
	for body, times := range got.bodies() {
		require.Equal(t, 1, times, "message %s", body)
	}
	require.Zero(t, b.Lag("G", "T"))
}

func TestClusterTags(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Topic("T", 2))
	sendMany(t, b.Client(t), "T", 0, 100)
	got := newCounter(50)
	c := start(t, newPush(t, b.Client(t), consumer.Subscribe("T", selector.Tags("t1"), got.handler()), consumer.StartFrom(rocketmq.Earliest())))
	got.wait(t)
	for _, m := range got.msgs {
		require.Equal(t, "t1", m.Tag)
		require.Equal(t, []string{"k"}, m.Keys)
	}
	require.NoError(t, c.stop())
}

// C33 against our broker: 10 old messages, minimum 0, and an empty topic.
func TestC33_StartPolicyOnOurBroker(t *testing.T) {
	b := testbroker.New(t)
	cl := b.Client(t)
	for name, position := range map[string]func(between time.Time) rocketmq.Position{
		"earliest-0": func(time.Time) rocketmq.Position { return rocketmq.Earliest() },
		"latest-0":   func(time.Time) rocketmq.Position { return rocketmq.Latest() },
		"strict-10":  func(time.Time) rocketmq.Position { return rocketmq.StrictLatest() },
		"before-0":   func(at time.Time) rocketmq.Position { return rocketmq.AtTime(at.Add(-30 * time.Minute)) },
		"between-5":  rocketmq.AtTime,
		"zone-5": func(at time.Time) rocketmq.Position {
			return rocketmq.AtTime(at.In(time.FixedZone("", -5*3600)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, text, _ := strings.Cut(name, "-")
			first, err := strconv.Atoi(text)
			require.NoError(t, err)
			old, empty := "old-"+name, "empty-"+name
			b.CreateTopic(old, 1)
			b.CreateTopic(empty, 1)
			sendMany(t, cl, old, 0, 5)
			time.Sleep(3 * time.Millisecond) // store times are whole milliseconds
			between := time.Now()
			time.Sleep(3 * time.Millisecond)
			sendMany(t, cl, old, 5, 10)

			got := newCounter(10 - first + 2)
			p, err := consumer.NewPush(b.Client(t), "G-"+name, consumer.StartFrom(position(between)),
				consumer.Subscribe(old, selector.All, got.handler()), consumer.Subscribe(empty, selector.All, got.handler()))
			require.NoError(t, err)
			c := start(t, p)
			sendMany(t, cl, old, 100, 101)
			sendMany(t, cl, empty, 200, 201)
			got.wait(t)
			require.NoError(t, c.stop())
			want := map[string]int{"100": 1, "200": 1}
			for i := first; i < 10; i++ {
				want[fmt.Sprint(i)] = 1
			}
			require.Equal(t, want, got.bodies())
		})
	}
}

// Killed and restarted broker under a consumer: everything that was
// acknowledged is handled.
func TestClusterBrokerRestart(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Topic("T", 4))
	got := newCounter(200)
	c := start(t, newPush(t, b.Client(t), consumer.Subscribe("T", selector.All, got.handler()), consumer.StartFrom(rocketmq.Earliest())))
	cl := b.Client(t)
	sendMany(t, cl, "T", 0, 100)
	b.Restart("broker-a", 0)
	sendMany(t, cl, "T", 100, 200)
	got.wait(t)
	require.NoError(t, c.stop())
}

// A failing message on a broker that does not take messages back yet, or does:
// it is not lost in either case and holds no one up.
func TestClusterFailedMessageIsNotLost(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Topic("T", 1))
	sendMany(t, b.Client(t), "T", 0, 50)
	var failed atomic.Bool
	got := newCounter(50)
	h := got.handler()
	c := start(t, newPush(t, b.Client(t), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All,
		consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
			if string(m.Body) == "7" && !failed.Swap(true) {
				return consumer.RetryAfter(time.Second, errors.New("once"))
			}
			return h.Handle(ctx, []*rocketmq.MessageView{m})
		}))))
	got.wait(t)
	require.NoError(t, c.stop())
	require.Equal(t, 1, got.bodies()["7"])
}

func TestClusterMissingTopic(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t)
	err := newPush(t, b.Client(t), consumer.Subscribe("absent", selector.All, consumer.HandlerFunc(nop))).Run(context.Background())
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
}
