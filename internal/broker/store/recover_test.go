package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// fill puts n messages into several topics and queues, over several files,
// and returns what each queue ("topic/queue") must have.
func (r *rig) fill(n int, want map[string][]string) {
	r.t.Helper()
	for i := range n {
		topic, queue := fmt.Sprintf("T%d", i%3), int32(i%4)
		body := fmt.Sprintf("%d-%s", i, strings.Repeat("x", i%700))
		r.put(topic, queue, body)
		k := fmt.Sprintf("%s/%d", topic, queue)
		want[k] = append(want[k], body)
	}
}

func (r *rig) has(want map[string][]string) {
	r.t.Helper()
	topics := map[string]bool{}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		topic, queue := splitQueue(r.t, k)
		topics[topic] = true
		require.Equal(r.t, want[k], r.bodies(topic, queue, 0), k)
		require.Equal(r.t, int64(len(want[k])), r.MaxOffset(topic, queue))
		require.Contains(r.t, r.Queues(topic), queue)
	}
	require.Equal(r.t, slices.Sorted(maps.Keys(topics)), r.Topics())
}

func TestRestarts(t *testing.T) {
	for _, disk := range []bool{false, true} {
		for name, restart := range map[string]func(*rig){
			"close": (*rig).reopen,
			"kill":  (*rig).kill,
			"flush and kill": func(r *rig) {
				require.NoError(r.t, r.FlushNow())
				r.kill()
			},
		} {
			t.Run(fmt.Sprintf("disk=%v/%s", disk, name), func(t *testing.T) {
				r := newRig(t, disk)
				want := map[string][]string{}
				for range 4 {
					r.fill(60, want)
					restart(r)
					r.has(want)
				}
				require.Greater(t, r.Stats().LogFiles, 3)
				restart(r)
				r.has(want)
			})
		}
	}
}

// Consume queues are a picture of the log: without them, or with some of
// their files lost, they are made anew.
func TestQueuesAreRebuiltFromTheLog(t *testing.T) {
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprintf("clean=%v", clean), func(t *testing.T) {
			r := newRig(t, false)
			want := map[string][]string{}
			r.fill(100, want)
			if clean {
				require.NoError(t, r.Close())
			} else {
				r.Abandon()
			}
			require.NoError(t, r.cfg.FS.RemoveAll(filepath.Join(r.cfg.Dir, "consumequeue")))
			r.open()
			r.has(want)
		})
	}
}

func TestLogIsLost(t *testing.T) {
	r := newRig(t, false)
	r.fill(100, map[string][]string{})
	require.NoError(t, r.Close())
	require.NoError(t, r.cfg.FS.RemoveAll(filepath.Join(r.cfg.Dir, "commitlog")))
	r.open()
	require.Empty(t, r.bodies("T0", 0, 0))
	require.Zero(t, r.put("T0", 0, "new").QueueOffset)
	r.settle()
	require.Equal(t, []string{"new"}, r.bodies("T0", 0, 0))
}

// damage changes the newest commit log file of a store that is not open. at
// is where the last record begins in it, end where it ends.
func damaged(t *testing.T, change func(b []byte, at, end int64)) *rig {
	t.Helper()
	r := newRig(t, false)
	for _, body := range numbered("m", 9) {
		r.put("T", 0, body)
	}
	last := r.put("T", 0, "the last one")
	r.settle()
	r.Abandon()
	path := filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName(0))
	b, err := r.cfg.FS.ReadFile(path)
	require.NoError(t, err)
	change(b, last.PhyOffset, last.End)
	require.NoError(t, r.cfg.FS.WriteFile(path, b))
	r.open()
	return r
}

// TestC60_TornTail cuts the log at every byte of its last record.
func TestC60_TornTail(t *testing.T) {
	want := numbered("m", 9)
	goesOn := func(t *testing.T, r *rig) {
		t.Helper()
		require.Equal(t, want, r.bodies("T", 0, 0))
		require.Equal(t, int64(9), r.put("T", 0, "next").QueueOffset)
		r.settle()
		require.Equal(t, append(slices.Clone(want), "next"), r.bodies("T", 0, 0))
		r.kill()
		require.Equal(t, append(slices.Clone(want), "next"), r.bodies("T", 0, 0))
	}
	// Properties are empty: the zeros of an empty file complete the record
	// when only the two bytes of their length are missing.
	for cut := range int64(92 + 12 - 2) {
		r := damaged(t, func(b []byte, at, _ int64) { clear(b[at+cut:]) })
		goesOn(t, r)
	}
	for name, change := range map[string]func(b []byte, at, end int64){
		"body byte":       func(b []byte, _, end int64) { b[end-10]++ },
		"body length":     func(b []byte, at, _ int64) { b[at+87]++ },
		"topic length":    func(b []byte, _, end int64) { b[end-4]++ },
		"total size":      func(b []byte, at, _ int64) { b[at+3]++ },
		"huge size":       func(b []byte, at, _ int64) { b[at] = 0x7f },
		"negative size":   func(b []byte, at, _ int64) { b[at] = 0xff },
		"magic":           func(b []byte, at, _ int64) { b[at+4]++ },
		"physical offset": func(b []byte, at, _ int64) { b[at+35]++ },
		"checksum of 0":   func(b []byte, at, _ int64) { clear(b[at+8 : at+12]) },
		"blank, wrong length": func(b []byte, at, _ int64) {
			clear(b[at:])
			wire.AppendBlank(b[at:at], 100)
		},
	} {
		t.Run(name, func(t *testing.T) { goesOn(t, damaged(t, change)) })
	}
}

// The checksum covers the body alone. A record whose properties did not get to
// the disk must not be served without them.
func TestC60_TornProperties(t *testing.T) {
	for cut := int64(1); cut < 20; cut++ {
		r := newRig(t, false)
		r.put("T", 0, "first", "k", "v")
		res := r.put("T", 0, "second", "key", "a longer value of it")
		r.Abandon()
		path := filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName(0))
		b, err := r.cfg.FS.ReadFile(path)
		require.NoError(t, err)
		clear(b[res.End-cut:])
		require.NoError(t, r.cfg.FS.WriteFile(path, b))
		r.open()
		require.Equal(t, []string{"first"}, r.bodies("T", 0, 0))
		require.Equal(t, res.PhyOffset, r.put("T", 0, "second").PhyOffset)
	}
}

func TestC60_GarbageBehindTheLog(t *testing.T) {
	want := append(numbered("m", 9), "the last one")
	for name, change := range map[string]func(b []byte, at, end int64){
		"text":       func(b []byte, _, end int64) { copy(b[end:], strings.Repeat("garbage ", 100)) },
		"ones":       func(b []byte, _, end int64) { copy(b[end:], strings.Repeat("\xff", 1000)) },
		"old record": func(b []byte, at, end int64) { copy(b[end:], b[at:end]) },
	} {
		t.Run(name, func(t *testing.T) {
			r := damaged(t, change)
			require.Equal(t, want, r.bodies("T", 0, 0))
			r.put("T", 0, "next")
			r.kill()
			require.Equal(t, append(slices.Clone(want), "next"), r.bodies("T", 0, 0))
		})
	}
}

// A body whose checksum happens to be 0 is as good as any other.
func TestC60_ZeroChecksum(t *testing.T) {
	body := "\x9d\x0a\xd9\x6d" // CRC-32 of these four bytes is 0
	require.Zero(t, wire.BodyCRC([]byte(body)))
	r := newRig(t, false)
	r.put("T", 0, body)
	r.kill()
	require.Equal(t, []string{body}, r.bodies("T", 0, 0))
}

func TestC60_ZeroLengthNewestFile(t *testing.T) {
	for _, clean := range []bool{true, false} {
		r := newRig(t, false)
		want := map[string][]string{}
		r.fill(100, want)
		n := int64(r.Stats().LogFiles)
		if clean {
			require.NoError(t, r.Close())
		} else {
			r.Abandon()
		}
		require.NoError(t, r.cfg.FS.WriteFile(filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName((n+1)*8<<10)), nil))
		r.open()
		r.has(want)
	}
}

// Bytes behind a cut must not come back to life when the log grows to just
// before them.
func TestCutRecordsStayGone(t *testing.T) {
	r := newRig(t, false)
	var at []int64
	for _, body := range numbered("m", 10) {
		at = append(at, r.put("T", 0, body).PhyOffset)
	}
	r.Abandon()
	path := filepath.Join(r.cfg.Dir, "commitlog", mfile.FileName(0))
	b, err := r.cfg.FS.ReadFile(path)
	require.NoError(t, err)
	b[at[5]+4]++ // the magic of the sixth
	require.NoError(t, r.cfg.FS.WriteFile(path, b))
	r.open()
	require.Equal(t, numbered("m", 5), r.bodies("T", 0, 0))
	require.Equal(t, at[5], r.put("T", 0, "m-X").PhyOffset) // as long as the sixth
	r.kill()
	require.Equal(t, append(numbered("m", 5), "m-X"), r.bodies("T", 0, 0))
}

func TestAbortFileAndCheckpoint(t *testing.T) {
	r := newRig(t, true)
	abort := filepath.Join(r.cfg.Dir, "abort")
	b, err := r.cfg.FS.ReadFile(abort)
	require.NoError(t, err)
	require.NotEmpty(t, b)
	r.fill(100, map[string][]string{})
	end := r.Stats().MaxPhy
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "twice is no error")
	_, err = r.cfg.FS.ReadFile(abort)
	require.ErrorIs(t, err, fs.ErrNotExist)
	b, err = r.cfg.FS.ReadFile(filepath.Join(r.cfg.Dir, "checkpoint"))
	require.NoError(t, err)
	require.Len(t, b, 4096)
	newest := uint64(start.UnixMilli()) + 99
	require.Equal(t, []uint64{newest, newest, 0, 0, 0}, be64s(b[:40]))
	list, err := r.cfg.FS.ReadDir(filepath.Join(r.cfg.Dir, "commitlog"))
	require.NoError(t, err)
	require.Len(t, list, int(end/(8<<10))+1, "no file is left that was made ahead")

	r.open()
	r.Abandon()
	r.Abandon()
	require.NoError(t, r.Close(), "nothing left to close")
	_, err = r.cfg.FS.ReadFile(abort)
	require.NoError(t, err, "a killed store leaves its abort file")
}

func be64s(b []byte) (out []uint64) {
	for ; len(b) >= 8; b = b[8:] {
		v := uint64(0)
		for _, c := range b[:8] {
			v = v<<8 | uint64(c)
		}
		out = append(out, v)
	}
	return out
}

// A broken checkpoint only makes recovery longer.
func TestCheckpointOfWrongSize(t *testing.T) {
	for _, n := range []int{0, 10, 5000} {
		r := newRig(t, false)
		want := map[string][]string{}
		r.fill(50, want)
		r.Abandon()
		require.NoError(t, r.cfg.FS.WriteFile(filepath.Join(r.cfg.Dir, "checkpoint"), make([]byte, n)))
		r.open()
		r.has(want)
	}
}

func TestOpenRefuses(t *testing.T) {
	_, err := store.Open(store.Config{})
	require.ErrorContains(t, err, "Config.Dir")

	r := newRig(t, true)
	_, err = store.Open(r.cfg)
	require.ErrorIs(t, err, mfile.ErrLocked)
	r.fill(100, map[string][]string{})
	require.NoError(t, r.Close())

	var bad *mfile.FormatError
	for name, change := range map[string]func(*store.Config){
		"log file size":           func(c *store.Config) { c.CommitLogFileSize = 16 << 10 },
		"consume queue file size": func(c *store.Config) { c.ConsumeQueueFileSize = 800 },
	} {
		c := r.cfg
		change(&c)
		_, err = store.Open(c)
		require.ErrorAs(t, err, &bad, name)
		require.Contains(t, err.Error(), r.cfg.Dir)
	}
	_, err = store.Open(store.Config{Dir: r.cfg.Dir, CommitLogFileSize: 100})
	require.ErrorContains(t, err, "at least")

	// Nothing has changed: no abort file, all there.
	_, err = r.cfg.FS.ReadFile(filepath.Join(r.cfg.Dir, "abort"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	foreign := filepath.Join(r.cfg.Dir, "commitlog", "notes.txt")
	require.NoError(t, r.cfg.FS.WriteFile(foreign, []byte("x")))
	_, err = store.Open(r.cfg)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, foreign, bad.Path)
	require.NoError(t, r.cfg.FS.Remove(foreign))
	r.open()
}

// unreadable is a file system with one path that cannot be used.
type unreadable struct {
	*mfile.Memory
	path string
}

var errBroken = errors.New("input/output error")

func (u unreadable) ReadDir(dir string) ([]mfile.Entry, error) {
	if dir == u.path {
		return nil, errBroken
	}
	return u.Memory.ReadDir(dir)
}

func (u unreadable) ReadFile(path string) ([]byte, error) {
	if path == u.path {
		return nil, errBroken
	}
	return u.Memory.ReadFile(path)
}

func (u unreadable) WriteFile(path string, b []byte) error {
	if path == u.path {
		return errBroken
	}
	return u.Memory.WriteFile(path, b)
}

func TestOpenReportsWhatFails(t *testing.T) {
	r := newRig(t, false)
	r.fill(20, map[string][]string{})
	require.NoError(t, r.Close())
	for _, path := range []string{"commitlog", "consumequeue", filepath.Join("consumequeue", "T1"), filepath.Join("consumequeue", "T1", "1"), "abort"} {
		c := r.cfg
		c.FS = unreadable{r.cfg.FS.(*mfile.Memory), filepath.Join(r.cfg.Dir, path)}
		_, err := store.Open(c)
		require.ErrorIs(t, err, errBroken, path)
	}
	r.open() // and gave the lock back each time
}
