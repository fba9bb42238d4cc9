package mfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// both runs a test on every kind of file system, in a directory that exists.
func both(t *testing.T, f func(t *testing.T, fsys mfile.FS, dir string)) {
	t.Run("fs=memory", func(t *testing.T) {
		m := mfile.NewMemory()
		require.NoError(t, m.MkdirAll("a/b"))
		f(t, m, filepath.Join("a", "b"))
	})
	t.Run("fs=crash", func(t *testing.T) {
		c := mfile.NewCrash()
		require.NoError(t, c.MkdirAll("a/b"))
		f(t, c, filepath.Join("a", "b"))
	})
	t.Run("fs=os", func(t *testing.T) {
		o := mfile.OS()
		f(t, o, t.TempDir())
		require.Zero(t, o.Mapped(), "files still mapped")
	})
}

// list is ReadDir without the times, which only real files have.
func list(t *testing.T, fsys mfile.FS, dir string) []mfile.Entry {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	for i := range entries {
		if _, real := fsys.(*mfile.OSFiles); real && !entries[i].Dir {
			require.WithinDuration(t, time.Now(), entries[i].ModTime, time.Hour)
		}
		entries[i].ModTime = time.Time{}
	}
	return entries
}

func TestFileContentOutlivesItsUse(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		path := filepath.Join(dir, "f")
		f, err := fsys.Create(path, 3*mfile.PageSize+100, true)
		require.NoError(t, err)
		require.Equal(t, int64(3*mfile.PageSize+100), f.Size())
		require.Zero(t, f.Wrote())
		require.True(t, bytes.Equal(f.Data(), make([]byte, f.Size())), "a new file is zero")
		f.Populate(10, 1<<40)
		copy(f.Data()[mfile.PageSize+5:], "hello")
		f.SetWrote(mfile.PageSize + 10)
		require.NoError(t, f.Flush())
		require.Equal(t, int64(mfile.PageSize+10), f.Flushed())
		copy(f.Data()[f.Size()-3:], "end")
		require.NoError(t, f.Close()) // not flushed, but not lost either

		_, err = fsys.Create(path, 10, false)
		require.ErrorIs(t, err, fs.ErrExist)
		f, err = fsys.Open(path)
		require.NoError(t, err)
		require.Equal(t, f.Size(), f.Wrote())
		require.Equal(t, f.Size(), f.Flushed())
		require.Equal(t, "hello", string(f.Data()[mfile.PageSize+5:mfile.PageSize+10]))
		require.Equal(t, "end", string(f.Data()[f.Size()-3:]))
		require.NoError(t, f.Close())
	})
}

func TestHolderKeepsFileAlive(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"), mfile.PageSize, false)
		require.NoError(t, err)
		copy(f.Data(), "still here")
		require.True(t, f.Hold())
		require.NoError(t, f.Destroy())
		require.Equal(t, "still here", string(f.Data()[:10]), "held data must stay mapped")
		f.Release()
		require.False(t, f.Hold(), "nobody can hold a file that is gone")
		_, err = fsys.Open(filepath.Join(dir, "f"))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestDirtyPages(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"), 4*mfile.PageSize, false)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		for _, c := range []struct{ flushed, wrote, want int64 }{
			{0, 0, 0}, {0, mfile.PageSize - 1, 0}, {0, mfile.PageSize, 1}, {mfile.PageSize - 1, mfile.PageSize, 1},
			{mfile.PageSize, 2*mfile.PageSize - 1, 0}, {4*mfile.PageSize - 1, 4 * mfile.PageSize, 4}, {4 * mfile.PageSize, 4 * mfile.PageSize, 0},
		} {
			f.SetWrote(c.wrote)
			f.SetFlushed(c.flushed)
			require.Equal(t, c.want, f.DirtyPages(), "flushed %d wrote %d", c.flushed, c.wrote)
		}
		f.SetWrote(7)
		require.Equal(t, int64(7), f.Flushed(), "flushed never passes wrote")
	})
}

func TestClear(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"), 1000*mfile.PageSize+100, false)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		b := f.Data()
		set := []int{10, 11, mfile.PageSize, 20*mfile.PageSize + 5, 500*mfile.PageSize + 7, 999 * mfile.PageSize, len(b) - 1}
		for _, at := range set {
			b[at] = 1
		}
		b[9] = 1
		f.Clear(10, f.Size()-1)
		require.Equal(t, byte(1), b[len(b)-1])
		f.Clear(10, f.Size())
		for _, at := range set {
			require.Zero(t, b[at], at)
		}
		require.Equal(t, byte(1), b[9])
		f.Clear(f.Size(), f.Size())
	})
}

// A file that is not trusted is flushed whole, once.
func TestDistrust(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		var flushed []int64
		fsys = mfile.Hooked(fsys, func(_ mfile.Op, _ string, from, to int64) error {
			flushed = append(flushed, from, to)
			return nil
		})
		f, err := fsys.Create(filepath.Join(dir, "f"), 3*mfile.PageSize, false)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		f.SetWrote(10)
		f.Distrust()
		require.NoError(t, f.Flush())
		require.Equal(t, f.Size(), flushed[1])
		require.Equal(t, int64(10), f.Flushed())
		flushed = nil
		require.NoError(t, f.Flush())
		require.Empty(t, flushed)
	})
}

func TestReserve(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"), 100_000, false)
		require.NoError(t, err)
		copy(f.Data()[10:], "kept")
		require.NoError(t, f.Reserve(20, 64<<10))
		require.NoError(t, f.Reserve(70_000, 64<<10), "the last step ends with the file")
		require.Equal(t, "kept", string(f.Data()[10:14]))
		require.NoError(t, f.Close())
		require.Equal(t, []mfile.Entry{{Name: "f", Size: 100_000}}, list(t, fsys, dir))
	})
}

func TestLock(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		path := filepath.Join(dir, "lock")
		l, err := fsys.Lock(path)
		require.NoError(t, err)
		_, err = fsys.Lock(path)
		require.ErrorIs(t, err, mfile.ErrLocked)
		b, err := fsys.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "lock", string(b))
		require.NoError(t, l.Close())
		l, err = fsys.Lock(path)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}

func TestSmallFilesAndDirectories(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		in := func(p string) string { return filepath.Join(dir, filepath.FromSlash(p)) }
		_, err := fsys.ReadFile(in("x"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.ReadDir(in("x"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Error(t, fsys.WriteFile(in("x/y"), nil), "no such directory")
		require.NoError(t, fsys.MkdirAll(in("x/sub")))
		require.NoError(t, fsys.MkdirAll(in("x/sub")))
		require.NoError(t, fsys.WriteFile(in("x/b"), []byte("longer")))
		require.NoError(t, fsys.WriteFile(in("x/b"), []byte("one")))
		require.NoError(t, fsys.WriteFile(in("x/a"), []byte("two")))
		require.NoError(t, fsys.SyncDir(in("x")))
		require.Equal(t, []mfile.Entry{{Name: "a", Size: 3}, {Name: "b", Size: 3}, {Name: "sub", Dir: true}}, list(t, fsys, in("x")))
		require.NoError(t, fsys.Rename(in("x/a"), in("x/b")))
		b, err := fsys.ReadFile(in("x/b"))
		require.NoError(t, err)
		require.Equal(t, "two", string(b))
		require.ErrorIs(t, fsys.Rename(in("x/a"), in("x/b")), fs.ErrNotExist)
		require.Error(t, fsys.Remove(in("x")), "not empty")
		require.NoError(t, fsys.Remove(in("x/b")))
		require.ErrorIs(t, fsys.Remove(in("x/b")), fs.ErrNotExist)
		require.NoError(t, fsys.RemoveAll(in("x")))
		require.NoError(t, fsys.RemoveAll(in("x")))
		_, err = fsys.ReadDir(in("x"))
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, fsys.WriteFile(in("empty"), nil))
		_, err = fsys.Open(in("empty"))
		var bad *mfile.FormatError
		require.ErrorAs(t, err, &bad)
		_, err = fsys.Create(in("zero"), 0, false)
		require.Error(t, err)
		total, avail, err := fsys.Usage(dir)
		require.NoError(t, err)
		require.LessOrEqual(t, avail, total)
		_, isOS := fsys.(*mfile.OSFiles)
		require.Equal(t, isOS, total > 0)
	})
}

func TestCreateLeavesNothingBehindWhenItFails(t *testing.T) {
	dir := t.TempDir()
	_, err := mfile.OS().Create(filepath.Join(dir, "huge"), 1<<62, true)
	require.Error(t, err)
	_, err = os.Stat(filepath.Join(dir, "huge"))
	require.True(t, errors.Is(err, fs.ErrNotExist))
}

func TestAppend(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		type call struct {
			op       mfile.Op
			from, to int64
		}
		var calls []call
		var fail error
		path := filepath.Join(dir, "f")
		fsys = mfile.Hooked(fsys, func(op mfile.Op, p string, from, to int64) error {
			require.Equal(t, path, p)
			calls = append(calls, call{op, from, to})
			return fail
		})
		f, err := fsys.Create(path, 3*mfile.PageSize, true)
		require.NoError(t, err)
		copy(f.Data(), "copied")
		f.SetWrote(6)
		require.NoError(t, f.Append([]byte("appended")))
		require.Equal(t, "copiedappended\x00", string(f.Data()[:15]))
		require.NoError(t, f.Append(bytes.Repeat([]byte("x"), mfile.PageSize)))
		require.NoError(t, f.Flush())
		require.Equal(t, f.Wrote(), f.Flushed())
		wrote := int64(14 + mfile.PageSize)
		require.Equal(t, wrote, f.Wrote())
		require.Equal(t, []call{{mfile.OpWrite, 6, 14}, {mfile.OpWrite, 14, wrote}, {mfile.OpSync, 0, wrote}}, calls)

		fail = errors.New("broken disk")
		var bad *mfile.IOError
		require.ErrorAs(t, f.Append([]byte("y")), &bad)
		require.Equal(t, mfile.IOError{Op: "write", Path: path, Offset: wrote, Err: fail}, *bad)
		f.SetWrote(wrote + 1)
		require.ErrorAs(t, f.Flush(), &bad)
		require.Equal(t, mfile.IOError{Op: "flush", Path: path, Offset: wrote, Err: fail}, *bad)
		require.Equal(t, wrote, f.Flushed())
		require.ErrorIs(t, f.Sync(), fail)
		fail, bad = nil, nil
		require.ErrorAs(t, f.Flush(), &bad, "a second flush is no success")
		require.Equal(t, wrote, f.Flushed())
		require.ErrorAs(t, f.Append(make([]byte, 2*mfile.PageSize)), &bad, "beyond the file")
		require.Equal(t, wrote+1, f.Wrote())
		require.NoError(t, f.Close())

		f, err = fsys.Open(path)
		require.NoError(t, err)
		require.Equal(t, "copiedappendedxx", string(f.Data()[:16]))
		f.SetWrote(0)
		fail = nil
		require.NoError(t, f.Append([]byte("again")))
		require.Equal(t, "again", string(f.Data()[:5]))
		require.NoError(t, f.Destroy())
	})
}
