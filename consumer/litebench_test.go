package consumer_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
)

// pollCanned polls at least n messages of size bytes, with tags checked and
// properties unread. The broker's half is counted, too, see consumeCanned.
func pollCanned(tb testing.TB, size int, n int64, poll func(l *consumer.LitePull) (int, error)) cost {
	tb.Helper()
	c := newCanned(tb, size)
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.addr))
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = cl.Close(context.Background()) })
	l, err := consumer.NewLitePull(cl, "bench", consumer.SubscribeTo("BenchTopic", selector.Tags("TagA")))
	require.NoError(tb, err)
	require.NoError(tb, l.Ready(context.Background()))
	got := int64(0)
	until := func(want int64) {
		for got < want {
			k, err := poll(l)
			require.NoError(tb, err)
			got += int64(k)
		}
	}
	until(10_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, first := time.Now(), got
	until(first + max(n, 30_000))
	took, total := time.Since(began), got-first
	runtime.ReadMemStats(&after)
	require.NoError(tb, l.Close(context.Background()))
	return cost{total, int64(after.Mallocs - before.Mallocs), int64(after.TotalAlloc - before.TotalAlloc), took}
}

func pollOnce(l *consumer.LitePull) (int, error) {
	msgs, err := l.Poll(context.Background())
	return len(msgs), err
}

// iterate takes a thousand messages one by one.
func iterate(l *consumer.LitePull) (n int, err error) {
	for _, err := range l.Messages(context.Background()) {
		if n++; err != nil || n == 1000 {
			return n, err
		}
	}
	return n, nil
}

func BenchmarkLitePull(b *testing.B) {
	for name, poll := range map[string]func(*consumer.LitePull) (int, error){"poll": pollOnce, "messages": iterate} {
		for _, size := range []int{200, 1024} {
			b.Run(fmt.Sprintf("%s/size=%d", name, size), func(b *testing.B) {
				c := pollCanned(b, size, int64(b.N), poll)
				n := float64(c.messages)
				b.ReportMetric(float64(c.took.Nanoseconds())/n, "ns/op")
				b.ReportMetric(n/c.took.Seconds(), "msg/s")
				b.ReportMetric(float64(c.mallocs)/n, "allocs/msg")
				b.ReportMetric(float64(c.bytes)/n, "B/msg")
			})
		}
	}
}

// The budget is 1 allocation a message; about 0.26 is what it takes.
func TestAllocationsPerPolledMessage(t *testing.T) {
	for name, poll := range map[string]func(*consumer.LitePull) (int, error){"poll": pollOnce, "messages": iterate} {
		c := pollCanned(t, 1024, 30_000, poll)
		require.Less(t, float64(c.mallocs)/float64(c.messages), 0.5, name)
	}
}
