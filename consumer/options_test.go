package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
)

func TestBadOptionsAreAllReported(t *testing.T) {
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers("127.0.0.1:1"))
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close(context.Background())) }()
	h := consumer.HandlerFunc(nop)
	_, err = consumer.NewPush(cl, "bad group",
		consumer.Subscribe("T", selector.Tags(""), nil, consumer.Concurrency(0), consumer.Batch(-1), consumer.Cache(0, 0)),
		consumer.Subscribe("T", selector.All, h), consumer.Subscribe("a/b", selector.All, consumer.HandlerFunc(nil)),
		consumer.Subscribe("U", selector.All, consumer.Each(nil)),
		consumer.StartFrom(rocketmq.AtOffset(-1)), consumer.WithStrategy(nil), consumer.WithDrainTimeout(0), consumer.WithHandlerTimeout(-1), nil)
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	for _, want := range []string{
		"bad group", "at least one tag", `topic "T": the handler is nil`, "concurrency 0", "batch -1", "cache of 0 messages", "subscribed twice",
		"a/b", "the handler function is nil", `topic "U": the handler is nil`, "start offset -1", "the strategy is nil", "drain timeout", "handler timeout",
	} {
		require.ErrorContains(t, err, want)
	}
	for group, want := range map[string]string{"": "group", "DEFAULT_CONSUMER": "reserved", "CID_RMQ_SYS_x": "reserved"} {
		_, err = consumer.NewPush(cl, group, consumer.Subscribe("T", selector.All, h))
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		require.ErrorContains(t, err, want)
	}
	_, err = consumer.NewPush(cl, "G")
	require.ErrorContains(t, err, "no subscription")
	_, err = consumer.NewPush(nil, "G", consumer.Subscribe("T", selector.All, h))
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	p, err := consumer.NewPush(cl, "G", consumer.Subscribe("T", selector.All, h, nil), consumer.StartFrom(rocketmq.Position{}))
	require.NoError(t, err)
	require.Empty(t, p.Health().Queues)
}

func TestEachStopsAtTheFirstFailure(t *testing.T) {
	msgs := []*rocketmq.MessageView{{ID: "0"}, {ID: "1"}, {ID: "2"}}
	var seen []string
	fail := errors.New("no")
	h := consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		seen = append(seen, m.ID)
		if m.ID == "1" {
			return fail
		}
		return nil
	})
	err := h.Handle(context.Background(), msgs)
	require.ErrorIs(t, err, fail)
	require.ErrorContains(t, err, "first 1 messages done")
	require.Equal(t, []string{"0", "1"}, seen)
	require.NoError(t, h.Handle(context.Background(), msgs[:1]))

	panics := consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		if m.ID == "2" {
			panic(fail)
		}
		return nil
	})
	err = panics.Handle(context.Background(), msgs)
	var pe *rocketmq.PanicError
	require.ErrorAs(t, err, &pe)
	require.ErrorIs(t, err, fail)
	require.True(t, strings.Contains(string(pe.Stack), "TestEachStops"))
	require.ErrorContains(t, err, "first 2 messages done")
}

func TestOutcomeTexts(t *testing.T) {
	fail := errors.New("no")
	require.EqualError(t, consumer.RetryAfter(time.Second, fail), "retry after 1s: no")
	require.ErrorIs(t, consumer.RetryAfter(time.Second, fail), fail)
	be := consumer.BatchError{nil, fail, nil}
	require.EqualError(t, be, "1 of 3 messages failed; message 1: no")
	require.ErrorIs(t, be, fail)
	long := make(consumer.BatchError, 1000)
	for i := range long {
		long[i] = fail
	}
	require.Less(t, len(long.Error()), 700)
}

func TestDrainErrorText(t *testing.T) {
	e := &consumer.DrainError{Group: "G", Handlers: 3, Cause: context.DeadlineExceeded}
	for i := range 6 {
		e.Queues = append(e.Queues, consumer.Unfinished{Queue: rocketmq.Queue{Topic: "T", Broker: "b", ID: i}, Offsets: make([]int64, 20)})
	}
	require.ErrorIs(t, e, context.DeadlineExceeded)
	require.ErrorContains(t, e, "and 12 more")
	require.ErrorContains(t, e, "and 2 more queues")
	require.ErrorContains(t, e, `group "G"`)
}

func ExampleEach() {
	h := consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		fmt.Println(m.Topic, string(m.Body))
		return nil
	})
	// A handler is tested without a broker.
	err := h.Handle(context.Background(), []*rocketmq.MessageView{{Topic: "orders", Body: []byte("hello")}})
	fmt.Println(err)
	// Output:
	// orders hello
	// <nil>
}
