package store_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is a store with small files that can be closed, killed and opened again.
type rig struct {
	*store.Store
	t     testing.TB
	cfg   store.Config
	clock *clock.Manual
}

// newRig opens a store in memory, or on disk.
func newRig(t testing.TB, disk bool, change ...func(*store.Config)) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewManual(start)}
	r.cfg = store.Config{
		Dir: "store", FS: mfile.NewMemory(), Clock: r.clock,
		CommitLogFileSize: 8 << 10, ConsumeQueueFileSize: 20 * 20,
		DiskUsage: func(string) (float64, error) { return 0, nil }, // whatever this machine's is
	}
	if disk {
		fs := mfile.OS()
		r.cfg.Dir, r.cfg.FS = t.TempDir(), fs
		t.Cleanup(func() { require.Zero(t, fs.Mapped(), "files still mapped") })
	}
	for _, f := range change {
		f(&r.cfg)
	}
	r.open()
	t.Cleanup(func() { r.Abandon() })
	return r
}

func (r *rig) open() {
	r.t.Helper()
	s, err := store.Open(r.cfg)
	require.NoError(r.t, err)
	r.Store = s
}

// reopen closes the store and opens it again.
func (r *rig) reopen() {
	r.t.Helper()
	require.NoError(r.t, r.Close())
	r.open()
}

// kill ends the store as a dying process does and opens it again.
func (r *rig) kill() {
	r.t.Helper()
	r.Abandon()
	r.open()
}

// put stores a message that must be accepted, and moves the clock by 1 ms.
func (r *rig) put(topic string, queue int32, body string, props ...string) store.PutResult {
	r.t.Helper()
	res, pending := r.Put(message(topic, queue, body, props...), nil)
	require.NoError(r.t, res.Err)
	require.Equal(r.t, store.PutOK, res.Status)
	require.False(r.t, pending)
	r.clock.Advance(time.Millisecond)
	return res
}

func message(topic string, queue int32, body string, props ...string) *store.Message {
	m := &store.Message{Topic: []byte(topic), QueueID: queue, Body: []byte(body), BornTime: start.UnixMilli()}
	for i := 0; i+1 < len(props); i += 2 {
		m.Properties = wire.AppendProperty(m.Properties, props[i], props[i+1])
	}
	return m
}

// settle waits until all that was put can be read.
func (r *rig) settle() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(r.t, r.WaitDispatched(ctx))
}

// bodies reads a queue from an offset to its end and checks on the way that
// records come in order and without gaps.
func (r *rig) bodies(topic string, queue int32, from int64) []string {
	r.t.Helper()
	var out []string
	for _, rec := range r.records(topic, queue, from) {
		out = append(out, string(rec.Body))
	}
	return out
}

func (r *rig) records(topic string, queue int32, from int64) []wire.Record {
	r.t.Helper()
	var out []wire.Record
	for at := from; ; {
		b, res := r.Get(nil, store.GetRequest{Topic: []byte(topic), QueueID: queue, Offset: at, MaxMsgs: 32})
		if res.Status != store.Found {
			require.Contains(r.t, []store.GetStatus{store.OffsetOverflowOne, store.NoMessageInQueue}, res.Status)
			return out
		}
		it := wire.Records(b)
		for n := int32(0); ; n++ {
			var rec wire.Record
			ok, err := it.Next(&rec)
			require.NoError(r.t, err)
			if !ok {
				require.Equal(r.t, res.Count, n)
				break
			}
			require.Equal(r.t, at, rec.QueueOffset)
			require.True(r.t, rec.CheckBody())
			require.Equal(r.t, topic, string(rec.Topic))
			require.Equal(r.t, queue, rec.QueueID)
			at++
			out = append(out, rec)
		}
		require.Equal(r.t, at, res.NextOffset)
	}
}

// numbered are n different bodies.
func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return out
}

// untar unpacks an archive into a file system.
func untar(t testing.TB, fs mfile.FS, dir, archive string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, fs.MkdirAll(path))
			continue
		}
		b, err := io.ReadAll(tr)
		require.NoError(t, err)
		require.NoError(t, fs.MkdirAll(filepath.Dir(path)))
		require.NoError(t, fs.WriteFile(path, b))
	}
}
