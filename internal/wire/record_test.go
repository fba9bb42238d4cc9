package wire

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// javaHost is ip|port as the vectors write it.
func javaHost(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	i := strings.LastIndexByte(s, '|')
	require.Positive(t, i, s)
	ip := s[:i]
	if a, err := netip.ParseAddr(ip); err == nil && a.Is6() {
		ip = "[" + ip + "]"
	}
	return netip.MustParseAddrPort(ip + ":" + s[i+1:])
}

func requireRecord(t *testing.T, want vector, got *Record) {
	t.Helper()
	require.EqualValues(t, want.int(t, "total_size"), got.Size)
	require.Equal(t, want.text("magic") == "daa320ab", got.V2)
	require.EqualValues(t, want.int(t, "body_crc"), got.BodyCRC)
	require.EqualValues(t, want.int(t, "queue_id"), got.QueueID)
	require.EqualValues(t, want.int(t, "flag"), got.Flag)
	require.Equal(t, want.int(t, "queue_offset"), got.QueueOffset)
	require.Equal(t, want.int(t, "physical_offset"), got.PhyOffset)
	require.EqualValues(t, want.int(t, "sys_flag"), got.SysFlag)
	require.Equal(t, want.int(t, "born_timestamp"), got.BornTime)
	require.Equal(t, javaHost(t, want.text("born_host")), got.BornHost)
	require.Equal(t, want.int(t, "store_timestamp"), got.StoreTime)
	require.Equal(t, javaHost(t, want.text("store_host")), got.StoreHost)
	require.EqualValues(t, want.int(t, "reconsume_times"), got.ReconsumeTimes)
	require.Equal(t, want.int(t, "prepared_transaction_offset"), got.PreparedOffset)
	require.Equal(t, want.text("stored_body_hex"), hex.EncodeToString(got.Body))
	require.Equal(t, want.text("topic"), string(got.Topic))
	require.Equal(t, want.textMap("properties"), got.Properties.Map())
	if id := want.text("offset_msg_id"); id != "" {
		require.Equal(t, id, string(AppendOffsetMsgID(nil, got.StoreHost, got.PhyOffset)))
	}
}

// TestGoldenRecords decodes every record that Apache made and writes it back to
// the same bytes.
func TestGoldenRecords(t *testing.T) {
	for _, v := range golden(t, "messages.jsonl", "record", "stored", "inner_batch") {
		t.Run(v.text("name"), func(t *testing.T) {
			raw := v.hex(t, "hex")
			var r Record
			n, err := DecodeRecord(raw, &r)
			require.NoError(t, err)
			require.Equal(t, len(raw), n)
			requireRecord(t, v.sub("decoded"), &r)
			require.True(t, r.CheckBody())
			require.NoError(t, r.Check())
			require.Equal(t, len(raw), RecordSize(&r))
			require.Equal(t, hex.EncodeToString(raw), hex.EncodeToString(AppendRecord(nil, &r)))

			patched := append([]byte(nil), raw...)
			PatchQueueOffset(patched, 1<<40+1)
			PatchPhyOffset(patched, 1<<41+2)
			PatchStoreTime(patched, 1<<42+3)
			var p Record
			_, err = DecodeRecord(patched, &p)
			require.NoError(t, err)
			r.QueueOffset, r.PhyOffset, r.StoreTime = 1<<40+1, 1<<41+2, 1<<42+3
			require.Equal(t, r, p)
		})
	}
}

func TestGoldenBlank(t *testing.T) {
	for _, v := range golden(t, "messages.jsonl", "blank") {
		raw := v.hex(t, "hex")
		var r Record
		n, err := DecodeRecord(raw, &r)
		require.ErrorIs(t, err, ErrBlank)
		require.EqualValues(t, vector(v.sub("decoded")).int(t, "rest_of_file"), n)
		require.Equal(t, raw[:BlankSize], AppendBlank(nil, n))
	}
}

func TestGoldenBatch(t *testing.T) {
	for _, v := range golden(t, "messages.jsonl", "client_batch", "inner_batch") {
		raw := v.hex(t, "hex")
		if v["kind"] == "inner_batch" {
			var r Record
			_, err := DecodeRecord(raw, &r)
			require.NoError(t, err)
			require.NotZero(t, r.SysFlag&SysNeedUnwrap)
			raw = r.Body
		}
		var back []byte
		it := Batch(raw)
		for _, x := range v.list("items") {
			want := vector(x.(map[string]any))
			item, ok, err := it.Next()
			require.NoError(t, err)
			require.True(t, ok)
			require.EqualValues(t, want.int(t, "flag"), item.Flag)
			require.Equal(t, want.text("body_hex"), hex.EncodeToString(item.Body))
			if v["kind"] == "client_batch" { // the unwrapped ones have lost theirs in part
				require.Equal(t, want.textMap("properties"), item.Properties.Map())
			}
			back = AppendBatchItem(back, item.Flag, item.Body, item.Properties)
		}
		_, ok, err := it.Next()
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, hex.EncodeToString(raw), hex.EncodeToString(back))
	}
}

// TestGoldenBrokerBatch expands a client batch as Apache's broker does: the
// properties of the header behind those of each item.
func TestGoldenBrokerBatch(t *testing.T) {
	for _, v := range golden(t, "messages.jsonl", "broker_batch") {
		want := v.hex(t, "hex")
		records := Records(want)
		items := Batch(v.hex(t, "client_batch_hex"))
		var got []byte
		for i := range v.list("decoded") {
			var stored Record
			ok, err := records.Next(&stored)
			require.NoError(t, err)
			require.True(t, ok)
			requireRecord(t, vector(v.list("decoded")[i].(map[string]any)), &stored)

			item, ok, err := items.Next()
			require.NoError(t, err)
			require.True(t, ok)
			props := append([]byte(nil), item.Properties...)
			for _, k := range []string{PropWait, PropCluster} {
				props = AppendProperty(props, k, v.textMap("header_properties")[k])
			}
			if v.is("4.9") {
				props = props[:len(props)-1]
			}
			stored.Body, stored.Flag, stored.Properties = item.Body, item.Flag, props
			got = AppendRecord(got, &stored)
		}
		var r Record
		ok, err := records.Next(&r)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got))
	}
}

func sampleRecord() Record {
	return Record{
		QueueID: 2, Flag: 1, QueueOffset: 3, PhyOffset: 4, BornTime: 1700000000000, StoreTime: 1700000000001,
		BornHost: netip.MustParseAddrPort("10.0.0.1:1234"), StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"),
		Body: []byte("hello"), Topic: []byte("TopicA"), Properties: Properties("p1\x01v1\x02TAGS\x01TagA\x02"),
	}
}

// Every prefix, and every length field set to bad values: an error, no panic.
func TestDecodeRecordRefuses(t *testing.T) {
	r := sampleRecord()
	good := AppendRecord(nil, &r)
	var out Record
	for n := range good {
		_, err := DecodeRecord(good[:n], &out)
		require.ErrorIs(t, err, ErrRecord, "%d bytes", n)
	}
	bodyLen := recMin - 7
	for _, at := range []int{0, bodyLen} {
		for _, bad := range []uint32{0, 1, 7, recMin - 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, uint32(len(good)) + 1} {
			b := append([]byte(nil), good...)
			binary.BigEndian.PutUint32(b[at:], bad)
			_, err := DecodeRecord(b, &out)
			require.Error(t, err, "%x at %d", bad, at)
		}
	}
	for name, change := range map[string]func(b []byte){
		"magic":             func(b []byte) { b[recMagic] = 0 },
		"port":              func(b []byte) { b[recBornHost+4] = 1 },
		"topic length":      func(b []byte) { b[bodyLen+4+5] = 0x80 },
		"born host is IPv6": func(b []byte) { b[recSysFlag+3] = 0x10 },
		"properties length": func(b []byte) { b[len(b)-len(r.Properties)-1]-- },
	} {
		b := append([]byte(nil), good...)
		change(b)
		_, err := DecodeRecord(b, &out)
		require.ErrorIs(t, err, ErrRecord, name)
	}
	it := Records(append(append([]byte(nil), good...), 1, 2, 3))
	ok, err := it.Next(&out)
	require.True(t, ok)
	require.NoError(t, err)
	ok, err = it.Next(&out)
	require.False(t, ok)
	require.ErrorIs(t, err, ErrRecord)
	ok, err = it.Next(&out)
	require.False(t, ok)
	require.NoError(t, err, "nothing comes after an error")
}

func TestRecordCheck(t *testing.T) {
	r := sampleRecord()
	require.NoError(t, r.Check())
	r.Topic = []byte(strings.Repeat("t", 128))
	require.NoError(t, r.Check())
	var back Record
	_, err := DecodeRecord(AppendRecord(nil, &r), &back)
	require.NoError(t, err)
	require.True(t, back.V2, "a long topic needs V2")
	require.Equal(t, r.Topic, back.Topic)
	r.Topic = nil
	require.ErrorIs(t, r.Check(), ErrRecord)
	r = sampleRecord()
	r.Properties = make(Properties, MaxProperties+1)
	require.ErrorIs(t, r.Check(), ErrRecord)
	r = sampleRecord()
	r.BodyCRC = 1
	require.False(t, r.CheckBody())
}

func TestBatchRefuses(t *testing.T) {
	good := AppendBatchItem(nil, 7, []byte("hello"), Properties("a\x011\x02"))
	require.Equal(t, len(good), BatchItemSize(5, 4))
	for n := 1; n < len(good); n++ {
		it := Batch(good[:n])
		_, ok, err := it.Next()
		require.False(t, ok)
		require.ErrorIs(t, err, ErrBatch, "%d bytes", n)
		_, ok, err = it.Next()
		require.False(t, ok)
		require.NoError(t, err, "nothing comes after an error")
	}
	for _, at := range []int{0, 16} {
		for _, bad := range []uint32{0, 21, 0x7FFFFFFF, 0xFFFFFFFF} {
			b := append([]byte(nil), good...)
			binary.BigEndian.PutUint32(b[at:], bad)
			it := Batch(b)
			_, _, err := it.Next()
			require.ErrorIs(t, err, ErrBatch, "%x at %d", bad, at)
		}
	}
}
