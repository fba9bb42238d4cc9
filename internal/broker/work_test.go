package broker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkMergesRequests(t *testing.T) {
	w := newWork()
	w.ask()
	second := w.ask()
	<-w.wake
	seq := w.begin()
	third := w.ask() // while the round runs: one more round
	w.end(seq)
	require.NoError(t, w.wait(t.Context(), second))

	limit := errors.New("limit")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(limit)
	require.ErrorIs(t, w.wait(ctx, third), limit)
	<-w.wake
	w.end(w.begin())
	require.NoError(t, w.wait(ctx, third))
	require.Empty(t, w.wake)
}

func TestWorkThatEndsReleasesItsWaiters(t *testing.T) {
	w := newWork()
	seq := w.ask()
	done := make(chan error, 1)
	go func() { done <- w.wait(context.Background(), seq) }()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.waiters) == 1
	}, 10*time.Second, time.Millisecond)
	w.close()
	require.NoError(t, <-done)
	require.NoError(t, w.wait(context.Background(), w.ask()))
}

func TestRates(t *testing.T) {
	var s stats
	put := func(x sample) int64 { return x.put }
	now := testStart
	require.Equal(t, "0.0 0.0 0.0", s.rates(now, put))
	s.tick(now)
	for range 700 { // longer than the ring
		now = now.Add(time.Second)
		s.put(10, 1000)
		s.tick(now)
	}
	require.Equal(t, "10.0 10.0 10.0", s.rates(now, put))
	for range 10 {
		now = now.Add(time.Second)
		s.tick(now)
	}
	require.Regexp(t, `^0\.0 8\.\d 9\.8$`, s.rates(now, put))
}
