package testbroker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/testbroker"
)

// With synchronous flush everything goes its way as without, and what was
// acknowledged is there after a kill.
func TestSyncFlush(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 4), testbroker.SyncFlush(), testbroker.Dir(t.TempDir()))
	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	p := newProducer(t, c)
	send(t, p, "T", "a", 100)
	got.await(t, 100)
	c.Kill("broker-a", 0)
	c.Restart("broker-a", 0)
	require.Len(t, c.Messages("T"), 100)
	send(t, p, "T", "b", 50)
	got.await(t, 150)
	stop()
}
