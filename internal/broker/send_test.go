package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestSendInAllForms(t *testing.T) {
	b := startBroker(t)
	for _, encoding := range []wire.Encoding{wire.Binary, wire.JSON} {
		p := dial(t, b, func(c *remoting.Config) { c.Encoding = encoding })
		resp := p.send(b, "T", 1, "hello", "UNIQ_KEY", "0A0000010001000000020000000A0001", "TAGS", "TagA")
		require.EqualValues(t, 1, resp.QueueID)
		require.Equal(t, "0A0000010001000000020000000A0001", string(resp.TransactionID))
		require.Equal(t, "DefaultRegion", string(resp.Region))
		require.True(t, resp.TraceOn)
		host, phy, err := wire.ParseOffsetMsgID(resp.OffsetMsgID)
		require.NoError(t, err)
		require.Equal(t, b.Addr(), host.String())

		f := p.must(wire.ReqViewMessageByID, &wire.ViewMessageRequest{Offset: phy}, nil)
		require.Equal(t, []string{"hello"}, bodies(t, f))
	}
	p := dial(t, b)
	h := sendHeader("T", 0)
	f := p.must(wire.ReqSendMessage, v1{h}, []byte("old form"))
	var resp wire.SendResponse
	require.NoError(t, resp.DecodeExt(f))
	require.Len(t, resp.TransactionID, 32, "an id is made for a message without one")
}

// v1 writes a send header with the long names.
type v1 struct{ h *wire.SendRequest }

func (v v1) EncodeExt(e *wire.Encoder) { v.h.EncodeV1Ext(e) }

func TestStoredProperties(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	stored := func(props ...string) map[string]string {
		resp := p.send(b, "T", 0, "x", props...)
		_, phy, err := wire.ParseOffsetMsgID(resp.OffsetMsgID)
		require.NoError(t, err)
		var rec wire.Record
		_, err = wire.DecodeRecord(p.must(wire.ReqViewMessageByID, &wire.ViewMessageRequest{Offset: phy}, nil).Body, &rec)
		require.NoError(t, err)
		require.Equal(t, p.conn().LocalAddr(), rec.BornHost)
		require.Equal(t, testStart.UnixMilli(), rec.BornTime)
		return rec.Properties.Map()
	}
	require.Equal(t, map[string]string{
		"UNIQ_KEY": "K", "WAIT": "true", "TAGS": "A", "CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
	}, stored("UNIQ_KEY", "K", "WAIT", "true", "TAGS", "A"))
	m := stored("CLUSTER", "elsewhere", "POP_CK", "0 1 2", "TRACE_ON", "false", "user", "v")
	require.Len(t, m["UNIQ_KEY"], 32)
	delete(m, "UNIQ_KEY")
	require.Equal(t, map[string]string{"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "user": "v"}, m)
}

func TestPropertiesWithoutLastSeparator(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	h := sendHeader("T", 0, "UNIQ_KEY", "K", "TAGS", "TagA")
	h.Properties = h.Properties[:len(h.Properties)-1] // as clients of 4.9 send them
	p.must(wire.ReqSendMessageV2, h, []byte("x"))
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	f := p.must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil)
	var rec wire.Record
	_, err := wire.DecodeRecord(f.Body, &rec)
	require.NoError(t, err)
	require.Equal(t, "TagA", rec.Properties.Text("TAGS"))
	require.Equal(t, "DefaultRegion", rec.Properties.Text("MSG_REGION"))
}

func TestSendRefusals(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	batch := func(topic string) *wire.SendRequest {
		h := sendHeader(topic, 0)
		h.Batch = true
		return h
	}
	noTemplate := sendHeader("New", 0)
	noTemplate.DefaultTopic = []byte("BenchmarkTest")
	for name, c := range map[string]struct {
		header *wire.SendRequest
		code   int32
		remark string
	}{
		"bad name":          {sendHeader("no spaces", 0), wire.RespInvalidParameter, "no spaces"},
		"empty name":        {sendHeader("", 0), wire.RespInvalidParameter, "topic"},
		"reserved":          {sendHeader("SCHEDULE_TOPIC_XXXX", 0), wire.RespNoPermission, "reserved"},
		"reserved, missing": {sendHeader("TRANS_CHECK_MAX_TIME_TOPIC", 0), wire.RespNoPermission, "reserved"},
		"not made from":     {noTemplate, wire.RespTopicNotExist, "New"},
		"queue":             {sendHeader("T", 4), wire.RespInvalidParameter, "queue 4"},
		"half of nobody":    {sendHeader("T", 0, "TRAN_MSG", "true"), wire.RespMessageIllegal, "PGROUP"},
		"no level":          {sendHeader("T", 0, "DELAY", "soon"), wire.RespMessageIllegal, "DELAY"},
		"no time":           {sendHeader("T", 0, "TIMER_DELAY_MS", "soon"), wire.RespMessageIllegal, "timer message illegal"},
		"far time":          {sendHeader("T", 0, "TIMER_DELAY_SEC", "259201"), wire.RespMessageIllegal, "259200000 ms"},
		"very far time":     {sendHeader("T", 0, "TIMER_DELIVER_MS", "9223372036854775807"), wire.RespMessageIllegal, "timer message illegal"},
		"very long delay":   {sendHeader("T", 0, "TIMER_DELAY_SEC", "9223372036854775807"), wire.RespMessageIllegal, "timer message illegal"},
		"recall, over":      {sendHeader("T", 0, "TIMER_DELIVER_MS", "1000", "TIMER_DEL_UNIQKEY", "T+x"), wire.RespMessageIllegal, "recall"},
		"retry of nobody":   {sendHeader("%RETRY%"+strings.Repeat("g", 121), 0), wire.RespInvalidParameter, ""},
		"batch to retry":    {batch("%RETRY%CG"), wire.RespMessageIllegal, "batch"},
	} {
		t.Run(name, func(t *testing.T) {
			f := p.call(wire.ReqSendMessageV2, c.header, []byte("x"))
			require.Equal(t, c.code, f.Code, "%s", f.Remark)
			require.Contains(t, string(f.Remark), c.remark)
			require.Equal(t, "DefaultRegion", f.Text("MSG_REGION"))
			require.Equal(t, "true", f.Text("TRACE_ON"))
		})
	}
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqSendMessageV2, wire.ExtFields{"a": "PG"}, nil).Code, "missing fields")
	require.Zero(t, b.Store().MaxOffset("T", 0))
}

func TestSendGate(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.AcceptSendFrom = time.Now().Add(time.Hour) })
	f := dial(t, b).call(wire.ReqSendMessageV2, sendHeader("T", 0), []byte("x"))
	require.EqualValues(t, wire.RespSystemError, f.Code)
}

func TestAutoCreation(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	h := sendHeader("Wanted", 0)
	h.DefaultTopicQueues = 6
	p.must(wire.ReqSendMessageV2, h, []byte("x"))
	cfg, ok := b.Topic("Wanted")
	require.True(t, ok)
	require.EqualValues(t, 6, cfg.WriteQueues)
	require.EqualValues(t, 6, cfg.Perm, "without the inherit bit")

	h = sendHeader("Greedy", 0)
	h.DefaultTopicQueues = 100
	p.must(wire.ReqSendMessageV2, h, []byte("x"))
	cfg, _ = b.Topic("Greedy")
	require.EqualValues(t, 8, cfg.ReadQueues, "at most as many as the template has")
}

func TestNoAutoCreation(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.AutoCreateTopic, c.AutoCreateGroup = false, false })
	p := dial(t, b)
	require.EqualValues(t, wire.RespTopicNotExist, p.call(wire.ReqSendMessageV2, sendHeader("T", 0), []byte("x")).Code)
	require.EqualValues(t, wire.RespSubscriptionGroupNotExist, p.call(wire.ReqSendMessageV2, sendHeader("%RETRY%CG", 0), []byte("x")).Code)
	require.EqualValues(t, wire.RespSubscriptionGroupNotExist, p.call(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil).Code)
	_, ok := b.Topic(wire.TopicDefault)
	require.False(t, ok)
}

func TestBrokerChoosesTheQueue(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	for range 50 {
		resp := p.send(b, "T", -1, "x")
		require.GreaterOrEqual(t, resp.QueueID, int32(0))
		require.Less(t, resp.QueueID, int32(4))
	}
}

func TestExhaustedRetryIsADeadLetter(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	h := sendHeader("%RETRY%CG", 0)
	h.ReconsumeTimes, h.MaxReconsumeTimes = 3, 3
	p.must(wire.ReqSendMessageV2, h, []byte("once more"))
	h.ReconsumeTimes = 4
	p.must(wire.ReqSendMessageV2, h, []byte("enough"))
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	require.EqualValues(t, 1, b.Store().MaxOffset("%RETRY%CG", 0))
	require.EqualValues(t, 1, b.Store().MaxOffset("%DLQ%CG", 0))
	cfg, _ := b.Topic("%DLQ%CG")
	require.EqualValues(t, 6, cfg.Perm)
}

func TestOnewaySendIsStored(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	require.NoError(t, p.conn().CallOneway(&wire.Command{Code: wire.ReqSendMessageV2, Ext: sendHeader("T", 0), Body: []byte("x")}))
	p.send(b, "T", 0, "y") // on the same connection, so the first is through
	require.EqualValues(t, 2, b.Store().MaxOffset("T", 0))
}

func TestMultiTagTopicMarksItsMessages(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	cfg := wire.NewTopicConfig("T")
	cfg.FilterType = wire.FilterMultiTag
	require.NoError(t, b.PutTopics(t.Context(), cfg))
	p.send(b, "T", 0, "x")
	var rec wire.Record
	_, err := wire.DecodeRecord(p.must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil).Body, &rec)
	require.NoError(t, err)
	require.NotZero(t, rec.SysFlag&wire.SysMultiTags)
}
