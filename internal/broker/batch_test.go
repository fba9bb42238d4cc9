package broker

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func batchHeader(topic string, queue int32, props ...string) *wire.SendRequest {
	h := sendHeader(topic, queue, props...)
	h.Batch = true
	return h
}

// items is a batch of bodies; each has its body as unique key, and a key.
func items(bodies ...string) (b []byte) {
	for _, body := range bodies {
		props := wire.AppendProperty(nil, wire.PropUniqKey, "ID-"+body)
		props = wire.AppendProperty(props, wire.PropKeys, "all key-"+body)
		b = wire.AppendBatchItem(b, 5, []byte(body), wire.AppendProperty(props, wire.PropTags, "tag-"+body))
	}
	return b
}

// Each message of a batch is a record of its own with its own properties, in
// both codes and whatever the batch's header says of them.
func TestBatch(t *testing.T) {
	for _, code := range []int32{wire.ReqSendBatchMessage, wire.ReqSendMessageV2} {
		b := startBroker(t, withClock(clock.NewManual(testStart)))
		p := dial(t, b)
		p.send(b, "T", 2, "before")
		names := []string{"one", "two", "three"}
		h := batchHeader("T", 2, "UNIQ_KEY", "BATCH", "KEYS", "of-the-batch", "TAGS", "of-the-batch", "WAIT", "true")
		f := p.must(code, h, items(names...))
		var resp wire.SendResponse
		require.NoError(t, resp.DecodeExt(f))
		require.Equal(t, "BATCH", string(resp.TransactionID))
		require.EqualValues(t, 2, resp.QueueID)
		require.EqualValues(t, 1, resp.QueueOffset)
		ids := strings.Split(string(resp.OffsetMsgID), ",")
		require.Len(t, ids, 3)
		var last int64
		for i, name := range names {
			_, phy, err := wire.ParseOffsetMsgID([]byte(ids[i]))
			require.NoError(t, err)
			require.Greater(t, phy, last)
			last = phy
			var rec wire.Record
			_, err = wire.DecodeRecord(p.must(wire.ReqViewMessageByID, &wire.ViewMessageRequest{Offset: phy}, nil).Body, &rec)
			require.NoError(t, err)
			require.Equal(t, name, string(rec.Body))
			require.EqualValues(t, 5, rec.Flag)
			require.EqualValues(t, i+1, rec.QueueOffset)
			require.Equal(t, testStart.UnixMilli(), rec.BornTime)
			require.Equal(t, map[string]string{
				"UNIQ_KEY": "ID-" + name, "KEYS": "all key-" + name, "TAGS": "tag-" + name,
				"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
			}, rec.Properties.Map())
		}
		require.NoError(t, b.Store().WaitIndexed(t.Context()))
		query := func(key string, unique bool) []string {
			return p.query(&wire.QueryMessageRequest{Topic: "T", Key: key, MaxNum: 10, End: math.MaxInt64, UniqueKey: unique})
		}
		require.Equal(t, names, query("all", false))
		require.Equal(t, []string{"two"}, query("key-two", false))
		require.Equal(t, []string{"three"}, query("ID-three", true))
		require.Empty(t, query("BATCH", true), "the batch has no place of its own")
		require.Empty(t, query("of-the-batch", false))
		pull := pullHeaderOf("CG", "T", 2, 1)
		pull.Subscription = []byte("tag-two")
		require.Equal(t, []string{"two"}, bodies(t, p.must(wire.ReqPullMessage, pull, nil)))
	}
}

func TestBatchRefusals(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.Store.MaxMessageSize = 10_000 })
	p := dial(t, b)
	good := items("one", "two")
	half := batchHeader("T", 0)
	half.SysFlag = wire.SysTranPrepared
	large := wire.AppendBatchItem(good, 0, []byte("x"), wire.AppendProperty(nil, "p", strings.Repeat("x", wire.MaxProperties-10)))
	for name, c := range map[string]struct {
		header *wire.SendRequest
		body   []byte
		remark string
	}{
		"no body":               {batchHeader("T", 0), nil, "empty batch"},
		"not a batch":           {batchHeader("T", 0), []byte("hello"), "item 0"},
		"cut short":             {batchHeader("T", 0), good[:len(good)-1], "item 1"},
		"something behind it":   {batchHeader("T", 0), append(good[:len(good):len(good)], 0), "item 2"},
		"retry topic":           {batchHeader("%RETRY%CG", 0), good, "retry"},
		"half message":          {batchHeader("T", 0, "TRAN_MSG", "true"), good, "transactional"},
		"half by its flag":      {half, good, "transactional"},
		"delayed":               {batchHeader("T", 0, "DELAY", "3"), good, "delayed"},
		"timer":                 {batchHeader("T", 0, "TIMER_DELIVER_MS", "5"), good, "delayed"},
		"properties too long":   {batchHeader("T", 0), large, "item 2"},
		"too large as a whole":  {batchHeader("T", 0), items(strings.Repeat("a", 5000), strings.Repeat("b", 5000)), "10000 bytes"},
		"one message too large": {batchHeader("T", 0), items(strings.Repeat("a", 10_001)), "10000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := p.call(wire.ReqSendBatchMessage, c.header, c.body)
			require.Equal(t, wire.RespMessageIllegal, f.Code, "%s", f.Remark)
			require.Contains(t, string(f.Remark), c.remark)
		})
	}
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	require.Zero(t, b.Store().MaxOffset("T", 0), "all or nothing")
	require.Zero(t, b.Store().MaxOffset("%RETRY%CG", 0))
}

// Whether there is a batch says the header, not the code: an old client's is
// stored as one message, as by Apache.
func TestBatchThatDoesNotSaySo(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	body := items("one", "two")
	p.must(wire.ReqSendBatchMessage, sendHeader("T", 0), body)
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	require.Equal(t, []string{string(body)}, bodies(t, p.must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil)))
}
