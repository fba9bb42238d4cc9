package inflate

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func deflate(t testing.TB, kind int32, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	switch kind {
	case 0, wire.SysCompressionZLIB:
		w = zlib.NewWriter(&out)
	case wire.SysCompressionLZ4:
		w = lz4.NewWriter(&out)
	case wire.SysCompressionZSTD:
		z, err := zstd.NewWriter(&out)
		require.NoError(t, err)
		w = z
	}
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

var kinds = map[string]int32{
	"old zlib": 0, "zlib": wire.SysCompressionZLIB, "lz4": wire.SysCompressionLZ4, "zstd": wire.SysCompressionZSTD,
}

func TestInflateEveryKind(t *testing.T) {
	var f Inflater
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for _, n := range []int{0, 1, 5000, 1 << 17} {
						want := []byte(strings.Repeat("abc", n/3+1))[:n]
						got, err := f.Inflate(deflate(t, kind, want), wire.SysCompressed|kind)
						if err != nil || !bytes.Equal(want, got) {
							t.Errorf("%d bytes: got %d, %v", n, len(got), err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestInflateFaults(t *testing.T) {
	var f Inflater
	plain := []byte("plain")
	got, err := f.Inflate(plain, 0)
	require.NoError(t, err)
	require.Equal(t, plain, got)
	for name, kind := range kinds {
		for range 3 { // a reader that has failed is used again
			_, err = f.Inflate([]byte("nonsense that is no compressed body"), wire.SysCompressed|kind)
			require.Error(t, err, name)
			whole := deflate(t, kind, randomBytes(10000))
			_, err = f.Inflate(whole[:len(whole)/2], wire.SysCompressed|kind)
			require.Error(t, err, name)
			got, err = f.Inflate(whole, wire.SysCompressed|kind)
			require.NoError(t, err, name)
			require.Len(t, got, 10000)
		}
	}
	_, err = f.Inflate(plain, wire.SysCompressed|0x400)
	require.ErrorContains(t, err, "unknown compression type")
}

// A small body must not be able to fill the memory.
func TestInflateIsBounded(t *testing.T) {
	f := Inflater{limit: 1 << 20}
	bomb := make([]byte, f.limit+1)
	for _, kind := range []int32{wire.SysCompressionZLIB, wire.SysCompressionLZ4, wire.SysCompressionZSTD} {
		_, err := f.Inflate(deflate(t, kind, bomb), wire.SysCompressed|kind)
		require.ErrorContains(t, err, "larger than 1048576 bytes")
		out, err := f.Inflate(deflate(t, kind, bomb[1:]), wire.SysCompressed|kind)
		require.NoError(t, err)
		require.Len(t, out, f.limit)
	}
}

func randomBytes(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func FuzzInflate(f *testing.F) {
	for _, kind := range kinds {
		f.Add(deflate(f, kind, []byte("hello hello hello")), wire.SysCompressed|kind)
	}
	f.Fuzz(func(t *testing.T, b []byte, flag int32) {
		i := Inflater{limit: 1 << 16}
		out, err := i.Inflate(b, flag)
		if err == nil && len(out) > i.limit && flag&wire.SysCompressed != 0 {
			t.Fatalf("%d bytes came out", len(out))
		}
	})
}
