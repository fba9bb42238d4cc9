package store_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// A store of 1,000 messages whose last one is cut off at each of its bytes, or
// followed by anything but a record: it opens, has the 999 others, and nothing
// of the last one in its queue or its index; the next message takes its place.
func TestC60_CutAtEveryByte(t *testing.T) {
	t.Parallel()
	const n = 1000
	disk := mfile.NewCrash()
	cfg := store.Config{
		Dir: "store", FS: disk, Clock: clock.NewManual(start), CommitLogFileSize: 64 << 10, ConsumeQueueFileSize: 300 * 20,
		IndexSlots: 100, IndexEntries: 3000,
	}
	s, err := store.Open(cfg)
	require.NoError(t, err)
	var last store.PutResult
	bodies := numbered("message", n)
	for i, body := range bodies {
		last, _ = s.Put(message("T", 0, body, wire.PropKeys, fmt.Sprintf("key-%d", i)), nil)
		require.NoError(t, last.Err)
	}
	require.NoError(t, s.Close())

	segment := last.PhyOffset / cfg.CommitLogFileSize * cfg.CommitLogFileSize
	path := filepath.Join(cfg.Dir, "commitlog", mfile.FileName(segment))
	at, end := last.PhyOffset-segment, last.End-segment
	// All of it is on the disk: losing power changes nothing, and gives a copy.
	reopened := func(t *testing.T, seed int64, crashed bool, change func(b []byte)) *rig {
		c := disk.PowerLoss(uint64(seed))
		b, err := c.ReadFile(path)
		require.NoError(t, err)
		change(b)
		require.NoError(t, c.WriteFile(path, b))
		if crashed {
			require.NoError(t, c.WriteFile(filepath.Join(cfg.Dir, "abort"), nil))
		}
		r := &rig{t: t, cfg: cfg, clock: clock.NewManual(start)}
		r.cfg.FS = c
		r.open()
		t.Cleanup(func() { r.Abandon() })
		return r
	}
	has := func(r *rig, want []string) {
		t.Helper()
		r.settle()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, r.WaitIndexed(ctx))
		require.Equal(t, int64(len(want)), r.MaxOffset("T", 0))
		require.Equal(t, want, r.bodies("T", 0, 0))
	}
	key := func(r *rig, i int) int {
		_, res := r.Query(nil, store.QueryRequest{Topic: []byte("T"), Key: fmt.Appendf(nil, "key-%d", i), End: math.MaxInt64, Max: 32})
		return res.Count
	}
	for _, crashed := range []bool{false, true} {
		for cut := at; cut < end; cut++ {
			r := reopened(t, cut, crashed, func(b []byte) { clear(b[cut:]) })
			has(r, bodies[:n-1])
			require.Equal(t, 1, key(r, n-2))
			require.Zero(t, key(r, n-1), "cut at %d", cut-at)
			if (cut-at)%16 == 0 {
				res := r.put("T", 0, "next")
				require.Equal(t, last.PhyOffset, res.PhyOffset)
				require.Equal(t, last.QueueOffset, res.QueueOffset)
				r.kill()
				has(r, append(slices.Clone(bodies[:n-1]), "next"))
			}
			r.Abandon()
		}
		for _, fill := range []byte{0x01, 0x7f, 0xff} {
			r := reopened(t, int64(fill), crashed, func(b []byte) {
				for i := range b[end:] {
					b[end+int64(i)] = fill
				}
			})
			has(r, bodies)
			require.Equal(t, last.End, r.put("T", 0, "next").PhyOffset)
			r.kill()
			has(r, append(slices.Clone(bodies), "next"))
			r.Abandon()
		}
	}
}

// A page in the middle of long properties did not get to the disk, but what is
// around it did. Nothing in the record but the hole itself shows it.
func TestC60_HoleInProperties(t *testing.T) {
	for _, sectors := range []int{1, 2, 8} {
		r := newRig(t, false)
		r.put("T", 0, "first")
		res := r.put("T", 0, "second", "long", string(slices.Repeat([]byte{'v'}, 6000)))
		r.put("T", 0, "third")
		r.Abandon()
		path := filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName(0))
		b, err := r.cfg.FS.ReadFile(path)
		require.NoError(t, err)
		from := (res.PhyOffset + 600) / 512 * 512
		clear(b[from:][:sectors*512])
		require.NoError(t, r.cfg.FS.WriteFile(path, b))
		r.open()
		require.Equal(t, []string{"first"}, r.bodies("T", 0, 0))
		require.Equal(t, res.PhyOffset, r.put("T", 0, "next").PhyOffset)
		r.kill()
		require.Equal(t, []string{"first", "next"}, r.bodies("T", 0, 0))
	}
}

// A topic whose records are the last of the log stays deleted, with whatever
// end and however often; a new one of its name keeps what it gets.
func TestDeletedTopicStaysDeleted(t *testing.T) {
	for name, restart := range map[string]func(*rig){"close": (*rig).reopen, "kill": (*rig).kill} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false)
			r.put("kept", 0, "1")
			r.put("T", 0, "a")
			r.put("T", 1, "b")
			require.NoError(t, r.DeleteTopic(context.Background(), "T"))
			for range 2 {
				restart(r)
				require.Equal(t, []string{"kept"}, r.Topics())
			}
			require.Zero(t, r.put("T", 1, "again").QueueOffset)
			for range 2 {
				restart(r)
				require.Equal(t, []string{"again"}, r.bodies("T", 1, 0))
				require.Empty(t, r.bodies("T", 0, 0))
			}
			path := filepath.Join(r.cfg.Dir, "deletedTopics")
			b, err := r.cfg.FS.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			for i := range b {
				damaged := slices.Clone(b)
				damaged[i] ^= 0x40
				require.NoError(t, r.cfg.FS.WriteFile(path, damaged))
				_, err = store.Open(r.cfg)
				var bad *mfile.FormatError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, path, bad.Path)
			}
		})
	}
}
