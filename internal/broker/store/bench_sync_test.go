package store_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// answers is a Waiter for one producer at a time.
type answers chan store.PutResult

func (a answers) Stored(r store.PutResult) { a <- r }

// BenchmarkSyncPut has producers that wait for each message to be on disk.
// What counts is msgs/sync, which should come near the number of producers,
// and msgs/s against that number times the syncs/s of goroutines=1.
func BenchmarkSyncPut(b *testing.B) {
	for _, goroutines := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprintf("size=1KiB/goroutines=%d/fs=disk", goroutines), func(b *testing.B) {
			cfg := store.Config{Dir: b.TempDir(), FS: mfile.OS(), CommitLogFileSize: 128 << 20, SyncFlush: true}
			s, err := store.Open(cfg)
			require.NoError(b, err)
			b.Cleanup(s.Abandon)
			body := bytes.Repeat([]byte("x"), 1024)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			before := s.Stats().Flushes
			b.ResetTimer()
			cpu := cpuTime()
			for g := range goroutines {
				wg.Go(func() {
					m := &store.Message{Topic: []byte("BenchmarkTest"), QueueID: int32(g % 8), Body: body, Properties: []byte("TAGS\x01TagA\x02KEYS\x01key\x02")}
					done := make(answers, 1)
					for left.Add(-1) >= 0 {
						res, later := s.Put(m, done)
						if later {
							res = <-done
						}
						if res.Err != nil || !later {
							panic(fmt.Sprint(later, res))
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			syncs := float64(s.Stats().Flushes - before)
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(syncs/float64(b.N), "syncs/op")
			b.ReportMetric(float64(b.N)/syncs, "msgs/sync")
			b.ReportMetric(syncs/b.Elapsed().Seconds(), "syncs/s")
		})
	}
}
