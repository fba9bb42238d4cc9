package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.Local)

// newIndex is an empty index in memory.
func newIndex(tb testing.TB, slots, entries int32) (*Index, *mfile.Memory, *clock.Manual) {
	tb.Helper()
	fsys, c := mfile.NewMemory(), clock.NewManual(start)
	x, err := Open(Config{FS: fsys, Dir: "index", Slots: slots, Entries: entries, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(tb, err)
	return x, fsys, c
}

// reopen closes and opens an index whose log has every record.
func reopen(tb testing.TB, x *Index, aborted bool, safe int64) *Index {
	tb.Helper()
	require.NoError(tb, x.Close())
	y, err := Open(x.cfg)
	require.NoError(tb, err)
	require.NoError(tb, y.Recover(aborted, safe, func(int64) bool { return true }))
	return y
}

func record(topic string, phy, storeTime int64, uniq, keys string) *wire.Record {
	r := &wire.Record{Topic: []byte(topic), PhyOffset: phy, StoreTime: storeTime}
	if uniq != "" {
		r.Properties = wire.AppendProperty(r.Properties, wire.PropUniqKey, uniq)
	}
	if keys != "" {
		r.Properties = wire.AppendProperty(r.Properties, wire.PropKeys, keys)
	}
	return r
}

// put adds a record as the store does.
func put(tb testing.TB, x *Index, r *wire.Record) {
	tb.Helper()
	for {
		err := x.Put(r)
		if err == nil {
			return
		}
		require.ErrorIs(tb, err, ErrNotReady)
		require.NoError(tb, x.Prepare())
	}
}

func find(x *Index, topic, key string, begin, end int64) []int64 {
	return append([]int64{}, slices.Collect(x.Query([]byte(topic), []byte(key), begin, end))...)
}

func all(x *Index, topic, key string) []int64 { return find(x, topic, key, 0, math.MaxInt64) }

func entries(x *Index) int {
	n := 0
	for _, f := range x.list() {
		n += int(f.count.Load()) - 1
	}
	return n
}

func TestWhichKeys(t *testing.T) {
	x, _, _ := newIndex(t, 100, 100)
	ms := start.UnixMilli()
	put(t, x, record("T", 0, ms, "id0", "a b"))
	put(t, x, record("T", 100, ms, "id1", "  b   c "))
	put(t, x, record("T", 200, ms, "", ""))
	put(t, x, record("U", 300, ms, "", "b"))
	half, back := record("T", 400, ms, "id4", "b"), record("T", 500, ms, "id5", "b")
	half.SysFlag, back.SysFlag = wire.SysTranPrepared, wire.SysTranRollback
	put(t, x, half)
	put(t, x, back)
	commit := record("T", 600, ms, "id6", "d d")
	commit.SysFlag = wire.SysTranCommit
	put(t, x, commit)
	for q, want := range map[string][]int64{
		"T id0": {0}, "T a": {0}, "T b": {400, 100, 0}, "T c": {100}, "U b": {300}, "T id4": {400}, "T id5": {}, "T d": {600, 600},
		"T ": {}, "U id0": {}, "T a b": {}, "V b": {},
	} {
		topic, key, _ := strings.Cut(q, " ")
		require.Equal(t, want, all(x, topic, key), q)
	}
	require.Equal(t, 3+3+1+2+3, entries(x))
	phy, storeTime, _ := x.End()
	require.Equal(t, []int64{600, ms}, []int64{phy, storeTime})

	// What it has it does not take again, and it goes on within a record.
	put(t, x, half)
	put(t, x, commit)
	require.Equal(t, 12, entries(x))
}

func TestTimes(t *testing.T) {
	x, _, _ := newIndex(t, 1, 4) // one slot, three entries a file
	for i := range int64(10) {
		put(t, x, record("T", i*100, 1_000_000+i*700, "", "k"))
	}
	require.Equal(t, 4, x.Files())
	within := func(begin, end int64) (must []int64) {
		for i := int64(9); i >= 0; i-- {
			if at := 1_000_000 + i*700; at >= begin && at <= end {
				must = append(must, i*100)
			}
		}
		return append([]int64{}, must...)
	}
	for begin := int64(999_000); begin < 1_010_000; begin += 100 {
		for _, n := range []int64{0, 300, 699, 700, 1400, 20_000} {
			got := find(x, "T", "k", begin, begin+n)
			require.Subset(t, got, within(begin, begin+n))
			require.Subset(t, within(begin-999, begin+n+999), got, "from %d, %d ms", begin, n)
			require.True(t, slices.IsSortedFunc(got, func(a, b int64) int { return int(b - a) }))
		}
	}
	require.Empty(t, find(x, "T", "k", 2_000_000, 1_000_000))
	require.Empty(t, find(x, "T", "absent", 0, math.MaxInt64))
	for range x.Query([]byte("T"), []byte("k"), 0, math.MaxInt64) {
		break // and the file is let go
	}
	require.NoError(t, x.Close())
	require.Empty(t, all(x, "T", "k"))
}

// Two keys of one hash, and many of one slot.
func TestCollisions(t *testing.T) {
	x, _, _ := newIndex(t, 1, 1000)
	put(t, x, record("T", 0, 1, "", "Aa"))
	put(t, x, record("T", 100, 1, "", "BB"))
	for i := range int64(100) {
		put(t, x, record("T", 200+i, 1, "", fmt.Sprint("k", i)))
	}
	require.Equal(t, []int64{100, 0}, all(x, "T", "Aa"), "whoever asks looks at the records")
	require.Equal(t, []int64{250}, all(x, "T", "k50"))
}

// Files get full in the middle of a record, too.
func TestRoll(t *testing.T) {
	x, fsys, c := newIndex(t, 5, 4)
	for i := range int64(20) {
		put(t, x, record("T", i*100, start.UnixMilli()+i, fmt.Sprint("id", i), "k"))
		c.Advance(time.Millisecond)
	}
	require.Equal(t, 40, entries(x))
	require.Equal(t, 14, x.Files())
	check := func(x *Index) {
		for i := range int64(20) {
			require.Equal(t, []int64{i * 100}, all(x, "T", fmt.Sprint("id", i)))
		}
		require.Len(t, all(x, "T", "k"), 20)
	}
	check(x)
	list, err := fsys.ReadDir("index")
	require.NoError(t, err)
	require.Len(t, list, 14)
	require.Equal(t, start.Format("20060102150405")+"678", list[0].Name)
	for _, e := range list {
		require.Len(t, e.Name, 17)
		require.Equal(t, FileSize(5, 4), e.Size)
	}
	x = reopen(t, x, false, 0)
	check(x)
	last := record("T", 1900, start.UnixMilli()+19, "id19", "k")
	put(t, x, last)
	require.Equal(t, 40, entries(x), "it knows its last record")
	put(t, x, record("T", 1900, start.UnixMilli()+19, "id19", "k more"))
	require.Equal(t, 41, entries(x), "and a key that was missing")
	require.Equal(t, []int64{1900}, all(x, "T", "more"))
}

// Names follow each other even when the clock stands still or goes back.
func TestNames(t *testing.T) {
	x, fsys, c := newIndex(t, 5, 2)
	for i := range int64(5) {
		put(t, x, record("T", i, 1, "", "k"))
	}
	x.cfg.Clock = clock.NewManual(c.Now().Add(-time.Hour))
	put(t, x, record("T", 5, 1, "", "k"))
	list, err := fsys.ReadDir("index")
	require.NoError(t, err)
	base := start.Format("20060102150405")
	for i, e := range list {
		require.Equal(t, fmt.Sprint(base, 678+i), e.Name)
	}
	require.Len(t, list, 6)
	require.Equal(t, []int64{5, 4, 3, 2, 1, 0}, all(reopen(t, x, false, 0), "T", "k"))
}

func TestClean(t *testing.T) {
	x, fsys, _ := newIndex(t, 5, 3)
	for i := range int64(7) {
		put(t, x, record("T", i*100, 1, "", "k"))
	}
	for _, c := range []struct {
		min   int64
		gone  int
		files int
	}{{0, 0, 4}, {100, 0, 4}, {101, 1, 3}, {500, 1, 2}, {math.MaxInt64, 1, 1}, {math.MaxInt64, 0, 1}} {
		n, err := x.Clean(c.min)
		require.NoError(t, err)
		require.Equal(t, []int{c.gone, c.files}, []int{n, x.Files()}, "before %d", c.min)
		list, err := fsys.ReadDir("index")
		require.NoError(t, err)
		require.Len(t, list, c.files)
	}
	require.Equal(t, []int64{600}, all(x, "T", "k"))
	put(t, x, record("T", 700, 1, "", "k"))
	require.Equal(t, []int64{700, 600}, all(x, "T", "k"))
}

// After a crash only files that were full and are in the checkpoint count.
func TestRecover(t *testing.T) {
	build := func() *Index {
		x, _, _ := newIndex(t, 5, 3)
		for i := range int64(7) { // files end at 100, 300, 500; 600 is alone
			put(t, x, record("T", i*100, 1000+i*100, "", "k"))
		}
		return x
	}
	for _, c := range []struct {
		name    string
		aborted bool
		safe    int64
		logEnd  int64
		files   int
	}{
		{"clean", false, 0, 1000, 4},
		{"crash, nothing flushed", true, 0, 1000, 0},
		{"crash, two flushed", true, 1499, 1000, 2},
		{"crash, three flushed", true, 1500, 1000, 3},
		{"crash, all flushed", true, math.MaxInt64, 1000, 3},
		{"clean, log is shorter", false, 0, 301, 2},
		{"crash, log is shorter", true, 1500, 300, 1},
		{"log is lost", false, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := build()
			require.NoError(t, x.Close())
			y, err := Open(x.cfg)
			require.NoError(t, err)
			require.NoError(t, y.Recover(c.aborted, c.safe, func(phy int64) bool { return phy < c.logEnd }))
			require.Equal(t, c.files, y.Files())
			list, err := x.cfg.FS.ReadDir("index")
			require.NoError(t, err)
			require.Len(t, list, c.files)
			phy, _, ok := y.End()
			require.Equal(t, c.files > 0, ok)
			for i := phy / 100; i < 7; i++ { // the log comes again
				put(t, y, record("T", i*100, 1000+i*100, "", "k"))
			}
			require.Equal(t, []int64{600, 500, 400, 300, 200, 100, 0}, all(y, "T", "k"))
		})
	}
}

// A file that cannot be true goes, and all after it.
func TestRecoverDamage(t *testing.T) {
	for name, change := range map[string]func(b []byte){
		"empty header":     func(b []byte) { clear(b[:HeaderSize]) },
		"no entries":       func(b []byte) { be.PutUint32(b[hdCount:], 1) },
		"too many entries": func(b []byte) { be.PutUint32(b[hdCount:], 5) },
		"negative entries": func(b []byte) { be.PutUint32(b[hdCount:], math.MaxUint32) },
		"no slots":         func(b []byte) { be.PutUint32(b[hdSlots:], 0) },
		"too many slots":   func(b []byte) { be.PutUint32(b[hdSlots:], 6) },
		"negative begin":   func(b []byte) { be.PutUint64(b[hdBeginPhy:], 1<<63) },
		"end before begin": func(b []byte) { be.PutUint64(b[hdEndPhy:], 199) },
		"before the last":  func(b []byte) { clear(b[hdBeginPhy:hdSlots]) },
		"another end":      func(b []byte) { be.PutUint64(b[hdEndPhy:], 299) },
	} {
		t.Run(name, func(t *testing.T) {
			x, fsys, _ := newIndex(t, 5, 3)
			for i := range int64(7) {
				put(t, x, record("T", i*100, 1000+i*100, "", "k"))
			}
			path := x.list()[1].Path()
			b, err := fsys.ReadFile(path)
			require.NoError(t, err)
			change(b)
			require.NoError(t, fsys.WriteFile(path, b))
			y := reopen(t, x, false, 0)
			require.Equal(t, []int64{100, 0}, all(y, "T", "k"))
			for i := range int64(7) {
				put(t, y, record("T", i*100, 1000+i*100, "", "k"))
			}
			require.Equal(t, []int64{600, 500, 400, 300, 200, 100, 0}, all(y, "T", "k"))
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	x, fsys, _ := newIndex(t, 5, 3)
	put(t, x, record("T", 0, 1, "", "k"))
	require.NoError(t, x.Close())
	var bad *mfile.FormatError
	for name, n := range map[string]int64{
		"29990101000000000": x.size - 1, "29990101000000001": x.size + 1, "2999010100000000": x.size, "2999010100000000x": x.size,
		"00000000000000000000": x.size, "19990101000000000": 0,
	} {
		path := filepath.Join("index", name)
		require.NoError(t, fsys.WriteFile(path, make([]byte, n)))
		_, err := Open(x.cfg)
		require.ErrorAs(t, err, &bad, name)
		require.Equal(t, path, bad.Path)
		require.NoError(t, fsys.Remove(path))
	}
	require.NoError(t, fsys.MkdirAll("index/sub"))
	require.NoError(t, fsys.WriteFile("index/29990101000000000", nil))
	y := reopen(t, x, false, 0)
	require.Equal(t, 1, y.Files(), "a directory is ignored, a newest file without content removed")
	_, err := fsys.ReadFile("index/29990101000000000")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The checkpoint's time covers no file that may be lost.
func TestFlushedTime(t *testing.T) {
	x, _, _ := newIndex(t, 5, 3)
	add := func(phy, storeTime int64) { put(t, x, record("T", phy, storeTime, "", "k")) }
	flushed := func(log int64) int64 {
		require.NoError(t, x.Flush(log))
		return x.FlushedTime()
	}
	require.Zero(t, flushed(0))
	add(0, 1000)
	add(100, 1001)
	require.Zero(t, flushed(1000), "the newest file")
	add(200, 1001)
	require.Equal(t, int64(1000), flushed(1000), "the next file has the same time")
	add(300, 1002)
	require.Equal(t, int64(1001), flushed(1000))
	add(400, 1003)
	require.Equal(t, int64(1001), flushed(300), "the log is not on disk")
	require.Equal(t, int64(1002), flushed(301))
	add(500, 1001) // the clock went back
	require.Equal(t, int64(1000), x.FlushedTime())
	add(600, 1009)
	require.Equal(t, int64(1002), flushed(1000))
	require.NoError(t, x.FlushAll())
	x = reopen(t, x, false, 0)
	require.Equal(t, int64(1002), x.FlushedTime())
}

func TestDiskFull(t *testing.T) {
	mem := mfile.NewCrash()
	full := errors.New("no space left on device")
	x, err := Open(Config{FS: mem, Dir: "index", Slots: 5, Entries: 3, Clock: clock.NewManual(start), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	r := record("T", 0, 1, "id", "a b c")
	for _, kind := range []string{"mkdir", "create", "reserve"} {
		mem.SetFault(func(op mfile.CrashOp) error {
			if op.Kind == kind {
				return full
			}
			return nil
		})
		require.ErrorIs(t, x.Put(r), ErrNotReady)
		require.ErrorIs(t, x.Prepare(), full, kind)
		var bad *mfile.IOError
		require.ErrorAs(t, x.Prepare(), &bad)
		require.True(t, strings.HasPrefix(bad.Path, "index"))
	}
	mem.SetFault(nil)
	put(t, x, r)
	require.Equal(t, 4, entries(x))
	require.Equal(t, 2, x.Files())
	mem.SetFault(func(op mfile.CrashOp) error {
		if op.Kind == "sync" {
			return full
		}
		return nil
	})
	require.ErrorIs(t, x.Flush(100), full)
	require.ErrorIs(t, x.FlushAll(), full)
	require.Zero(t, x.FlushedTime())
	mem.SetFault(nil)
	require.NoError(t, x.FlushAll())
	require.NoError(t, x.Close())
}

// Readers, a cleaner and a flusher beside the writer.
func TestConcurrent(t *testing.T) {
	const n = 20_000
	x, _, _ := newIndex(t, 16, 200)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				last := int64(math.MaxInt64)
				for phy := range x.Query([]byte("T"), []byte("k3"), 0, math.MaxInt64) {
					if phy >= last || phy%10 != 3 {
						t.Errorf("%d after %d", phy, last)
						return
					}
					last = phy
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Go(func() {
		for {
			end, _, _ := x.End()
			_, err := x.Clean(end - 2000)
			if err = errors.Join(err, x.Flush(end)); err != nil {
				t.Error(err)
			}
			_ = x.FlushedTime()
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for i := range int64(n) {
		put(t, x, record("T", i, i, "", fmt.Sprint("k", i%10)))
	}
	close(done)
	wg.Wait()
	_, err := x.Clean(n - 500)
	require.NoError(t, err)
	got := all(x, "T", "k3")
	require.GreaterOrEqual(t, len(got), 50)
	for i, phy := range got {
		require.Equal(t, int64(n-7-10*i), phy)
	}
}

func TestPutAllocatesNothing(t *testing.T) {
	x, _, _ := newIndex(t, 1000, 100_000)
	r := record("T\xe4\xb8\xad", 0, 1, "AC110001000018B4AAC20000000A0000", "key-1 \xe4\xb8\xad")
	put(t, x, r)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		r.PhyOffset++
		if x.Put(r) != nil {
			t.Fail()
		}
	}))
}

// FuzzFile opens an index file of arbitrary bytes: it is refused or made anew,
// or queries of it end and stay within the file.
func FuzzFile(f *testing.F) {
	const slots, entries = 4, 6
	golden := make([]byte, FileSize(slots, entries))
	f.Add(golden, int32(0))
	f.Add([]byte{}, int32(1))
	be.PutUint32(golden[hdSlots:], 1)
	be.PutUint32(golden[hdCount:], 4)
	be.PutUint32(golden[HeaderSize:], 3)                               // the first slot
	be.PutUint32(golden[HeaderSize+slots*SlotSize+3*EntrySize+16:], 3) // an entry that leads to itself
	f.Add(slices.Clone(golden), int32(0))
	be.PutUint32(golden[HeaderSize+slots*SlotSize+3*EntrySize+16:], 1<<31)
	f.Add(slices.Clone(golden), int32(0))
	f.Fuzz(func(t *testing.T, b []byte, hash int32) {
		x, fsys, _ := newIndex(t, slots, entries)
		require.NoError(t, fsys.MkdirAll("index"))
		file := make([]byte, FileSize(slots, entries))
		copy(file, b)
		require.NoError(t, fsys.WriteFile("index/20260101000000000", file))
		y := reopen(t, x, false, 0)
		n := 0
		for range y.query(hash&math.MaxInt32, 0, math.MaxInt64) {
			n++
		}
		require.Less(t, n, entries)
		phy, _, ok := y.End()
		if ok {
			require.GreaterOrEqual(t, phy, int64(0))
		}
		if phy < math.MaxInt64-1 {
			put(t, y, record("T", phy+1, 5, "id", "a b c d e f"))
			require.Equal(t, phy+1, slices.Collect(y.Query([]byte("T"), []byte("f"), 0, math.MaxInt64))[0])
		}
		z := reopen(t, y, false, 0)
		require.Contains(t, all(z, "T", "a"), phy+1)
	})
}

func BenchmarkIndexPut(b *testing.B) {
	for _, keys := range []string{"", "order-1234567"} {
		b.Run(fmt.Sprintf("keys=%d", 1+len(strings.Fields(keys))), func(b *testing.B) {
			x, err := Open(Config{
				FS: mfile.OS(), Dir: b.TempDir(), Slots: 5_000_000, Entries: 20_000_000, Clock: clock.Real(), Logger: slog.New(slog.DiscardHandler),
			})
			require.NoError(b, err)
			defer x.Close()
			id := []byte("AC110001000018B4AAC2000000000000")
			r := record("TopicTest", 0, start.UnixMilli(), string(id), keys)
			at := strings.Index(string(r.Properties), string(id)) + 24
			b.ReportAllocs()
			for b.Loop() {
				r.PhyOffset++
				for i, v := 0, r.PhyOffset; i < 8; i, v = i+1, v>>4 {
					r.Properties[at+7-i] = "0123456789ABCDEF"[v&15]
				}
				for x.Put(r) != nil {
					if err := x.Prepare(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
