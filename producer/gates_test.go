package producer_test

import (
	"runtime"
	"testing"
	"github.com/stretchr/testify/require"
	"github.com/gorocketmq/rocketmq/producer"
)

func TestX(t *testing.T) {
	for range 3 {
		for _, n := range []int{1, 16, 128} {
			r := newRig(t)
			if err := r.sync(n*20, n); err != nil { t.Fatal(err) }
			a, b, w := r.cost(t, 128*100, func() error { return r.sync(128*100, n) })
			t.Logf("sync %d: %.3f allocs %.1f bytes %.3f writes", n, a, b, w)
		}
		{
			r := newRig(t)
			a, b, w := r.cost(t, 9000, func() error { return r.async(9000) })
			t.Logf("async free, cold: %.3f allocs %.1f bytes %.3f writes", a, b, w)
			a, b, w = r.cost(t, 9000, func() error { return r.async(9000) })
			t.Logf("async free, warm: %.3f allocs %.1f bytes %.3f writes", a, b, w)
		}
		{
			r := newRig(t, producerInflight(256))
			if err := r.async(2000); err != nil { t.Fatal(err) }
			a, b, w := r.cost(t, 20000, func() error { return r.async(20000) })
			t.Logf("async 256: %.3f allocs %.1f bytes %.3f writes", a, b, w)
			r = newRig(t, producerInflight(1))
			a, b, w = r.cost(t, 20000, func() error { return r.async(20000) })
			t.Logf("async 1: %.3f allocs %.1f bytes %.3f writes", a, b, w)
		}
		{
			r := newRig(t)
			if err := r.oneway(2000, 16); err != nil { t.Fatal(err) }
			a, b, w := r.cost(t, 20000, func() error { return r.oneway(20000, 16) })
			t.Logf("oneway 16: %.3f allocs %.1f bytes %.3f writes", a, b, w)
			a, b, w = r.cost(t, 20000, func() error { return r.oneway(20000, 1) })
			t.Logf("oneway 1: %.3f allocs %.1f bytes %.3f writes", a, b, w)
			if err := r.batch(200, 4, 32); err != nil { t.Fatal(err) }
			a, b, w = r.cost(t, 32*1000, func() error { return r.batch(1000, 4, 32) })
			t.Logf("batch: %.3f allocs %.1f bytes %.3f writes", a, b, w)
		}
	}
}
func producerInflight(n int) producer.Option { return producer.WithInflight(n, 64<<20) }
func (r *rig) cost(t testing.TB, n int, f func() error) (allocs, bytes, writes float64) {
	var from, to runtime.MemStats
	w := r.writes.Load()
	runtime.ReadMemStats(&from)
	err := f()
	runtime.ReadMemStats(&to)
	require.NoError(t, err)
	k := float64(n)
	return float64(to.Mallocs-from.Mallocs) / k, float64(to.TotalAlloc-from.TotalAlloc) / k, float64(r.writes.Load()-w) / k
}
