package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
)

// valve is what Push and Ordered have to throttle a topic.
type valve interface {
	Pause(topic string) error
	Resume(topic string) error
	Tune(topic string, opts ...consumer.SubOption) error
}

// bothKinds runs a test with a Push and an Ordered.
func bothKinds(t *testing.T, f func(t *testing.T, b *fake, join func(opts ...consumer.Option) role)) {
	t.Run("push", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *fake) {
			f(t, b, func(opts ...consumer.Option) role {
				return newPush(t, b.client(), append(opts, consumer.StartFrom(rocketmq.Earliest()))...)
			})
		})
	})
	t.Run("ordered", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *fake) {
			f(t, b, func(opts ...consumer.Option) role { return newOrdered(t, b.client(), opts...) })
		})
	})
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 2)
		b.topic("U", 1)
		putMany(b, 0, 0, 10)
		var n, other atomic.Int32
		began, gate := make(chan struct{}), make(chan struct{})
		p := join(each(func(_ context.Context, m *rocketmq.MessageView) error {
			if n.Add(1) == 1 {
				close(began)
				<-gate
			}
			return nil
		}, consumer.Concurrency(1)), consumer.Subscribe("U", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error {
			other.Add(1)
			return nil
		})))
		c := start(t, p)
		<-began
		require.NoError(t, p.(valve).Pause("T"))
		require.NoError(t, p.(valve).Pause("T"), "again")
		close(gate)
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, n.Load(), "the call that ran has finished, and none has begun")
		putMany(b, 0, 10, 60)
		putMany(b, 1, 0, 60)
		b.put("U", 0, "goes on")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, n.Load())
		require.EqualValues(t, 1, other.Load(), "the other topic is not paused")
		require.EqualValues(t, 1, b.stored("T", 0), "offsets are committed meanwhile")
		for i := range 2 {
			h := health(t, c, i)
			require.Equal(t, "paused", h.State)
			require.Less(t, h.Cached, 100, "no more than what was under way is pulled")
		}
		b.mu.Lock()
		pulls := len(b.pulls)
		b.mu.Unlock()
		time.Sleep(time.Minute)
		b.mu.Lock()
		require.InDelta(t, pulls+4, len(b.pulls), 2, "only U and the retry topic pull")
		b.mu.Unlock()

		require.NoError(t, p.(valve).Resume("T"))
		synctest.Wait()
		require.EqualValues(t, 120, n.Load())
		require.NoError(t, p.(valve).Resume("T"))
		require.Equal(t, "pulling", health(t, c, 0).State)
		for _, f := range []func(string) error{p.(valve).Pause, p.(valve).Resume, func(s string) error { return p.(valve).Tune(s) }} {
			for _, topic := range []string{"absent", "", "%RETRY%G"} {
				err := f(topic)
				require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
				require.ErrorContains(t, err, fmt.Sprintf("%q", topic))
			}
		}
		require.NoError(t, c.stop())
		require.EqualValues(t, 60, b.stored("T", 0))
		require.EqualValues(t, 60, b.stored("T", 1))
	})
}

// A consumer may be paused before it runs, and closed while it is paused.
func TestPausedFromTheBeginning(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 2)
		putMany(b, 0, 0, 10)
		var got received
		p := join(consumer.Subscribe("T", selector.All, got.handler()))
		require.NoError(t, p.(valve).Pause("T"))
		c := start(t, p)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, got.bodies())
		require.Empty(t, b.pulls)
		require.NoError(t, c.stop())
	})
}

// A message that failed before the pause does not come back during it.
func TestPausedTopicsRetriesWait(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		b.topic("U", 1)
		b.topic("%RETRY%G", 1)
		var got, other received
		p := join(consumer.Subscribe("U", selector.All, other.handler()), consumer.Subscribe("T", selector.All, got.handler()))
		c := start(t, p)
		require.NoError(t, p.(valve).Pause("T"))
		b.put("%RETRY%G", 0, "u", withProps("RETRY_TOPIC", "U"))
		b.put("%RETRY%G", 0, "t", withProps("RETRY_TOPIC", "T"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, got.bodies())
		require.Equal(t, map[string]int{"u": 1}, other.bodies())
		require.NoError(t, p.(valve).Resume("T"))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int{"t": 1}, got.bodies())
		require.NoError(t, p.(valve).Pause("T"))
		require.NoError(t, p.(valve).Pause("U"))
		for _, q := range c.Health().Queues {
			require.Equal(t, "paused", q.State, "with all topics the retry topic is paused, too")
		}
		require.NoError(t, c.stop())
	})
}

// counted counts calls by the second.
type counted struct {
	began time.Time
	by    [60]atomic.Int32
}

func (c *counted) add(n int) { c.by[int(time.Since(c.began).Seconds())].Add(int32(n)) }

func TestRate(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 4)
		for q := range 4 {
			putMany(b, q, 0, 2000)
		}
		n := &counted{began: time.Now()}
		queues := [4]atomic.Int32{}
		p := join(each(func(_ context.Context, m *rocketmq.MessageView) error {
			n.add(1)
			queues[m.Queue.ID].Add(1)
			return nil
		}, consumer.Rate(50)))
		c := start(t, p)
		time.Sleep(10*time.Second - time.Millisecond)
		synctest.Wait()
		for s := range 10 {
			require.InDelta(t, 50, n.by[s].Load(), 6, "second %d", s)
		}
		for q := range queues {
			require.InDelta(t, 125, queues[q].Load(), 35, "queues take turns")
		}
		require.NoError(t, p.(valve).Tune("T", consumer.Rate(500)))
		time.Sleep(5 * time.Second)
		for s := 11; s < 15; s++ {
			require.InDelta(t, 500, n.by[s].Load(), 60, "second %d", s)
		}
		// Batches count as their messages, and concurrency does not matter.
		require.NoError(t, p.(valve).Tune("T", consumer.Rate(100), consumer.Batch(10), consumer.Concurrency(3)))
		time.Sleep(5 * time.Second)
		for s := 16; s < 19; s++ {
			require.InDelta(t, 100, n.by[s].Load(), 20, "second %d", s)
		}
		require.NoError(t, p.(valve).Tune("T", consumer.Rate(0)))
		synctest.Wait()
		total := int32(0)
		for i := range n.by {
			total += n.by[i].Load()
		}
		require.EqualValues(t, 8000, total, "no limit any more")
		require.NoError(t, c.stop())
	})
}

// A rate of less than one a second, and a member that closes while it waits.
func TestSlowRate(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		putMany(b, 0, 0, 100)
		var n atomic.Int32
		c := start(t, join(each(func(context.Context, *rocketmq.MessageView) error { n.Add(1); return nil }, consumer.Rate(0.1))))
		time.Sleep(61 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 7, n.Load())
		began := time.Now()
		require.NoError(t, c.stop())
		require.Less(t, time.Since(began), time.Second)
		require.EqualValues(t, 7, b.stored("T", 0))
	})
}

func TestTuneConcurrency(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 64)
		for q := range 64 {
			putMany(b, q, 0, 100)
		}
		var busy atomic.Int32
		p := join(each(func(context.Context, *rocketmq.MessageView) error {
			busy.Add(1)
			time.Sleep(100 * time.Millisecond)
			busy.Add(-1)
			return nil
		}, consumer.Concurrency(4)))
		c := start(t, p)
		for i, n := range []int{4, 40, 2, 50, 1, 3} {
			if i > 0 {
				require.NoError(t, p.(valve).Tune("T", consumer.Concurrency(n)))
			}
			time.Sleep(350 * time.Millisecond) // those that run may finish
			synctest.Wait()
			require.EqualValues(t, n, busy.Load())
		}
		require.NoError(t, c.stop())
	})
}

func TestTuneBatchCacheAndSpan(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 9000)
		gate := make(chan struct{})
		var largest, done atomic.Int32
		p := newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All,
			consumer.HandlerFunc(func(_ context.Context, ms []*rocketmq.MessageView) error {
				if n := int32(len(ms)); n > largest.Load() {
					largest.Store(n)
				}
				if ms[0].Offset == 0 {
					<-gate
				}
				done.Add(int32(len(ms)))
				return nil
			}), consumer.Span(100)))
		require.NoError(t, p.Tune("T", consumer.Cache(64, 1<<20), consumer.Concurrency(2)), "also before Run")
		c := start(t, p)
		synctest.Wait()
		require.InDelta(t, 128, done.Load(), 32, "the span")
		require.EqualValues(t, 1, largest.Load())
		require.Equal(t, "cache full", health(t, c, 0).State)
		require.NoError(t, p.Tune("T", consumer.Span(5000), consumer.Batch(8)))
		synctest.Wait()
		require.InDelta(t, 5000, done.Load(), 64)
		require.EqualValues(t, 8, largest.Load())
		require.NoError(t, p.Tune("T", consumer.Span(1<<30)))
		synctest.Wait()
		require.EqualValues(t, 8999, done.Load())
		close(gate)
		require.NoError(t, c.stop())
	})
}

func TestTuneCacheLimits(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		putMany(b, 0, 0, 3000)
		gate := make(chan struct{})
		p := join(each(func(context.Context, *rocketmq.MessageView) error { <-gate; return nil }, consumer.Cache(32, 1<<20), consumer.Span(10000)))
		c := start(t, p)
		for _, n := range []int{32, 320, 640, 2560} {
			require.NoError(t, p.(valve).Tune("T", consumer.Cache(n, 1<<20)))
			synctest.Wait()
			require.Equal(t, n, health(t, c, 0).Cached)
			require.Equal(t, "cache full", health(t, c, 0).State)
		}
		close(gate)
		synctest.Wait()
		require.NoError(t, c.stop())
		require.EqualValues(t, 3000, b.stored("T", 0))
	})
}

func TestTuneRefusesNonsense(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var most atomic.Int32
		p := newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All,
			consumer.HandlerFunc(func(_ context.Context, ms []*rocketmq.MessageView) error {
				most.Store(int32(len(ms)))
				return nil
			})))
		for _, o := range []consumer.SubOption{
			consumer.Concurrency(0), consumer.Batch(-1), consumer.Cache(0, 1), consumer.Cache(1, 0), consumer.Span(0),
			consumer.Rate(-1), consumer.Rate(math.NaN()), consumer.Rate(math.Inf(1)),
		} {
			require.ErrorIs(t, p.Tune("T", consumer.Batch(4), o), rocketmq.ErrInvalidOption)
			_, err := consumer.NewPush(b.client(), "G", consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop), o))
			require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		}
		putMany(b, 0, 0, 10)
		c := start(t, p)
		synctest.Wait()
		require.EqualValues(t, 1, most.Load(), "nothing of a refused call counts")
		require.NoError(t, c.stop())
	})
}

// Pause, Resume and Tune from all sides while messages flow and fail: nothing is
// lost, and all is quiet in the end.
func TestTuneWhileMessagesFlow(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 4)
		var done atomic.Int32
		p := join(each(func(_ context.Context, m *rocketmq.MessageView) error {
			time.Sleep(time.Millisecond)
			if m.Offset%50 == 7 && m.Attempt == 1 {
				done.Add(1)
				return consumer.RetryAfter(10*time.Millisecond, errors.New("once"))
			}
			done.Add(1)
			return nil
		}))
		c := start(t, p)
		v := p.(valve)
		stop := make(chan struct{})
		ended := make(chan struct{}, 3)
		for _, f := range []func(i int) error{
			func(int) error { return v.Pause("T") }, func(int) error { return v.Resume("T") },
			func(i int) error {
				return v.Tune("T", consumer.Concurrency(1+i%7), consumer.Rate(float64(i%3)*1000), consumer.Cache(1+i%90, 1<<20), consumer.Batch(1+i%4))
			},
		} {
			go func() {
				defer func() { ended <- struct{}{} }()
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(3+i%5) * time.Millisecond):
					}
					if err := f(i); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		for i := range 500 {
			for q := range 4 {
				putMany(b, q, i, i+1)
			}
			time.Sleep(2 * time.Millisecond)
		}
		close(stop)
		for range 3 {
			<-ended
		}
		require.NoError(t, v.Resume("T"))
		require.NoError(t, v.Tune("T", consumer.Rate(0), consumer.Concurrency(8)))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.GreaterOrEqual(t, done.Load(), int32(2000))
		require.NoError(t, c.stop())
		for q := range 4 {
			require.EqualValues(t, 500, b.stored("T", q))
		}
	})
}
