package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// checkpointSize and the places within the file are part of the format.
const (
	checkpointSize = 4096

	cpLog           = 0  // store time of the newest log record on disk, ms
	cpQueues        = 8  // the same for consume queues
	cpIndex         = 16 // the same for the index
	cpMasterFlushed = 24
	cpConfirm       = 32 // end of the log while running, 0 after a clean stop
)

// recoverMargin is how far before the checkpoint's times recovery begins, ms.
const recoverMargin = 3000

// checkpoint is the file that says how far flushing had come. One goroutine
// at a time uses it.
type checkpoint struct{ f *mfile.File }

// openCheckpoint opens the file, or makes it. One of a wrong size is replaced:
// it only shortens recovery.
func openCheckpoint(fsys mfile.FS, dir string) (*checkpoint, error) {
	path := filepath.Join(dir, "checkpoint")
	f, err := fsys.Open(path)
	var bad *mfile.FormatError
	switch {
	case err == nil && f.Size() == checkpointSize:
		return &checkpoint{f}, nil
	case err == nil:
		err = f.Destroy()
	case errors.As(err, &bad):
		err = fsys.Remove(path)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if f, err = fsys.Create(path, checkpointSize, true); err != nil {
		return nil, err
	}
	return &checkpoint{f}, nil
}

func (c *checkpoint) get(at int) int64 { return int64(binary.BigEndian.Uint64(c.f.Data()[at:])) }

func (c *checkpoint) set(at int, v int64) { binary.BigEndian.PutUint64(c.f.Data()[at:], uint64(v)) }

// safeTime is the store time up to which log and consume queues are on disk
// for certain.
func (c *checkpoint) safeTime() int64 {
	return max(0, min(c.get(cpLog), c.get(cpQueues))-recoverMargin)
}

func (c *checkpoint) flush() error { return c.f.Sync() }

func (c *checkpoint) close() error { return c.f.Close() }
