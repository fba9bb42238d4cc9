package rounds

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkMergesRequests(t *testing.T) {
	w := New()
	w.Ask()
	second := w.Ask()
	<-w.wake
	seq := w.Begin()
	third := w.Ask() // while the round runs: one more round
	w.End(seq)
	require.NoError(t, w.Wait(t.Context(), second))

	limit := errors.New("limit")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(limit)
	require.ErrorIs(t, w.Wait(ctx, third), limit)
	<-w.wake
	w.End(w.Begin())
	require.NoError(t, w.Wait(ctx, third))
	require.Empty(t, w.wake)
}

func TestWorkThatEndsReleasesItsWaiters(t *testing.T) {
	w := New()
	seq := w.Ask()
	done := make(chan error, 1)
	go func() { done <- w.Wait(context.Background(), seq) }()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.waiters) == 1
	}, 30*time.Second, time.Millisecond)
	w.Close()
	require.NoError(t, <-done)
	require.NoError(t, w.Wait(context.Background(), w.Ask()))
}
