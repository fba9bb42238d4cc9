package testbroker_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// failing runs a consumer whose handler fails each message, and says so.
func failing(t *testing.T, cl *rocketmq.Client, group, topic string) <-chan *rocketmq.MessageView {
	t.Helper()
	tried := make(chan *rocketmq.MessageView, 100)
	h := func(_ context.Context, m *rocketmq.MessageView) error {
		tried <- m
		return errors.New("not today")
	}
	c, err := consumer.NewPush(cl, group,
		consumer.Subscribe(topic, selector.All, consumer.Each(h)), consumer.StartFrom(rocketmq.Earliest()))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	t.Cleanup(func() {
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, <-ended)
	})
	<-c.Ready()
	return tried
}

// TestRetryLadder is what a user writes to see a poison message through all
// its retries.
func TestRetryLadder(t *testing.T) {
	began := time.Now()
	c := testbroker.New(t, testbroker.Topic("orders", 1), testbroker.ManualClock(start))
	p := newProducer(t, c)
	tried := failing(t, c.Client(t), "billing", "orders")
	res, err := p.Send(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("poison"), Keys: []string{"k"}})
	require.NoError(t, err)

	var waits []time.Duration
	for attempt := 1; attempt <= 16; attempt++ {
		m := <-tried
		require.Equal(t, attempt, m.Attempt)
		require.Equal(t, "orders", m.Topic, "the original topic")
		require.Equal(t, res.MessageID, m.ID)
		waited, err := c.AdvanceToNext(t.Context())
		require.NoError(t, err)
		waits = append(waits, waited)
	}
	require.Equal(t, "[10s 30s 1m0s 2m0s 3m0s 4m0s 5m0s 6m0s 7m0s 8m0s 9m0s 10m0s 20m0s 30m0s 1h0m0s 2h0m0s]", fmt.Sprint(waits))
	require.Equal(t, 17, (<-tried).Attempt)
	require.Eventually(t, func() bool { return len(c.DeadLetters("billing")) == 1 }, 10*time.Second, time.Millisecond)
	dead := c.DeadLetters("billing")[0]
	require.Equal(t, "poison", string(dead.Body))
	require.Equal(t, []string{"k"}, dead.Keys)
	require.Zero(t, c.Delayed())
	require.Equal(t, start.Add(4*time.Hour+46*time.Minute-20*time.Second), c.Now())
	require.Less(t, time.Since(began), 5*time.Second, "of minutes and hours")
}

func TestAdvanceStopsWhereMessagesAreDue(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.Brokers(2), testbroker.ManualClock(start))
	p := newProducer(t, c)
	for level := 1; level <= 18; level++ {
		for range 2 { // one for each broker
			_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte(strconv.Itoa(level)), Delay: rocketmq.DelayLevel(level)})
			require.NoError(t, err)
		}
	}
	require.Equal(t, 36, c.Delayed())
	require.Empty(t, c.Messages("T"))
	c.Advance(time.Second - time.Millisecond)
	require.Empty(t, c.Messages("T"))
	c.Advance(time.Millisecond)
	require.Len(t, c.Messages("T"), 2)
	c.Advance(24 * time.Hour)
	require.Zero(t, c.Delayed())
	require.Equal(t, start.Add(24*time.Hour+time.Second), c.Now())
	all := c.Messages("T")
	require.Len(t, all, 36)
	for i, m := range all {
		require.Equal(t, strconv.Itoa(i%18+1), string(m.Body), "in order on each broker")
	}
	require.Equal(t, start.Add(2*time.Hour), all[17].StoredAt.UTC(), "at their exact time")
}

func TestDelayedMessagesOutliveTheirBroker(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.ManualClock(time.Time{}))
	p := newProducer(t, c)
	delayed := func(body string) {
		_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte(body), Delay: rocketmq.DelayLevel(5)})
		require.NoError(t, err)
	}
	delayed("one")
	c.Kill("broker-a", 0)
	c.Advance(time.Hour)
	c.Restart("broker-a", 0)
	require.Zero(t, c.Delayed(), "caught up")
	require.Len(t, c.Messages("T"), 1)
	c.Restart("broker-a", 0)
	delayed("two")
	moved, err := c.AdvanceToNext(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Minute, moved)
	require.Len(t, c.Messages("T"), 2, "none twice")
}

func TestAdvanceToNextWaitsForTheMessage(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.Brokers(2), testbroker.ManualClock(start))
	p := newProducer(t, c)
	moved := make(chan time.Duration, 1)
	go func() {
		d, err := c.AdvanceToNext(context.Background())
		if err != nil {
			d = -1
		}
		moved <- d
	}()
	c.Restart("broker-b", 0) // nobody who waits holds up others
	_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte("x"), Delay: rocketmq.DelayLevel(2)})
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, <-moved)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = c.AdvanceToNext(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	c.Kill("broker-a", 0)
	c.Kill("broker-b", 0)
	_, err = c.AdvanceToNext(t.Context())
	require.ErrorContains(t, err, "no broker is up")
}

// TestClientsSurviveTheManualClock: hours of the brokers are no silence of
// their clients.
func TestClientsSurviveTheManualClock(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.ManualClock(start))
	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	p := newProducer(t, c)
	for i := range 5 {
		c.Advance(10 * time.Hour)
		_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte(strconv.Itoa(i))})
		require.NoError(t, err)
		got.await(t, i+1)
	}
	stop()
}

func TestTimeNeedsAManualClock(t *testing.T) {
	c, err := testbroker.Start(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	require.WithinDuration(t, time.Now(), c.Now(), time.Minute)
	require.PanicsWithValue(t, "testbroker: Advance(1s): the cluster goes by the machine's clock; use the option ManualClock", func() { c.Advance(time.Second) })
	_, err = c.AdvanceToNext(t.Context())
	require.ErrorContains(t, err, "ManualClock")

	m, err := testbroker.Start(t.Context(), testbroker.ManualClock(start))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close(context.Background())) }()
	require.Panics(t, func() { m.Advance(-time.Second) })
	require.Equal(t, start, m.Now())
}
