package persist_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/persist"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

var errBad = errors.New("bad table")

// loadText loads a table whose only rule is that it does not start with "!".
func loadText(t *testing.T, f persist.Files) (string, bool, error) {
	t.Helper()
	var got string
	found, err := persist.Load(f, "t.json", func(b []byte) error {
		if b[0] == '!' {
			return errBad
		}
		got = string(b)
		return nil
	})
	return got, found, err
}

func memory() persist.Files { return persist.In(mfile.NewMemory(), "/store/config") }

func eachFiles(t *testing.T, test func(t *testing.T, f persist.Files)) {
	t.Run("dir", func(t *testing.T) { test(t, persist.In(mfile.OS(), t.TempDir()+"/config")) })
	t.Run("memory", func(t *testing.T) { test(t, memory()) })
}

func TestSaveKeepsTheStateBefore(t *testing.T) {
	eachFiles(t, func(t *testing.T, f persist.Files) {
		_, found, err := loadText(t, f)
		require.NoError(t, err)
		require.False(t, found)

		require.NoError(t, persist.Save(f, "t.json", []byte("one")))
		require.NoError(t, persist.Save(f, "t.json", []byte("two")))
		got, found, err := loadText(t, f)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "two", got)
		old, err := f.ReadFile("t.json.bak")
		require.NoError(t, err)
		require.Equal(t, "one", string(old))
	})
}

func TestLoadFallsBack(t *testing.T) {
	for _, damaged := range []string{"", "!"} {
		eachFiles(t, func(t *testing.T, f persist.Files) {
			require.NoError(t, f.WriteFile("t.json.bak", []byte("old")))
			require.NoError(t, f.WriteFile("t.json", []byte(damaged)))
			got, found, err := loadText(t, f)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "old", got)
		})
	}
}

func TestLoadRefusesToForget(t *testing.T) {
	eachFiles(t, func(t *testing.T, f persist.Files) {
		require.NoError(t, f.WriteFile("t.json", []byte("!")))
		_, _, err := loadText(t, f)
		require.ErrorIs(t, err, errBad)
		require.ErrorContains(t, err, "t.json")
	})
}

// crashing stops working before its n-th step.
type crashing struct {
	persist.Files
	left int
}

func (c *crashing) step() error {
	if c.left--; c.left < 0 {
		return errors.New("power cut")
	}
	return nil
}

func (c *crashing) WriteFile(name string, data []byte) error {
	if err := c.step(); err != nil {
		_ = c.Files.WriteFile(name, data[:len(data)/2])
		return err
	}
	return c.Files.WriteFile(name, data)
}

func (c *crashing) Rename(from, to string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Files.Rename(from, to)
}

func TestCrashAtEveryStepLeavesOneState(t *testing.T) {
	for steps := range 4 {
		f := memory()
		require.NoError(t, persist.Save(f, "t.json", []byte("state one")))
		err := persist.Save(&crashing{f, steps}, "t.json", []byte("state two"))
		require.Equal(t, steps < 3, err != nil)
		got, found, lerr := loadText(t, f)
		require.NoError(t, lerr)
		require.True(t, found)
		if err != nil {
			require.Equal(t, "state one", got)
		} else {
			require.Equal(t, "state two", got)
		}
	}
}

func TestIndent(t *testing.T) {
	in := `{"a":{},"b":{0:12,1:7},"c":["x,{","y\""],"d":{"e":"{,}"}}`
	want := "{\n\t\"a\":{},\n\t\"b\":{\n\t\t0:12,\n\t\t1:7\n\t},\n\t\"c\":[\"x,{\",\"y\\\"\"],\n\t\"d\":{\n\t\t\"e\":\"{,}\"\n\t}\n}"
	require.Equal(t, want, string(persist.Indent([]byte(in))))
	require.Equal(t, "{}", string(persist.Indent([]byte("{}"))))
}
