package cq_test

import (
	"encoding/hex"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

const (
	dir     = "q"
	perFile = 10
	size    = perFile * cq.UnitSize
)

// unit is the i-th unit of a queue whose records are 100 bytes apart.
func unit(i int64) cq.Unit { return cq.Unit{Phy: i * 100, Size: 100, Tags: -i} }

func grown(t *testing.T, fsys mfile.FS, from, to int64) *cq.Queue {
	t.Helper()
	q := cq.New(fsys, dir, size)
	for i := from; i < to; i++ {
		out, err := q.Append(i, unit(i))
		require.NoError(t, err)
		require.Equal(t, cq.Appended, out)
	}
	return q
}

func reopen(t *testing.T, fsys mfile.FS, q *cq.Queue) *cq.Queue {
	t.Helper()
	if q != nil {
		require.NoError(t, q.Close())
	}
	q, err := cq.Open(fsys, dir, size)
	require.NoError(t, err)
	require.NoError(t, q.Recover())
	return q
}

// holds checks that the queue has exactly the units min to max-1.
func holds(t *testing.T, q *cq.Queue, lo, hi int64) {
	t.Helper()
	require.Equal(t, lo, q.Min())
	require.Equal(t, hi, q.Max())
	for i := lo; i < hi; i++ {
		u, ok := q.At(i)
		require.True(t, ok, "unit %d", i)
		require.Equal(t, unit(i), u)
	}
	_, ok := q.At(hi)
	require.False(t, ok)
	_, ok = q.At(-1)
	require.False(t, ok)
}

func TestUnitBytes(t *testing.T) {
	b := make([]byte, cq.UnitSize)
	u := cq.Unit{Phy: 0x0102030405060708, Size: 0x11121314, Tags: -2}
	u.Put(b)
	require.Equal(t, "0102030405060708"+"11121314"+"fffffffffffffffe", hex.EncodeToString(b))
	require.Equal(t, u, cq.Get(b))
}

func TestQueueGrowsOverFilesAndReopens(t *testing.T) {
	for _, n := range []int64{1, perFile - 1, perFile, perFile + 1, 5 * perFile} {
		fsys := mfile.NewMemory()
		q := grown(t, fsys, 0, n)
		holds(t, q, 0, n)
		require.Len(t, q.Files(), int((n+perFile-1)/perFile))
		q = reopen(t, fsys, q)
		holds(t, q, 0, n)
		require.Equal(t, n*100, q.Covered())
		out, err := q.Append(n, unit(n))
		require.NoError(t, err)
		require.Equal(t, cq.Appended, out)
		holds(t, q, 0, n+1)
		require.NoError(t, q.Close())
	}
}

func TestAppendAgain(t *testing.T) {
	q := grown(t, mfile.NewMemory(), 0, 15)
	for i := range int64(15) {
		out, err := q.Append(i, unit(i))
		require.NoError(t, err)
		require.Equal(t, cq.Known, out)
	}
	out, err := q.Append(3, unit(15))
	require.NoError(t, err)
	require.Equal(t, cq.Known, out, "the place is taken")
	holds(t, q, 0, 15)
	out, err = q.Append(20, unit(15))
	require.NoError(t, err)
	require.Equal(t, cq.Gap, out)
	holds(t, q, 0, 16)
	for _, off := range []int64{-1, 1 << 59, 1<<63 - 1} {
		out, err = q.Append(off, unit(99))
		require.NoError(t, err)
		require.Equal(t, cq.Misplaced, out)
	}
	holds(t, q, 0, 16)
}

func TestQueueThatBeginsLater(t *testing.T) {
	for _, first := range []int64{1, 7, perFile, 3*perFile + 4} {
		fsys := mfile.NewMemory()
		q := grown(t, fsys, first, first+12)
		holds(t, q, first, first+12)
		if before := first - 1; first%perFile != 0 {
			u, ok := q.At(before)
			require.True(t, ok)
			require.Equal(t, cq.Unit{Size: math.MaxInt32}, u)
			require.True(t, u.IsFiller())
		}
		q = reopen(t, fsys, q)
		q.CorrectMin(0)
		holds(t, q, first, first+12)
		require.Equal(t, (first+12)*100, q.Covered(), "fillers cover nothing")
		require.NoError(t, q.Close())
	}
}

func TestTruncate(t *testing.T) {
	for phy, want := range map[int64]int64{
		3_000: 25, 2_500: 25, 2_499: 24, 2_400: 24, 2_000: 20, 1_999: 19, 1_000: 10, 100: 1, 99: 0, 0: 0,
	} {
		fsys := mfile.NewMemory()
		q := grown(t, fsys, 0, 25)
		require.NoError(t, q.Truncate(phy))
		holds(t, q, 0, want)
		q = reopen(t, fsys, q)
		holds(t, q, 0, want)
		// What was cut must not come back when the queue grows over it.
		out, err := q.Append(want, unit(want))
		require.NoError(t, err)
		require.Equal(t, cq.Appended, out)
		q = reopen(t, fsys, q)
		holds(t, q, 0, want+1)
		require.NoError(t, q.Close())
	}
}

func TestTruncateKeepsFillers(t *testing.T) {
	q := grown(t, mfile.NewMemory(), 5, 8)
	require.NoError(t, q.Truncate(0))
	require.Equal(t, int64(5), q.Max())
	out, err := q.Append(5, unit(5))
	require.NoError(t, err)
	require.Equal(t, cq.Appended, out)
	u, ok := q.At(5)
	require.True(t, ok)
	require.Equal(t, unit(5), u)
}

func TestCorrectMin(t *testing.T) {
	for logMin, want := range map[int64]int64{0: 0, 1: 1, 100: 1, 950: 10, 1_000: 10, 2_400: 24, 2_401: 25, 9_999: 25} {
		q := grown(t, mfile.NewMemory(), 0, 25)
		q.CorrectMin(logMin)
		require.Equal(t, want, q.Min(), "log begins at %d", logMin)
		require.Equal(t, int64(25), q.Max())
	}
}

func TestViewEndsWithItsFile(t *testing.T) {
	q := grown(t, mfile.NewMemory(), 0, 25)
	for off, want := range map[int64]int{0: 10, 9: 1, 10: 10, 23: 2, 24: 1, 25: 0, -1: 0} {
		v := q.View(off)
		require.Equal(t, want, v.Len(), "at %d", off)
		if want > 0 {
			require.Equal(t, unit(off), v.At(0))
		}
		v.Release()
	}
}

// A crash of the machine may lose pages anywhere: the queue ends before the
// first unit that is missing, and what stood behind it is gone for good.
func TestRecoverEndsAtTheFirstHole(t *testing.T) {
	for _, hole := range []int64{0, 1, perFile, perFile + 3, 24} {
		fsys := mfile.NewMemory()
		q := grown(t, fsys, 0, 25)
		f := q.Files()[hole/perFile]
		clear(f.Data()[hole%perFile*cq.UnitSize:][:cq.UnitSize])
		q = reopen(t, fsys, q)
		holds(t, q, 0, hole)
		require.Equal(t, hole*100, q.Covered())
		_, err := q.Append(hole, unit(hole))
		require.NoError(t, err)
		q = reopen(t, fsys, q)
		holds(t, q, 0, hole+1)
		require.NoError(t, q.Close())
	}
}

// Recovery looks at the newest three files only, as Apache does, but goes
// further back when those have no unit.
func TestRecoverGoesBackOverEmptyFiles(t *testing.T) {
	fsys := mfile.NewMemory()
	q := grown(t, fsys, 0, 55)
	for _, f := range q.Files()[2:] {
		clear(f.Data())
	}
	q = reopen(t, fsys, q)
	holds(t, q, 0, 20)
	require.Equal(t, int64(2_000), q.Covered())
	require.NoError(t, q.Close())
}

func TestDestroyWithReader(t *testing.T) {
	fsys := mfile.NewMemory()
	q := grown(t, fsys, 0, 3)
	v := q.View(1)
	require.NoError(t, q.Destroy())
	require.Equal(t, unit(1), v.At(0))
	v.Release()
	require.Zero(t, q.View(1).Len())
	_, err := fsys.ReadDir(filepath.Join(dir))
	require.Error(t, err)
}

func TestFlush(t *testing.T) {
	fsys := mfile.OS()
	q := cq.New(fsys, t.TempDir(), 1_000*cq.UnitSize)
	for i := range int64(500) {
		_, err := q.Append(i, unit(i))
		require.NoError(t, err)
	}
	require.Equal(t, int64(500*cq.UnitSize/mfile.PageSize), q.DirtyPages())
	require.NoError(t, q.Flush())
	require.Zero(t, q.DirtyPages())
	require.NoError(t, q.Close())
	require.Zero(t, fsys.Mapped())
}

// After a crash a queue keeps the units of records that are known to be on the
// disk, and nothing of what may be anything else.
func TestRebuild(t *testing.T) {
	for name, damage := range map[string]func(f []*mfile.File){
		"nothing": func([]*mfile.File) {},
		"a hole": func(f []*mfile.File) {
			clear(f[1].Data()[5*cq.UnitSize:][:3*cq.UnitSize])
		},
		"torn units": func(f []*mfile.File) {
			for i := 5; i < perFile; i++ {
				clear(f[1].Data()[i*cq.UnitSize+12:][:8])
			}
		},
		"garbage": func(f []*mfile.File) {
			for i := range f[1].Data()[5*cq.UnitSize:] {
				f[1].Data()[5*cq.UnitSize+i] = byte(i % 120)
			}
			for i := range f[2].Data() {
				f[2].Data()[i] = 0x11
			}
		},
	} {
		for _, keep := range []int64{0, 1, 5, 10, 11, 15} {
			fsys := mfile.NewMemory()
			q := grown(t, fsys, 0, 25)
			damage(q.Files())
			require.NoError(t, q.Close())
			q, err := cq.Open(fsys, dir, perFile*cq.UnitSize)
			require.NoError(t, err)
			require.NoError(t, q.Rebuild(keep*100+50))
			holds(t, q, 0, keep)
			for i := keep; i < keep+3; i++ {
				out, err := q.Append(i, unit(i))
				require.NoError(t, err)
				require.Equal(t, cq.Appended, out, "%s: %d of %d", name, i, keep)
			}
			q = reopen(t, fsys, q)
			holds(t, q, 0, keep+3)
			require.NoError(t, q.Close())
		}
	}
}

// A queue that did not begin at 0 begins there again.
func TestRebuildWithFillers(t *testing.T) {
	fsys := mfile.NewMemory()
	q := grown(t, fsys, 5, 8)
	require.False(t, q.Lacks(8))
	require.True(t, q.Lacks(9))
	require.NoError(t, q.Rebuild(100))
	require.Empty(t, q.Files())
	require.False(t, q.Lacks(5), "it may have begun anywhere in its first file")
	require.True(t, q.Lacks(perFile))
	out, err := q.Append(5, unit(5))
	require.NoError(t, err)
	require.Equal(t, cq.Appended, out)
	holds(t, q, 5, 6)
	require.NoError(t, q.Rebuild(600))
	q.CorrectMin(0)
	holds(t, q, 5, 6)
}

// filledQueue has n units of records of 10 bytes, from queue offset first on.
func filledQueue(t *testing.T, fsys mfile.FS, dir string, first, n int64) *cq.Queue {
	t.Helper()
	q := cq.New(fsys, dir, 4*cq.UnitSize)
	for i := range n {
		out, err := q.Append(first+i, cq.Unit{Phy: i * 10, Size: 10})
		require.NoError(t, err)
		require.Equal(t, cq.Appended, out)
	}
	return q
}

func TestMinimumFollowsTheLog(t *testing.T) {
	for _, first := range []int64{0, 4, 6} {
		for logMin := int64(0); logMin <= 120; logMin++ {
			q := filledQueue(t, mfile.NewMemory(), "q", first, 10)
			q.CorrectMin(logMin)
			want := first + min((logMin+9)/10, 10)
			require.Equal(t, want, q.Min(), "from %d, log from %d", first, logMin)
			q.CorrectMin(0)
			require.Equal(t, want, q.Min(), "never back")
			require.Equal(t, first+10, q.Max())
		}
	}
	empty := cq.New(mfile.NewMemory(), "q", 4*cq.UnitSize)
	empty.CorrectMin(100)
	require.Zero(t, empty.Min())
}

func TestFirstFileExpires(t *testing.T) {
	fsys := mfile.NewMemory()
	q := filledQueue(t, fsys, "q", 6, 10) // units 6,7 | 8 to 11 | 12 to 15
	require.Len(t, q.Files(), 3)
	require.False(t, q.FirstExpired(10), "record 1 is still there")
	require.True(t, q.FirstExpired(11))
	require.NoError(t, q.RemoveFirst())
	require.Equal(t, int64(8), q.Min())
	require.False(t, q.FirstExpired(50))
	require.True(t, q.FirstExpired(51))
	require.NoError(t, q.RemoveFirst())
	require.NoError(t, q.SyncDir())
	require.False(t, q.FirstExpired(1000), "the last one never")
	require.NoError(t, q.RemoveFirst())
	require.Len(t, q.Files(), 1)
	q.CorrectMin(1000)
	require.Equal(t, int64(16), q.Min())
	require.NoError(t, q.Close())

	q, err := cq.Open(fsys, "q", 4*cq.UnitSize)
	require.NoError(t, err)
	require.NoError(t, q.Recover())
	require.Equal(t, int64(12), q.Min())
	require.Equal(t, int64(16), q.Max(), "numbers go on")
	require.NoError(t, q.Close())
}

// Files that recovery removed do not come back: not even if the process that
// removed them died before it could make that durable, and the machine after
// the next one has flushed.
func TestRemovedFilesStayRemoved(t *testing.T) {
	disk := mfile.NewCrash()
	q := grown(t, disk, 0, 25)
	require.NoError(t, q.Flush())
	require.NoError(t, q.Rebuild(350))
	require.NoError(t, q.Close())

	q, err := cq.Open(disk, dir, size)
	require.NoError(t, err)
	require.NoError(t, q.Rebuild(350))
	require.NoError(t, q.Flush())
	require.NoError(t, q.Close())
	for seed := range uint64(20) {
		q, err := cq.Open(disk.PowerLoss(seed), dir, size)
		require.NoError(t, err)
		require.Len(t, q.Files(), 1)
		require.NoError(t, q.Rebuild(1<<40))
		holds(t, q, 0, 3)
		require.NoError(t, q.Close())
	}
}
