package mfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/edsrzf/mmap-go"
)

// OSFiles is the operating system's file system, with mapped files.
type OSFiles struct {
	mapped atomic.Int64
}

var _ FS = (*OSFiles)(nil)

// OS returns the operating system's file system.
func OS() *OSFiles { return &OSFiles{} }

// Mapped is how many files that were opened through o are mapped now.
func (o *OSFiles) Mapped() int64 { return o.mapped.Load() }

// InMemory implements [FS].
func (o *OSFiles) InMemory() bool { return false }

// MkdirAll implements [FS].
func (o *OSFiles) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

// ReadDir implements [FS].
func (o *OSFiles) ReadDir(dir string) ([]Entry, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		if e.IsDir() {
			out = append(out, Entry{Name: e.Name(), Dir: true})
			continue
		}
		i, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Entry{Name: e.Name(), Size: i.Size(), ModTime: i.ModTime()})
	}
	return out, nil
}

// Create implements [FS].
func (o *OSFiles) Create(path string, size int64, reserve bool) (*File, error) {
	if size <= 0 {
		return nil, fmt.Errorf("mfile: create %s: size %d, want more than 0", path, size)
	}
	h, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	if err = h.Truncate(size); err == nil && reserve {
		err = allocate(h, 0, size)
	}
	var f *File
	if err == nil {
		f, err = o.mapFile(path, h, size)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create %s: %w", path, err), h.Close(), os.Remove(path))
	}
	if reserve {
		f.reserved.Store(size)
	}
	return f, nil
}

// Open implements [FS].
func (o *OSFiles) Open(path string) (*File, error) {
	h, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	i, err := h.Stat()
	if err == nil && i.Size() == 0 {
		err = &FormatError{Path: path, Reason: "the file is empty"}
	}
	var f *File
	if err == nil {
		f, err = o.mapFile(path, h, i.Size())
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	f.opened()
	return f, nil
}

// opened puts the positions to the end, as after loading.
func (f *File) opened() {
	f.wrote.Store(f.Size())
	f.flushed.Store(f.Size())
}

// mapFile maps an open file and takes its handle over, unless it fails.
func (o *OSFiles) mapFile(path string, h *os.File, size int64) (*File, error) {
	if int64(int(size)) != size {
		return nil, &FormatError{Path: path, Reason: fmt.Sprintf("%d bytes do not fit into this machine's address space", size)}
	}
	data, err := mmap.MapRegion(h, int(size), mmap.RDWR, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	b := &osFile{fs: o}
	if keepHandle {
		b.h = h
	} else if err := h.Close(); err != nil {
		return nil, errors.Join(err, data.Unmap())
	}
	o.mapped.Add(1)
	return newFile(path, data, b), nil
}

// Rename implements [FS].
func (o *OSFiles) Rename(oldPath, newPath string) error { return os.Rename(oldPath, newPath) }

// Remove implements [FS].
func (o *OSFiles) Remove(path string) error { return os.Remove(path) }

// RemoveAll implements [FS].
func (o *OSFiles) RemoveAll(dir string) error { return os.RemoveAll(dir) }

// SyncDir implements [FS].
func (o *OSFiles) SyncDir(dir string) error {
	if !syncsDirs {
		return nil
	}
	h, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(h.Sync(), h.Close())
}

// ReadFile implements [FS].
func (o *OSFiles) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// WriteFile implements [FS].
func (o *OSFiles) WriteFile(path string, b []byte) error {
	h, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = h.Write(b)
	if err == nil {
		err = h.Sync()
	}
	return errors.Join(err, h.Close())
}

// Lock implements [FS]. The lock is of the kind that excludes a Java broker:
// a record lock on the file's first byte where the system has those.
func (o *OSFiles) Lock(path string) (io.Closer, error) {
	h, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(h); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, path), h.Close())
	}
	if _, err := h.WriteAt([]byte("lock"), 0); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Usage implements [FS].
func (o *OSFiles) Usage(dir string) (total, available int64, err error) { return diskUsage(dir) }

// osFile is the backing of a mapped file.
type osFile struct {
	fs *OSFiles
	h  *os.File // only where a mapping needs it, see keepHandle, or for write
}

func (b *osFile) write(path string, data, p []byte, at int64) error {
	if !coherent {
		copy(data[at:], p)
		return nil
	}
	if b.h == nil {
		h, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		b.h = h
	}
	_, err := b.h.WriteAt(p, at)
	return err
}

func (b *osFile) nextData(path string, from int64) int64 { return nextData(path, from) }

func (b *osFile) sync(data []byte, from, to int64) error { return syncMapping(data, from, to) }

func (b *osFile) populate(data []byte, from, to int64) { populate(data[from:to]) }

func (b *osFile) readAhead(data []byte, on bool) { readAhead(data, on) }

func (b *osFile) reserve(path string, from, to int64) error {
	h, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(allocate(h, from, to-from), h.Close())
}

func (b *osFile) close(data []byte) error {
	b.fs.mapped.Add(-1)
	m := mmap.MMap(data)
	err := m.Unmap()
	if b.h != nil {
		err = errors.Join(err, b.h.Close())
	}
	return err
}

func (b *osFile) remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone with its directory
	}
	return err
}
