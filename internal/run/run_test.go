package run_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/leak"
	"github.com/gorocketmq/rocketmq/internal/run"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestGroupStopEndsAndWaits(t *testing.T) {
	g := run.NewGroup(context.Background())
	ended := make([]bool, 3)
	for i := range ended {
		require.True(t, g.Go(func(ctx context.Context) {
			<-ctx.Done()
			ended[i] = true
		}))
	}
	g.Stop()
	require.Equal(t, []bool{true, true, true}, ended)
	require.False(t, g.Go(func(context.Context) { t.Error("ran after stop") }))
}

func TestGroupCancelCarriesCause(t *testing.T) {
	cause := errors.New("revoked")
	g := run.NewGroup(context.Background())
	got := make(chan error, 1)
	g.Go(func(ctx context.Context) {
		<-ctx.Done()
		got <- context.Cause(ctx)
	})
	g.Cancel(cause)
	g.Wait()
	require.ErrorIs(t, <-got, cause)
}

func TestGroupParentEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g := run.NewGroup(ctx)
	g.Go(func(ctx context.Context) { <-ctx.Done() })
	cancel()
	g.Wait()
	g.Stop()
}

func TestWaitContextIsBounded(t *testing.T) {
	g := run.NewGroup(context.Background())
	release := make(chan struct{})
	g.Go(func(context.Context) { <-release })
	ctx, cancel := context.WithCancelCause(context.Background())
	limit := errors.New("limit")
	cancel(limit)
	require.ErrorIs(t, g.WaitContext(ctx), limit)
	close(release)
	require.NoError(t, g.WaitContext(context.Background()))
	g.Stop()
}
