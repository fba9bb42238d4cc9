package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
)

// received collects messages across handlers.
type received struct {
	mu   sync.Mutex
	msgs []*rocketmq.MessageView
}

func (r *received) add(msgs ...*rocketmq.MessageView) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.msgs = append(r.msgs, msgs...)
}

func (r *received) handler() consumer.Handler {
	return consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		r.add(m)
		return nil
	})
}

func (r *received) bodies() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for _, m := range r.msgs {
		out[string(m.Body)]++
	}
	return out
}

// bubble runs f in virtual time with a fake cluster that is closed inside.
func bubble(t *testing.T, f func(t *testing.T, b *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newFake(t)
		f(t, b)
	})
}

// role is what all consumers that hand messages to handlers have in common.
type role interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
	Close(ctx context.Context) error
	Health() consumer.Health
}

// running runs a consumer until the test ends, and checks that it ends clean.
type running struct {
	role
	cancel context.CancelFunc
	result chan error
}

func start(t testing.TB, p role) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{p, cancel, make(chan error, 1)}
	go func() { r.result <- p.Run(ctx) }()
	t.Cleanup(cancel)
	select {
	case <-p.Ready():
	case err := <-r.result:
		t.Fatalf("Run ended before it was ready: %v", err)
	}
	return r
}

// stop ends Run by its context and returns its result.
func (r *running) stop() error {
	r.cancel()
	return <-r.result
}

func newPush(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) *consumer.Push {
	t.Helper()
	p, err := consumer.NewPush(cl, "G", opts...)
	require.NoError(t, err)
	return p
}

func TestPushHandlesWhatIsThereAndWhatComes(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		want := map[string]int{}
		put := func(i int) {
			body := fmt.Sprint("m", i)
			b.put("T", i%4, body, withProps("UNIQ_KEY", fmt.Sprint("id", i), "KEYS", "k1 k2", "TAGS", "a", "color", "red"))
			want[body]++
		}
		for i := range 100 {
			put(i)
		}
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler()), consumer.StartFrom(rocketmq.Earliest())))
		for i := range 100 {
			put(100 + i)
		}
		synctest.Wait()
		require.Equal(t, want, got.bodies())
		m := got.msgs[0]
		assert.Equal(t, "a", m.Tag)
		assert.Equal(t, []string{"k1", "k2"}, m.Keys)
		assert.Equal(t, "red", m.Properties.Get("color"))
		assert.Equal(t, "T", m.Topic)
		assert.Equal(t, 1, m.Attempt)
		assert.Equal(t, "b", m.Queue.Broker)
		assert.Regexp(t, "^id", m.ID)
		assert.Len(t, m.OffsetID, 32)
		h := c.Health()
		require.Len(t, h.Queues, 4)
		for _, q := range h.Queues {
			assert.Equal(t, consumer.QueueHealth{Queue: q.Queue, Committed: 50, State: "pulling", LastPull: q.LastPull}, q)
		}
		require.NoError(t, c.stop())
		for q := range 4 {
			require.EqualValues(t, 50, b.stored("T", q))
		}
		require.Equal(t, []string{"G"}, b.left)
	})
}

func TestOffsetsAreCommittedEveryFiveSeconds(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler()), consumer.StartFrom(rocketmq.StrictLatest())))
		require.EqualValues(t, 0, b.stored("T", 0), "a computed start is committed at once")
		b.put("T", 0, "m")
		synctest.Wait()
		require.Len(t, got.bodies(), 1)
		time.Sleep(5100 * time.Millisecond)
		synctest.Wait()
		b.mu.Lock()
		last := b.commits[len(b.commits)-1]
		n := len(b.commits)
		b.mu.Unlock()
		require.EqualValues(t, 1, last.Offset)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		b.mu.Lock()
		require.Len(t, b.commits, n, "an offset that does not move is not sent again and again")
		b.mu.Unlock()
		require.NoError(t, c.stop())
	})
}

func TestC01_StartOnAMissingTopic(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1) // and no retry topic
		cl := b.client()
		for range 100 {
			p := newPush(t, cl, consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)), consumer.Subscribe("absent", selector.All, consumer.HandlerFunc(nop)))
			err := p.Run(context.Background())
			require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
			var re *rocketmq.RouteError
			require.ErrorAs(t, err, &re)
			require.Equal(t, "absent", re.Topic)
			require.Equal(t, fakeNameServer, re.Asked[0].Addr)
			require.NoError(t, p.Close(context.Background()))
			require.ErrorIs(t, p.Run(context.Background()), rocketmq.ErrClosed)
		}
		require.Empty(t, b.beats, "nobody joined the group")
		c := start(t, newPush(t, cl, consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		require.NoError(t, c.stop())
	})
}

func nop(context.Context, []*rocketmq.MessageView) error { return nil }

func TestTagsAreCheckedExactly(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		// "Aa" and "BB" have the same hash code: a broker lets both through.
		for _, tag := range []string{"Aa", "BB", "Aa", "C"} {
			b.put("T", 0, tag, withProps("TAGS", tag))
		}
		b.put("T", 0, "none")
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.Tags("Aa", "x"), got.handler()), consumer.StartFrom(rocketmq.Earliest())))
		synctest.Wait()
		require.Equal(t, map[string]int{"Aa": 2}, got.bodies())
		require.NoError(t, c.stop())
		require.EqualValues(t, 5, b.stored("T", 0), "filtered messages count as consumed")
		sub := b.beats[0].Consumers[0].Subscriptions
		require.Len(t, sub, 2)
		require.Equal(t, "Aa || x", sub[0].Expr)
		require.Equal(t, []int32{120, 2112}, sub[0].Codes)
		require.Equal(t, "%RETRY%G", sub[1].Topic)
	})
}

func TestBatchesAndTheirOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 10 {
			b.put("T", 0, fmt.Sprint(i))
		}
		var mu sync.Mutex
		var calls [][]string
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All,
			consumer.HandlerFunc(func(_ context.Context, msgs []*rocketmq.MessageView) error {
				mu.Lock()
				defer mu.Unlock()
				var bodies []string
				for _, m := range msgs {
					bodies = append(bodies, string(m.Body))
				}
				calls = append(calls, bodies)
				switch len(calls) {
				case 1: // 0 1 2 3: 1 fails
					return consumer.BatchError{nil, errors.New("no"), nil, nil}
				case 2: // 4 5 6 7: 4 done, 5 failed, 6 7 come again
					return fmt.Errorf("wrapped: %w", consumer.Acked(1, consumer.RetryAfter(50*time.Second, nil)))
				}
				return nil
			}), consumer.Batch(4), consumer.Concurrency(1))))
		synctest.Wait()
		require.Equal(t, [][]string{{"0", "1", "2", "3"}, {"4", "5", "6", "7"}, {"8", "9"}, {"6"}, {"7"}}, calls)
		require.Len(t, b.sendBacks, 2)
		require.EqualValues(t, 1, b.sendBacks[0].Offset)
		require.EqualValues(t, 0, b.sendBacks[0].DelayLevel)
		require.EqualValues(t, 5, b.sendBacks[1].Offset)
		require.EqualValues(t, 5, b.sendBacks[1].DelayLevel, "50 s is rounded up to 1 m")
		require.NoError(t, c.stop())
		require.EqualValues(t, 10, b.stored("T", 0))
	})
}

func exit() { runtime.Goexit() }
