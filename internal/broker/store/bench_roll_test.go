package store_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// BenchmarkRoll appends 1 KiB messages at 20,000 a second or so, through many
// log files, and reports the longest append that went to a new file and the
// longest of all, in ms. An append must not wait for a file: roll-max-ms
// stands against 20 ms.
func BenchmarkRoll(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("file=16MiB/sync=%v/fs=disk", sync), func(b *testing.B) {
			const size = 16 << 20
			s, err := store.Open(store.Config{Dir: b.TempDir(), FS: mfile.OS(), CommitLogFileSize: size, SyncFlush: sync})
			require.NoError(b, err)
			b.Cleanup(s.Abandon)
			m := &store.Message{Topic: []byte("BenchmarkTest"), Body: bytes.Repeat([]byte("x"), 1024), NoWait: true}
			var file int64
			var rolls int
			var worst, worstRoll time.Duration
			begin := time.Now()
			for n := 0; b.Loop(); n++ {
				for n%64 == 0 && time.Since(begin) < time.Duration(n)*50*time.Microsecond {
					time.Sleep(100 * time.Microsecond) // the load's pace
				}
				before := time.Now()
				res, _ := s.Put(m, nil)
				d := time.Since(before)
				if res.Err != nil {
					b.Fatal(res.Err)
				}
				worst = max(worst, d)
				if f := res.PhyOffset / size; f != file {
					file, worstRoll = f, max(worstRoll, d)
					rolls++
				}
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(ms(worstRoll), "roll-max-ms")
			b.ReportMetric(ms(worst), "max-ms")
			b.ReportMetric(float64(rolls), "rolls")
		})
	}
}
