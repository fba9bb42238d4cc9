package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// get reads from queue 0 of topic T.
func (r *rig) get(offset int64, maxMsgs int32, f store.Filter) (int, store.GetResult) {
	b, res := r.Get(nil, store.GetRequest{Topic: []byte("T"), Offset: offset, MaxMsgs: maxMsgs, Filter: f})
	return len(b), res
}

func TestGetStatuses(t *testing.T) {
	r := newRig(t, false)
	for _, at := range []int64{0, 5} {
		_, res := r.get(at, 32, nil)
		require.Equal(t, store.GetResult{Status: store.NoMessageInQueue}, res, "no such queue")
	}
	// 30 records in 5 files; a consume queue file has 20 units.
	body := strings.Repeat("x", 1000)
	for range 30 {
		r.put("T", 0, body)
	}
	r.settle()
	for name, c := range map[string]struct {
		offset, next int64
		status       store.GetStatus
		count        int32
	}{
		"before the first":          {-1, 0, store.OffsetTooSmall, 0},
		"first":                     {0, 20, store.Found, 20}, // ends with the consume queue file
		"in the middle":             {7, 20, store.Found, 13},
		"last of a file":            {19, 20, store.Found, 1},
		"first of the second file":  {20, 30, store.Found, 10},
		"last":                      {29, 30, store.Found, 1},
		"behind the last":           {30, 30, store.OffsetOverflowOne, 0},
		"behind that":               {31, 30, store.OffsetOverflowBadly, 0},
		"far behind that":           {1 << 40, 30, store.OffsetOverflowBadly, 0},
		"so far that it overflows":  {1<<63 - 1, 30, store.OffsetOverflowBadly, 0},
		"as far before as possible": {-1 << 63, 0, store.OffsetTooSmall, 0},
	} {
		n, res := r.get(c.offset, 32, nil)
		require.Equal(t, store.GetResult{Status: c.status, NextOffset: c.next, MaxOffset: 30, Count: c.count}, res, name)
		require.Equal(t, int(c.count)*1092, n, name)
	}
	_, res := r.get(3, 0, nil)
	require.Equal(t, int32(1), res.Count, "the first one is always given")

	// The log loses its two oldest files of 7 records; the queue's minimum
	// has not noticed: units are skipped to where the log begins.
	require.NoError(t, r.DropFirstLogFile())
	require.NoError(t, r.DropFirstLogFile())
	_, res = r.get(0, 32, nil)
	require.Equal(t, store.GetResult{Status: store.Found, NextOffset: 20, MaxOffset: 30, Count: 6}, res)
	require.NoError(t, r.DropFirstLogFile())
	_, res = r.get(0, 32, nil)
	require.Equal(t, store.GetResult{Status: store.MessageWasRemoving, NextOffset: 20, MaxOffset: 30}, res)
	// After a restart the minimum is right.
	r.reopen()
	_, res = r.get(0, 32, nil)
	require.Equal(t, store.GetResult{Status: store.OffsetTooSmall, NextOffset: 21, MinOffset: 21, MaxOffset: 30}, res)
	require.Equal(t, int64(21), r.MinOffset("T", 0))

	require.NoError(t, r.Close())
	_, res = r.get(0, 32, nil)
	require.Equal(t, store.Unavailable, res.Status)
	_, ok := r.ViewMessage(nil, 20<<10)
	require.False(t, ok)
}

func TestGetLimits(t *testing.T) {
	const size = 92 + 100 // of each record
	for name, c := range map[string]struct {
		change  func(c *store.Config)
		maxMsgs int32
		want    int32
	}{
		"asked for":       {func(*store.Config) {}, 5, 5},
		"count in memory": {func(*store.Config) {}, 100, 32},
		"bytes in memory": {func(c *store.Config) { c.MemoryTransferBytes = 7*size - 1 }, 100, 6},
		"bytes, exactly":  {func(c *store.Config) { c.MemoryTransferBytes = 7 * size }, 100, 7},
		"one at least":    {func(c *store.Config) { c.MemoryTransferBytes = 1 }, 100, 1},
		"count on disk":   {func(c *store.Config) { c.MemoryBytes = 1 }, 100, 8},
		"bytes on disk":   {func(c *store.Config) { c.MemoryBytes, c.DiskTransferBytes = 1, 3*size+1 }, 100, 3},
		// The first 3 of 40 records are further from the end than the limit.
		"from disk into memory": {func(c *store.Config) { c.MemoryBytes, c.DiskTransferCount = 37*size, 5 }, 100, 32},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false, c.change, func(c *store.Config) {
				c.CommitLogFileSize, c.ConsumeQueueFileSize = 1<<20, 1000*20
			})
			for range 40 {
				r.put("T", 0, strings.Repeat("x", 100))
			}
			r.settle()
			n, res := r.get(0, c.maxMsgs, nil)
			require.Equal(t, c.want, res.Count)
			require.Equal(t, int(c.want)*size, n)
			require.Equal(t, int64(c.want), res.NextOffset)
			require.Equal(t, r.cfg.MemoryBytes == 1, res.SuggestSlave)
			require.Equal(t, r.cfg.MemoryBytes == 0, r.MessageInMemory("T", 0, 0))
			require.False(t, r.MessageInMemory("T", 0, 40))
		})
	}
}

// filter takes records by tag and by the property "p"; "" takes all.
type filter struct{ tag, p string }

func (f filter) MatchCode(code int64) bool { return f.tag == "" || code == wire.TagsCode(f.tag) }

func (f filter) MatchRecord(r *wire.Record) bool {
	return f.p == "" || r.Properties.Text("p") == f.p
}

func TestGetFilters(t *testing.T) {
	r := newRig(t, false, func(c *store.Config) {
		c.CommitLogFileSize, c.ConsumeQueueFileSize = 1<<20, 10_000*20
	})
	for i := range 2000 {
		props := []string{"p", fmt.Sprint(i % 2)}
		if i%5 < 2 {
			props = append(props, wire.PropTags, string(rune('a'+i%5)))
		}
		r.put("T", 0, "x", props...)
	}
	r.settle()
	for name, c := range map[string]struct {
		f      filter
		offset int64
		want   store.GetResult
	}{
		"tag":          {filter{tag: "a"}, 0, store.GetResult{NextOffset: 31*5 + 1, Count: 32}},
		"property":     {filter{p: "1"}, 0, store.GetResult{NextOffset: 64, Count: 32}},
		"both":         {filter{tag: "b", p: "0"}, 0, store.GetResult{NextOffset: 6 + 31*10 + 1, Count: 32}},
		"no such tag":  {filter{tag: "zz"}, 0, store.GetResult{Status: store.NoMatchedMessage, NextOffset: 800}},
		"further on":   {filter{tag: "zz"}, 800, store.GetResult{Status: store.NoMatchedMessage, NextOffset: 1600}},
		"to the end":   {filter{tag: "zz"}, 1600, store.GetResult{Status: store.NoMatchedMessage, NextOffset: 2000}},
		"no such prop": {filter{p: "zz"}, 1999, store.GetResult{Status: store.NoMatchedMessage, NextOffset: 2000}},
	} {
		_, res := r.get(c.offset, 32, c.f)
		c.want.MaxOffset = 2000
		require.Equal(t, c.want, res, name)
	}
	// More asked for than the usual 800 units: as many are examined.
	_, res := r.get(0, 1500, filter{tag: "zz"})
	require.Equal(t, int64(1500), res.NextOffset)
}

func TestTagsCodes(t *testing.T) {
	var got []store.Arrival
	r := newRig(t, false, func(c *store.Config) {
		c.OnArrival = func(a store.Arrival) {
			a.Topic, a.Properties = nil, nil
			got = append(got, a)
		}
	})
	now := start.UnixMilli()
	r.put("T", 0, "x")
	r.put("T", 0, "x", wire.PropTags, "TagA")
	r.put("T", 0, "x", wire.PropTags, "TagA", wire.PropDelay, "3")
	for _, level := range []string{"1", "18", "99", "0", "-1", "x"} {
		r.put(wire.TopicSchedule, 5, "x", wire.PropTags, "TagA", wire.PropDelay, level)
	}
	r.settle()
	tagA := wire.TagsCode("TagA")
	want := []store.Arrival{
		{Offset: 0, StoreTime: now, TagsCode: 0},
		{Offset: 1, StoreTime: now + 1, TagsCode: tagA},
		{Offset: 2, StoreTime: now + 2, TagsCode: tagA},
		{QueueID: 5, Offset: 0, StoreTime: now + 3, TagsCode: now + 3 + 1000},
		{QueueID: 5, Offset: 1, StoreTime: now + 4, TagsCode: now + 4 + 7200_000},
		{QueueID: 5, Offset: 2, StoreTime: now + 5, TagsCode: now + 5 + 7200_000},
		{QueueID: 5, Offset: 3, StoreTime: now + 6, TagsCode: tagA},
		{QueueID: 5, Offset: 4, StoreTime: now + 7, TagsCode: tagA},
		{QueueID: 5, Offset: 5, StoreTime: now + 8, TagsCode: tagA},
	}
	require.Equal(t, want, got)
}

func TestOffsetByTime(t *testing.T) {
	for name, perFile := range map[string]int64{"one file": 100, "small files": 4} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false, func(c *store.Config) { c.ConsumeQueueFileSize = perFile * 20 })
			base := start.UnixMilli()
			require.Zero(t, r.OffsetByTime("T", 0, base, false), "no such queue")
			// Store times 0 0 0 10 10 20 30 30 30 30 40, relative to base.
			at := int64(0)
			for _, ms := range []int64{0, 0, 0, 10, 10, 20, 30, 30, 30, 30, 40} {
				for ; at < ms; at++ {
					r.clock.Advance(1e6)
				}
				res, _ := r.Put(message("T", 0, strings.Repeat("x", 1000)), nil)
				require.Equal(t, base+ms, res.StoreTime)
			}
			r.settle()
			for _, c := range []struct{ ms, lower, upper int64 }{
				{-5, 0, 0}, {0, 0, 2}, {5, 3, 2}, {10, 3, 4}, {15, 5, 4}, {20, 5, 5},
				{25, 6, 5}, {30, 6, 9}, {35, 10, 9}, {40, 10, 10}, {45, 11, 10},
			} {
				require.Equal(t, c.lower, r.OffsetByTime("T", 0, base+c.ms, false), "lower %d", c.ms)
				require.Equal(t, c.upper, r.OffsetByTime("T", 0, base+c.ms, true), "upper %d", c.ms)
			}
			// Records of the first file are gone: they count as too early.
			require.NoError(t, r.DropFirstLogFile())
			require.Equal(t, int64(7), r.OffsetByTime("T", 0, base, false))
			r.reopen()
			require.Equal(t, int64(7), r.OffsetByTime("T", 0, base, false))
			require.Equal(t, int64(7), r.OffsetByTime("T", 0, base, true))
			require.Equal(t, base+30, r.EarliestStoreTime("T", 0))
			require.Equal(t, base+40, r.StoreTimeAt("T", 0, 10))
			require.Equal(t, int64(-1), r.StoreTimeAt("T", 0, 11))
			require.Equal(t, int64(-1), r.StoreTimeAt("T", 0, 6))
			require.Equal(t, int64(-1), r.EarliestStoreTime("T", 1))
		})
	}
}

func TestViewMessageNeedsARecord(t *testing.T) {
	r := newRig(t, false)
	r.put("T", 0, "one")
	res := r.put("T", 0, "two")
	for _, phy := range []int64{-1, 1, res.PhyOffset - 1, res.PhyOffset + 1, res.End, 1 << 50} {
		b, ok := r.ViewMessage([]byte("kept"), phy)
		require.False(t, ok, phy)
		require.Equal(t, "kept", string(b))
	}
	b, ok := r.ViewMessage([]byte("kept"), res.PhyOffset)
	require.True(t, ok)
	require.Len(t, b, 4+92+3)
}
