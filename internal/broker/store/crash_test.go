package store_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

func crashConfig() store.Config {
	return store.Config{
		Dir: "store", FS: mfile.NewCrash(),
		CommitLogFileSize: 16 << 10, ConsumeQueueFileSize: 300 * 20,
	}
}

// The power goes at a random file operation, or between two, several times in
// the life of a store. What was flushed is there, with synchronous flush that
// is all that was acknowledged; what is there is a prefix of the log, and every
// queue is a picture of it.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	for _, syncFlush := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", syncFlush), func(t *testing.T) {
			lives, lost, kept := 0, 0, 0
			n := seeds(t, 50)
			for seed := range n {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					cfg := crashConfig()
					cfg.SyncFlush = syncFlush
					tell(t, seed, cfg, func(g *saga) {
						for range 4 {
							g.liveAndLosePower()
						}
						lives += g.lives
						lost += g.lost
						kept += len(g.puts)
					})
				})
			}
			t.Logf("%d seeds, %d lives, %d messages kept, %d lost that were not flushed", n, lives, kept, lost)
		})
	}
}

func (g *saga) liveAndLosePower() {
	for range 20 + g.rand.IntN(60) {
		switch g.rand.IntN(20) {
		case 0:
			g.putBatch(1 + g.rand.IntN(30))
		case 1:
			time.Sleep(time.Duration(g.rand.IntN(15_000)) * time.Millisecond)
		case 2:
			if g.rand.IntN(3) == 0 {
				time.Sleep(2 * time.Minute)
			}
		case 3, 4:
			g.wait()
		default:
			g.put(g.rand.IntN(3000))
		}
	}
	if g.rand.IntN(3) > 0 {
		g.failFrom(1+g.rand.IntN(40), syscall.EIO)
		for i := 0; i < 40 && g.put(g.rand.IntN(3000)); i++ {
			if g.rand.IntN(10) == 0 {
				time.Sleep(12 * time.Second)
			}
		}
	}
	g.losePower()
}
