package producer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func batch(n int, change ...func(i int, m *rocketmq.Message)) []*rocketmq.Message {
	out := make([]*rocketmq.Message, n)
	for i := range out {
		out[i] = &rocketmq.Message{Topic: "orders", Body: fmt.Append(nil, "body ", i), Tag: "t", Keys: []string{fmt.Sprint("k", i)}}
		for _, f := range change {
			f(i, out[i])
		}
	}
	return out
}

func TestSendBatch(t *testing.T) {
	c := newCluster(t)
	c.topic("orders", 4, "b1=b1:0")
	b := c.broker("b1:0")
	b.answerBatches(wire.RespSuccess)
	p := c.producer()
	ms := batch(100)
	res, err := p.SendBatch(t.Context(), ms)
	require.NoError(t, err)
	got := b.got()
	require.Len(t, got, 100)
	require.Equal(t, 1, b.batches)
	require.Equal(t, map[string]string{"WAIT": "true"}, got[0].head.Properties.Map(), "no id that would hide those of the messages")
	ids := map[string]bool{}
	for i, r := range res {
		require.Equal(t, got[i].id, r.MessageID)
		require.Equal(t, string(ms[i].Body), got[i].body)
		require.Equal(t, ms[i].Keys[0], got[i].props["KEYS"])
		require.Equal(t, int64(i), r.Offset)
		require.Equal(t, int(got[i].queue), r.Queue.ID)
		require.Equal(t, string(wire.AppendOffsetMsgID(nil, ap("10.0.0.1:10911"), int64(i))), r.OffsetID)
		require.Equal(t, producer.StatusOK, r.Status)
		ids[r.MessageID] = true
	}
	require.Len(t, ids, 100)
}

func TestC21_IllegalBatches(t *testing.T) {
	c := newCluster(t)
	p := c.producer()
	for want, ms := range map[string][]*rocketmq.Message{
		"one topic": batch(3, func(i int, m *rocketmq.Message) {
			if i == 2 {
				m.Topic = "other"
			}
		}),
		"message 1 of the batch: ": batch(3, func(i int, m *rocketmq.Message) {
			if i == 1 {
				m.Delay = rocketmq.DelayLevel(1)
			}
		}),
		"takes no messages|in a batch": batch(2, func(_ int, m *rocketmq.Message) { m.Topic = "%RETRY%g" }),
		"empty":                        {},
		"is nil":                       {nil},
		"larger than":                  batch(1, func(_ int, m *rocketmq.Message) { m.Body = make([]byte, rocketmq.MaxBody) }),
	} {
		res, err := p.SendBatch(t.Context(), ms)
		require.ErrorIs(t, err, rocketmq.ErrInvalidMessage, want)
		require.Nil(t, res)
		ok := false
		for part := range strings.SplitSeq(want, "|") {
			ok = ok || strings.Contains(err.Error(), part)
		}
		require.True(t, ok, "%s: %v", want, err)
	}
	require.Zero(t, c.ns.count(wire.ReqGetRouteInfoByTopic), "nothing was sent")
}

// What does not fit into one request goes with several, and the broker agrees
// that each fits.
func TestC21_LargeBatchIsSplit(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 3))
	p := clusterProducer(t, c)
	ms := batch(50, func(i int, m *rocketmq.Message) { m.Body = []byte(strings.Repeat(string(rune('a'+i%26)), 300_000)) })
	res, err := p.SendBatch(t.Context(), ms)
	require.NoError(t, err)
	bodies := map[string]string{}
	for _, v := range c.Messages("orders") {
		bodies[v.ID] = string(v.Body)
	}
	require.Len(t, bodies, len(ms))
	queues := map[int]bool{}
	for i, r := range res {
		require.Equal(t, string(ms[i].Body), bodies[r.MessageID], i)
		queues[r.Queue.ID] = true
	}
	require.Len(t, queues, 3, "each request goes to the next queue")
	// Just below and at the limit, where our count must not be below the broker's.
	ms = batch(4, func(i int, m *rocketmq.Message) {
		m.Body = make([]byte, 1<<20-500)
		m.Properties = map[string]string{"p": strings.Repeat("x", 100)}
	})
	_, err = p.SendBatch(t.Context(), ms)
	require.NoError(t, err)
	_, err = p.SendBatch(t.Context(), batch(20_000, func(_ int, m *rocketmq.Message) { m.Body = []byte("x") }))
	require.NoError(t, err)
}

func TestBatchPartlyFails(t *testing.T) {
	c := newCluster(t)
	c.topic("orders", 2, "b1=b1:0")
	b := c.broker("b1:0")
	p := c.producer(producer.WithRetries(0), producer.WithTimeout(time.Minute, time.Minute))
	b.answerBatches(wire.RespSuccess)
	large := func(i int, m *rocketmq.Message) { m.Body = make([]byte, 3<<20) }
	_, err := p.SendBatch(t.Context(), batch(1)) // the route is there
	require.NoError(t, err)
	calls := 0
	via := selector.QueueFunc(func(*rocketmq.Message, []rocketmq.Queue, string) (int, error) {
		if calls++; calls == 2 {
			return 0, errors.New("mine")
		}
		return 1, nil
	})
	res, err := p.SendBatch(t.Context(), batch(3, large), producer.Via(via))
	var be producer.BatchError
	require.ErrorAs(t, err, &be)
	require.Len(t, be, 3)
	require.NoError(t, be[0])
	require.ErrorContains(t, be[1], "mine")
	require.NoError(t, be[2])
	require.NotEmpty(t, res[0].MessageID)
	require.Empty(t, res[1].MessageID)
	require.NotEmpty(t, res[2].MessageID)
	require.ErrorContains(t, err, "1 of 3 messages failed")
	var se *rocketmq.SendError
	require.ErrorAs(t, err, &se)

	b.answerBatches(wire.RespMessageIllegal)
	res, err = p.SendBatch(t.Context(), batch(2))
	var broker *rocketmq.BrokerError
	require.ErrorAs(t, err, &broker)
	require.Equal(t, "SEND_BATCH_MESSAGE", broker.Op)
	require.Len(t, res, 2)
}

// Messages with a sharding key go where they would go alone, in their order.
func TestBatchKeepsShardingKeys(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 4))
	p := clusterProducer(t, c)
	want := map[string]rocketmq.Queue{}
	for i := range 10 {
		key := fmt.Sprint("key", i)
		r, err := p.Send(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("first"), ShardingKey: key})
		require.NoError(t, err)
		want[key] = r.Queue
	}
	res, err := p.SendBatch(t.Context(), batch(100, func(i int, m *rocketmq.Message) {
		if i < 90 {
			m.ShardingKey = fmt.Sprint("key", i%10)
		}
	}))
	require.NoError(t, err)
	last := map[string]int64{}
	for i, r := range res[:90] {
		key := fmt.Sprint("key", i%10)
		require.Equal(t, want[key], r.Queue)
		require.Greater(t, r.Offset, last[key])
		last[key] = r.Offset
	}
}

// Members of a batch are found by their own keys and ids.
func TestBatchMembersAreStoredApart(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 1))
	p := clusterProducer(t, c)
	ms := batch(5, func(i int, m *rocketmq.Message) { m.Properties = map[string]string{"n": fmt.Sprint(i)} })
	res, err := p.SendBatch(t.Context(), ms)
	require.NoError(t, err)
	for i, v := range c.Messages("orders") {
		require.Equal(t, res[i].MessageID, v.ID)
		require.Equal(t, res[i].OffsetID, v.OffsetID)
		require.Equal(t, res[i].Offset, v.Offset)
		require.Equal(t, ms[i].Body, v.Body)
		require.Equal(t, ms[i].Keys, v.Keys)
		require.Equal(t, "t", v.Tag)
		require.Equal(t, ms[i].Properties, v.Properties.User())
	}
}

func TestSendOneway(t *testing.T) {
	c := newCluster(t)
	c.topic("orders", 4, "b1=b1:0", "b2=hole:0")
	b := c.broker("b1:0")
	p := c.producer()
	for range 20 { // every other one meets the hole first
		require.NoError(t, p.SendOneway(t.Context(), message("orders")))
	}
	require.NoError(t, p.Flush(t.Context()))
	require.NoError(t, p.Close(t.Context()))
	require.Eventually(t, func() bool { return len(b.got()) == 20 }, patience, tick)
	for _, s := range b.got() {
		require.Equal(t, wire.FlagOneway, s.flag&wire.FlagOneway)
		require.NotEmpty(t, s.id)
	}
	require.ErrorIs(t, p.SendOneway(t.Context(), message("orders")), rocketmq.ErrClosed)
}

func TestSendOnewayCannotBeHandedOver(t *testing.T) {
	c := newCluster(t)
	c.topic("orders", 4, "b2=hole:0")
	p := c.producer()
	err := p.SendOneway(t.Context(), message("orders"))
	require.ErrorIs(t, err, rocketmq.ErrConnection)
	require.ErrorIs(t, p.SendOneway(t.Context(), message("missing")), rocketmq.ErrTopicNotFound)
}
