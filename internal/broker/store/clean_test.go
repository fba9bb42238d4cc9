package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const pause = 100 * time.Millisecond

// paced is a clock that lets the cleaner's pauses pass at once.
type paced struct {
	*clock.Manual
	pauses *atomic.Int32
}

func (c paced) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := c.Manual.AfterFunc(d, f)
	if d == pause {
		c.pauses.Add(1)
		c.Advance(d)
	}
	return t
}

// cleanRig is a store whose disk is as full as the test says.
type cleanRig struct {
	*rig
	used   atomic.Value // float64
	pauses atomic.Int32
	disk   bool
}

func newCleanRig(t *testing.T, disk bool, change ...func(*store.Config)) *cleanRig {
	t.Helper()
	r := &cleanRig{disk: disk}
	r.used.Store(0.5)
	r.rig = newRig(t, disk, append([]func(*store.Config){func(c *store.Config) {
		c.Clock = paced{c.Clock.(*clock.Manual), &r.pauses}
		// Only the test's own runs: a clock that is moved by days passes four
		// o'clock on its way, and a run of the interval could meet it there.
		c.CleanInterval = 1000 * time.Hour
		c.DiskUsage = func(path string) (float64, error) {
			require.Contains(t, []string{filepath.Join(c.Dir, "commitlog"), filepath.Join(c.Dir, "consumequeue")}, path)
			return r.used.Load().(float64), nil
		}
	}}, change...)...)
	return r
}

// fill puts messages of 1 KiB into a queue until the log has n files, and
// returns how many those were.
func (r *cleanRig) fill(topic string, n int) int {
	r.t.Helper()
	puts := 0
	for ; r.Stats().LogFiles < n; puts++ {
		r.put(topic, 0, string(make([]byte, 1<<10)))
	}
	r.settle()
	r.touch()
	return puts
}

// touch sets the times of real files to the test's clock.
func (r *cleanRig) touch() {
	r.t.Helper()
	if !r.disk {
		return
	}
	list, err := filepath.Glob(filepath.Join(r.cfg.Dir, "commitlog", "*"))
	require.NoError(r.t, err)
	for _, path := range list {
		require.NoError(r.t, os.Chtimes(path, r.clock.Now(), r.clock.Now()))
	}
}

// clean is one run of the cleaner; it returns how many files are left.
func (r *cleanRig) clean() int {
	r.t.Helper()
	require.NoError(r.t, r.CleanNow(r.t.Context()))
	st := r.Stats()
	list, err := r.cfg.FS.ReadDir(filepath.Join(r.cfg.Dir, "commitlog"))
	require.NoError(r.t, err)
	require.GreaterOrEqual(r.t, len(list), st.LogFiles)
	require.Equal(r.t, mfile.FileName(st.MinPhy), list[0].Name, "what is not in the log is not on the disk")
	return st.LogFiles
}

// at moves the clock to an hour of the day, days later.
func (r *cleanRig) at(days, hour int) {
	now := r.clock.Now()
	r.clock.Advance(time.Date(now.Year(), now.Month(), now.Day()+days, hour, 30, 0, 0, time.UTC).Sub(now))
}

func onBoth(t *testing.T, f func(t *testing.T, disk bool)) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk=%v", disk), func(t *testing.T) { f(t, disk) })
	}
}

func TestExpiredFilesGoAtTheirHour(t *testing.T) {
	onBoth(t, func(t *testing.T, disk bool) {
		r := newCleanRig(t, disk)
		first := r.fill("T", 3)
		require.Equal(t, 3, r.clean())
		r.at(1, 4)
		require.Equal(t, 3, r.clean(), "not old enough")
		r.at(3, 3)
		require.Equal(t, 3, r.clean(), "not the hour")
		second := r.fill("T", 5) // two young ones
		if disk {
			for i, f := range []int64{0, 1, 2} {
				old := r.clock.Now().Add(-80 * time.Hour)
				path := filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName(f*r.cfg.CommitLogFileSize))
				require.NoError(t, os.Chtimes(path, old, old), i)
			}
		}
		r.at(0, 4)
		left := r.clean()
		require.LessOrEqual(t, left, 3, "the old ones go")
		require.GreaterOrEqual(t, left, 2, "the young ones stay")
		require.NoError(t, r.Close())
		r.open()
		bodies := r.bodies("T", 0, r.MinOffset("T", 0))
		require.EqualValues(t, first+second, r.MaxOffset("T", 0))
		require.Len(t, bodies, first+second-int(r.MinOffset("T", 0)))
	})
}

func TestDiskUsageDecidesWhatGoes(t *testing.T) {
	for _, c := range []struct {
		used     float64
		old      bool
		noForced bool
		removed  int
	}{
		{used: 0.75, old: true, removed: 0},
		{used: 0.76, old: true, removed: 3},
		{used: 0.76, old: true, noForced: true, removed: 3},
		{used: 0.85, old: false, removed: 0},
		{used: 0.86, old: false, removed: 3},
		{used: 0.99, old: false, noForced: true, removed: 0},
	} {
		t.Run(fmt.Sprintf("used=%v,old=%v,forced=%v", c.used, c.old, !c.noForced), func(t *testing.T) {
			r := newCleanRig(t, false, func(cfg *store.Config) { cfg.NoForcedClean = c.noForced })
			r.fill("T", 4)
			if c.old {
				r.at(4, 12)
			}
			r.used.Store(c.used)
			require.Equal(t, 4-c.removed, r.clean())
		})
	}
}

func TestFilesGoInBatchesWithPauses(t *testing.T) {
	r := newCleanRig(t, false)
	r.fill("T", 15)
	r.used.Store(0.87)
	before := r.clock.Now()
	require.Equal(t, 5, r.clean(), "ten a run")
	require.GreaterOrEqual(t, r.clock.Now().Sub(before), 9*pause)
	require.Equal(t, 1, r.clean())
	require.Equal(t, 1, r.clean(), "never the last")
	r.put("T", 0, "m")
	r.settle()
}

// Removing stops once there is room: age does not justify it then.
func TestForcedCleaningStopsWhenThereIsRoom(t *testing.T) {
	var r *cleanRig
	var open atomic.Bool
	r = newCleanRig(t, false, func(c *store.Config) {
		c.DiskUsage = func(string) (float64, error) {
			if !open.Load() {
				return 0, nil
			}
			list, err := c.FS.ReadDir(filepath.Join(c.Dir, "commitlog"))
			return float64(len(list)) / 10, err
		}
	})
	r.fill("T", 9)
	open.Store(true)
	left := r.clean()
	list, err := r.cfg.FS.ReadDir(filepath.Join(r.cfg.Dir, "commitlog"))
	require.NoError(t, err)
	require.Len(t, list, 8, "with the file that was made ahead, if there is one")
	require.LessOrEqual(t, left, 8)
}

func TestTriggeredRunsIgnoreTheHour(t *testing.T) {
	r := newCleanRig(t, false, func(c *store.Config) { c.DeleteBatch = 1 })
	r.fill("T", 4)
	r.at(4, 12)
	require.Equal(t, 4, r.clean())
	r.TriggerClean()
	require.LessOrEqual(t, r.clean(), 3) // after the triggered run, or instead of it
	require.LessOrEqual(t, r.clean(), 2)
	for range 20 {
		require.NoError(t, r.CleanNow(t.Context()))
	}
	r.fill("T", 3)
	r.at(4, 12)
	require.Equal(t, 3, r.clean(), "the extra runs are used up")
}

// TestC42_CleanedUpQueue: all of a queue has expired. Its minimum is its
// maximum, also after a restart, and goes on from there.
func TestC42_CleanedUpQueue(t *testing.T) {
	onBoth(t, func(t *testing.T, disk bool) {
		r := newCleanRig(t, disk)
		const n = 2020
		for i := range n {
			r.put("T", 0, fmt.Sprint(i))
		}
		r.put("T", 1, "alone")
		r.fill("U", r.Stats().LogFiles+2)
		require.Equal(t, 101, r.QueueFiles("T", 0))
		at := r.Stats().MaxPhy
		r.used.Store(0.88)
		for r.clean() > 1 {
		}
		require.Positive(t, r.Stats().MinPhy)
		require.Less(t, r.Stats().MinPhy, at)
		for range 2 { // queue files go a hundred at a time
			r.clock.Advance(time.Minute)
			r.clean()
		}
		r.used.Store(0.1)
		check := func() {
			t.Helper()
			require.EqualValues(t, n, r.MinOffset("T", 0))
			require.EqualValues(t, n, r.MaxOffset("T", 0))
			require.EqualValues(t, 1, r.MinOffset("T", 1))
			for _, from := range []int64{0, n - 1} {
				_, res := r.Get(nil, store.GetRequest{Topic: []byte("T"), Offset: from, MaxMsgs: 32})
				require.Equal(t, store.OffsetTooSmall, res.Status)
				require.EqualValues(t, n, res.NextOffset)
				require.EqualValues(t, n, res.MinOffset)
			}
			_, res := r.Get(nil, store.GetRequest{Topic: []byte("T"), Offset: n, MaxMsgs: 32})
			require.Equal(t, store.OffsetOverflowOne, res.Status)
			require.EqualValues(t, -1, r.EarliestStoreTime("T", 0))
			require.Equal(t, 1, r.QueueFiles("T", 0), "the newest file has the maximum")
		}
		check()
		r.reopen()
		check()
		r.kill()
		check()
		res := r.put("T", 0, "next")
		require.EqualValues(t, n, res.QueueOffset)
		r.settle()
		require.Equal(t, []string{"next"}, r.bodies("T", 0, n))
		require.EqualValues(t, n, r.MinOffset("T", 0))
	})
}

// Minima are looked for within a file, and queues without loss keep theirs.
func TestMinimumIsTheFirstRecordThatIsLeft(t *testing.T) {
	r := newCleanRig(t, false)
	r.fill("T", 4)
	r.put("Young", 0, "m")
	r.settle()
	r.used.Store(0.86)
	r.clean()
	first := r.MinOffset("T", 0)
	require.Positive(t, first)
	recs := r.records("T", 0, first)
	require.Equal(t, r.Stats().MinPhy, recs[0].PhyOffset, "the log's first record")
	require.Zero(t, r.MinOffset("Young", 0))
	_, res := r.Get(nil, store.GetRequest{Topic: []byte("T"), Offset: first - 1, MaxMsgs: 1})
	require.Equal(t, store.OffsetTooSmall, res.Status)
	require.Equal(t, first, res.NextOffset)
}

// Whoever reads a file that is removed finishes in peace; then it is unmapped.
func TestReadersKeepAFileThatIsRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, disk bool) {
		r := newCleanRig(t, disk)
		r.fill("T", 3)
		f := r.HoldLogFile(0)
		want := string(f.Data())
		r.used.Store(0.86)
		require.Equal(t, 1, r.clean())
		require.Equal(t, want, string(f.Data()))
		var rec wire.Record
		_, err := wire.DecodeRecord(f.Data(), &rec)
		require.NoError(t, err)
		require.Nil(t, r.HoldLogFile(0), "for those who come now it is gone")
		if o, ok := r.cfg.FS.(*mfile.OSFiles); ok {
			before := o.Mapped()
			f.Release()
			require.Equal(t, before-1, o.Mapped())
			return
		}
		f.Release()
	})
}

// A file that cannot be removed is waited for: the next one may not go before
// it, or a restart would find a hole.
func TestFileThatCannotBeRemoved(t *testing.T) {
	fs := mfile.NewCrash()
	r := newCleanRig(t, false, func(c *store.Config) { c.FS = fs })
	r.fill("T", 5)
	stuck := filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName(0))
	var tries atomic.Int32
	fs.SetFault(func(op mfile.CrashOp) error {
		if op.Kind == "remove" && op.Path == stuck {
			tries.Add(1)
			return errors.New("in use")
		}
		return nil
	})
	r.used.Store(0.86)
	run := func() int {
		t.Helper()
		require.NoError(t, r.CleanNow(t.Context()))
		return r.Stats().LogFiles
	}
	require.Equal(t, 4, run())
	require.Nil(t, r.HoldLogFile(0))
	before := tries.Load()
	require.Equal(t, 4, run())
	require.Equal(t, before, tries.Load(), "not all the time")
	r.clock.Advance(120 * time.Second)
	require.Equal(t, 4, run())
	require.Greater(t, tries.Load(), before)

	r.used.Store(0.1)
	r.reopen() // the file is still part of the log
	require.Zero(t, r.Stats().MinPhy)
	require.Equal(t, 5, r.Stats().LogFiles)
	r.used.Store(0.86)
	require.Equal(t, 4, run())
	fs.SetFault(nil)
	require.Equal(t, 4, run())
	r.clock.Advance(120 * time.Second)
	require.Equal(t, 1, run())
}

// Files leave one after another for good, and not before queues have flushed
// what they know of them: at whatever operation the power fails, the store
// opens and continues its queues.
func TestPowerLossWhileCleaning(t *testing.T) {
	for k := 1; cleanUntil(t, k); k++ {
		require.Less(t, k, 1000)
	}
}

// cleanUntil lets the power fail at the k-th operation of a cleaner's run. It
// is false if the run had fewer.
func cleanUntil(t *testing.T, k int) bool {
	fs := mfile.NewCrash()
	r := newCleanRig(t, false, func(c *store.Config) { c.FS = fs })
	for range 3 {
		r.put("Old", 0, "m")
	}
	n := r.fill("T", 5)
	require.NoError(t, r.FlushLog()) // but no queue
	begin := fs.Ops()
	fs.SetFault(func(op mfile.CrashOp) error {
		if op.N-begin >= k {
			return errors.New("the power is gone")
		}
		return nil
	})
	r.used.Store(0.86)
	require.NoError(t, r.CleanNow(t.Context()))
	r.Abandon()
	cut := fs.Ops()-begin >= k
	fs.SetFault(nil)
	r.used.Store(0.1)
	for seed := range uint64(8) {
		r.cfg.FS = fs.PowerLoss(seed)
		r.open()
		at := fmt.Sprintf("operation %d, seed %d", k, seed)
		require.EqualValues(t, n, r.MaxOffset("T", 0), at)
		require.EqualValues(t, 3, r.MaxOffset("Old", 0), at)
		res := r.put("T", 0, "next")
		require.EqualValues(t, n, res.QueueOffset, at)
		r.settle()
		require.Len(t, r.bodies("T", 0, r.MinOffset("T", 0)), n+1-int(r.MinOffset("T", 0)), at)
		require.NoError(t, r.Close())
	}
	return cut
}

// Under load: whoever reads from the minimum on gets every record that is left,
// in order, and is told where to go on when the ground is taken away.
func TestReadersWhileCleaning(t *testing.T) {
	onBoth(t, func(t *testing.T, disk bool) {
		r := newCleanRig(t, disk)
		r.used.Store(0.86)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 2)
		go func() { // cleans all the time
			for ctx.Err() == nil {
				if err := r.CleanNow(ctx); err != nil && ctx.Err() == nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		var jumps, seen atomic.Int64
		go func() {
			at := int64(0)
			var buf []byte
			for ctx.Err() == nil {
				var res store.GetResult
				buf, res = r.Get(buf[:0], store.GetRequest{Topic: []byte("T"), Offset: at, MaxMsgs: 4})
				if res.Status == store.OffsetOverflowBadly || res.NextOffset < at {
					ended <- fmt.Errorf("from %d to %d: %v", at, res.NextOffset, res.Status)
					return
				}
				it := wire.Records(buf)
				for n := res.NextOffset - int64(res.Count); ; n++ {
					var rec wire.Record
					ok, err := it.Next(&rec)
					if err != nil || ok && (rec.QueueOffset < n || string(rec.Body[:1]) != "m") {
						ended <- fmt.Errorf("offset %d of %d: %w", rec.QueueOffset, n, err)
						return
					}
					if !ok {
						break
					}
					seen.Add(1)
				}
				if res.Status == store.OffsetTooSmall || res.Status == store.MessageWasRemoving {
					jumps.Add(1)
				}
				at = res.NextOffset
			}
			ended <- nil
		}()
		for i := range 1500 {
			r.put("T", 0, fmt.Sprintf("m%d%s", i, make([]byte, 500)))
		}
		r.settle()
		require.NoError(t, r.CleanNow(t.Context()))
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		require.Positive(t, seen.Load())
		require.EqualValues(t, 1500, r.MaxOffset("T", 0))
		r.used.Store(0.1)
		r.reopen()
		require.Len(t, r.bodies("T", 0, r.MinOffset("T", 0)), 1500-int(r.MinOffset("T", 0)))
	})
}

func TestDropEmptyQueues(t *testing.T) {
	r := newCleanRig(t, false)
	r.put("Gone", 0, "m")
	r.put("Gone", 1, "m")
	r.put("Kept", 0, "m")
	r.fill("U", 3)
	r.put("Gone", 1, "young")
	r.settle()
	unused := func(topic string, _ int32) bool { return topic == "Gone" || topic == "U" }
	n, err := r.DropEmptyQueues(t.Context(), unused)
	require.NoError(t, err)
	require.Zero(t, n, "all have messages")
	r.used.Store(0.86)
	require.Equal(t, 1, r.clean())
	n, err = r.DropEmptyQueues(t.Context(), unused)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []int32{1}, r.Queues("Gone"))
	require.Equal(t, []int32{0}, r.Queues("Kept"), "empty, but somebody uses it")
	require.Equal(t, []int32{0}, r.Queues("U"))
	require.Zero(t, r.put("Gone", 0, "again").QueueOffset)
	require.EqualValues(t, 2, r.put("Gone", 1, "again").QueueOffset)
	r.used.Store(0.1)
	r.kill()
	require.Equal(t, []string{"again"}, r.bodies("Gone", 0, 0))
	require.Equal(t, []string{"young", "again"}, r.bodies("Gone", 1, 1))
}

// The index forgets what is no longer in the log, but for its newest file.
func TestIndexFilesGoWithTheirRecords(t *testing.T) {
	onBoth(t, func(t *testing.T, disk bool) {
		r := newCleanRig(t, disk, func(c *store.Config) { c.IndexSlots, c.IndexEntries = 10, 21 })
		files := func() int {
			list, err := r.cfg.FS.ReadDir(filepath.Join(r.cfg.Dir, "index"))
			require.NoError(t, err)
			return len(list)
		}
		for i := range 60 {
			r.put("Keys", 0, "m", "KEYS", fmt.Sprint("key", i))
		}
		r.fill("T", 4)
		require.NoError(t, r.WaitIndexed(t.Context()))
		before := files()
		require.GreaterOrEqual(t, before, 3)
		r.used.Store(0.86)
		require.Equal(t, 1, r.clean())
		require.Less(t, files(), before)
		require.Positive(t, files())
		r.used.Store(0.1)
		r.reopen()
		r.put("Keys", 0, "m", "KEYS", "key")
		require.NoError(t, r.WaitIndexed(t.Context()))
	})
}
