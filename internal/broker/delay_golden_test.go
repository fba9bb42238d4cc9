package broker

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// unpack puts the store that an Apache broker left into the configuration's
// directory.
func unpack(t *testing.T, cfg *Config, archive string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		name := path.Join(cfg.Store.Dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, cfg.Store.FS.MkdirAll(name))
			continue
		}
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, cfg.Store.FS.MkdirAll(path.Dir(name)))
		require.NoError(t, cfg.Store.FS.WriteFile(name, b))
	}
}

// TestApachesDelayedAndRetriedMessages goes on where brokers of Apache stopped:
// what they parked is delivered, what they delivered is not, and what ours
// makes of the messages that their consumers sent back is what they made.
func TestApachesDelayedAndRetriedMessages(t *testing.T) {
	const stopped = 1_795_974_300_000 // about when
	for _, version := range []string{"4.9", "5.3"} {
		for _, phase := range []string{"clean", "killed"} {
			t.Run(version+" "+phase, func(t *testing.T) {
				c := clock.NewManual(time.UnixMilli(stopped))
				cfg := testConfig(withClock(c))
				cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 65536, 2000
				cfg.Store.IndexSlots, cfg.Store.IndexEntries = 50, 100
				cfg.TimerLogFileSize = 5200
				unpack(t, &cfg, "store/testdata/store-"+version+"-"+phase+".tar.gz")
				b := startWith(t, cfg)
				p := dial(t, b)
				require.NoError(t, b.SettleDelays(t.Context()))
				before := len(records(t, b, "TopicDelay", 0))
				require.Equal(t, map[string]int{"delayed 1s": 1}, count(records(t, b, "TopicDelay", 0), "delayed 1s"), "delivered once, by Apache")

				sources := records(t, b, "TopicRetry", 0)
				sameMessage := func(topic string, queue int32, n int) {
					t.Helper()
					all := records(t, b, topic, queue)
					require.Len(t, all, n+1, topic)
					theirs, ours := all[n-1], all[n]
					require.Equal(t, theirs.Properties.Map(), ours.Properties.Map(), topic)
					require.Equal(t, theirs.Body, ours.Body)
					require.Equal(t, []int64{int64(theirs.Flag), int64(theirs.SysFlag), theirs.BornTime, int64(theirs.ReconsumeTimes), theirs.PreparedOffset},
						[]int64{int64(ours.Flag), int64(ours.SysFlag), ours.BornTime, int64(ours.ReconsumeTimes), ours.PreparedOffset}, topic)
					require.Equal(t, theirs.BornHost, ours.BornHost)
					_, u1, _ := b.Store().NextUnit(topic, queue, int64(n-1))
					_, u2, _ := b.Store().NextUnit(topic, queue, int64(n))
					if topic == wire.TopicSchedule {
						require.Equal(t, u1.Tags-theirs.StoreTime, u2.Tags-ours.StoreTime, "due after the same time")
					} else {
						require.Equal(t, u1.Tags, u2.Tags)
					}
				}
				require.EqualValues(t, wire.RespSuccess, p.sendBack(&sources[1], "GroupRetry", func(h *wire.SendBackRequest) { h.DelayLevel = 1 }).Code)
				require.EqualValues(t, wire.RespSuccess, p.sendBack(&sources[2], "GroupDead", func(h *wire.SendBackRequest) { h.HasMax = true }).Code, "no retries")
				sameMessage(wire.TopicSchedule, 0, 2)
				sameMessage("%DLQ%GroupDead", 0, 1)
				pass(t, b, c, time.Second)
				sameMessage("%RETRY%GroupRetry", 0, 1)

				parked := records(t, b, wire.TopicSchedule, 17)
				require.Len(t, parked, 1)
				at, ok := b.NextDelayed()
				require.True(t, ok)
				require.Equal(t, parked[0].StoreTime+2*time.Hour.Milliseconds(), at.UnixMilli())
				pass(t, b, c, 2*time.Hour)
				got := records(t, b, "TopicDelay", 0)
				require.Len(t, got, before+1)
				require.Equal(t, at.UnixMilli(), got[before].StoreTime)
				require.Equal(t, parked[0].Properties.Map(), got[before].Properties.Map())
				require.Equal(t, parked[0].Body, got[before].Body)
			})
		}
	}
}

// count is how often some bodies are among records.
func count(recs []wire.Record, which ...string) map[string]int {
	n := map[string]int{}
	for _, r := range recs {
		for _, w := range which {
			if string(r.Body) == w {
				n[w]++
			}
		}
	}
	return n
}
