package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/inspect"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	logFile   = 16 << 10
	queueFile = 20 * 20
)

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{Dir: dir, CommitLogFileSize: logFile, ConsumeQueueFileSize: queueFile, IndexSlots: 100, IndexEntries: 1000})
	require.NoError(t, err)
	t.Cleanup(s.Abandon)
	return s
}

func put(t *testing.T, s *store.Store, topic string, queue int32, body string) {
	t.Helper()
	m := &store.Message{Topic: []byte(topic), QueueID: queue, Body: []byte(body), BornTime: time.Now().UnixMilli()}
	m.Properties = wire.AppendProperty(m.Properties, wire.PropTags, "tag-"+topic)
	m.Properties = wire.AppendProperty(m.Properties, wire.PropKeys, "key "+body)
	res, _ := s.Put(m, nil)
	require.NoError(t, res.Err)
}

func dispatched(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, s.WaitDispatched(ctx))
}

// filled makes a store with 300 messages of two topics and stops it.
func filled(t *testing.T, stop func(*store.Store)) string {
	t.Helper()
	dir := t.TempDir()
	s := openStore(t, dir)
	for i := range 300 {
		put(t, s, "Even", int32(i%2), fmt.Sprintf("even %d", i))
		put(t, s, "Odd", 0, fmt.Sprintf("odd %d", i))
	}
	dispatched(t, s)
	stop(s)
	return dir
}

func closeStore(t *testing.T) func(*store.Store) {
	return func(s *store.Store) { require.NoError(t, s.Close()) }
}

func checkDir(t *testing.T, dir string) (inspect.Summary, []inspect.Finding) {
	t.Helper()
	d, err := inspect.Open(dir, inspect.Sizes{})
	require.NoError(t, err)
	var found []inspect.Finding
	sum, err := d.Check(t.Context(), func(f inspect.Finding) { found = append(found, f) })
	require.NoError(t, err)
	return sum, found
}

// TestOwnStores: what ours leaves is in order, and looking at it changes
// nothing.
func TestOwnStores(t *testing.T) {
	for name, stop := range map[string]func(*store.Store){"clean": closeStore(t), "killed": (*store.Store).Abandon} {
		dir := filled(t, stop)
		before := snapshot(t, dir)
		for _, mode := range []os.FileMode{0o755, 0o555} { // also when nobody may write
			require.NoError(t, os.Chmod(dir, mode))
			sum, found := checkDir(t, dir)
			assert.Zero(t, sum.Problems, "%s: %v", name, found)
			assert.EqualValues(t, 600, sum.Messages, name)
			d, err := inspect.Open(dir, inspect.Sizes{})
			require.NoError(t, err)
			_, err = d.Stats(t.Context(), func(f inspect.Finding) { t.Error(f) })
			require.NoError(t, err)
			n, err := d.Dump(t.Context(), inspect.Selection{Topic: "Odd", Queue: -1}, func(*wire.Record) error { return nil }, func(f inspect.Finding) { t.Error(f) })
			require.NoError(t, err)
			assert.EqualValues(t, 300, n)
		}
		require.NoError(t, os.Chmod(dir, 0o755))
		assert.Equal(t, before, snapshot(t, dir), name)
	}
}

// TestBesideAStoreInUse: a store that is being written to is in order at any
// moment, and is not held up.
func TestBesideAStoreInUse(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	put(t, s, "Even", 0, "first")
	var writer sync.WaitGroup
	written := make(chan struct{})
	writer.Go(func() {
		defer close(written)
		for i := range 3000 {
			put(t, s, "Even", int32(i%3), fmt.Sprintf("even %d", i))
		}
	})
	last := int64(0)
	for done := false; !done; {
		select {
		case <-written:
			done = true // and once more
		default:
		}
		sum, found := checkDir(t, dir)
		assert.Zero(t, sum.Problems, "%v", found)
		assert.GreaterOrEqual(t, sum.Messages, last)
		last = sum.Messages
	}
	writer.Wait()
	require.EqualValues(t, 3001, last)
	require.NoError(t, s.Close())
}

func TestMissingQueueFiles(t *testing.T) {
	dir := filled(t, closeStore(t))
	whole := imageOf(t, dir)
	files := whole.under("consumequeue/Odd/0")
	require.Len(t, files, 15)
	for i, p := range files {
		im := clone(whole)
		im.remove(p)
		_, found := im.check(inspect.Sizes{ConsumeQueue: queueFile})
		bad := damages(found)
		require.Len(t, bad, 1, "%v", found)
		assert.Equal(t, "store/"+p, bad[0].Path, "file %d", i)
		assert.Contains(t, bad[0].Text, "missing")
	}
	// An empty unit in an old file, and a series of wrong ones.
	im := clone(whole)
	clear(im.bytes(files[3])[40:80])
	for i := int64(5); i < 9; i++ {
		im.put64(files[7], i*20, 1<<40)
	}
	_, found := im.check(inspect.Sizes{})
	bad := damages(found)
	require.NotEmpty(t, bad)
	assert.Contains(t, fmt.Sprint(bad), "units 62 to 63 of queue Odd/0 empty")
	assert.Contains(t, fmt.Sprint(bad), files[7]+" at byte 100: unit 145 of queue Odd/0")
}

func TestTopicThatWasDeleted(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	for i := range 30 {
		put(t, s, "Gone", 0, fmt.Sprint(i))
		put(t, s, "Again", 0, fmt.Sprint(i))
	}
	require.NoError(t, s.DeleteTopic(t.Context(), "Gone"))
	require.NoError(t, s.DeleteTopic(t.Context(), "Again"))
	for i := range 40 {
		put(t, s, "Again", 0, fmt.Sprint(i))
	}
	require.NoError(t, s.Close())
	sum, found := checkDir(t, dir)
	assert.Zero(t, sum.Problems, "%v", found)
	assert.Contains(t, fmt.Sprint(found), "has the topic been deleted?")
	assert.Contains(t, fmt.Sprint(found), "the log has 30 messages of an earlier topic of this name")
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	_, err := inspect.Open(filepath.Join(dir, "nowhere"), inspect.Sizes{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = inspect.Open(dir, inspect.Sizes{})
	require.ErrorIs(t, err, inspect.ErrNotAStore)
	require.ErrorContains(t, err, "it is empty")
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = inspect.Open(file, inspect.Sizes{})
	require.ErrorContains(t, err, "it is a file")
	_, err = inspect.Open(dir, inspect.Sizes{})
	require.ErrorContains(t, err, "none of commitlog")
}

func TestCheckCanBeStopped(t *testing.T) {
	im := golden(t, "4.9-clean")
	d, err := inspect.OpenFS(im.MapFS, "store", inspect.Sizes{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Check(ctx, func(inspect.Finding) {})
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.Stats(ctx, func(inspect.Finding) {})
	require.ErrorIs(t, err, context.Canceled)
}

func TestDump(t *testing.T) {
	dir := filled(t, closeStore(t))
	d, err := inspect.Open(dir, inspect.Sizes{})
	require.NoError(t, err)
	dump := func(sel inspect.Selection) (out []string) {
		_, err := d.Dump(t.Context(), sel, func(r *wire.Record) error {
			out = append(out, fmt.Sprintf("%d/%d %s", r.QueueID, r.QueueOffset, r.Body))
			return nil
		}, func(f inspect.Finding) { t.Error(f) })
		require.NoError(t, err)
		return out
	}
	require.Equal(t, []string{"0/0 odd 0", "0/1 odd 1"}, dump(inspect.Selection{Topic: "Odd", Queue: -1, Max: 2}))
	require.Equal(t, []string{"1/149 even 299"}, dump(inspect.Selection{Topic: "Even", Queue: 1, From: 149}))
	require.Len(t, dump(inspect.Selection{Topic: "Even", Queue: -1}), 300)
	require.Empty(t, dump(inspect.Selection{Topic: "Even", Queue: -1, From: 1000}))

	_, err = d.Dump(t.Context(), inspect.Selection{Topic: "Eve", Queue: -1}, nil, nil)
	require.ErrorContains(t, err, "there are: Even Odd")
	_, err = d.Dump(t.Context(), inspect.Selection{Topic: "Even", Queue: 7}, nil, nil)
	require.ErrorContains(t, err, "no queue 7")
	boom := errors.New("boom")
	_, err = d.Dump(t.Context(), inspect.Selection{Topic: "Even", Queue: -1}, func(*wire.Record) error { return boom }, nil)
	require.ErrorIs(t, err, boom)

	// Damage is reported and passed over.
	im := imageOf(t, dir)
	r := im.of("Odd")[5]
	im.flip(r.path, r.at+35)
	d, err = inspect.OpenFS(im.MapFS, "store", inspect.Sizes{})
	require.NoError(t, err)
	var found []inspect.Finding
	n, err := d.Dump(t.Context(), inspect.Selection{Topic: "Odd", Queue: 0}, func(*wire.Record) error { return nil }, func(f inspect.Finding) { found = append(found, f) })
	require.NoError(t, err)
	require.EqualValues(t, 299, n)
	require.Len(t, found, 1)
	require.EqualValues(t, 100, found[0].Offset)
}

func TestStats(t *testing.T) {
	im := golden(t, "5.3-killed")
	d, err := inspect.OpenFS(im.MapFS, "store", inspect.Sizes{})
	require.NoError(t, err)
	s, err := d.Stats(t.Context(), func(f inspect.Finding) { t.Error(f) })
	require.NoError(t, err)
	last := im.last()
	assert.True(t, s.Aborted)
	assert.Equal(t, 6, s.LogFiles)
	assert.EqualValues(t, 65536, s.LogFileSize)
	assert.EqualValues(t, 2000, s.QueueFileSize)
	assert.Equal(t, last.PhyOffset+int64(last.Size), s.LogEnd)
	assert.Equal(t, last.StoreTime, s.LastStored)
	assert.Equal(t, im.records()[0].StoreTime, s.FirstStored)
	assert.Equal(t, 4, s.IndexFiles)
	for _, q := range s.Queues {
		if q.Topic == "TopicB" {
			assert.Equal(t, inspect.QueueStats{Topic: "TopicB", ID: 0, Files: 2, Min: 0, Max: int64(len(im.of("TopicB")))}, q)
		}
	}
}
