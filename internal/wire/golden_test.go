package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// vector is one line of the golden files; see testdata/README.md.
type vector map[string]any

// golden reads the lines of the given kinds. It fails if there are none: a test
// that looks at nothing proves nothing.
func golden(tb testing.TB, file string, kinds ...string) []vector {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	require.NoError(tb, err)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		in, err = gzip.NewReader(f)
		require.NoError(tb, err)
	}
	var out []vector
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		v := vector{}
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		require.NoError(tb, d.Decode(&v))
		for _, k := range kinds {
			if v["kind"] == k {
				out = append(out, v)
			}
		}
	}
	require.NoError(tb, lines.Err())
	require.NotEmpty(tb, out, "no vector of %v in %s", kinds, file)
	return out
}

func (v vector) text(key string) string {
	s, _ := v[key].(string)
	return s
}

func (v vector) int(tb testing.TB, key string) int64 {
	tb.Helper()
	n, ok := v[key].(json.Number)
	require.True(tb, ok, "%s is no number in %v", key, v)
	i, err := n.Int64()
	require.NoError(tb, err)
	return i
}

func (v vector) hex(tb testing.TB, key string) []byte {
	tb.Helper()
	return unhex(tb, v.text(key))
}

func (v vector) sub(key string) vector {
	m, _ := v[key].(map[string]any)
	return m
}

func (v vector) list(key string) []any {
	l, _ := v[key].([]any)
	return l
}

func (v vector) texts(key string) []string {
	out := []string{}
	for _, x := range v.list(key) {
		out = append(out, x.(string))
	}
	return out
}

// texts of a map; nulls are left out.
func (v vector) textMap(key string) map[string]string {
	out := map[string]string{}
	for k, x := range v.sub(key) {
		if s, ok := x.(string); ok {
			out[k] = s
		}
	}
	return out
}

func (v vector) is(version string) bool {
	for _, x := range v.list("versions") {
		if x == version {
			return true
		}
	}
	return false
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(tb, err)
	return b
}

func inflate(tb testing.TB, b []byte) []byte {
	tb.Helper()
	z, err := zlib.NewReader(bytes.NewReader(b))
	require.NoError(tb, err)
	out, err := io.ReadAll(z)
	require.NoError(tb, err)
	return out
}
