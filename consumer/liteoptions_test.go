package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/rebalance"
	"github.com/gorocketmq/rocketmq/selector"
)

// Each constructor refuses the options of others and says what to use instead.
func TestOptionsOfOtherConstructors(t *testing.T) {
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers("127.0.0.1:1"))
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close(context.Background())) }()
	sub := consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))
	lite := func(opts ...consumer.Option) error {
		_, err := consumer.NewLitePull(cl, "G", opts...)
		return err
	}
	push := func(opts ...consumer.Option) error {
		_, err := consumer.NewPush(cl, "G", append(opts, sub)...)
		return err
	}
	ordered := func(opts ...consumer.Option) error {
		_, err := consumer.NewOrdered(cl, "G", append(opts, sub)...)
		return err
	}
	pull := func(opts ...consumer.Option) error {
		_, err := consumer.NewPull(cl, "G", opts...)
		return err
	}
	require.NoError(t, lite(toT(), consumer.StartFrom(rocketmq.StrictLatest()), consumer.WithStrategy(rebalance.AveragelyByCircle()), consumer.WithManualCommit()))
	require.NoError(t, lite(consumer.AssignTo(), consumer.WithCache(1, 1), consumer.WithPollSize(1)))
	require.NoError(t, pull())
	for _, test := range []struct {
		err  error
		want []string
	}{
		{lite(), []string{"no topic", "use SubscribeTo, or AssignTo"}},
		{lite(sub), []string{"Subscribe is no option of a LitePull", "use SubscribeTo"}},
		{lite(toT(), consumer.AssignTo(tq(0))), []string{"SubscribeTo and AssignTo exclude each other"}},
		{lite(toT(), toT()), []string{"subscribed twice"}},
		{lite(consumer.SubscribeTo("a/b", selector.SQL("a ="))), []string{"a/b"}},
		{lite(consumer.AssignTo(rocketmq.Queue{Topic: "T"}, rocketmq.Queue{Topic: "T", Broker: "b", ID: -1}, rocketmq.Queue{})), []string{"no broker", "topic"}},
		{lite(consumer.AssignTo(), consumer.WithStrategy(rebalance.Averagely())), []string{"leave WithStrategy out"}},
		{lite(toT(), consumer.WithStrategy(nil), consumer.WithPollSize(0), consumer.WithCache(0, 1)), []string{"strategy is nil", "poll size 0", "cache of 0 messages"}},
		{lite(toT(), consumer.WithModel(consumer.Broadcasting)), []string{"WithModel is no option of a LitePull", "use AssignTo"}},
		{lite(toT(), consumer.WithOffsetStore(consumer.MemoryOffsets())), []string{"WithOffsetStore", "Seek"}},
		{lite(toT(), consumer.WithMaxAttempts(3), consumer.WithHandlerTimeout(time.Second), consumer.WithDrainTimeout(time.Second)),
			[]string{"WithMaxAttempts", "WithHandlerTimeout", "WithDrainTimeout", "Seek back", "no handlers"}},
		{push(toT()), []string{"SubscribeTo is no option of a Push: use Subscribe"}},
		{ordered(consumer.AssignTo()), []string{"AssignTo is no option of a Ordered", "rebalance.Config"}},
		{push(consumer.WithManualCommit()), []string{"handler returns nil"}},
		{push(consumer.WithCache(1, 1), consumer.WithPollSize(1)), []string{"use Cache of a subscription", "use Batch of a subscription"}},
		{pull(toT(), sub, consumer.AssignTo()), []string{"Subscribe is no option of a Pull: name the queue", "AssignTo"}},
		{pull(earliest, consumer.WithStrategy(nil)), []string{"SearchOffset", "nobody"}},
		{pull(consumer.WithManualCommit(), consumer.WithCache(1, 1), consumer.WithPollSize(1)), []string{"only Commit commits", "nothing is cached", "Max of each Request"}},
	} {
		require.ErrorIs(t, test.err, rocketmq.ErrInvalidOption)
		for _, want := range test.want {
			require.ErrorContains(t, test.err, want)
		}
	}
	_, err = consumer.NewLitePull(nil, "G", toT())
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	_, err = consumer.NewPull(nil, "G")
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	_, err = consumer.NewPull(cl, "bad group")
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	l, err := consumer.NewLitePull(cl, "G", toT())
	require.NoError(t, err)
	require.ErrorIs(t, l.Assign(tq(0)), rocketmq.ErrInvalidOption)
	require.ErrorContains(t, l.Assign(tq(0)), "make one with AssignTo")
}
