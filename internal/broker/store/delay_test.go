package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestDelayLevelsRoundTrip(t *testing.T) {
	t.Parallel()
	const apache = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
	require.Equal(t, apache, store.FormatDelayLevels(store.DefaultDelayLevels()))
	levels, err := store.ParseDelayLevels(" 0s  90s 36h\t2d ")
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0, 90 * time.Second, 36 * time.Hour, 48 * time.Hour}, levels)
	require.Equal(t, "0s 90s 36h 2d", store.FormatDelayLevels(levels))
	for _, bad := range []string{"", "  ", "5", "s", "1s,2s", "-1s", "1S", "1ms", "99999999999d", "40000d"} {
		_, err := store.ParseDelayLevels(bad)
		require.Error(t, err, bad)
	}
}

func FuzzParseDelayLevels(f *testing.F) {
	for _, s := range []string{"1s 5s 10s", "", "1d\t2h", "x", "0s", "2147483647d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		levels, err := store.ParseDelayLevels(text)
		if err != nil {
			return
		}
		again, err := store.ParseDelayLevels(store.FormatDelayLevels(levels))
		require.NoError(t, err)
		require.Equal(t, levels, again)
	})
}

func TestNextUnitAndItsRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	at, _, ok := r.NextUnit("T", 0, 7)
	require.False(t, ok)
	require.Zero(t, at, "no such queue")

	const n = 50 // more than a file of the queue has
	for i := range n {
		r.put("T", 0, strconv.Itoa(i), wire.PropTags, "TagA")
	}
	r.settle()
	seen := 0
	for off := int64(0); ; {
		at, u, ok := r.NextUnit("T", 0, off)
		if !ok {
			require.EqualValues(t, n, at)
			break
		}
		require.Equal(t, off, at)
		require.Equal(t, wire.TagsCode("TagA"), u.Tags)
		require.True(t, r.Record(u, func(rec *wire.Record) { require.Equal(t, strconv.Itoa(seen), string(rec.Body)) }))
		seen++
		off = at + 1
	}
	require.Equal(t, n, seen)
	at, _, ok = r.NextUnit("T", 0, n+100)
	require.False(t, ok)
	require.EqualValues(t, n, at, "beyond the end")

	never := func(*wire.Record) { t.Error("called") }
	require.False(t, r.Record(cq.Unit{Phy: 1, Size: 200}, never), "not the beginning of a record")
	require.False(t, r.Record(cq.Unit{Phy: 1 << 40, Size: 200}, never), "beyond the log")
	require.NoError(t, r.Close())
	require.False(t, r.Record(cq.Unit{Phy: 0, Size: 200}, never), "closed")
}

func TestCloseWithCallsOnceEverythingIsOnDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	end := r.put("T", 0, "x").End
	require.Less(t, r.FlushedTo(), end)
	called := 0
	last := func() {
		called++
		require.Equal(t, end, r.FlushedTo())
	}
	require.NoError(t, r.CloseWith(last))
	require.NoError(t, r.CloseWith(last))
	require.Equal(t, 1, called)
}
