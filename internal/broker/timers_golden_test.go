package broker

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/broker/store/timer"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// TestApachesTimers goes on where brokers of Apache stopped: what they delivered
// is not delivered again, what they kept comes when it is due, and what ours
// makes of messages is what they made.
func TestApachesTimers(t *testing.T) {
	const stopped = 1_795_974_300_000 // about when
	for phase, fs := range map[string]mfile.FS{"clean": mfile.OS(), "killed": mfile.NewMemory()} {
		t.Run(phase, func(t *testing.T) {
			c := clock.NewManual(time.UnixMilli(stopped))
			cfg := testConfig(withClock(c))
			cfg.Store.FS, cfg.Store.Dir = fs, t.TempDir()
			cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 65536, 2000
			cfg.Store.IndexSlots, cfg.Store.IndexEntries = 50, 100
			cfg.TimerLogFileSize = 5200
			unpack(t, &cfg, "store/testdata/store-5.3-"+phase+".tar.gz")
			b := startWith(t, cfg)
			require.NoError(t, b.SettleDelays(t.Context()))
			require.EqualValues(t, 1, b.timers.counts.all())
			d, err := wire.DecodeTimerMetrics(b.timers.counts.encode())
			require.NoError(t, err)
			require.EqualValues(t, 1, d.Topics["TopicDelay"].Count)

			timers := records(t, b, wire.TopicTimer, 0)
			require.Len(t, timers, 2)
			here := func(body []byte) (found []wire.Record) {
				for queue := range int32(4) {
					for _, r := range records(t, b, "TopicDelay", queue) {
						if string(r.Body) == string(body) {
							found = append(found, r)
						}
					}
				}
				return found
			}
			theirs := here(timers[0].Body)
			require.Len(t, theirs, 1, "delivered once, by Apache")
			require.Empty(t, here(timers[1].Body))

			// The same message sent to ours becomes the same records.
			p := dial(t, b)
			h := sendHeader("TopicDelay", theirs[0].QueueID)
			for k, v := range timers[0].Properties.Map() {
				switch k {
				case wire.PropTimerOutMs, wire.PropRealTopic, wire.PropRealQueueID:
				case wire.PropTimerDeliverMs:
					h.Properties = wire.AppendProperty(h.Properties, k, strconv.FormatInt(stopped+1700, 10))
				default:
					h.Properties = wire.AppendProperty(h.Properties, k, v)
				}
			}
			p.must(wire.ReqSendMessageV2, h, []byte("ours"))
			parked := records(t, b, wire.TopicTimer, 0)[2]
			pass(t, b, c, 4*time.Second)
			ours := here([]byte("ours"))
			require.Len(t, ours, 1)
			require.Equal(t, names(timers[0].Properties), names(parked.Properties))
			require.Equal(t, names(theirs[0].Properties), names(ours[0].Properties))
			for _, k := range []string{wire.PropRealTopic, wire.PropRealQueueID, wire.PropMsgRegion, wire.PropCluster} {
				require.Equal(t, theirs[0].Properties.Text(k), ours[0].Properties.Text(k), k)
			}

			at, ok := b.NextDelayed()
			require.True(t, ok)
			require.Equal(t, 2*time.Hour, at.Sub(time.UnixMilli(stopped)).Round(10*time.Minute), "the level comes first")
			pass(t, b, c, 48*time.Hour)
			got := here(timers[1].Body)
			require.Len(t, got, 1)
			due, _ := wire.ParseInt([]byte(timers[1].Properties.Text(wire.PropTimerDeliverMs)))
			if delay := timers[1].Properties.Text(wire.PropTimerDelaySec); delay != "" {
				n, _ := wire.ParseInt([]byte(delay))
				due = timers[1].StoreTime + n*1000
			}
			require.GreaterOrEqual(t, got[0].StoreTime, due)
			require.Less(t, got[0].StoreTime, due+1000)
			require.Zero(t, b.Delayed())
			require.NoError(t, b.Close(t.Context()))
			if phase == "clean" {
				wheel, err := cfg.Store.FS.ReadFile(filepath.Join(cfg.Store.Dir, "timerwheel"))
				require.NoError(t, err)
				require.Len(t, wheel, timer.WheelSlots*32)
			}
		})
	}
}

// names are the names of properties.
func names(p wire.Properties) map[string]bool {
	m := map[string]bool{}
	p.Each(func(k, _ []byte) bool {
		m[string(k)] = true
		return true
	})
	return m
}
