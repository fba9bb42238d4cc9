package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// halfHeader is the send of a half message.
func halfHeader(topic string, queue int32, group, id string, props ...string) *wire.SendRequest {
	h := sendHeader(topic, queue, append([]string{wire.PropTranMsg, "true", wire.PropProducerGroup, group, wire.PropUniqKey, id}, props...)...)
	h.SysFlag = wire.SysTranPrepared
	return h
}

// half sends a half message and returns what ends it.
func (p *peer) half(b *Broker, h *wire.SendRequest, body string) (wire.SendResponse, *wire.EndTransactionRequest) {
	p.tb.Helper()
	f := p.must(wire.ReqSendMessageV2, h, []byte(body))
	var resp wire.SendResponse
	require.NoError(p.tb, resp.DecodeExt(f))
	require.NoError(p.tb, b.Store().WaitDispatched(p.tb.Context()))
	_, phy, err := wire.ParseOffsetMsgID(resp.OffsetMsgID)
	require.NoError(p.tb, err)
	return resp, &wire.EndTransactionRequest{
		Group: h.Properties.Text(wire.PropProducerGroup), TranStateOffset: resp.QueueOffset, CommitLogOffset: phy,
		CommitOrRollback: wire.SysTranCommit, MsgID: string(resp.TransactionID), TransactionID: string(resp.TransactionID),
	}
}

// produce makes p a producer of a group.
func (p *peer) produce(group string) {
	p.tb.Helper()
	hb := wire.Heartbeat{ClientID: "producer", Producers: []string{group}}
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))
}

func TestTransaction(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	p := dial(t, b)
	resp, end := p.half(b, halfHeader("T", 2, "PG", "ID1", wire.PropTags, "a"), "paid")
	require.EqualValues(t, 2, resp.QueueID, "the answer says where it is to go")
	require.Zero(t, resp.QueueOffset, "and where it is in the half topic")
	require.Equal(t, "ID1", string(resp.TransactionID))
	require.Empty(t, records(t, b, "T", 2))

	held := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 2, 0)))
	p.must(wire.ReqEndTransaction, end, nil)
	require.Equal(t, []string{"paid"}, bodies(t, <-held), "a held pull is woken")
	require.Equal(t, 0, b.Undecided())

	_, end = p.half(b, halfHeader("T", 2, "PG", "ID2"), "not paid")
	end.CommitOrRollback = wire.SysTranRollback
	p.must(wire.ReqEndTransaction, end, nil)
	require.Len(t, records(t, b, "T", 2), 1)
	end.CommitOrRollback = wire.SysTranCommit
	f := p.call(wire.ReqEndTransaction, end, nil)
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "rolled back already")
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqEndTransaction, nil, nil).Code)
}

func TestTransactionIsChecked(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	other, p := dial(t, b), dial(t, b)
	other.produce("other")
	p.produce("PG")
	_, end := p.half(b, halfHeader("T", 0, "PG", "ID"), "paid")
	require.NoError(t, b.SettleChecks(t.Context()))
	at, ok := b.NextCheck()
	require.True(t, ok)
	require.Equal(t, 6*time.Second, at.Sub(testStart))
	c.Advance(6 * time.Second)
	require.NoError(t, b.SettleChecks(t.Context()))
	f := p.push()
	require.EqualValues(t, wire.ReqCheckTransactionState, f.Code)
	require.NotZero(t, f.Flag&wire.FlagOneway)
	var h wire.CheckTransactionRequest
	require.NoError(t, h.DecodeExt(f))
	require.Equal(t, wire.CheckTransactionRequest{
		Topic: wire.TopicHalf, TranStateOffset: end.TranStateOffset, CommitLogOffset: end.CommitLogOffset, MsgID: "ID", TransactionID: "ID",
		OffsetMsgID: h.OffsetMsgID, BrokerName: "broker-a",
	}, h)
	require.Equal(t, []string{"paid"}, bodies(t, f))
	end.FromCheck, end.CommitOrRollback = true, 0
	require.NoError(t, p.conn().CallOneway(&wire.Command{Code: wire.ReqEndTransaction, Ext: end}))
	require.NoError(t, b.AwaitAnswers(t.Context()))

	// The producer goes, its transaction waits for the next one.
	hb := &wire.UnregisterClientRequest{ClientID: "producer", ProducerGroup: "PG"}
	p.must(wire.ReqUnregisterClient, hb, nil)
	c.Advance(time.Minute)
	require.NoError(t, b.SettleChecks(t.Context()))
	next := dial(t, b)
	next.produce("PG")
	require.EqualValues(t, wire.ReqCheckTransactionState, next.push().Code)
	n, err := b.CheckTransactions(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.EqualValues(t, wire.ReqCheckTransactionState, next.push().Code)
	end.CommitOrRollback = wire.SysTranCommit
	next.must(wire.ReqEndTransaction, end, nil)
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	require.Equal(t, []string{"paid"}, bodiesOf(records(t, b, "T", 0)))
	require.Empty(t, other.pushed)
}

func TestHalfMessagesThatAreRefused(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.RejectTransactions = true })
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	require.EqualValues(t, wire.RespNoPermission, p.call(wire.ReqSendMessageV2, halfHeader("T", 0, "PG", "ID"), []byte("x")).Code)
	h := halfHeader("T", 0, "PG", "ID")
	h.Batch = true
	require.EqualValues(t, wire.RespMessageIllegal, p.call(wire.ReqSendBatchMessage, h, []byte("x")).Code)
}

// TestDelayedTransaction: the delay begins with the commit.
func TestDelayedTransaction(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	_, end := p.half(b, halfHeader("T", 0, "PG", "ID", wire.PropDelay, "2"), "later")
	c.Advance(5 * time.Second)
	p.must(wire.ReqEndTransaction, end, nil)
	p.must(wire.ReqEndTransaction, end, nil)
	pass(t, b, c, 5*time.Second-time.Millisecond)
	require.Empty(t, records(t, b, "T", 0))
	pass(t, b, c, time.Millisecond)
	require.Equal(t, []string{"later"}, bodiesOf(records(t, b, "T", 0)))
}

// TestTransactionForATime: a time that cannot be is refused before there is
// anything to decide, a delay begins with the commit.
func TestTransactionForATime(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	f := p.call(wire.ReqSendMessageV2, halfHeader("T", 0, "PG", "ID", wire.PropTimerDelaySec, "259201"), []byte("x"))
	require.EqualValues(t, wire.RespMessageIllegal, f.Code)
	_, delay := p.half(b, halfHeader("T", 0, "PG", "ID1", wire.PropTimerDelayMs, "7300"), "delay")
	_, time := p.half(b, halfHeader("T", 0, "PG", "ID2", wire.PropTimerDeliverMs, at(testStart.Add(7300*1e6))), "time")
	_, past := p.half(b, halfHeader("T", 0, "PG", "ID3", wire.PropTimerDeliverMs, at(testStart.Add(1300*1e6))), "past")
	c.Advance(2000 * 1e6)
	for _, end := range []*wire.EndTransactionRequest{delay, time, past} {
		p.must(wire.ReqEndTransaction, end, nil)
	}
	pass(t, b, c, 30*1e9)
	require.Equal(t, map[string]int64{"past": 2000, "time": 7300, "delay": 9300}, deliveredAt(t, b, "T", 0))
}

func TestResumedCheck(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(cfg *Config) { cfg.TransactionCheckMax = 1 })
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p := dial(t, b)
	p.produce("PG")
	p.half(b, halfHeader("T", 0, "PG", "ID"), "paid")
	for range 2 {
		c.Advance(30 * time.Second)
		require.NoError(t, b.SettleChecks(t.Context()))
	}
	p.push()
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	all := records(t, b, wire.TopicTranCheckMax, 0)
	require.Len(t, all, 1)
	require.Zero(t, b.Undecided())
	id := string(wire.AppendOffsetMsgID(nil, all[0].StoreHost, all[0].PhyOffset))
	p.must(wire.ReqResumeCheckHalfMessage, &wire.ConsumeDirectlyRequest{MsgID: id}, nil)
	require.NoError(t, b.SettleChecks(t.Context()))
	require.Equal(t, 1, b.Undecided())
	c.Advance(6 * time.Second)
	require.NoError(t, b.SettleChecks(t.Context()))
	p.push()
	for _, bad := range []string{"", "x", string(wire.AppendOffsetMsgID(nil, all[0].StoreHost, 0)), string(wire.AppendOffsetMsgID(nil, all[0].StoreHost, 1<<40))} {
		require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqResumeCheckHalfMessage, &wire.ConsumeDirectlyRequest{MsgID: bad}, nil).Code)
	}
}

// TestApachesTransactions goes on where brokers of Apache stopped: what they had
// committed or rolled back is not asked about, what was undecided is, and what
// ours makes of it is what they made.
func TestApachesTransactions(t *testing.T) {
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
				require.NoError(t, b.SettleChecks(t.Context()))
				require.Equal(t, 1, b.Undecided())
				theirs := records(t, b, "TopicTrans", 0)
				require.Equal(t, []string{"transaction 0", "transaction 3"}, bodiesOf(theirs))
				halves, ops := records(t, b, wire.TopicHalf, 0), records(t, b, wire.TopicOpHalf, 0)

				p.produce("TransGroup")
				f := p.push()
				require.Equal(t, []string{"transaction 2"}, bodies(t, f))
				var h wire.CheckTransactionRequest
				require.NoError(t, h.DecodeExt(f))
				require.Equal(t, halves[2].QueueOffset, h.TranStateOffset)
				require.Equal(t, halves[2].PhyOffset, h.CommitLogOffset)
				require.Equal(t, halves[2].Properties.Text(wire.PropUniqKey), h.TransactionID)
				p.must(wire.ReqEndTransaction, &wire.EndTransactionRequest{
					Group: "TransGroup", TranStateOffset: h.TranStateOffset, CommitLogOffset: h.CommitLogOffset, FromCheck: true, MsgID: h.MsgID,
					CommitOrRollback: wire.SysTranCommit,
				}, nil)
				require.NoError(t, b.Store().WaitDispatched(t.Context()))
				ours := records(t, b, "TopicTrans", 0)[2]
				sameBut(t, &halves[3], &theirs[1], &halves[2], &ours)
				op := records(t, b, wire.TopicOpHalf, 0)[len(ops)]
				require.Equal(t, "2", string(op.Body))
				require.Equal(t, strings.TrimSuffix(string(ops[0].Properties), "\x02"), strings.TrimSuffix(string(op.Properties), "\x02"))
				require.Equal(t, ops[0].SysFlag, op.SysFlag)

				// The same message sent to ours becomes the same half message.
				sent := halves[2].Properties.Without(nil, wire.PropRealTopic, wire.PropRealQueueID, wire.PropTransactionID, wire.PropCluster,
					wire.PropMsgRegion, wire.PropTraceOn)
				p.must(wire.ReqSendMessageV2, &wire.SendRequest{
					Group: []byte("TransGroup"), Topic: []byte("TopicTrans"), SysFlag: wire.SysTranPrepared, BornTime: halves[2].BornTime, Properties: sent,
				}, halves[2].Body)
				require.NoError(t, b.Store().WaitDispatched(t.Context()))
				half := records(t, b, wire.TopicHalf, 0)[4]
				want := halves[2].Properties.Map()
				if version == "4.9" { // which knows less
					want[wire.PropTransactionID], want[wire.PropMsgRegion], want[wire.PropTraceOn] = want[wire.PropUniqKey], "DefaultRegion", "true"
				}
				require.Equal(t, want, half.Properties.Map())
				require.Equal(t, []any{halves[2].Flag, halves[2].SysFlag, halves[2].QueueID, halves[2].BornTime, halves[2].PreparedOffset},
					[]any{half.Flag, half.SysFlag, half.QueueID, half.BornTime, half.PreparedOffset})
			})
		}
	}
}

// sameBut compares what became of two half messages.
func sameBut(t *testing.T, half1, got1, half2, got2 *wire.Record) {
	t.Helper()
	for _, x := range [][2]*wire.Record{{half1, got1}, {half2, got2}} {
		half, got := x[0], x[1]
		require.Equal(t, half.PhyOffset, got.PreparedOffset)
		require.EqualValues(t, wire.SysTranCommit, got.SysFlag)
		require.Equal(t, half.Properties.Map(), got.Properties.Map())
		require.Equal(t, half.Body, got.Body)
		require.Equal(t, half.BornTime, got.BornTime)
		require.Equal(t, half.BornHost, got.BornHost)
		require.Equal(t, []int32{half.Flag, half.ReconsumeTimes, 0}, []int32{got.Flag, got.ReconsumeTimes, got.QueueID})
	}
}
