package index

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Flush makes files durable that are full, have a successor and end before the
// log position logFlushed, up to which the log is on disk: an index must not
// know more than the log. It blocks for the disk.
func (x *Index) Flush(logFlushed int64) error {
	files := x.list()
	var err error
	for _, f := range files[:max(0, len(files)-1)] {
		if f.endPhy.Load() >= logFlushed {
			break
		}
		err = errors.Join(err, x.sync(f))
	}
	return err
}

// FlushAll makes everything durable. Nobody may write meanwhile.
func (x *Index) FlushAll() error {
	var err error
	for _, f := range x.list() {
		err = errors.Join(err, x.sync(f))
	}
	return err
}

func (x *Index) sync(f *file) error {
	if f.synced.Load() || !f.Hold() {
		return nil
	}
	defer f.Release()
	err := f.Sync()
	if err == nil {
		err = x.cfg.FS.SyncDir(x.cfg.Dir)
	}
	if err == nil {
		err = x.cfg.FS.SyncDir(filepath.Dir(x.cfg.Dir))
	}
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	f.synced.Store(true)
	return nil
}

// FlushedTime is the store time in ms up to which the index is durable, for
// the checkpoint; 0 if there is none. No file that may be lost ends at or
// before it, or it would be trusted after a crash.
func (x *Index) FlushedTime() int64 {
	files := x.list()
	t, n := int64(0), 0
	for ; n+1 < len(files) && files[n].synced.Load(); n++ {
		t = max(t, files[n].endTime.Load())
	}
	for _, f := range files[n:] {
		t = min(t, f.endTime.Load()-1)
	}
	return max(0, t)
}
