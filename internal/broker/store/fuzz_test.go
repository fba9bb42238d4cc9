package store_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// FuzzRecover opens a store whose only log file begins with arbitrary bytes.
// Whatever they are: it opens, serves whole records of its own only, agrees
// with itself after a restart, and goes on.
func FuzzRecover(f *testing.F) {
	rec := func(phy, queueOffset int64, body string) []byte {
		return wire.AppendRecord(nil, &wire.Record{
			PhyOffset: phy, QueueOffset: queueOffset, StoreTime: 1, Topic: []byte("T"), Body: []byte(body), Properties: []byte("TAGS\x01a\x02"),
		})
	}
	one := rec(0, 0, "one")
	f.Add([]byte{})
	f.Add(one)
	f.Add(append(rec(0, 0, "one"), rec(int64(len(one)), 1, "two")...))
	f.Add(append(rec(0, 0, "one"), rec(int64(len(one)), 7, "gap")...))
	f.Add(append(rec(0, 3, "one"), rec(int64(len(one)), 0, "back")...))
	f.Add(append(rec(0, 0, "one"), rec(0, 1, "wrong place")...))
	f.Add(one[:len(one)-3])
	f.Add(wire.AppendBlank(nil, 4096))
	f.Add(append(rec(0, 0, "one"), wire.AppendBlank(nil, 4096-len(one))...))
	f.Add(append(rec(0, 1<<40, "far"), one...))
	f.Add(append(rec(0, -5, "before the beginning"), one...))
	f.Fuzz(func(t *testing.T, b []byte) {
		const size = 4096
		fsys := mfile.NewMemory()
		dir := filepath.Join("store", "commitlog")
		require.NoError(t, fsys.MkdirAll(dir))
		file := make([]byte, size)
		copy(file, b)
		require.NoError(t, fsys.WriteFile(filepath.Join(dir, mfile.FileName(0)), file))
		cfg := store.Config{Dir: "store", FS: fsys, CommitLogFileSize: size, ConsumeQueueFileSize: 200, Clock: clock.NewManual(start)}
		first := contents(t, cfg)
		second := contents(t, cfg)
		require.Equal(t, first, second)
		r := &rig{t: t, cfg: cfg, clock: clock.NewManual(start)}
		r.open()
		defer func() { r.Abandon() }() // the one that is open then
		at := r.put("new", 0, "new").PhyOffset
		require.Equal(t, first.end, at)
		r.kill()
		require.Contains(t, r.bodies("new", 0, r.MinOffset("new", 0)), "new")
	})
}

type summary struct {
	end  int64
	seen map[string]int64 // "topic/queue" to maximum
}

// contents opens a store, reads all of it and kills it.
func contents(t *testing.T, cfg store.Config) summary {
	t.Helper()
	s, err := store.Open(cfg)
	require.NoError(t, err)
	defer s.Abandon()
	sum := summary{end: s.Stats().MaxPhy, seen: map[string]int64{}}
	for _, topic := range s.Topics() {
		for _, id := range s.Queues(topic) {
			lo, hi := s.MinOffset(topic, id), s.MaxOffset(topic, id)
			sum.seen[topic] = hi
			for at := lo; at < hi; {
				b, res := s.Get(nil, store.GetRequest{Topic: []byte(topic), QueueID: id, Offset: at, MaxMsgs: 100})
				require.Greater(t, res.NextOffset, at)
				at = res.NextOffset
				it := wire.Records(b)
				var rec wire.Record
				for ok, err := it.Next(&rec); ok || err != nil; ok, err = it.Next(&rec) {
					require.NoError(t, err)
					require.True(t, rec.CheckBody())
					require.Equal(t, topic, string(rec.Topic))
				}
			}
		}
	}
	return sum
}

// FuzzScan looks for records in arbitrary bytes at an arbitrary position.
func FuzzScan(f *testing.F) {
	f.Add([]byte{}, int64(0))
	f.Add(wire.AppendBlank(nil, 8), int64(0))
	f.Add(wire.AppendRecord(nil, &wire.Record{PhyOffset: 77, Topic: []byte("T"), Body: []byte("b")}), int64(77))
	f.Fuzz(func(t *testing.T, b []byte, phy int64) {
		var r wire.Record
		n, record := store.Scan(b, phy, &r)
		if n < 0 || n > int64(len(b)) {
			t.Fatalf("%d of %d bytes", n, len(b))
		}
		if record && (r.PhyOffset != phy || int64(r.Size) != n || len(r.Topic) == 0 || !r.CheckBody()) {
			t.Fatalf("not a record: %+v", r)
		}
	})
}
