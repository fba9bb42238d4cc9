package index

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

type vector struct {
	Kind string
	// index_hash
	Key           string
	Hash          int32
	SlotOf5000000 int64 `json:"slot_of_5000000"`
	SlotOf8       int64 `json:"slot_of_8"`
	// index_file
	Slots      int32
	MaxEntries int32 `json:"max_entries"`
	Puts       []struct {
		Key            string
		Phy            int64
		StoreTimestamp int64 `json:"store_timestamp"`
		Stored         bool
	}
	Queries []struct {
		Key        string
		Begin, End int64
		Phy        []int64
	}
	Hex string
}

func vectors(t *testing.T, kind string) (out []vector) {
	t.Helper()
	b, err := os.ReadFile("testdata/index.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(b) {
		var v vector
		require.NoError(t, json.Unmarshal(line, &v))
		if v.Kind == kind {
			out = append(out, v)
		}
	}
	require.NotEmpty(t, out)
	return out
}

func TestGoldenSlots(t *testing.T) {
	for _, v := range vectors(t, "index_hash") {
		hash := wire.IndexHash(v.Key)
		require.Equal(t, v.Hash, hash, v.Key)
		for slots, want := range map[int32]int64{5_000_000: v.SlotOf5000000, 8: v.SlotOf8} {
			f := &file{slots: slots}
			require.Equal(t, HeaderSize+want*SlotSize, f.slotAt(hash), v.Key)
		}
	}
}

// TestGoldenFile writes the file that Apache wrote, and finds in it what
// Apache finds.
func TestGoldenFile(t *testing.T) {
	for _, v := range vectors(t, "index_file") {
		x, fsys, _ := newIndex(t, v.Slots, v.MaxEntries)
		require.NoError(t, x.Prepare())
		for _, p := range v.Puts {
			f := x.last()
			require.Equal(t, p.Stored, f.ready())
			if p.Stored {
				f.put(wire.IndexHash(p.Key), p.Phy, p.StoreTimestamp)
			}
		}
		check := func() {
			for _, q := range v.Queries {
				got := []int64{}
				x.last().walk(wire.IndexHash(q.Key), q.Begin, q.End, func(phy int64) bool {
					got = append(got, phy)
					return true
				})
				require.Equal(t, q.Phy, got, "%s from %d to %d", q.Key, q.Begin, q.End)
			}
		}
		check()
		b, err := fsys.ReadFile(x.last().Path())
		require.NoError(t, err)
		require.Equal(t, v.Hex, hex.EncodeToString(b))
		require.NoError(t, x.Close())

		// And the other way round.
		want, err := hex.DecodeString(v.Hex)
		require.NoError(t, err)
		require.NoError(t, fsys.WriteFile(filepath.Join("index", "20231114221320000"), want))
		x = reopen(t, x, false, 0)
		check()
		phy, storeTime, ok := x.End()
		last := v.Puts[len(v.Puts)-1]
		require.True(t, ok)
		require.Equal(t, []int64{last.Phy, last.StoreTimestamp}, []int64{phy, storeTime})
	}
}

func TestFileSize(t *testing.T) {
	require.Equal(t, int64(420_000_040), FileSize(5_000_000, 20_000_000))
	_, err := Open(Config{FS: mfile.NewMemory(), Dir: "index", Slots: 0, Entries: 5})
	require.ErrorContains(t, err, "at least")
}
