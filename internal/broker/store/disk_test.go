package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
)

// usage is a disk whose usage a test sets.
type usage struct {
	mu   sync.Mutex // guards both
	used map[string]float64
	err  error
}

func (u *usage) of(path string) (float64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used[filepath.Base(path)], u.err
}

func (u *usage) set(dir string, used float64, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used, u.err = map[string]float64{dir: used}, err
}

// TestC62_FullDisk: messages are refused while a disk is too full, with all
// that an operator wants to know, reading goes on, and messages are accepted
// again by themselves within 10 s. No offset is left out.
func TestC62_FullDisk(t *testing.T) {
	for _, dir := range []string{"commitlog", "consumequeue"} {
		t.Run(dir, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &usage{}
				r := newRig(t, false, func(c *store.Config) {
					c.Clock, c.DiskUsage, c.NoForcedClean = clock.Real(), u.of, true
				})
				r.put("T", 0, "before")
				u.set(dir, 0.9, nil)
				time.Sleep(10 * time.Second)
				r.put("T", 0, "at the limit")
				u.set(dir, 0.91, nil)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				for range 3 {
					res, pending := r.Put(message("T", 0, "refused"), nil)
					require.False(t, pending)
					require.Equal(t, store.ServiceNotAvailable, res.Status)
					var full *store.DiskFullError
					require.ErrorAs(t, res.Err, &full)
					require.Equal(t, store.DiskFullError{Path: filepath.Join("store", dir), Used: 0.91, Limit: 0.9}, *full)
					require.EqualError(t, full, "store: the disk of "+filepath.Join("store", dir)+
						" is 91% full, messages are refused above 90%; free some space, or raise diskSpaceWarningLevelRatio")
					res, _ = r.PutBatch(message("T", 0, ""), nil, nil)
					require.Equal(t, store.ServiceNotAvailable, res.Status)
				}
				require.Equal(t, []string{"before", "at the limit"}, r.bodies("T", 0, 0))
				require.Equal(t, 0.91, max(r.Stats().LogDiskUsed, r.Stats().QueueDiskUsed))

				u.set(dir, 0, errors.New("nobody knows"))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				res, _ := r.Put(message("T", 0, "refused"), nil)
				require.Equal(t, store.ServiceNotAvailable, res.Status, "what is not known has not changed")

				u.set(dir, 0.2, nil)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.EqualValues(t, 2, r.put("T", 0, "after").QueueOffset)
				r.settle()
				require.Equal(t, []string{"before", "at the limit", "after"}, r.bodies("T", 0, 0))
				require.NoError(t, r.Close())
			})
		})
	}
}

// A store whose disk is full opens, serves, and refuses from the first message on.
func TestC62_OpenOnAFullDisk(t *testing.T) {
	r := newCleanRig(t, true)
	r.put("T", 0, "m")
	require.NoError(t, r.Close())
	r.used.Store(0.97)
	r.open()
	res, _ := r.Put(message("T", 0, "refused"), nil)
	var full *store.DiskFullError
	require.ErrorAs(t, res.Err, &full)
	require.Equal(t, []string{"m"}, r.bodies("T", 0, 0))
	r.used.Store(0.5)
	require.NoError(t, r.CheckDisk(t.Context()))
	require.EqualValues(t, 1, r.put("T", 0, "m").QueueOffset)
	require.NoError(t, r.Close())
	require.Error(t, r.CheckDisk(t.Context()), "closed")
}

// TestC62_GuardOff: 100 is above every usage.
func TestC62_GuardOff(t *testing.T) {
	r := newCleanRig(t, false, func(c *store.Config) { c.DiskMaxPercent, c.DiskCleanPercent, c.DiskFullPercent = 100, 100, 100 })
	r.fill("T", 3)
	r.at(10, 12)
	r.used.Store(1.0)
	require.Equal(t, 3, r.clean())
	r.put("T", 0, "m")
}

// narrow is a file system in which files of some directory cannot be made.
type narrow struct {
	mfile.FS
	mu   sync.Mutex // guards full
	full string     // part of the path of what cannot be made; "" for nothing
}

func (n *narrow) fill(part string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.full = part
}

func (n *narrow) Create(path string, size int64, reserve bool) (*mfile.File, error) {
	n.mu.Lock()
	full := n.full
	n.mu.Unlock()
	if full != "" && strings.Contains(path, full) {
		return nil, fmt.Errorf("create %s: %w", path, syscall.ENOSPC)
	}
	return n.FS.Create(path, size, reserve)
}

// TestC62_NoRoomForTheNextLogFile: the disk is full in the middle of an append.
func TestC62_NoRoomForTheNextLogFile(t *testing.T) {
	onBoth(t, func(t *testing.T, disk bool) {
		fs := &narrow{}
		r := newCleanRig(t, disk, func(c *store.Config) { fs.FS, c.FS = c.FS, fs })
		r.put("T", 0, "0")
		fs.fill("commitlog")
		var want []string
		failed := 0
		for i := 1; failed < 3; i++ {
			body := fmt.Sprintf("%d%s", i, make([]byte, 500))
			res, _ := r.Put(message("T", 0, body), nil)
			if res.Err == nil {
				want = append(want, body)
				require.EqualValues(t, len(want), res.QueueOffset)
				require.Zero(t, failed, "once there is no room there is none for the same size")
				continue
			}
			failed++
			require.Equal(t, store.CreateMappedFileFailed, res.Status)
			require.ErrorIs(t, res.Err, syscall.ENOSPC)
			var bad *mfile.IOError
			require.ErrorAs(t, res.Err, &bad)
			require.True(t, strings.HasPrefix(bad.Path, filepath.Join(r.cfg.Dir, "commitlog")), bad.Path)
			require.Contains(t, res.Err.Error(), "at log position")
		}
		small := r.put("T", 0, "small") // there is room for this one
		require.EqualValues(t, len(want)+1, small.QueueOffset)
		want = append(want, "small")
		fs.fill("")
		require.EqualValues(t, len(want)+1, r.put("T", 0, string(make([]byte, 500))).QueueOffset)
		r.settle()
		require.Equal(t, want, r.bodies("T", 0, 1)[:len(want)])
		r.kill()
		require.Equal(t, want, r.bodies("T", 0, 1)[:len(want)])
		require.EqualValues(t, len(want)+2, r.MaxOffset("T", 0))
	})
}

// TestC62_NoRoomForQueues: records wait for their queues, and in the log, where
// no cleaning may take them away. Nothing is lost once there is room.
func TestC62_NoRoomForQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &narrow{FS: mfile.NewMemory()}
		u := &usage{}
		r := newRig(t, false, func(c *store.Config) { c.Clock, c.DiskUsage, c.FS = clock.Real(), u.of, fs })
		r.put("T", 0, "0")
		r.settle()
		fs.fill("consumequeue")
		want := []string{"0"}
		for r.Stats().LogFiles < 4 {
			want = append(want, fmt.Sprintf("%d%s", len(want), make([]byte, 900)))
			r.put("T", 0, want[len(want)-1])
		}
		for range 20 {
			want = append(want, fmt.Sprint(len(want)))
			r.put("T", 0, want[len(want)-1])
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		res, _ := r.Put(message("T", 0, "refused"), nil)
		require.Equal(t, store.ServiceNotAvailable, res.Status)
		require.ErrorIs(t, res.Err, syscall.ENOSPC)
		var bad *mfile.IOError
		require.ErrorAs(t, res.Err, &bad)
		require.Contains(t, bad.Path, filepath.Join("consumequeue", "T", "0"))

		u.set("commitlog", 0.88, nil) // forced cleaning
		time.Sleep(time.Minute)
		synctest.Wait()
		have := r.bodies("T", 0, r.MinOffset("T", 0))
		require.Len(t, have, 20-int(r.MinOffset("T", 0)), "one queue file")
		u.set("commitlog", 0.5, nil)
		fs.fill("")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.EqualValues(t, len(want), r.put("T", 0, "after").QueueOffset)
		r.settle()
		first := r.MinOffset("T", 0)
		require.LessOrEqual(t, first, int64(20), "what was not in a queue was not removed")
		require.Equal(t, append(want, "after")[first:], r.bodies("T", 0, first))
		require.NoError(t, r.Close())
	})
}

// sized is a file system that says how large it is.
type sized struct {
	mfile.FS
	total, available int64
	err              error
}

func (s *sized) Usage(dir string) (total, available int64, err error) {
	if filepath.Base(dir) != "store" { // the directories below are made later
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: fs.ErrNotExist}
	}
	return s.total, s.available, s.err
}

// Usage is asked of the file system and rounded up to whole percent, as
// Apache does.
func TestUsageOfAFileSystem(t *testing.T) {
	for _, c := range []struct {
		total, available int64
		want             float64
	}{{0, 0, 0}, {1000, 1000, 0}, {1000, 100, 0.9}, {1000, 99, 0.91}, {1000, 0, 1}} {
		r := newRig(t, false, func(cfg *store.Config) {
			cfg.FS, cfg.DiskUsage = &sized{FS: cfg.FS, total: c.total, available: c.available}, nil
		})
		st := r.Stats()
		require.Equal(t, c.want, st.LogDiskUsed)
		require.Equal(t, c.want, st.QueueDiskUsed)
		res, _ := r.Put(message("T", 0, "m"), nil)
		require.Equal(t, c.want <= 0.9, res.Err == nil, "%v", res.Err)
	}
	r := newRig(t, true, func(cfg *store.Config) { cfg.DiskUsage = nil })
	require.InDelta(t, 0.5, r.Stats().LogDiskUsed, 0.5)
}
