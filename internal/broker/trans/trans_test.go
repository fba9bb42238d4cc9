package trans

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestCommit(t *testing.T) {
	r := newRig(t, nil)
	req := r.half("a", wire.PropTags, "TagA")
	require.Empty(t, r.bodies("T"))
	require.Equal(t, 1, r.s.Undecided())
	r.commit(req)
	require.Zero(t, r.s.Undecided())
	got := r.records("T")
	require.Len(t, got, 1)
	half := r.records(wire.TopicHalf)[0]
	require.Equal(t, half.Properties, got[0].Properties, "as Apache stores them")
	require.EqualValues(t, wire.SysTranCommit, got[0].SysFlag)
	require.Equal(t, half.PhyOffset, got[0].PreparedOffset)
	require.Equal(t, half.BornTime, got[0].BornTime)
	require.Equal(t, []string{"0"}, r.bodies(wire.TopicOpHalf))
	require.Equal(t, "WAIT\x01true\x02TAGS\x01d\x02", string(r.records(wire.TopicOpHalf)[0].Properties))
	_, u, _ := r.store.NextUnit("T", 0, 0)
	require.Equal(t, wire.TagsCode("TagA"), u.Tags)

	require.Equal(t, ended{}, r.end(req, wire.SysTranCommit), "once more, because the answer was lost")
	require.Equal(t, ended{wire.RespSystemError, "the transaction has been committed already"}, r.end(req, wire.SysTranRollback))
	require.Len(t, r.records("T"), 1)
	require.Len(t, r.records(wire.TopicOpHalf), 1)
	r.pass(time.Hour)
	require.Empty(t, r.taken())
}

func TestRollback(t *testing.T) {
	r := newRig(t, nil)
	req := r.half("a")
	r.rollback(req)
	r.rollback(req)
	require.Equal(t, ended{wire.RespSystemError, "the transaction has been rolled back already"}, r.end(req, wire.SysTranCommit))
	require.Empty(t, r.bodies("T"))
	r.pass(time.Hour)
	require.Empty(t, r.taken())
	require.Equal(t, []string{"0"}, r.bodies(wire.TopicOpHalf))
}

func TestEndsThatAreRefused(t *testing.T) {
	r := newRig(t, nil)
	req := r.half("a")
	late := r.half("late", wire.PropCheckImmunitySeconds, "20")
	ordinary, _ := r.put(&store.Message{Topic: []byte("T"), Body: []byte("x")}, nil)
	r.settle()
	for name, c := range map[string]struct {
		change func(q *wire.EndTransactionRequest)
		want   string
	}{
		"group":        {func(q *wire.EndTransactionRequest) { q.Group = "other" }, "The producer group wrong"},
		"queue offset": {func(q *wire.EndTransactionRequest) { q.TranStateOffset++ }, "The transaction state table offset wrong"},
		"log offset":   {func(q *wire.EndTransactionRequest) { q.CommitLogOffset++ }, "Find prepared transaction message failed"},
		"far offset":   {func(q *wire.EndTransactionRequest) { q.CommitLogOffset = 1 << 40 }, "Find prepared transaction message failed"},
		"no half":      {func(q *wire.EndTransactionRequest) { q.CommitLogOffset = ordinary.PhyOffset }, "Find prepared transaction message failed"},
	} {
		bad := *req
		c.change(&bad)
		require.Equal(t, ended{wire.RespSystemError, c.want}, r.end(&bad, wire.SysTranCommit), name)
		require.Equal(t, ended{wire.RespSystemError, c.want}, r.end(&bad, wire.SysTranRollback), name)
	}
	require.Equal(t, 2, r.s.Undecided())
	r.pass(20*time.Second + time.Millisecond)
	require.EqualValues(t, wire.RespIllegalOperation, r.end(late, wire.SysTranCommit).code, "its time is over")
	late.FromCheck = true
	r.commit(late)
	require.Equal(t, []string{"x", "late"}, r.bodies("T"))
}

// TestCheckTimes: the first check comes when the time of the producer is over,
// in the millisecond, and again after the interval.
func TestCheckTimes(t *testing.T) {
	for name, c := range map[string]struct {
		props []string
		first time.Duration
	}{
		"default":   {nil, 6 * time.Second},
		"immunity":  {[]string{wire.PropCheckImmunitySeconds, "20"}, 20 * time.Second},
		"shorter":   {[]string{wire.PropCheckImmunitySeconds, "2"}, 2 * time.Second},
		"minus 1":   {[]string{wire.PropCheckImmunitySeconds, "-1"}, 6 * time.Second},
		"no number": {[]string{wire.PropCheckImmunitySeconds, "soon"}, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			req := r.half("a", c.props...)
			r.pass(c.first - time.Millisecond)
			require.Empty(t, r.taken())
			r.pass(time.Millisecond)
			q := r.taken()
			require.Len(t, q, 1)
			h := q[0].Header
			require.Equal(t, []any{"a", "a", req.TranStateOffset, req.CommitLogOffset}, []any{h.MsgID, h.TransactionID, h.TranStateOffset, h.CommitLogOffset})
			require.Equal(t, string(wire.AppendOffsetMsgID(nil, host, req.CommitLogOffset)), h.OffsetMsgID, "that of the send")
			var rec wire.Record
			_, err := wire.DecodeRecord(q[0].Body, &rec)
			require.NoError(t, err)
			require.Equal(t, []string{"T", "1", "a"}, []string{string(rec.Topic), rec.Properties.Text(wire.PropTranCheckTimes), string(rec.Body)})
			require.Error(t, r.s.AwaitAnswers(expired()), "not before the answer")
			r.s.Gone("somebody else")
			require.Error(t, r.s.AwaitAnswers(expired()))
			r.reply(q[0], 0)
			require.NoError(t, r.s.AwaitAnswers(t.Context()))
			r.pass(30*time.Second - time.Millisecond)
			require.Empty(t, r.taken())
			r.pass(time.Millisecond)
			q = r.taken()
			require.Len(t, q, 1)
			r.s.Gone("PG")
			require.NoError(t, r.s.AwaitAnswers(t.Context()), "there is nobody any more who could answer")
			require.Equal(t, ended{}, r.reply(q[0], wire.SysTranCommit))
			require.Equal(t, []string{"a"}, r.bodies("T"))
			r.pass(time.Hour)
			require.Empty(t, r.taken())
		})
	}
}

func TestGivenUpAfterTheLastCheck(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Max = 3 })
	a, b := r.half("a"), r.half("b")
	r.pass(6*time.Second + 2*30*time.Second)
	require.Len(t, r.taken(), 6)
	require.Equal(t, 2, r.s.Undecided())
	r.pass(30 * time.Second)
	require.Empty(t, r.taken())
	require.Zero(t, r.s.Undecided())
	require.Equal(t, []string{"a", "b"}, r.bodies(wire.TopicTranCheckMax))
	require.Empty(t, r.bodies("T"))
	require.Empty(t, wire.Properties(r.records(wire.TopicTranCheckMax)[0].Properties).Text(wire.PropTranCheckTimes))

	r.commit(a) // late, but the producer relies on it
	r.commit(a)
	r.rollback(b)
	require.Equal(t, []string{"a"}, r.bodies("T"))

	m := Resumed(&r.records(wire.TopicTranCheckMax)[1])
	res, _ := r.put(&m, nil)
	require.NoError(t, res.Err)
	r.pass(6 * time.Second)
	require.Equal(t, []string{"b"}, ids(r.taken()))
}

func TestGivenUpWhenTooOld(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Reserved = time.Hour })
	r.set("PG", NoProducer)
	r.half("a")
	r.pass(time.Hour)
	require.Equal(t, 1, r.s.Undecided(), "nobody could be asked, so no check has been used up")
	r.pass(time.Minute)
	require.Zero(t, r.s.Undecided())
	require.Equal(t, []string{"a"}, r.bodies(wire.TopicTranCheckMax))
}

// TestNobodyToAsk: what is due is asked as soon as a producer comes.
func TestNobodyToAsk(t *testing.T) {
	r := newRig(t, nil)
	r.set("PG", NoProducer)
	a := r.half("a")
	r.half("b", wire.PropCheckImmunitySeconds, "600")
	r.pass(time.Minute)
	require.Empty(t, r.taken())
	r.s.Joined("other")
	r.settle()
	require.Empty(t, r.taken())
	r.set("PG", Sent)
	r.s.Joined("PG")
	r.settle()
	q := r.taken()
	require.Equal(t, []string{"a"}, ids(q), "and not before its time")
	r.s.Joined("PG")
	r.settle()
	require.Empty(t, r.taken(), "heartbeats change nothing")
	r.commit(a)

	r.set("PG", Busy)
	r.pass(10 * time.Minute)
	require.Empty(t, r.taken())
	r.set("PG", Sent)
	r.pass(time.Second)
	require.Equal(t, []string{"b"}, ids(r.taken()))
}

func TestCheckNow(t *testing.T) {
	r := newRig(t, nil)
	for i := range 5 {
		r.half(name(i))
	}
	r.settle()
	n, err := r.s.CheckNow(t.Context())
	require.NoError(t, err)
	require.Equal(t, 5, n)
	for _, q := range r.taken() {
		require.Equal(t, ended{}, r.reply(q, wire.SysTranRollback))
	}
	n, err = r.s.CheckNow(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
}

// TestOldHalfMessagesMove: one undecided message does not keep the whole queue,
// and the producer's own offsets still count.
func TestOldHalfMessagesMove(t *testing.T) {
	r := newRig(t, nil)
	first := r.half("first", wire.PropCheckImmunitySeconds, "36000")
	second := r.half("second", wire.PropCheckImmunitySeconds, "36000")
	for i := range maxLag {
		r.rollback(r.half(name(i)))
	}
	r.settle()
	r.settle()
	require.LessOrEqual(t, len(r.s.ops), 4, "nothing else is kept in memory")
	_, ok := r.table.Offset([]byte(Group), []byte(wire.TopicHalf), 0)
	require.False(t, ok, "what has been decided is not on disk")
	r.flush()
	off, ok := r.table.Offset([]byte(Group), []byte(wire.TopicHalf), 0)
	require.True(t, ok)
	require.GreaterOrEqual(t, off, int64(maxLag))
	r.save()
	r.restart()
	r.settle()
	require.Equal(t, 2, r.s.Undecided())
	r.commit(first)
	r.pass(10 * time.Hour)
	q := r.taken()
	require.Equal(t, []string{"second"}, ids(q))
	require.NotEqual(t, second.TranStateOffset, q[0].Header.TranStateOffset)
	r.commit(requestOf(q[0]))
	require.Equal(t, []string{"first", "second"}, r.bodies("T"))
	second.FromCheck = true
	require.EqualValues(t, wire.RespSystemError, r.end(second, wire.SysTranRollback).code)
	var copies []string
	for _, rec := range r.records(wire.TopicHalf) {
		if origin := rec.Properties.Text(wire.PropTranPreparedOffset); origin != "" {
			copies = append(copies, string(rec.Body)+" "+origin)
		}
	}
	require.Equal(t, []string{"first 0", "second 1"}, copies)
	require.Zero(t, r.s.Undecided())
}

// TestOpRecordsTogether is transactionOpBatchInterval.
func TestOpRecordsTogether(t *testing.T) {
	r := newRig(t, func(c *Config) { c.OpInterval, c.OpSize = 3*time.Second, 100 })
	a, b := r.half("a"), r.half("b")
	r.commit(a)
	r.rollback(b)
	require.Equal(t, []string{"a"}, r.bodies("T"))
	require.Empty(t, r.bodies(wire.TopicOpHalf))
	require.Equal(t, ended{wire.RespSystemError, "the transaction has been rolled back already"}, r.end(b, wire.SysTranCommit))
	r.pass(time.Second)
	r.clock.Advance(2 * time.Second)
	require.Equal(t, []string{"0,1,"}, r.bodies(wire.TopicOpHalf))
	for i := range 40 {
		r.rollback(r.half(name(i)))
	}
	r.settle()
	require.GreaterOrEqual(t, len(r.bodies(wire.TopicOpHalf)), 2, "they are written when there are enough")
	r.s.Stop(true)
	n := 0
	for _, body := range r.bodiesOnly(wire.TopicOpHalf) {
		require.LessOrEqual(t, len(body), 100)
		eachOp([]byte(body), func(half int64) {
			require.EqualValues(t, n, half)
			n++
		})
	}
	require.Equal(t, 42, n)
}

// bodiesOnly is bodies of a service that has stopped.
func (r *rig) bodiesOnly(topic string) (out []string) {
	require.NoError(r.t, r.store.WaitDispatched(r.t.Context()))
	return r.bodies(topic)
}

func TestOpForms(t *testing.T) {
	for body, want := range map[string][]int64{
		"": nil, "12": {12}, "12,": {12}, "12,13,": {12, 13}, "0,1,3,": {0, 1, 3}, "1,x,-4,,2": {1, 2}, " 7 ": {7},
	} {
		var got []int64
		eachOp([]byte(body), func(n int64) { got = append(got, n) })
		require.Equal(t, want, got, strconv.Quote(body))
	}
	require.Equal(t, "12", string(opBody(nil, []int64{12})))
	require.Equal(t, "12,13,", string(opBody(nil, []int64{12, 13})))
}

// TestStoreThatTakesNothing: nothing is decided that is not in the log.
func TestStoreThatTakesNothing(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Max = 1 })
	var full bool
	var but string
	r.refuse = func(m *store.Message) bool { return full && string(m.Topic) != but }
	a, b, c := r.half("a"), r.half("b"), r.half("c")
	r.settle()
	full = true
	require.EqualValues(t, wire.RespServiceNotAvailable, r.end(a, wire.SysTranCommit).code)
	require.EqualValues(t, wire.RespServiceNotAvailable, r.end(b, wire.SysTranRollback).code)
	require.Equal(t, 3, r.s.Undecided())
	but = "T" // the message can be stored, but not the op record
	r.commit(a)
	require.Equal(t, 2, r.s.Undecided(), "the message is out")
	r.pass(36 * time.Second)
	require.Equal(t, []string{"b", "c"}, ids(r.taken()))
	require.Equal(t, 2, r.s.Undecided(), "they cannot be put aside")
	require.Empty(t, r.bodies(wire.TopicOpHalf))
	full = false
	r.rollback(b)
	r.clock.Advance(2 * time.Second)
	r.settle()
	r.pass(time.Second)
	require.Equal(t, []string{"c"}, r.bodies(wire.TopicTranCheckMax))
	n := 0
	for _, body := range r.bodies(wire.TopicOpHalf) {
		eachOp([]byte(body), func(int64) { n++ })
	}
	require.Equal(t, 3, n, "the one of the committed message, too")
	_ = c
}

func FuzzOpBody(f *testing.F) {
	for _, s := range []string{"12", "12,13,", "0,1,3,", "-1,9223372036854775808,", ",,"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		eachOp(body, func(n int64) {
			if n < 0 {
				t.Fatal(n)
			}
		})
	})
}
