package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/testbroker"
)

// startCluster starts a name server and a broker in this process. What the
// broker has acknowledged is on the disk.
func startCluster(ctx context.Context, dir string, topics []string) (*testbroker.Cluster, error) {
	opts := []testbroker.Option{testbroker.Dir(dir), testbroker.SyncFlush()}
	for _, t := range topics {
		opts = append(opts, testbroker.Topic(t, 8))
	}
	return testbroker.Start(ctx, opts...)
}

func noChaos(context.Context, *atomic.Int64) error { return nil }

// asking has the embedded broker ask about undecided transactions every now and
// then, as a broker does by itself every 30 s, until ctx ends.
func asking(ctx context.Context, c *testbroker.Cluster) {
	for ctx.Err() == nil {
		pause(ctx, 3*time.Second)
		c.CheckTransactions()
	}
}

// chaos kills the broker twice while orders are placed.
type chaos struct {
	*testbroker.Cluster
	*settings
	tl *timeline
}

func (c chaos) run(ctx context.Context, placed *atomic.Int64) error {
	name := c.Brokers()[0]
	for _, percent := range []int{35, 70} {
		for placed.Load() < int64(c.n*percent/100) {
			if pause(ctx, time.Millisecond); ctx.Err() != nil {
				return nil
			}
		}
		c.tl.say("chaos", "the broker is killed after %d orders", placed.Load())
		c.Kill(name, 0)
		pause(ctx, 700*time.Millisecond)
		c.Restart(name, 0)
		c.tl.say("chaos", "the broker is up again")
	}
	return nil
}
