package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// index waits until all that was put can be found by its keys.
func (r *rig) index() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(r.t, r.WaitIndexed(ctx))
}

func (r *rig) query(q store.QueryRequest) []wire.Record {
	r.t.Helper()
	b, res := r.Query(nil, q)
	var out []wire.Record
	it := wire.Records(b)
	for {
		var rec wire.Record
		ok, err := it.Next(&rec)
		require.NoError(r.t, err)
		if !ok {
			break
		}
		require.True(r.t, rec.CheckBody())
		out = append(out, rec)
	}
	require.Len(r.t, out, res.Count)
	return out
}

func bodiesOf(recs []wire.Record) []string {
	out := []string{}
	for _, r := range recs {
		out = append(out, string(r.Body))
	}
	return out
}

// smallIndex makes index files of three entries with one slot.
func smallIndex(c *store.Config) { c.IndexSlots, c.IndexEntries = 1, 4 }

func TestQuery(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk=%v", disk), func(t *testing.T) {
			r := newRig(t, disk, smallIndex)
			ms := start.UnixMilli() // each put moves the clock by 1 ms
			r.put("T", 0, "0", wire.PropUniqKey, "id0", wire.PropKeys, "a b")
			r.put("T", 1, "1", wire.PropUniqKey, "id1", wire.PropKeys, "b")
			r.put("U", 0, "2", wire.PropUniqKey, "id2", wire.PropKeys, "b id0")
			r.put("T", 0, "3", wire.PropUniqKey, "b", wire.PropKeys, "c b b")
			r.put("T", 0, "4", wire.PropKeys, "id0")
			r.put("T", 0, "5")
			r.put("T", 0, "6", wire.PropUniqKey, "id6", wire.PropKeys, "Aa") // "Aa" and "BB" have one hash
			r.put("T", 0, "7", wire.PropUniqKey, "id7", wire.PropKeys, "BB")
			end := int64(math.MaxInt64)
			tests := []struct {
				name string
				q    store.QueryRequest
				want []string
			}{
				{"key", store.QueryRequest{Key: []byte("a"), End: end, Max: 10}, []string{"0"}},
				{"key of several, once each", store.QueryRequest{Key: []byte("b"), End: end, Max: 10}, []string{"0", "1", "3"}},
				{"the newest ones", store.QueryRequest{Key: []byte("b"), End: end, Max: 2}, []string{"1", "3"}},
				{"of another topic", store.QueryRequest{Topic: []byte("U"), Key: []byte("b"), End: end, Max: 10}, []string{"2"}},
				{"unknown topic", store.QueryRequest{Topic: []byte("V"), Key: []byte("b"), End: end, Max: 10}, []string{}},
				{"unknown key", store.QueryRequest{Key: []byte("absent"), End: end, Max: 10}, []string{}},
				{"two keys are none", store.QueryRequest{Key: []byte("a b"), End: end, Max: 10}, []string{}},
				{"empty key", store.QueryRequest{Key: []byte(""), End: end, Max: 10}, []string{}},
				{"unique id or key", store.QueryRequest{Key: []byte("id0"), End: end, Max: 10}, []string{"0", "4"}},
				{"unique id", store.QueryRequest{Key: []byte("id0"), Unique: true, End: end, Max: 10}, []string{"0"}},
				{"same hash", store.QueryRequest{Key: []byte("Aa"), End: end, Max: 10}, []string{"6"}},
				{"same hash, other key", store.QueryRequest{Key: []byte("BB"), End: end, Max: 1}, []string{"7"}},
				{"from", store.QueryRequest{Key: []byte("b"), Begin: ms + 1, End: end, Max: 10}, []string{"1", "3"}},
				{"to", store.QueryRequest{Key: []byte("b"), End: ms + 2, Max: 10}, []string{"0", "1"}},
				{"one millisecond", store.QueryRequest{Key: []byte("b"), Begin: ms + 1, End: ms + 1, Max: 10}, []string{"1"}},
				{"between two", store.QueryRequest{Key: []byte("b"), Begin: ms + 2, End: ms + 2, Max: 10}, []string{}},
				{"too late", store.QueryRequest{Key: []byte("b"), Begin: ms + 100, End: end, Max: 10}, []string{}},
				{"too early", store.QueryRequest{Key: []byte("b"), End: ms - 1, Max: 10}, []string{}},
				{"backwards", store.QueryRequest{Key: []byte("b"), Begin: end, End: 0, Max: 10}, []string{}},
				{"none wanted", store.QueryRequest{Key: []byte("b"), End: end}, []string{}},
				{"less than none", store.QueryRequest{Key: []byte("b"), End: end, Max: -1}, []string{}},
				{"bytes", store.QueryRequest{Key: []byte("b"), End: end, Max: 10, MaxBytes: 250}, []string{"1", "3"}},
				{"at least one", store.QueryRequest{Key: []byte("b"), End: end, Max: 10, MaxBytes: 1}, []string{"3"}},
			}
			for _, restart := range []func(){r.index, r.reopen, r.kill, r.reopen} {
				restart()
				r.index()
				for _, tt := range tests {
					if tt.q.Topic == nil {
						tt.q.Topic = []byte("T")
					}
					require.Equal(t, tt.want, bodiesOf(r.query(tt.q)), tt.name)
				}
				_, res := r.Query(nil, store.QueryRequest{Topic: []byte("T"), Key: []byte("a"), End: end, Max: 1})
				require.Equal(t, store.QueryResult{Count: 1, IndexTime: ms + 7, IndexPhy: res.IndexPhy}, res)
				last, ok := r.ViewMessage(nil, res.IndexPhy)
				require.True(t, ok)
				require.Contains(t, string(last), "id7")
				_, res = r.Query(nil, store.QueryRequest{Topic: []byte("T"), Key: []byte("absent"), End: end, Max: 1})
				require.Zero(t, res)
			}
			require.NoError(t, r.Close())
			out, res := r.Query([]byte("x"), tests[0].q)
			require.Equal(t, "x", string(out))
			require.Zero(t, res, "closed")
		})
	}
}

// findAll looks up each of the messages "m-0" to "m-(n-1)" by its own key, and
// all of them by the one they share.
func (r *rig) findAll(n int) {
	r.t.Helper()
	r.index()
	want := numbered("m", n)
	for _, body := range want {
		require.Equal(r.t, []string{body}, bodiesOf(r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte(body), End: math.MaxInt64, Max: 9})))
	}
	shared := r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte("shared"), End: math.MaxInt64, Max: 64})
	require.Equal(r.t, want[max(0, n-64):], bodiesOf(shared))
}

func (r *rig) putKeyed(from, to int) {
	r.t.Helper()
	for _, body := range numbered("m", to)[from:] {
		r.put("T", int32(from%3), body, wire.PropUniqKey, "id-"+body, wire.PropKeys, "shared "+body)
	}
}

func (r *rig) indexNames() (names []string) {
	r.t.Helper()
	list, err := r.cfg.FS.ReadDir(filepath.Join(r.cfg.Dir, "index"))
	require.NoError(r.t, err)
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

func TestIndexOverRestarts(t *testing.T) {
	for _, disk := range []bool{false, true} {
		for name, restart := range map[string]func(*rig){
			"close": (*rig).reopen,
			"kill":  (*rig).kill,
			"lost": func(r *rig) {
				require.NoError(r.t, r.Close())
				require.NoError(r.t, r.cfg.FS.RemoveAll(filepath.Join(r.cfg.Dir, "index")))
				r.open()
			},
			"empty newest file": func(r *rig) {
				r.Abandon()
				require.NoError(r.t, r.cfg.FS.MkdirAll(filepath.Join(r.cfg.Dir, "index")))
				require.NoError(r.t, r.cfg.FS.WriteFile(filepath.Join(r.cfg.Dir, "index", "99990101000000000"), nil))
				r.open()
			},
			"switched off for a while": func(r *rig) {
				require.NoError(r.t, r.Close())
				r.cfg.NoIndex = true
				r.open()
				off := fmt.Sprint("off at ", r.Stats().MaxPhy)
				r.put("T", 0, off, wire.PropUniqKey, off)
				r.index()
				find := func(key string) []string {
					return bodiesOf(r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte(key), End: math.MaxInt64, Max: 9}))
				}
				require.Empty(r.t, find(off))
				require.Equal(r.t, []string{"m-1"}, find("m-1"))
				r.cfg.NoIndex = false
				r.reopen()
				r.index()
				require.Equal(r.t, []string{off}, find(off))
			},
		} {
			t.Run(fmt.Sprintf("disk=%v/%s", disk, name), func(t *testing.T) {
				r := newRig(t, disk, func(c *store.Config) { c.IndexSlots, c.IndexEntries = 7, 50 })
				for n := 30; n <= 90; n += 30 {
					r.putKeyed(n-30, n)
					restart(r)
					r.findAll(n)
				}
				require.Greater(t, len(r.indexNames()), 4)
			})
		}
	}
}

// After a crash files that are full and flushed stay, the others are made anew.
func TestIndexFilesOfACrash(t *testing.T) {
	r := newRig(t, true, func(c *store.Config) { c.IndexSlots, c.IndexEntries = 7, 30 })
	r.putKeyed(0, 40) // 120 entries, four files and a bit
	r.index()
	before := r.indexNames()
	require.Len(t, before, 5)
	require.NoError(t, r.FlushNow())
	require.NoError(t, r.FlushIndexNow())
	r.clock.Advance(time.Second)
	r.kill()
	r.findAll(40)
	after := r.indexNames()
	require.Len(t, after, 5)
	require.Equal(t, before[:4], after[:4])
	require.NotEqual(t, before[4], after[4])

	r.kill()
	r.findAll(40)
	r.reopen()
	require.Equal(t, r.indexNames()[:4], before[:4], "nothing was lost by a clean stop")
	r.findAll(40)
}

// Rolled back messages cannot be found, half ones can.
func TestIndexOfTransactions(t *testing.T) {
	r := newRig(t, false)
	for _, flag := range []int32{0, wire.SysTranPrepared, wire.SysTranCommit, wire.SysTranRollback} {
		m := message("T", 0, fmt.Sprint(flag), wire.PropKeys, "k")
		m.SysFlag = flag
		res, _ := r.Put(m, nil)
		require.NoError(t, res.Err)
	}
	for range 2 {
		r.index()
		require.Equal(t, []string{"0", "4", "8"}, bodiesOf(r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte("k"), End: math.MaxInt64, Max: 9})))
		r.kill()
	}
}

// An index that cannot be written holds up nobody; after three attempts new
// messages are refused, and it heals by itself.
func TestIndexFaultHeals(t *testing.T) {
	fsys := mfile.NewCrash()
	inBubble(t, fsys, func(t *testing.T, s *store.Store) {
		full := errors.New("no space left on device")
		var broken atomic.Bool
		broken.Store(true)
		fsys.SetFault(func(op mfile.CrashOp) error {
			if broken.Load() && strings.Contains(op.Path, "index") {
				return full
			}
			return nil
		})
		put := func() store.PutResult {
			res, _ := s.Put(message("T", 0, "x", wire.PropKeys, "k"), nil)
			return res
		}
		require.NoError(t, put().Err)
		synctest.Wait()
		require.NoError(t, put().Err)
		require.NoError(t, s.WaitDispatched(t.Context()))
		require.Equal(t, int64(2), s.MaxOffset("T", 0), "consumers do not wait for the index")
		time.Sleep(5 * time.Second)
		res := put()
		require.Equal(t, store.ServiceNotAvailable, res.Status)
		require.ErrorIs(t, res.Err, full)
		require.ErrorContains(t, res.Err, filepath.Join("store", "index"))

		broken.Store(false)
		time.Sleep(2 * time.Second)
		require.NoError(t, put().Err)
		require.NoError(t, s.WaitIndexed(t.Context()))
		_, found := s.Query(nil, store.QueryRequest{Topic: []byte("T"), Key: []byte("k"), End: math.MaxInt64, Max: 9})
		require.Equal(t, 3, found.Count)
	})
}

// A store whose index cannot be completed is not closed clean.
func TestCloseWithoutIndexLeavesTheAbortFile(t *testing.T) {
	fsys := mfile.NewCrash()
	r := newRig(t, false, func(c *store.Config) { c.FS = fsys })
	full := errors.New("no space left on device")
	fsys.SetFault(func(op mfile.CrashOp) error {
		if strings.Contains(op.Path, "index") {
			return full
		}
		return nil
	})
	r.putKeyed(0, 3)
	require.ErrorIs(t, r.Close(), full)
	fsys.SetFault(nil)
	_, err := fsys.ReadFile("store/abort")
	require.NoError(t, err)
	r.open()
	r.findAll(3)
}

func TestWaitIndexedEndsWithTheStore(t *testing.T) {
	fsys := mfile.NewCrash()
	r := newRig(t, false, func(c *store.Config) { c.FS = fsys })
	fsys.SetFault(func(op mfile.CrashOp) error {
		if strings.Contains(op.Path, "index") {
			return errBroken
		}
		return nil
	})
	r.putKeyed(0, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	cancel(mine)
	r.settle()
	require.ErrorIs(t, r.WaitIndexed(ctx), mine)
	done := make(chan error, 1)
	go func() { done <- r.WaitIndexed(context.Background()) }()
	r.Abandon()
	require.ErrorContains(t, <-done, "closed")
}

func TestIndexFilesOfAnotherSize(t *testing.T) {
	r := newRig(t, true, smallIndex)
	r.putKeyed(0, 3)
	r.index()
	require.NoError(t, r.Close())
	c := r.cfg
	c.IndexEntries++
	_, err := store.Open(c)
	var bad *mfile.FormatError
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Path, filepath.Join(r.cfg.Dir, "index"))
	c.IndexEntries = 1
	_, err = store.Open(c)
	require.ErrorContains(t, err, "at least")
	_, err = r.cfg.FS.ReadFile(filepath.Join(r.cfg.Dir, "abort"))
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing has changed")
	r.open()
	r.findAll(3)
}

// Index files go with the log files that they point to, and what is gone is
// not found.
func TestIndexIsCleaned(t *testing.T) {
	r := newRig(t, true, func(c *store.Config) { c.IndexSlots, c.IndexEntries = 7, 30 })
	r.putKeyed(0, 200)
	r.findAll(200)
	before := r.indexNames()
	for range 2 {
		require.NoError(t, r.DropFirstLogFile())
	}
	require.NoError(t, r.CleanIndexNow())
	after := r.indexNames()
	require.Less(t, len(after), len(before))
	require.Equal(t, before[len(before)-len(after):], after)
	gone := 0
	for _, body := range numbered("m", 200) {
		got := r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte(body), End: math.MaxInt64, Max: 9})
		if len(got) == 0 {
			gone++
			continue
		}
		require.Equal(t, []string{body}, bodiesOf(got))
	}
	require.Greater(t, gone, 20)
	require.Less(t, gone, 200)
	require.Len(t, r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte("shared"), End: math.MaxInt64, Max: 64}), min(64, 200-gone))
	r.kill()
	r.index()
	require.Len(t, r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte("m-199"), End: math.MaxInt64, Max: 64}), 1)
}

// Queries, a cleaner and restarts of the catching-up beside producers.
func TestQueryUnderLoad(t *testing.T) {
	const producers, each = 4, 150
	r := newRig(t, true, func(c *store.Config) { c.IndexSlots, c.IndexEntries = 13, 60 })
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				m := message("T", int32(p), fmt.Sprintf("%d-%d", p, i), wire.PropUniqKey, fmt.Sprintf("%d-%d", p, i), wire.PropKeys, fmt.Sprint("p", p))
				if res, _ := r.Put(m, nil); res.Err != nil {
					t.Error(res.Err)
				}
			}
		})
	}
	for p := range producers {
		wg.Go(func() {
			for n := 0; n < 64; {
				b, res := r.Query(nil, store.QueryRequest{Topic: []byte("T"), Key: []byte(fmt.Sprint("p", p)), End: math.MaxInt64, Max: 64})
				it := wire.Records(b)
				var rec wire.Record
				last := int64(-1)
				for ok, err := it.Next(&rec); ok || err != nil; ok, err = it.Next(&rec) {
					if err != nil || rec.PhyOffset <= last || rec.QueueID != int32(p) {
						t.Errorf("record at %d after %d of queue %d: %v", rec.PhyOffset, last, rec.QueueID, err)
						return
					}
					last = rec.PhyOffset
				}
				n = max(n, res.Count)
			}
		})
	}
	wg.Wait()
	check := func() {
		r.index()
		for p := range producers {
			for i := range each {
				key := fmt.Sprintf("%d-%d", p, i)
				require.Equal(t, []string{key}, bodiesOf(r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte(key), Unique: true, End: math.MaxInt64, Max: 9})))
			}
		}
	}
	check()
	r.kill()
	check()
}

// What the log has after a power failure can be found, whatever is left of the
// index, and once each.
func TestIndexAfterPowerLoss(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		fsys := mfile.NewCrash()
		r := newRig(t, false, func(c *store.Config) {
			c.FS, c.IndexSlots, c.IndexEntries = fsys, 300, int32(4+rnd.IntN(700))
		})
		n := 0
		for range 3 {
			for range 20 + rnd.IntN(60) {
				body := fmt.Sprint("m-", n)
				r.put("T", 0, body, wire.PropUniqKey, "id-"+body, wire.PropKeys, "shared "+body)
				r.clock.Advance(time.Duration(rnd.IntN(3)) * time.Millisecond)
				n++
				switch rnd.IntN(20) {
				case 0:
					require.NoError(t, r.FlushNow())
				case 1:
					r.index()
					require.NoError(t, r.FlushNow())
					require.NoError(t, r.FlushIndexNow())
				}
			}
			if rnd.IntN(4) == 0 {
				require.NoError(t, r.Close())
			} else {
				r.Abandon()
			}
			fsys = fsys.PowerLoss(rnd.Uint64())
			r.cfg.FS = fsys
			r.open()
			have := r.bodies("T", 0, r.MinOffset("T", 0))
			r.index()
			for _, body := range have {
				got := bodiesOf(r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte(body), End: math.MaxInt64, Max: 9}))
				require.Equal(t, []string{body}, got, "seed %d", seed)
			}
			got := bodiesOf(r.query(store.QueryRequest{Topic: []byte("T"), Key: []byte("shared"), End: math.MaxInt64, Max: 64}))
			require.Equal(t, append([]string{}, have[max(0, len(have)-64):]...), got, "seed %d", seed)
		}
		r.Abandon()
	}
}
