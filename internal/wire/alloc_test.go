package wire

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// The message path allocates nothing: neither headers nor records nor the
// properties that somebody looks up.

func sampleSend() SendRequest {
	return SendRequest{
		Group: []byte("ProducerGroup"), Topic: []byte("TopicA"), DefaultTopic: []byte(TopicDefault), DefaultTopicQueues: 4, QueueID: 3,
		BornTime: 1700000000000, Properties: Properties("UNIQ_KEY\x01AC110001000018B4AAC20000000A0000\x02TAGS\x01TagA\x02WAIT\x01true\x02"),
		BrokerName: []byte("broker-a"),
	}
}

func sampleSent() SendResponse {
	return SendResponse{
		OffsetMsgID: []byte("0A00000200002A9F0000000000000004"), QueueID: 3, QueueOffset: 12345,
		TransactionID: []byte("AC110001000018B4AAC20000000A0000"), Region: []byte("DefaultRegion"), TraceOn: true,
	}
}

// sendExchange is the wire's part of one send: request and answer, each encoded
// and decoded.
type sendExchange struct {
	enc    Encoding
	req    SendRequest
	resp   SendResponse
	body   []byte
	buf    []byte
	frame  Frame
	gotReq SendRequest
	got    SendResponse
}

func newSendExchange(enc Encoding, size int) *sendExchange {
	return &sendExchange{enc: enc, req: sampleSend(), resp: sampleSent(), body: make([]byte, size), buf: make([]byte, 0, size+1024)}
}

func (x *sendExchange) run() error {
	e := Begin(x.buf[:0], Head{Code: ReqSendMessageV2, Opaque: 7, Encoding: x.enc})
	x.req.EncodeExt(&e)
	x.buf = e.Finish(x.body)
	if err := x.frame.Decode(x.buf); err != nil {
		return err
	}
	if err := x.gotReq.DecodeExt(&x.frame); err != nil {
		return err
	}
	e = Begin(x.buf[:0], Head{Flag: FlagResponse, Opaque: 7, Encoding: x.enc})
	x.resp.EncodeExt(&e)
	x.buf = e.Finish(nil)
	if err := x.frame.Decode(x.buf); err != nil {
		return err
	}
	return x.got.DecodeExt(&x.frame)
}

func TestSendAllocatesNothing(t *testing.T) {
	for _, enc := range []Encoding{JSON, Binary} {
		x := newSendExchange(enc, 1024)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if x.run() != nil {
				t.Fail()
			}
		}), enc)
		require.Equal(t, x.resp, x.got)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			e := Begin(x.buf[:0], Head{Code: ReqSendMessage, Encoding: enc})
			x.req.EncodeV1Ext(&e)
			x.buf = e.Finish(x.body)
			if x.frame.Decode(x.buf) != nil || x.gotReq.DecodeExt(&x.frame) != nil {
				t.Fail()
			}
		}), "long names")
	}
}

// pulled is the answer to a pull: n records of 1 KiB.
func pulled(enc Encoding, n int) []byte {
	var body []byte
	r := Record{
		QueueID: 3, BornTime: 1700000000000, StoreTime: 1700000000001, BornHost: netip.MustParseAddrPort("10.0.0.1:1234"),
		StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"), Body: make([]byte, 1024), Topic: []byte("TopicA"), Properties: sampleSend().Properties,
	}
	for i := range n {
		r.QueueOffset, r.PhyOffset = int64(i), int64(len(body))
		body = AppendRecord(body, &r)
	}
	h := PullResponse{NextOffset: int64(n), MaxOffset: int64(n)}
	e := Begin(nil, Head{Flag: FlagResponse, Encoding: enc, Remark: "FOUND"})
	h.EncodeExt(&e)
	return e.Finish(body)
}

func TestPullAllocatesNothing(t *testing.T) {
	for _, enc := range []Encoding{JSON, Binary} {
		raw := pulled(enc, 32)
		var f Frame
		var h PullResponse
		records := make([]Record, 0, 32)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			records = records[:0]
			if f.Decode(raw) != nil || h.DecodeExt(&f) != nil {
				t.Fail()
			}
			it := Records(f.Body)
			for {
				var r Record
				ok, err := it.Next(&r)
				if err != nil {
					t.Fail()
				}
				if !ok {
					break
				}
				if r.Properties.Text("x") != "" {
					t.Fail()
				}
				records = append(records, r)
			}
		}))
		require.Len(t, records, 32)
		require.EqualValues(t, 31, records[31].QueueOffset)

		req := PullRequest{Group: []byte("CG"), Topic: []byte("TopicA"), MaxMsgs: 32, SysFlag: PullSuspend, Subscription: []byte("*"), ExpressionType: []byte("TAG")}
		var got PullRequest
		buf := make([]byte, 0, 1024)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			e := Begin(buf[:0], Head{Code: ReqPullMessage, Encoding: enc})
			req.EncodeExt(&e)
			buf = e.Finish(nil)
			if f.Decode(buf) != nil || got.DecodeExt(&f) != nil {
				t.Fail()
			}
		}))
		require.Equal(t, req, got)
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	r := sampleRecord()
	buf := make([]byte, 0, 1024)
	var back Record
	require.Zero(t, testing.AllocsPerRun(100, func() {
		buf = AppendRecord(buf[:0], &r)
		if _, err := DecodeRecord(buf, &back); err != nil {
			t.Fail()
		}
		buf = AppendBatchItem(buf[:0], 1, r.Body, r.Properties)
		it := Batch(buf)
		if _, ok, err := it.Next(); !ok || err != nil {
			t.Fail()
		}
	}))
}

func BenchmarkSend(b *testing.B) {
	for name, enc := range map[string]Encoding{"json": JSON, "binary": Binary} {
		b.Run(name, func(b *testing.B) {
			x := newSendExchange(enc, 1024)
			b.ReportAllocs()
			for b.Loop() {
				if err := x.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPull32(b *testing.B) {
	for name, enc := range map[string]Encoding{"json": JSON, "binary": Binary} {
		b.Run(name, func(b *testing.B) {
			raw := pulled(enc, 32)
			var f Frame
			var h PullResponse
			var r Record
			b.ReportAllocs()
			for b.Loop() {
				if f.Decode(raw) != nil || h.DecodeExt(&f) != nil {
					b.Fatal("bad frame")
				}
				it := Records(f.Body)
				for ok := true; ok; {
					ok, _ = it.Next(&r)
				}
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	r := sampleRecord()
	r.Body = make([]byte, 1024)
	raw := AppendRecord(nil, &r)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 2048)
		for b.Loop() {
			buf = AppendRecord(buf[:0], &r)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		var out Record
		for b.Loop() {
			if _, err := DecodeRecord(raw, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
}
