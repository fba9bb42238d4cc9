package pool_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/pool"
)

func newPool(t testing.TB, size int, onPanic func(any, []byte)) *pool.Pool {
	t.Helper()
	if onPanic == nil {
		onPanic = func(v any, stack []byte) { t.Errorf("task panicked: %v\n%s", v, stack) }
	}
	p, err := pool.New(size, onPanic)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return p
}

func TestNoMoreThanSizeAtATime(t *testing.T) {
	p := newPool(t, 3, nil)
	var now, most, ran atomic.Int32
	for range 1000 {
		require.NoError(t, p.Go(context.Background(), func() {
			n := now.Add(1)
			for {
				m := most.Load()
				if n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			ran.Add(1)
			now.Add(-1)
		}))
	}
	require.NoError(t, p.Close(context.Background()))
	require.EqualValues(t, 1000, ran.Load())
	require.LessOrEqual(t, most.Load(), int32(3))
}

func TestAdmissionWaitsForTheContextOnly(t *testing.T) {
	p := newPool(t, 1, nil)
	release, started := make(chan struct{}), make(chan struct{})
	require.NoError(t, p.Go(context.Background(), func() { close(started); <-release }))
	<-started
	require.False(t, p.TryGo(func() { t.Error("ran although the pool is full") }))
	require.Equal(t, 1, p.Running())
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	require.ErrorIs(t, p.Go(ctx, func() { t.Error("ran although admission was cancelled") }), cause)
	close(release)
	done := make(chan struct{})
	require.NoError(t, p.Go(context.Background(), func() { close(done) }))
	<-done
}

func TestPanicReturnsThePlace(t *testing.T) {
	type report struct {
		v     any
		stack string
	}
	reports := make(chan report, 10)
	p := newPool(t, 1, func(v any, stack []byte) { reports <- report{v, string(stack)} })
	for i := range 10 {
		require.NoError(t, p.Go(context.Background(), func() { panicHere(i) }))
	}
	for range 10 {
		r := <-reports
		require.True(t, strings.Contains(r.stack, "panicHere"), r.stack)
	}
	ok := make(chan struct{})
	require.NoError(t, p.Go(context.Background(), func() { close(ok) }))
	<-ok
}

func panicHere(i int) { panic(i) }

func TestCloseIsBoundedAndCanBeRepeated(t *testing.T) {
	p := newPool(t, 2, nil)
	release, started := make(chan struct{}), make(chan struct{})
	require.NoError(t, p.Go(context.Background(), func() { close(started); <-release }))
	<-started
	limit := errors.New("limit")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(limit)
	require.ErrorIs(t, p.Close(ctx), limit)
	require.ErrorIs(t, p.Go(context.Background(), func() {}), pool.ErrClosed)
	require.False(t, p.TryGo(func() {}))
	close(release)
	require.NoError(t, p.Close(context.Background()))
	require.NoError(t, p.Close(context.Background()))
	require.Zero(t, p.Running())
}

func TestConcurrentUseAndClose(t *testing.T) {
	p := newPool(t, 4, nil)
	var accepted, ran atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if p.Go(context.Background(), func() { ran.Add(1) }) != nil {
					return
				}
				accepted.Add(1)
			}
		})
	}
	wg.Go(func() {
		for accepted.Load() < 100 {
			if err := p.Go(context.Background(), func() {}); err != nil {
				return
			}
		}
		_ = p.Close(context.Background())
	})
	wg.Wait()
	require.NoError(t, p.Close(context.Background()))
	require.Equal(t, accepted.Load(), ran.Load())
}

func TestNewRefusesNoPlaces(t *testing.T) {
	_, err := pool.New(0, nil)
	require.Error(t, err)
}

func TestTryGoDoesNotAllocate(t *testing.T) {
	p := newPool(t, 1, nil)
	done := make(chan struct{}, 1)
	f := func() { done <- struct{}{} }
	n := testing.AllocsPerRun(200, func() {
		for !p.TryGo(f) { // the place comes back just after the task's signal
		}
		<-done
	})
	require.LessOrEqual(t, n, 0.5)
}

func BenchmarkTryGo(b *testing.B) {
	p := newPool(b, 1, nil)
	done := make(chan struct{}, 1)
	f := func() { done <- struct{}{} }
	b.ReportAllocs()
	for b.Loop() {
		for !p.TryGo(f) {
		}
		<-done
	}
}

func TestResize(t *testing.T) {
	p := newPool(t, 2, nil)
	gate := make(chan struct{})
	var ran sync.WaitGroup
	fill := func(want int) {
		t.Helper()
		n := 0
		for p.TryGo(func() { defer ran.Done(); <-gate }) {
			ran.Add(1)
			n++
		}
		require.Equal(t, want, n)
	}
	fill(2)
	p.Resize(5)
	fill(3)
	p.Resize(1) // five run
	fill(0)
	p.Resize(3)
	fill(0)
	require.Equal(t, 5, p.Running())
	close(gate)
	ran.Wait()
	gate = make(chan struct{})
	// The last task returns its place a moment after it has told.
	for n := 0; n < 3; {
		if p.TryGo(func() { defer ran.Done(); <-gate }) {
			ran.Add(1)
			n++
		}
	}
	fill(0)
	p.Resize(4)
	fill(1)
	close(gate)
}
