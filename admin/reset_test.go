package admin_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/admin"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/broker"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/namesrv"
	"github.com/gorocketmq/rocketmq/selector"
)

// pushing is a cluster whose broker pushes resets to the members, as those of
// 4.9 do. Its clock is moved by hand.
func pushing(t *testing.T) (*broker.Broker, *clock.Manual, func() *rocketmq.Client) {
	t.Helper()
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return ln
	}
	ns, err := namesrv.Start(t.Context(), namesrv.Config{Listener: listen()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ns.Close(context.Background())) })
	cfg := broker.DefaultConfig()
	cfg.Name, cfg.Listener, cfg.NameServers = "broker-a", listen(), []string{ns.Addr()}
	cfg.Store.FS, cfg.Store.Dir, cfg.Store.CommitLogFileSize = mfile.NewMemory(), "broker-a", 4<<20
	cfg.Store.DiskUsage = func(string) (float64, error) { return 0, nil }
	cfg.ServerSideReset = false
	c := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cfg.Clock, cfg.Liveness = c, clock.Real()
	b, err := broker.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	return b, c, func() *rocketmq.Client {
		cl, err := rocketmq.NewClient(rocketmq.WithNameServers(ns.Addr()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, cl.Close(context.Background())) })
		return cl
	}
}

// seen counts what a handler got, by offset.
type seen struct {
	mu sync.Mutex
	n  map[int64]int
}

func (s *seen) handler() consumer.Handler {
	return consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n[m.Offset]++
		return nil
	})
}

func (s *seen) is(t *testing.T, want map[int64]int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for off, n := range want {
			if s.n[off] < n {
				return false
			}
		}
		return true
	}, 15*time.Second, time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, want, s.n)
}

// C44 where the broker pushes: the group is moved by its members, or if none is
// there by whoever asks.
func TestC44_ResetThatIsPushed(t *testing.T) {
	b, c, client := pushing(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	cl := client()
	a := admin.New(cl)
	half := time.Time{}
	for i := range 2 {
		send(t, cl, "T", 5)
		if i == 0 {
			half = c.Now().Add(30 * time.Minute)
			c.Advance(time.Hour)
		}
	}
	got := &seen{n: map[int64]int{}}
	member := func() *consumer.Push {
		p, err := consumer.NewPush(client(), "G", consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler()))
		require.NoError(t, err)
		return p
	}
	stored := func() int64 {
		off, _ := b.Offset("G", "T", 0)
		return off
	}
	reset := func(to rocketmq.Position, want int64) {
		t.Helper()
		offs, err := a.ResetOffset(t.Context(), "G", "T", to)
		require.NoError(t, err)
		require.Equal(t, []admin.QueueOffset{{Queue: rocketmq.Queue{Topic: "T", Broker: "broker-a"}, Offset: want}}, offs)
	}
	p := member()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.Background()) }()
	want := map[int64]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1}
	got.is(t, want)
	require.Eventually(t, func() bool { return stored() == 10 }, 15*time.Second, time.Millisecond)

	reset(rocketmq.AtTime(half), 5)
	for off := int64(5); off < 10; off++ {
		want[off]++
	}
	got.is(t, want)
	require.Eventually(t, func() bool { return stored() == 10 }, 15*time.Second, time.Millisecond)
	_, err := a.ResetOffset(t.Context(), "G", "T", rocketmq.AtOffset(3))
	require.ErrorIs(t, err, rocketmq.ErrUnsupported, "it can only be told a time")
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, <-ended)
	require.EqualValues(t, 10, stored())
	got.is(t, want)

	reset(rocketmq.Earliest(), 0)
	require.Zero(t, stored())
	reset(rocketmq.AtTime(half), 5)
	reset(rocketmq.Latest(), 10)
	reset(rocketmq.AtOffset(8), 8)
	require.EqualValues(t, 8, stored())
	_, err = a.ResetOffset(t.Context(), "G", "T", rocketmq.AtOffset(11))
	require.ErrorIs(t, err, rocketmq.ErrOffset)
	run(t, member(), nil)
	want[8]++
	want[9]++
	got.is(t, want)
}

func TestResetRefusals(t *testing.T) {
	_, _, client := pushing(t)
	a := admin.New(client())
	_, err := a.ResetOffset(t.Context(), "G", "T", rocketmq.Position{})
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	_, err = a.ResetOffset(t.Context(), "G", "Absent", rocketmq.Earliest())
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
}
