package mfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// crashed collects what read says about the disks of many power losses.
func crashed(c *mfile.Crash, read func(*mfile.Crash) string) map[string]int {
	out := map[string]int{}
	for seed := range uint64(200) {
		out[read(c.PowerLoss(seed))]++
	}
	return out
}

func keys(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func content(path string) func(*mfile.Crash) string {
	return func(c *mfile.Crash) string {
		b, err := c.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return "none"
		}
		return string(b)
	}
}

func TestCrashLosesWhatIsNotSynced(t *testing.T) {
	c := mfile.NewCrash()
	f, err := c.Create("f", 3*mfile.PageSize, true)
	require.NoError(t, err)
	size := func(c *mfile.Crash) string {
		list, err := c.ReadDir(".")
		require.NoError(t, err)
		switch {
		case len(list) == 0:
			return "none"
		case list[0].Size == 0:
			return "empty"
		}
		return "whole"
	}
	require.ElementsMatch(t, []string{"none", "empty", "whole"}, keys(crashed(c, size)))
	require.NoError(t, c.SyncDir("."))
	require.Equal(t, []string{"whole"}, keys(crashed(c, size)))

	old, now := bytes.Repeat([]byte("o"), mfile.PageSize), bytes.Repeat([]byte("n"), mfile.PageSize)
	copy(f.Data(), old)
	copy(f.Data()[mfile.PageSize:], old)
	f.SetWrote(2 * mfile.PageSize)
	require.NoError(t, f.Flush())
	copy(f.Data()[mfile.PageSize:], now)
	copy(f.Data()[2*mfile.PageSize:], "x")
	found := crashed(c, func(c *mfile.Crash) string {
		b, err := c.ReadFile("f")
		require.NoError(t, err)
		require.Equal(t, old, b[:mfile.PageSize], "synced and not touched")
		second, third := b[mfile.PageSize:2*mfile.PageSize], b[2*mfile.PageSize:]
		require.Equal(t, mfile.PageSize, bytes.Count(second, []byte("o"))+bytes.Count(second, []byte("n")))
		kind := "torn"
		if bytes.Equal(second, old) {
			kind = "old"
		} else if bytes.Equal(second, now) {
			kind = "new"
		}
		return kind + string(bytes.TrimRight(third, "\x00"))
	})
	require.ElementsMatch(t, []string{"old", "oldx", "new", "newx", "torn", "tornx"}, keys(found), "pages are independent")
	again := c.PowerLoss(7)
	a, err := again.ReadFile("f")
	require.NoError(t, err)
	b, err := c.PowerLoss(7).ReadFile("f")
	require.NoError(t, err)
	require.Equal(t, a, b, "a seed gives one disk")
	require.Equal(t, []string{string(a)}, keys(crashed(again, content("f"))), "nothing is dirty after a restart")
	require.Equal(t, byte('n'), f.Data()[mfile.PageSize], "what programs see is not touched")
	require.NoError(t, f.Close())
}

func TestCrashLosesChangesOfDirectoriesInOrder(t *testing.T) {
	c := mfile.NewCrash()
	require.NoError(t, c.WriteFile("a", []byte("1")))
	require.NoError(t, c.WriteFile("b", []byte("2")))
	names := func(c *mfile.Crash) string {
		list, err := c.ReadDir(".")
		require.NoError(t, err)
		out := ""
		for _, e := range list {
			out += e.Name
		}
		return out
	}
	require.ElementsMatch(t, []string{"", "a", "ab"}, keys(crashed(c, names)))
	require.NoError(t, c.SyncDir("."))
	require.NoError(t, c.Rename("a", "c"))
	require.NoError(t, c.Remove("b"))
	require.ElementsMatch(t, []string{"ab", "bc", "c"}, keys(crashed(c, names)))
	require.NoError(t, c.SyncDir("."))

	require.NoError(t, c.MkdirAll("d/e"))
	require.NoError(t, c.WriteFile(filepath.Join("d", "e", "f"), []byte("3")))
	require.NoError(t, c.SyncDir(filepath.Join("d", "e")))
	deep := content(filepath.Join("d", "e", "f"))
	require.ElementsMatch(t, []string{"none", "3"}, keys(crashed(c, deep)), "d/e is not safe in d, nor d in the root")
	require.NoError(t, c.SyncDir("d"))
	require.NoError(t, c.SyncDir("."))
	require.Equal(t, []string{"3"}, keys(crashed(c, deep)))
	require.NoError(t, c.RemoveAll("d"))
	require.ElementsMatch(t, []string{"none", "3"}, keys(crashed(c, deep)))
	require.NoError(t, c.WriteFile("c", []byte("longer")))
	require.Equal(t, []string{"longer"}, keys(crashed(c, content("c"))), "WriteFile makes its content durable")
}

func TestCrashFaults(t *testing.T) {
	c := mfile.NewCrash()
	require.NoError(t, c.WriteFile("w", []byte("old")))
	require.NoError(t, c.SyncDir("."))
	f, err := c.Create("f", mfile.PageSize, false)
	require.NoError(t, err)
	var seen []string
	c.SetFault(func(op mfile.CrashOp) error {
		seen = append(seen, op.Kind)
		if op.Kind == "truncate" || op.Kind == "create" {
			return nil
		}
		return syscall.EIO
	})
	is := func(err error) {
		t.Helper()
		var pe *fs.PathError
		require.ErrorAs(t, err, &pe)
		require.NotEmpty(t, pe.Path)
		require.ErrorIs(t, err, syscall.EIO)
	}
	before := c.Ops()
	f.SetWrote(10)
	is(f.Flush())
	is(f.Reserve(10, 10))
	is(f.Append([]byte("half")))
	require.Equal(t, "ha\x00", string(f.Data()[10:13]))
	is(c.MkdirAll("d"))
	_, err = c.ReadDir(".")
	is(err)
	_, err = c.Create("g", 10, true)
	is(err)
	_, err = c.Open("f")
	is(err)
	is(c.Rename("f", "g"))
	is(c.Remove("f"))
	is(c.RemoveAll("f"))
	is(c.SyncDir("."))
	_, err = c.ReadFile("w")
	is(err)
	is(c.WriteFile("w", []byte("newest")))
	_, err = c.Lock("l")
	is(err)
	require.Equal(t, []string{"sync", "reserve", "append", "mkdir", "readdir", "create", "size", "open", "rename",
		"remove", "remove", "syncdir", "read", "truncate", "write", "lock"}, seen)
	require.Equal(t, before+len(seen), c.Ops())
	require.ElementsMatch(t, []string{"old", "", "new", "newest"}, keys(crashed(c, content("w"))))
	c.SetFault(nil)
	require.Equal(t, "", content("w")(c))
	require.Equal(t, "none", content("g")(c), "nothing is left of a file that could not be made")
	require.NoError(t, f.Close())
}
