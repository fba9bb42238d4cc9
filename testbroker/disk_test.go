package testbroker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// TestC62_FullDisk: a producer is told why its message is refused, consumers
// go on, and sending works again as soon as there is room, also after a restart
// on the full disk.
func TestC62_FullDisk(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	send(t, newProducer(t, c), "T", "before", 5)
	c.FillDisk("broker-a", 0.93)
	for range 2 {
		p := newProducer(t, c, producer.WithRetries(0))
		_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte("refused")})
		require.ErrorIs(t, err, rocketmq.ErrUnavailable)
		var be *rocketmq.BrokerError
		require.ErrorAs(t, err, &be)
		require.Equal(t, rocketmq.CodeServiceNotAvailable, be.Code)
		require.Contains(t, be.Remark, "commitlog is 93% full, messages are refused above 90%")
		c.Restart("broker-a", 0)
	}
	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	got.await(t, 5)
	stop()
	require.Zero(t, c.Lag("G", "T"), "offsets are taken")
	c.FillDisk("broker-a", 0.5)
	res, err := newProducer(t, c).Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte("after")})
	require.NoError(t, err)
	require.EqualValues(t, 5, res.Offset, "nothing is left out")
	require.Len(t, c.Messages("T"), 6)
}

// TestC42_CleanedUpQueue: a group that has been away comes back when all it
// has missed is gone. It commits where the queue is without a message.
func TestC42_CleanedUpQueue(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.Topic("U", 1), testbroker.SegmentSize(64<<10))
	p := newProducer(t, c, producer.WithCompression(producer.NoCompression, 0, 0)) // bodies are to fill files
	const n = 2020
	for i := range n {
		_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: fmt.Append(nil, i)})
		require.NoError(t, err)
	}
	q := rocketmq.Queue{Topic: "T", Broker: "broker-a"}
	commitRaw(t, c, "G", 0)
	off, ok := c.Offset("G", q)
	require.True(t, ok)
	require.Zero(t, off)
	for range 3 { // the newest file has none of T
		_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "U", Body: make([]byte, 40<<10)})
		require.NoError(t, err)
	}
	c.FillDisk("broker-a", 0.88)
	require.Eventually(t, func() bool { return c.Lag("G", "T") == 0 }, 20*time.Second, 20*time.Millisecond)
	require.Empty(t, c.Messages("T"))

	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	require.Eventually(t, func() bool { off, _ := c.Offset("G", q); return off == n }, 20*time.Second, 20*time.Millisecond)
	require.Zero(t, got.count())
	res, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte("next")})
	require.NoError(t, err)
	require.EqualValues(t, n, res.Offset)
	got.await(t, 1)
	stop()
	off, _ = c.Offset("G", q)
	require.EqualValues(t, n+1, off)
}

// commitRaw commits an offset of a group for the first queue of topic T.
func commitRaw(t *testing.T, c *testbroker.Cluster, group string, offset int64) {
	t.Helper()
	d, err := wire.DecodeRouteData(route(t, c.NameServers()[0], "T").Body)
	require.NoError(t, err)
	pool := remoting.NewPool(remoting.PoolConfig{})
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, cmd := range []*wire.Command{
		{Code: wire.ReqUpdateAndCreateSubscriptiongroup, Body: groupJSON(group)},
		{Code: wire.ReqUpdateConsumerOffset, Ext: &wire.UpdateOffsetRequest{Group: group, Topic: "T", Offset: offset}},
	} {
		f, err := pool.Call(ctx, d.Brokers[0].Addrs[0], cmd)
		require.NoError(t, err)
		require.EqualValues(t, wire.RespSuccess, f.Code, string(f.Remark))
	}
}

func groupJSON(name string) []byte {
	g := wire.NewSubscriptionGroup(name)
	return g.AppendJSON(nil)
}

func TestFillDiskIsChecked(t *testing.T) {
	f := &fakeTB{T: t}
	c := testbroker.New(f)
	c.FillDisk("broker-z", 0.5)
	c.FillDisk("broker-a", 1.5)
	f.end()
	require.Len(t, f.fatal, 2)
	require.Contains(t, f.fatal[0], `no broker "broker-z"`)
	require.Contains(t, f.fatal[1], "the ratio is from 0 to 1")
}
