package mfile_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

const size = 2 * mfile.PageSize

// filled is a sequence of n files that starts with the from-th one.
func filled(t *testing.T, fsys mfile.FS, dir string, from, n int64) *mfile.Sequence {
	t.Helper()
	s := mfile.NewSequence(fsys, dir, size)
	for i := from; i < from+n; i++ {
		f, err := s.Create(i*size, false)
		require.NoError(t, err)
		f.Data()[0] = byte(i)
		f.SetWrote(size)
		s.Add(f)
	}
	return s
}

func TestFileNames(t *testing.T) {
	require.Equal(t, "00000000001073741824", mfile.FileName(1<<30))
	n, ok := mfile.ParseName("00000000001073741824")
	require.True(t, ok)
	require.Equal(t, int64(1<<30), n)
	for _, bad := range []string{"", "1", "0000000000107374182x", "-0000000000000000001", "99999999999999999999", "000000000000000000000"} {
		_, ok := mfile.ParseName(bad)
		require.False(t, ok, bad)
	}
}

func TestSequenceFindsBytes(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		s := filled(t, fsys, filepath.Join(dir, "q"), 3, 3)
		require.NoError(t, s.Close())
		require.Nil(t, s.Find(3*size), "closed")

		s, err := mfile.OpenSequence(fsys, filepath.Join(dir, "q"), size)
		require.NoError(t, err)
		require.Equal(t, int64(3*size), s.First().Start())
		require.Equal(t, int64(6*size), s.Last().End())
		for off, want := range map[int64]int64{3 * size: 3, 4*size - 1: 3, 4 * size: 4, 6*size - 1: 5} {
			f := s.Hold(off)
			require.Equal(t, byte(want), f.Data()[0], "offset %d", off)
			f.Release()
		}
		require.Nil(t, s.Find(3*size-1))
		require.Nil(t, s.Find(6*size))
		require.Nil(t, s.Find(-1))
		require.NoError(t, s.Close())
	})
}

func TestSequenceTruncate(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		for _, c := range []struct{ at, files, wrote int64 }{
			{3 * size, 3, size}, {2*size + 5, 3, 5}, {2 * size, 2, size}, {1, 1, 1}, {0, 0, 0},
		} {
			s := filled(t, fsys, filepath.Join(dir, "q"), 0, 3)
			require.NoError(t, s.Truncate(c.at))
			require.Len(t, s.Files(), int(c.files), "at %d", c.at)
			if c.files > 0 {
				require.Equal(t, c.wrote, s.Last().Wrote(), "at %d", c.at)
				f, err := s.Create(c.files*size, false)
				require.NoError(t, err, "the name is free again")
				s.Add(f)
			}
			require.NoError(t, s.Destroy())
		}
	})
}

func TestSequenceRemoveFirst(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		s := filled(t, fsys, filepath.Join(dir, "q"), 0, 2)
		f := s.Hold(0)
		require.NoError(t, s.RemoveFirst())
		require.Nil(t, s.Find(0))
		require.Equal(t, int64(size), s.First().Start())
		require.Equal(t, byte(0), f.Data()[0])
		f.Release()
		require.NoError(t, s.RemoveFirst())
		require.NoError(t, s.RemoveFirst(), "nothing left is no error")
		require.Nil(t, s.First())
		require.Nil(t, s.Last())
	})
}

func TestSequenceDetachFirst(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		s := filled(t, fsys, filepath.Join(dir, "q"), 0, 2)
		f := s.DetachFirst()
		require.Equal(t, int64(0), f.Start())
		require.Nil(t, s.Find(0))
		require.Len(t, list(t, fsys, filepath.Join(dir, "q")), 2, "still on the disk")
		require.NoError(t, f.Destroy())
		require.True(t, f.Removed())
		require.NoError(t, f.Remove())
		require.Len(t, list(t, fsys, filepath.Join(dir, "q")), 1)
		require.NoError(t, s.Destroy())
		require.Nil(t, s.DetachFirst())
	})
}

// A file that cannot be removed yet is no longer in the sequence, and says so.
func TestFileThatStaysIsRemovedLater(t *testing.T) {
	fsys := mfile.NewCrash()
	s := filled(t, fsys, "q", 0, 2)
	broken := errors.New("not now")
	fsys.SetFault(func(op mfile.CrashOp) error {
		if op.Kind == "remove" {
			return broken
		}
		return nil
	})
	f := s.DetachFirst()
	require.True(t, f.Hold())
	require.NoError(t, f.Destroy(), "the last holder tries again")
	require.False(t, f.Removed())
	require.ErrorIs(t, f.Remove(), broken)
	f.Release()
	require.False(t, f.Removed())
	fsys.SetFault(nil)
	require.NoError(t, f.Remove())
	require.True(t, f.Removed())
	require.Len(t, list(t, fsys, "q"), 1)
	require.NoError(t, s.Destroy())
}

func TestFileThatCannotBeMadeIsNamed(t *testing.T) {
	fsys := mfile.NewCrash()
	full := errors.New("no space left on device")
	fsys.SetFault(func(op mfile.CrashOp) error {
		if op.Kind == "size" {
			return full
		}
		return nil
	})
	s := mfile.NewSequence(fsys, "q", size)
	_, err := s.Create(3*size, true)
	require.ErrorIs(t, err, full)
	var bad *mfile.IOError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "create", bad.Op)
	require.Equal(t, filepath.Join("q", mfile.FileName(3*size)), bad.Path)
	fsys.SetFault(nil)
	f, err := s.Create(3*size, true)
	require.NoError(t, err, "nothing is in the way")
	require.NoError(t, f.Close())
}

func TestSequenceFlush(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		s := filled(t, fsys, filepath.Join(dir, "q"), 1, 3)
		s.Last().SetWrote(mfile.PageSize + 1)
		require.Equal(t, int64(2+2+1), s.DirtyPages())
		end, err := s.Flush()
		require.NoError(t, err)
		require.Equal(t, int64(3*size+mfile.PageSize+1), end)
		require.Zero(t, s.DirtyPages())
		s.Last().SetWrote(size)
		require.Equal(t, int64(2), s.DirtyPages())
		require.NoError(t, s.Destroy())
		end, err = s.Flush()
		require.NoError(t, err)
		require.Zero(t, end)
	})
}

func TestOpenSequenceRefusesWhatIsNotItsOwn(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		write := func(d, name string, n int) {
			require.NoError(t, fsys.MkdirAll(filepath.Join(dir, d)))
			require.NoError(t, fsys.WriteFile(filepath.Join(dir, d, name), make([]byte, n)))
		}
		write("size", mfile.FileName(0), size-1)
		write("size2", mfile.FileName(0), size)
		write("size2", mfile.FileName(size), size+1)
		write("empty", mfile.FileName(0), 0)
		write("empty", mfile.FileName(size), size)
		write("foreign", "notes.txt", size)
		write("step", mfile.FileName(size/2), size)
		write("gap", mfile.FileName(0), size)
		write("gap", mfile.FileName(2*size), size)
		for _, d := range []string{"size", "size2", "empty", "foreign", "step", "gap"} {
			_, err := mfile.OpenSequence(fsys, filepath.Join(dir, d), size)
			var bad *mfile.FormatError
			require.ErrorAs(t, err, &bad, d)
			require.Contains(t, bad.Path, filepath.Join(dir, d))
		}
	})
}

func TestOpenSequenceIgnoresWhatApacheIgnores(t *testing.T) {
	both(t, func(t *testing.T, fsys mfile.FS, dir string) {
		s, err := mfile.OpenSequence(fsys, filepath.Join(dir, "missing"), size)
		require.NoError(t, err)
		require.Empty(t, s.Files())

		require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "q", "sub")))
		s = filled(t, fsys, filepath.Join(dir, "q"), 0, 1)
		require.NoError(t, s.Close())
		newest := filepath.Join(dir, "q", mfile.FileName(size))
		require.NoError(t, fsys.WriteFile(newest, nil))
		s, err = mfile.OpenSequence(fsys, filepath.Join(dir, "q"), size)
		require.NoError(t, err)
		require.Len(t, s.Files(), 1)
		require.NoError(t, s.Close())
		_, err = fsys.ReadFile(newest)
		require.ErrorIs(t, err, fs.ErrNotExist, "a newest file without content is removed")
	})
}
