package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestPutStoresEveryField(t *testing.T) {
	host := netip.MustParseAddrPort("10.1.2.3:10911")
	for name, born := range map[string]string{"v4": "192.0.2.7:5555", "v6": "[2001:db8::7]:5555", "v4 in v6": "[::ffff:192.0.2.7]:5555"} {
		t.Run("born="+name, func(t *testing.T) {
			r := newRig(t, false, func(c *store.Config) { c.StoreHost = host })
			m := &store.Message{
				Topic: []byte("T"), QueueID: 3, Flag: 17, SysFlag: wire.SysMultiTags, ReconsumeTimes: 2, BornTime: 1234, PreparedOffset: 99,
				BornHost: netip.MustParseAddrPort(born), Body: []byte("body"), Properties: []byte("TAGS\x01A\x02"),
			}
			res, pending := r.Put(m, nil)
			require.NoError(t, res.Err)
			require.False(t, pending)
			r.settle()
			b, got := r.Get([]byte("before"), store.GetRequest{Topic: m.Topic, QueueID: 3, MaxMsgs: 1})
			require.Equal(t, store.Found, got.Status)
			require.Equal(t, "before", string(b[:6]), "appends to what is there")
			var rec wire.Record
			n, err := wire.DecodeRecord(b[6:], &rec)
			require.NoError(t, err)
			require.Equal(t, len(b)-6, n)
			require.True(t, rec.CheckBody())
			wantBorn := netip.AddrPortFrom(m.BornHost.Addr().Unmap(), 5555)
			flags := wire.SysMultiTags
			if wantBorn.Addr().Is6() {
				flags |= wire.SysBornV6
			}
			rec.BodyCRC = 0
			require.Equal(t, wire.Record{
				Size: int32(n), QueueID: 3, Flag: 17, SysFlag: flags, ReconsumeTimes: 2, BornTime: 1234, PreparedOffset: 99,
				BornHost: wantBorn, StoreHost: host, StoreTime: start.UnixMilli(), Body: m.Body, Topic: m.Topic, Properties: m.Properties,
			}, rec)
			require.Equal(t, store.PutResult{StoreTime: start.UnixMilli(), End: int64(n)}, res)
			one, ok := r.ViewMessage(nil, res.PhyOffset)
			require.True(t, ok)
			require.Equal(t, b[6:], one)
		})
	}
}

func TestPutRefusals(t *testing.T) {
	r := newRig(t, false, func(c *store.Config) { c.MaxMessageSize = 2000 })
	long := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	retry := func(n int) []byte { return append([]byte(wire.RetryPrefix), long(n-len(wire.RetryPrefix))...) }
	for name, c := range map[string]struct {
		m    store.Message
		want store.Status
	}{
		"longest body":         {store.Message{Topic: long(1), Body: long(2000)}, store.PutOK},
		"body too long":        {store.Message{Topic: long(1), Body: long(2001)}, store.MessageIllegal},
		"longest topic":        {store.Message{Topic: long(127), Body: long(1)}, store.PutOK},
		"topic too long":       {store.Message{Topic: long(128), Body: long(1)}, store.MessageIllegal},
		"longest retry topic":  {store.Message{Topic: retry(255), Body: long(1)}, store.PutOK},
		"retry topic too long": {store.Message{Topic: retry(256), Body: long(1)}, store.MessageIllegal},
		"no topic":             {store.Message{Body: long(1)}, store.MessageIllegal},
		"topic is a path":      {store.Message{Topic: []byte("../x"), Body: long(1)}, store.MessageIllegal},
		"topic is a directory": {store.Message{Topic: []byte(".."), Body: long(1)}, store.MessageIllegal},
		"negative queue":       {store.Message{Topic: long(1), QueueID: -1, Body: long(1)}, store.MessageIllegal},
		"empty body":           {store.Message{Topic: long(1), Body: []byte{}}, store.PutOK},
		"no body":              {store.Message{Topic: long(1)}, store.MessageIllegal},
		"properties too long":  {store.Message{Topic: long(1), Body: long(1), Properties: long(32768)}, store.PropertiesSizeExceeded},
		"longer than a file":   {store.Message{Topic: long(1), Body: long(1), Properties: long(9000)}, store.MessageIllegal},
	} {
		before := r.Stats().MaxPhy
		res, pending := r.Put(&c.m, nil)
		require.False(t, pending)
		require.Equal(t, c.want, res.Status, name)
		require.Equal(t, c.want == store.PutOK, res.Err == nil, name)
		require.Equal(t, c.want == store.PutOK, r.Stats().MaxPhy > before, name)
	}
	require.NoError(t, r.Close())
	res, _ := r.Put(message("T", 0, "x"), nil)
	require.Equal(t, store.ServiceNotAvailable, res.Status)
	require.Error(t, res.Err)
}

func TestLongRetryTopicIsStoredAsV2(t *testing.T) {
	r := newRig(t, false)
	topic := wire.RetryTopic(strings.Repeat("g", 200))
	r.put(topic, 0, "x")
	r.kill()
	require.True(t, r.records(topic, 0, 0)[0].V2)
}

// The rest of a file that has no room for a record is filled as Apache does:
// its length and the blank magic, then whatever there was.
func TestRollOver(t *testing.T) {
	const file = 8 << 10
	const head = 92 // record of topic "T" without body and properties
	for name, c := range map[string]struct {
		second int   // body of the second record
		want   int64 // where it goes
	}{
		"leaves just the room for the filler": {file - 4096 - head - wire.BlankSize, 4096},
		"one byte too long":                   {file - 4096 - head - wire.BlankSize + 1, file},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false)
			require.Zero(t, r.put("T", 0, strings.Repeat("a", 4096-head)).PhyOffset)
			res := r.put("T", 0, strings.Repeat("b", c.second))
			require.Equal(t, c.want, res.PhyOffset)
			require.Equal(t, int64(1), res.QueueOffset)
			res = r.put("T", 0, "third")
			require.Equal(t, max(file, c.want+head+int64(c.second)), res.PhyOffset)
			check := func() {
				t.Helper()
				got := r.bodies("T", 0, 0)
				require.Len(t, got, 3)
				require.Len(t, got[1], c.second)
				require.Equal(t, "third", got[2])
			}
			r.settle()
			check()
			r.kill()
			check()
			r.reopen()
			check()
			require.NoError(t, r.Close())
			b, err := r.cfg.FS.ReadFile(filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName(0)))
			require.NoError(t, err)
			at := file - int64(wire.BlankSize)
			if c.want == file {
				at = 4096
			}
			require.Equal(t, uint32(file-at), binary.BigEndian.Uint32(b[at:]))
			require.Equal(t, wire.MagicBlank, binary.BigEndian.Uint32(b[at+4:]))
			require.Zero(t, len(bytes.Trim(b[at+8:], "\x00")))
		})
	}
}

// batch encodes bodies as a client does, with a property "i" for each.
func batch(bodies ...string) (b []byte) {
	for i, body := range bodies {
		b = wire.AppendBatchItem(b, int32(i), []byte(body), wire.Properties("i\x01"+string(rune('a'+i))))
	}
	return b
}

func TestPutBatch(t *testing.T) {
	r := newRig(t, false)
	r.put("T", 1, "before")
	m := message("T", 1, "", "CLUSTER", "c")
	m.Body = batch("one", "two", "three")
	res, pending := r.PutBatch(m, []int64{-1}, nil)
	require.NoError(t, res.Err)
	require.False(t, pending)
	require.Equal(t, int64(1), res.QueueOffset)
	require.Len(t, res.PhyOffsets, 4)
	require.Equal(t, int64(-1), res.PhyOffsets[0])
	require.Equal(t, res.PhyOffset, res.PhyOffsets[1])
	r.put("T", 1, "after")
	r.settle()
	require.Equal(t, []string{"before", "one", "two", "three", "after"}, r.bodies("T", 1, 0))
	at := res.PhyOffset
	for i, rec := range r.records("T", 1, 1)[:3] {
		require.Equal(t, at, rec.PhyOffset, "contiguous")
		require.Equal(t, at, res.PhyOffsets[i+1])
		require.Equal(t, int32(i), rec.Flag)
		require.Equal(t, map[string]string{"i": string(rune('a' + i)), "CLUSTER": "c"}, rec.Properties.Map())
		require.Equal(t, res.StoreTime, rec.StoreTime)
		at += int64(rec.Size)
	}
	require.Equal(t, at, res.End)
}

// A batch is never cut in two by the end of a file.
func TestBatchRollsOverAsAWhole(t *testing.T) {
	r := newRig(t, false)
	r.put("T", 0, strings.Repeat("a", 7900))
	m := message("T", 0, "")
	m.Body = batch("one", "two", "three")
	res, _ := r.PutBatch(m, nil, nil)
	require.Equal(t, int64(8<<10), res.PhyOffset)
	require.Equal(t, []int64{8 << 10, 8<<10 + int64(97+2), 8<<10 + 2*int64(97+2)}, res.PhyOffsets)
	r.kill()
	require.Equal(t, []string{"one", "two", "three"}, r.bodies("T", 0, 1))
}

func TestPutBatchRefusals(t *testing.T) {
	r := newRig(t, false, func(c *store.Config) { c.MaxMessageSize = 3000 })
	good := batch("one", "two")
	for name, c := range map[string]struct {
		body  []byte
		props string
		flag  int32
		want  store.Status
	}{
		"good":             {good, "", 0, store.PutOK},
		"empty":            {[]byte{}, "", 0, store.MessageIllegal},
		"none":             {nil, "", 0, store.MessageIllegal},
		"cut":              {good[:len(good)-1], "", 0, store.MessageIllegal},
		"no batch":         {[]byte("hello"), "", 0, store.MessageIllegal},
		"transaction":      {good, "", wire.SysTranPrepared, store.MessageIllegal},
		"delay":            {good, "DELAY\x013\x02", 0, store.MessageIllegal},
		"records too long": {batch(strings.Repeat("a", 1500), strings.Repeat("b", 1500)), "", 0, store.MessageIllegal},
		"properties":       {good, "k\x01" + strings.Repeat("v", 32764) + "\x02", 0, store.PropertiesSizeExceeded},
	} {
		before := r.Stats().MaxPhy
		m := &store.Message{Topic: []byte("T"), Body: c.body, Properties: []byte(c.props), SysFlag: c.flag}
		res, _ := r.PutBatch(m, nil, nil)
		require.Equal(t, c.want, res.Status, name)
		require.Equal(t, c.want == store.PutOK, r.Stats().MaxPhy > before, name)
		require.Equal(t, c.want != store.PutOK, res.PhyOffsets == nil, name)
	}
}

// full is a file system without room for further commit log files.
type full struct {
	*mfile.Memory
	on     atomic.Bool
	queues atomic.Bool // consume queue files cannot be made either
}

var errFull = errors.New("no space left on device")

func (f *full) Create(path string, size int64, reserve bool) (*mfile.File, error) {
	if reserve && f.on.Load() || !reserve && f.queues.Load() {
		return nil, errFull
	}
	return f.Memory.Create(path, size, reserve)
}

func TestPutWithoutRoomForTheNextFile(t *testing.T) {
	fsys := &full{Memory: mfile.NewMemory()}
	r := newRig(t, false, func(c *store.Config) { c.FS = fsys })
	half := strings.Repeat("a", 4000)
	r.put("T", 0, half)
	fsys.on.Store(true)
	r.put("T", 0, half[:3900])
	for range 3 {
		res, _ := r.Put(message("T", 0, half), nil)
		require.Equal(t, store.CreateMappedFileFailed, res.Status)
		require.ErrorIs(t, res.Err, errFull)
	}
	r.put("T", 0, "") // what fits into the old file is still taken
	fsys.on.Store(false)
	res := r.put("T", 0, half)
	require.Equal(t, int64(3), res.QueueOffset, "refused messages leave no hole")
	r.settle()
	require.Len(t, r.bodies("T", 0, 0), 4)
}

func TestClockGivesStoreTimes(t *testing.T) {
	r := newRig(t, false)
	first := r.put("T", 0, "a")
	r.clock.Advance(time.Hour)
	second := r.put("T", 0, "b")
	require.Equal(t, start.UnixMilli(), first.StoreTime)
	require.Equal(t, start.UnixMilli()+time.Hour.Milliseconds()+1, second.StoreTime)
}
