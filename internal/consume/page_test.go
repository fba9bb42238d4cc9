package consume

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var testQueue = rocketmq.Queue{Topic: "T", Broker: "b", ID: 3}

func newTestQueue() *queue {
	q := &queue{c: &Consumer{commitKick: make(chan struct{}, 1)}, key: testQueue, topic: &topic{name: "T"}, began: -1, committed: -1, idle: make(chan struct{})}
	q.topic.limits.set(Settings{CacheMessages: 1000, CacheBytes: 1 << 20, Span: 2000})
	return q
}

func same(s string) string { return s }

func all(string) bool { return true }

// record encodes one message with properties given in pairs.
func record(off int64, body string, kv ...string) wire.Record {
	r := wire.Record{
		QueueID: 3, QueueOffset: off, PhyOffset: 5000 + off, BornTime: 1700000000123, StoreTime: 1700000000456, Flag: 7,
		BornHost: netip.MustParseAddrPort("10.0.0.1:1234"), StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"),
		Topic: []byte("T"), Body: []byte(body),
	}
	for i := 0; i < len(kv); i += 2 {
		r.Properties = wire.AppendProperty(r.Properties, kv[i], kv[i+1])
	}
	return r
}

func encode(rs ...wire.Record) []byte {
	var b []byte
	for i := range rs {
		b = wire.AppendRecord(b, &rs[i])
	}
	return b
}

func TestDecodePageFillsTheView(t *testing.T) {
	r := record(4, "hello", "UNIQ_KEY", "uniq", "TAGS", "a", "KEYS", "k1  k2 ", "__SHARDINGKEY", "s", "color", "red", "TRAN_MSG", "true")
	r.ReconsumeTimes = 2
	p, resume, err := decodePage(newTestQueue(), encode(r), 100, same, all)
	require.NoError(t, err)
	require.EqualValues(t, 105, resume)
	require.Len(t, p.ptrs, 1)
	v := p.ptrs[0]
	require.Same(t, &p.views[0], v)
	require.Equal(t, &rocketmq.MessageView{
		ID: "uniq", OffsetID: "0A00000200002A9F000000000000138C", TransactionID: "uniq", Topic: "T", Tag: "a",
		Keys: []string{"k1", "k2"}, ShardingKey: "s", Body: []byte("hello"), Properties: rocketmq.Properties(r.Properties),
		Queue: testQueue, Offset: 104, BornAt: time.UnixMilli(1700000000123), StoredAt: time.UnixMilli(1700000000456),
		BornHost: r.BornHost, StoreHost: r.StoreHost, Attempt: 3,
	}, v)
	require.Equal(t, map[string]string{"color": "red"}, v.Properties.User())
	require.Equal(t, meta{logOffset: 5004, size: int32(len(encode(r))), flag: 7}, p.meta[0])
}

func TestDecodePageWithoutIDAndTransaction(t *testing.T) {
	p, _, err := decodePage(newTestQueue(), encode(record(0, "x")), 0, same, all)
	require.NoError(t, err)
	require.Equal(t, p.views[0].OffsetID, p.views[0].ID)
	require.Empty(t, p.views[0].TransactionID)
	require.Nil(t, p.views[0].Keys)
}

func TestDecodePageOddProperties(t *testing.T) {
	r := record(0, "x")
	r.Properties = []byte("TAGS\x01\x02TAGS\x01first\x02\x01v\x02noname\x02TAGS\x01last\x02KEYS\x01k")
	p, _, err := decodePage(newTestQueue(), encode(r), 0, same, all)
	require.NoError(t, err)
	require.Equal(t, "last", p.views[0].Tag, "the last of equal names counts, empty values do not")
	require.Equal(t, []string{"k"}, p.views[0].Keys, "the last separator may be missing")
	require.Equal(t, p.views[0].Tag, p.views[0].Properties.Get("TAGS"))
}

func TestDecodePageIPv6(t *testing.T) {
	r := record(9, "x")
	r.StoreHost = netip.MustParseAddrPort("[2001:db8::1]:10911")
	rs := []wire.Record{r, r, r}
	p, _, err := decodePage(newTestQueue(), encode(rs...), 0, same, all)
	require.NoError(t, err)
	for i := range rs {
		require.Equal(t, string(wire.AppendOffsetMsgID(nil, r.StoreHost, r.PhyOffset)), p.views[i].OffsetID)
	}
}

func TestDecodePageFilters(t *testing.T) {
	q := newTestQueue()
	body := encode(record(1, "a", "TAGS", "a"), record(2, "b", "TAGS", "b"), record(3, "none"))
	p, resume, err := decodePage(q, body, 0, same, func(tag string) bool { return tag == "b" })
	require.NoError(t, err)
	require.EqualValues(t, 4, resume)
	require.Len(t, p.views, 1)
	require.Len(t, p.meta, 1)
	require.EqualValues(t, 2, p.views[0].Offset)
}

func TestDecodePageInnerBatch(t *testing.T) {
	var batch []byte
	for i := range 3 {
		batch = wire.AppendBatchItem(batch, int32(i), fmt.Appendf(nil, "item%d", i), wire.AppendProperty(nil, "TAGS", fmt.Sprint("t", i)))
	}
	r := record(10, string(batch), "INNER_NUM", "3")
	r.SysFlag = wire.SysInnerBatch | wire.SysNeedUnwrap
	p, _, err := decodePage(newTestQueue(), encode(r), 0, same, all)
	require.NoError(t, err)
	require.Len(t, p.views, 3)
	for i := range p.views {
		require.EqualValues(t, 10+i, p.views[i].Offset)
		require.Equal(t, fmt.Sprint("item", i), string(p.views[i].Body))
		require.Equal(t, fmt.Sprint("t", i), p.views[i].Tag)
		require.Zero(t, p.meta[i].sysFlag)
	}
	broken := r
	broken.Body = batch[:len(batch)-1]
	_, _, err = decodePage(newTestQueue(), encode(broken), 0, same, all)
	require.ErrorIs(t, err, wire.ErrBatch)
}

func TestDecodePageStopsAtWhatItCannotRead(t *testing.T) {
	good := encode(record(5, "a"), record(6, "b"))
	p, resume, err := decodePage(newTestQueue(), append(slices.Clone(good), 0, 0, 0, 50, 1, 2, 3), 0, same, all)
	require.Error(t, err)
	require.EqualValues(t, 7, resume)
	require.Len(t, p.ptrs, 2)
	_, resume, err = decodePage(newTestQueue(), []byte{1, 2, 3}, 0, same, all)
	require.Error(t, err)
	require.EqualValues(t, -1, resume)
}

func TestPageBits(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 130} {
		var rs []wire.Record
		for i := range n {
			rs = append(rs, record(int64(i), "x"))
		}
		p, _, err := decodePage(newTestQueue(), encode(rs...), 0, same, all)
		require.NoError(t, err)
		require.Zero(t, p.lowest())
		for i := range n {
			require.False(t, p.begun(i))
			p.begin(i)
			require.True(t, p.begun(i))
			require.False(t, p.finished(i))
		}
		for i := n - 1; i > 0; i-- {
			require.False(t, p.finish(i))
			require.Zero(t, p.lowest())
			require.True(t, p.finished(i))
		}
		require.True(t, p.finish(0))
		require.GreaterOrEqual(t, p.lowest(), n)
	}
}

func TestAllocationsPerPage(t *testing.T) {
	var rs []wire.Record
	for i := range 32 {
		rs = append(rs, record(int64(i), strings.Repeat("x", 200), "UNIQ_KEY", "0A00000100002A9F0000000000000001", "TAGS", "a", "KEYS", "k1"))
	}
	body, q := encode(rs...), newTestQueue()
	n := testing.AllocsPerRun(100, func() {
		if p, _, err := decodePage(q, body, 0, same, all); err != nil || len(p.views) != 32 {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, n, 12.0, "for 32 messages with keys")
}

func FuzzDecodePage(f *testing.F) {
	f.Add(encode(record(1, "a", "TAGS", "x", "KEYS", "a b")))
	f.Add(encode(record(1, "a"), record(2, "b")))
	batch := wire.AppendBatchItem(nil, 0, []byte("x"), nil)
	r := record(3, string(batch))
	r.SysFlag = wire.SysInnerBatch | wire.SysNeedUnwrap
	f.Add(encode(r))
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _, err := decodePage(newTestQueue(), slices.Clone(b), 0, same, all)
		if len(p.views) != len(p.ptrs) || len(p.views) != len(p.meta) || int(p.left.Load()) != len(p.views) {
			t.Fatalf("%d views, %d pointers, %d meta", len(p.views), len(p.ptrs), len(p.meta))
		}
		if err == nil && len(b) > 0 && len(p.views) == 0 && len(b) > 1<<16 {
			t.Fatal("nothing decoded of a large body without an error")
		}
		for _, v := range p.ptrs {
			if v.ID == "" || v.Queue != testQueue {
				t.Fatalf("incomplete view %+v", v)
			}
		}
	})
}

func BenchmarkDecodePage(b *testing.B) {
	var rs []wire.Record
	for i := range 32 {
		rs = append(rs, record(int64(i), strings.Repeat("x", 1024), "UNIQ_KEY", "0A00000100002A9F0000000000000001", "TAGS", "a", "WAIT", "true"))
	}
	body, q := encode(rs...), newTestQueue()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decodePage(q, body, 0, same, all); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/msg")
}
