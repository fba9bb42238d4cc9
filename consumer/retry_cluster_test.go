package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

var clusterStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// next is the next of what handlers have said.
func next[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// C45 in order: the attempts of a message are made here, and the broker has it
// among the dead letters after the last of them.
func TestC45_OrderedDeadLetterOnOurBroker(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Topic("T", 1))
	sendMany(t, b.Client(t), "T", 0, 4)
	seen := make(chan string, 16)
	c := start(t, newOrdered(t, b.Client(t), consumer.WithMaxAttempts(3), each(func(_ context.Context, m *rocketmq.MessageView) error {
		seen <- fmt.Sprintf("%s#%d", m.Body, m.Attempt)
		switch string(m.Body) {
		case "1":
			return consumer.RetryAfter(10*time.Millisecond, errors.New("no"))
		case "2":
			return consumer.DeadLetter(errors.New("no"))
		}
		return nil
	})))
	for _, want := range []string{"0#1", "1#1", "1#2", "1#3", "2#1", "3#1"} {
		require.Equal(t, want, next(t, seen))
	}
	require.NoError(t, c.stop())
	dead := b.DeadLetters("G")
	require.Len(t, dead, 2)
	for i, m := range dead {
		require.Equal(t, fmt.Sprint(i+1), string(m.Body))
		require.Equal(t, "T", m.Properties.Get("RETRY_TOPIC"))
		require.Equal(t, []string{"k"}, m.Keys)
	}
	require.Empty(t, b.Messages("%RETRY%G"))
	require.Zero(t, b.Lag("G", "T"))
}

// C45: a message fails for good. Three retries, each after its time, then the dead
// letters at once.
func TestC45_OneMessagesWayToTheDeadLetters(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Topic("T", 1), testbroker.ManualClock(clusterStart))
	seen := make(chan *rocketmq.MessageView, 8)
	c := start(t, newPush(t, b.Client(t), consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(4),
		each(func(_ context.Context, m *rocketmq.MessageView) error {
			seen <- m
			return errors.New("never")
		})))
	sendMany(t, b.Client(t), "T", 0, 1)
	first := next(t, seen)
	require.Equal(t, 1, first.Attempt)
	for i, delay := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute} {
		waited, err := b.AdvanceToNext(t.Context())
		require.NoError(t, err)
		require.Equal(t, delay, waited)
		m := next(t, seen)
		require.Equal(t, i+2, m.Attempt)
		require.Equal(t, "T", m.Topic)
		require.Equal(t, first.ID, m.ID)
		require.Equal(t, first.OffsetID, m.Properties.Get("ORIGIN_MESSAGE_ID"))
		require.Equal(t, first.Body, m.Body)
		require.Equal(t, first.Keys, m.Keys)
	}
	require.Eventually(t, func() bool { return len(b.DeadLetters("G")) == 1 }, patience, time.Millisecond)
	require.Zero(t, b.Delayed(), "nothing waits any more")
	dead := b.DeadLetters("G")[0]
	require.Equal(t, "0", dead.Properties.Get("DELAY"))
	require.Equal(t, "T", dead.Properties.Get("RETRY_TOPIC"))
	require.Equal(t, first.OffsetID, dead.Properties.Get("ORIGIN_MESSAGE_ID"))
	require.NoError(t, c.stop())
	require.Empty(t, seen)
	require.Zero(t, b.Lag("G", "T"))
}

// C45: a message goes back to the broker of its queue, whatever address it says
// that it was stored at (10.0.0.2 here): brokers move, and sit behind addresses
// that clients do not see.
func TestC45_SentBackToTheBrokerByName(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "m")
		dialed := make(chan string, 10)
		cl := b.client(rocketmq.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed <- addr
			return b.net.Dial(ctx, network, addr)
		}))
		c := start(t, newPush(t, cl, consumer.StartFrom(rocketmq.Earliest()), each(func(context.Context, *rocketmq.MessageView) error {
			return errors.New("no")
		})))
		synctest.Wait()
		require.NoError(t, c.stop())
		require.Len(t, b.sendBacks, 1)
		require.Len(t, dialed, 2)
		require.Equal(t, fakeNameServer, <-dialed)
		require.Equal(t, fakeBroker, <-dialed)
	})
}

// The broker of a message dies while its handler is at it, so it cannot be sent
// back. Another broker has the copy, and it comes again in its time.
func TestClusterFailedMessageOfADeadBroker(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("T", 1), testbroker.ManualClock(clusterStart))
	type call struct {
		m *rocketmq.MessageView
		d time.Time
	}
	calls := make(chan call, 4)
	gate := make(chan struct{})
	c := start(t, newPush(t, b.Client(t), consumer.StartFrom(rocketmq.Earliest()), each(func(_ context.Context, m *rocketmq.MessageView) error {
		calls <- call{m, b.Now()}
		if m.Attempt == 1 {
			<-gate
			return errors.New("no")
		}
		return nil
	})))
	sendMany(t, b.Client(t), "T", 0, 1)
	first := next(t, calls)
	b.Kill(first.m.Queue.Broker, 0)
	close(gate)
	waited, err := b.AdvanceToNext(t.Context())
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, waited)
	second := next(t, calls)
	require.Equal(t, 2, second.m.Attempt)
	require.Equal(t, "T", second.m.Topic)
	require.Equal(t, first.m.ID, second.m.ID)
	require.Equal(t, first.m.Body, second.m.Body)
	require.NotEqual(t, first.m.Queue.Broker, second.m.Queue.Broker)
	require.Equal(t, first.m.OffsetID, second.m.Properties.Get("ORIGIN_MESSAGE_ID"))
	b.Restart(first.m.Queue.Broker, 0)
	require.Eventually(t, func() bool { return b.Lag("G", "T") == 0 }, patience, time.Millisecond)
	require.NoError(t, c.stop())
}

// A member dies; its locks run out by the broker's clock, and the next one goes
// on where it had got.
func TestClusterOrderedLockOfADeadMember(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Topic("T", 1), testbroker.ManualClock(clusterStart))
	sendMany(t, b.Client(t), "T", 0, 10)
	ref := newReferee(t)
	reached := make(chan struct{}, 1)
	w := &witness{r: ref, name: "the first"}
	cab := &cable{dial: (&net.Dialer{}).DialContext}
	cl := b.Client(t, rocketmq.WithDialer(cab.Dial))
	first := start(t, newOrdered(t, cl, each(func(ctx context.Context, m *rocketmq.MessageView) error {
		if !w.begin(m) {
			return errCrashed
		}
		if m.Offset == 5 {
			reached <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		w.end(m, nil)
		return nil
	})))
	<-reached
	w.crash()
	cab.Cut()
	second := &witness{r: ref, name: "the second"}
	done := make(chan int64, 16)
	c := start(t, newOrdered(t, b.Client(t), each(func(_ context.Context, m *rocketmq.MessageView) error {
		second.begin(m)
		second.end(m, nil)
		done <- m.Offset
		return nil
	})))
	require.Eventually(t, func() bool { return len(c.Health().Queues) > 0 && health(t, c, 0).State == "waiting for lock" }, patience, time.Millisecond)
	b.Advance(61 * time.Second)
	for next(t, done) < 9 {
	}
	require.NoError(t, c.stop())
	require.LessOrEqual(t, ref.twice, 5, "what the first had done and not committed")
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = first.Close(ctx)               // its handler does not end before
	_ = cl.Close(context.Background()) // there is nobody whom it could tell
}

// RetryAfter on our broker: a message comes again at the first of the broker's
// levels that is not before the time asked for.
func TestRetryAfterOnOurBroker(t *testing.T) {
	t.Parallel()
	waits := map[time.Duration]time.Duration{
		-time.Second: time.Second, time.Millisecond: time.Second, time.Second: time.Second, 1001 * time.Millisecond: 5 * time.Second,
		7 * time.Second: 10 * time.Second, 45 * time.Second: time.Minute, 10 * time.Minute: 10 * time.Minute,
		10*time.Minute + 1: 20 * time.Minute, 90 * time.Minute: 2 * time.Hour, 10 * time.Hour: 2 * time.Hour,
	}
	b := testbroker.New(t, testbroker.Topic("T", 1), testbroker.ManualClock(time.Time{}))
	p, err := producer.New(b.Client(t), patient)
	require.NoError(t, err)
	for asked := range waits {
		_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte(asked.String())})
		require.NoError(t, err)
	}
	require.NoError(t, p.Close(context.Background()))
	again := make(chan *rocketmq.MessageView, len(waits))
	c := start(t, newPush(t, b.Client(t), consumer.StartFrom(rocketmq.Earliest()), each(func(_ context.Context, m *rocketmq.MessageView) error {
		asked, err := time.ParseDuration(string(m.Body))
		if m.Attempt == 1 && err == nil {
			return fmt.Errorf("wrapped: %w", consumer.RetryAfter(asked, errors.New("not yet")))
		}
		again <- m
		return nil
	})))
	require.Eventually(t, func() bool { return b.Delayed() == len(waits) }, patience, time.Millisecond)
	failed := b.Now()
	b.Advance(3 * time.Hour)
	for range waits {
		m := next(t, again)
		asked, err := time.ParseDuration(string(m.Body))
		require.NoError(t, err)
		require.Equal(t, waits[asked], m.StoredAt.Sub(failed), "asked for %s", asked)
		require.Equal(t, 2, m.Attempt)
	}
	require.Zero(t, b.Delayed())
	require.NoError(t, c.stop())
	require.Zero(t, b.Lag("G", "T"))
}
