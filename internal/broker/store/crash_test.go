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
// the life of a store. What was flushed is there, what is there is a prefix of
// the log, and every queue is a picture of it.
func TestPowerLoss(t *testing.T) {
	lives, lost := 0, 0
	n := seeds(t, 50)
	for seed := range n {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			tell(t, seed, crashConfig(), func(g *saga) {
				for range 4 {
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
				lives += g.lives
				lost += g.lost
			})
		})
	}
	t.Logf("%d seeds, %d lives, %d messages that were not flushed are lost", n, lives, lost)
}
