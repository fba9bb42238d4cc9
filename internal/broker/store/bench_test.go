package store_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// benchStore is a store that keeps its newest two files only, so that a
// benchmark runs in bounded space.
func benchStore(b *testing.B, disk bool) (s *store.Store, trim func()) {
	b.Helper()
	cfg := store.Config{Dir: "store", FS: mfile.NewMemory(), CommitLogFileSize: 128 << 20, ConsumeQueueFileSize: 6_000_000}
	if disk {
		cfg.Dir, cfg.FS = b.TempDir(), mfile.OS()
	}
	s, err := store.Open(cfg)
	require.NoError(b, err)
	b.Cleanup(s.Abandon)
	var busy atomic.Bool
	return s, func() {
		if !busy.CompareAndSwap(false, true) {
			return
		}
		for s.Stats().LogFiles > 3 && s.Stats().DispatchBehind < 64<<20 {
			require.NoError(b, s.DropFirstLogFile())
		}
		busy.Store(false)
	}
}

func BenchmarkPut(b *testing.B) {
	for _, fs := range []string{"memory", "disk"} {
		for _, goroutines := range []int{1, 8} {
			b.Run(fmt.Sprintf("size=1KiB/goroutines=%d/fs=%s", goroutines, fs), func(b *testing.B) {
				s, trim := benchStore(b, fs == "disk")
				body := bytes.Repeat([]byte("x"), 1024)
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				var left atomic.Int64
				left.Store(int64(b.N))
				var wg sync.WaitGroup
				b.ResetTimer()
				cpu := cpuTime()
				for g := range goroutines {
					wg.Go(func() {
						m := &store.Message{Topic: []byte("BenchmarkTest"), QueueID: int32(g), Body: body, Properties: []byte("TAGS\x01TagA\x02KEYS\x01key\x02")}
						for n := 0; left.Add(-1) >= 0; n++ {
							if res, _ := s.Put(m, nil); res.Err != nil {
								panic(res.Err)
							}
							if n%65536 == 0 {
								trim()
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				require.NoError(b, s.WaitDispatched(context.Background()))
				b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkCopyCRC is the least that BenchmarkPut can cost: checksum and one
// copy into a mapping, in files that are made and removed as Put has it, with
// their page faults; or, as what it would be if pages cost nothing, into the
// same file again and again.
func BenchmarkCopyCRC(b *testing.B) {
	for _, fs := range []string{"memory", "disk"} {
		for _, warm := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=1KiB/warm=%v/fs=%s", warm, fs), func(b *testing.B) {
				const size = 128 << 20
				fsys, dir := mfile.FS(mfile.NewMemory()), "store"
				if fs == "disk" {
					fsys, dir = mfile.OS(), b.TempDir()
				}
				seq := mfile.NewSequence(fsys, dir, size)
				b.Cleanup(func() { require.NoError(b, seq.Destroy()) })
				grow := func() []byte {
					f, err := seq.Create(int64(len(seq.Files()))*size, true)
					require.NoError(b, err)
					seq.Add(f)
					return f.Data()
				}
				record := bytes.Repeat([]byte("x"), 1024+148)
				dst := grow()
				if warm {
					clear(dst)
				}
				b.ReportAllocs()
				b.SetBytes(1024)
				sum, at := uint32(0), 0
				b.ResetTimer()
				cpu := cpuTime()
				for b.Loop() {
					if at+len(record) > len(dst) {
						at = 0
						if !warm {
							dst = grow()
						}
					}
					sum += crc32.ChecksumIEEE(record[:1024])
					at += copy(dst[at:], record)
				}
				_ = sum
				b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, fs := range []string{"memory", "disk"} {
		b.Run("size=1KiB/batch=32/fs="+fs, func(b *testing.B) {
			s, _ := benchStore(b, fs == "disk")
			const n = 32 << 10
			body := bytes.Repeat([]byte("x"), 1024)
			for range n {
				res, _ := s.Put(&store.Message{Topic: []byte("T"), Body: body}, nil)
				require.NoError(b, res.Err)
			}
			require.NoError(b, s.WaitDispatched(context.Background()))
			var dst []byte
			at, topic := int64(0), []byte("T")
			b.ReportAllocs()
			b.SetBytes(32 * 1024)
			for b.Loop() {
				var res store.GetResult
				dst, res = s.Get(dst[:0], store.GetRequest{Topic: topic, Offset: at, MaxMsgs: 32})
				if res.Count != 32 {
					b.Fatal(res)
				}
				at = (at + 32) % n
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/msg")
		})
	}
}

// Puts and Gets of a store that is warm allocate nothing.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops items under the race detector")
	}
	r := newRig(t, false, func(c *store.Config) { c.CommitLogFileSize, c.ConsumeQueueFileSize = 16<<20, 100_000*20 })
	m := message("T", 0, "body", "TAGS", "a")
	many := message("T", 0, "", "CLUSTER", "c")
	many.Body = batch("one", "two", "three")
	phy := make([]int64, 0, 3)
	r.Put(m, nil)
	r.settle()
	dst := make([]byte, 0, 64<<10)
	for name, f := range map[string]func(){
		"put":   func() { r.Put(m, nil) },
		"batch": func() { r.PutBatch(many, phy, nil) },
		"get": func() {
			dst, _ = r.Get(dst[:0], store.GetRequest{Topic: m.Topic, MaxMsgs: 32})
		},
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(500, f), 0.0, name)
	}
}

// BenchmarkOpen opens a store whose last file is full of 1 KiB messages, after
// a clean stop and after a kill.
func BenchmarkOpen(b *testing.B) {
	const file = 1 << 30
	gib, _ := strconv.Atoi(os.Getenv("BENCH_LOG_GIB"))
	for _, clean := range []bool{true, false} {
		b.Run(fmt.Sprintf("log=128MiB/clean=%v/fs=memory", clean), func(b *testing.B) {
			benchmarkOpen(b, store.Config{Dir: "store", FS: mfile.NewMemory(), CommitLogFileSize: file / 8}, file/8-4096, clean)
		})
		b.Run(fmt.Sprintf("log=%dGiB/clean=%v/fs=disk", gib, clean), func(b *testing.B) {
			if gib == 0 {
				b.Skip("writes a log of BENCH_LOG_GIB gibibytes if that is set")
			}
			benchmarkOpen(b, store.Config{Dir: b.TempDir(), CommitLogFileSize: file}, int64(gib)*file-4096, clean)
		})
	}
}

func benchmarkOpen(b *testing.B, cfg store.Config, size int64, clean bool) {
	cfg.DiskUsage = func(string) (float64, error) { return 0, nil }
	s, err := store.Open(cfg)
	require.NoError(b, err)
	body := bytes.Repeat([]byte("x"), 1024)
	for i := int32(0); s.Stats().MaxPhy < size; i++ {
		res, _ := s.Put(&store.Message{Topic: []byte("T"), QueueID: i % 8, Body: body}, nil)
		require.NoError(b, res.Err)
	}
	end := func() {
		if clean {
			require.NoError(b, s.Close())
		} else {
			s.Abandon()
		}
	}
	end()
	cpu := cpuTime()
	for b.Loop() {
		s, err = store.Open(cfg)
		require.NoError(b, err)
		b.StopTimer()
		end()
		b.StartTimer()
	}
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkQueues tells what a queue costs in Go memory, and what opening a
// store with so many costs.
func BenchmarkQueues(b *testing.B) {
	const queues = 10_000
	cfg := store.Config{
		Dir: b.TempDir(), CommitLogFileSize: 64 << 20,
		DiskUsage: func(string) (float64, error) { return 0, nil },
	}
	s, err := store.Open(cfg)
	require.NoError(b, err)
	for i := range queues * 2 {
		m := &store.Message{Topic: fmt.Appendf(nil, "topic-%04d", i%queues/8), QueueID: int32(i % 8), Body: []byte("x")}
		res, _ := s.Put(m, nil)
		require.NoError(b, res.Err)
	}
	require.NoError(b, s.WaitDispatched(b.Context()))
	heap := heapInUse()
	require.NoError(b, s.Close())
	before := heapInUse()
	for b.Loop() {
		s, err = store.Open(cfg)
		require.NoError(b, err)
		b.StopTimer()
		b.ReportMetric(float64(max(heap, heapInUse())-before)/(1<<20), "heap-MiB")
		require.NoError(b, s.Close())
		b.StartTimer()
	}
}

func heapInUse() uint64 {
	runtime.GC() //revive:disable-line:call-to-gc what is garbage must not count
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
