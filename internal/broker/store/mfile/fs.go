// Package mfile is the file seam of the store: files of fixed size that are
// used as memory, their sequence in a directory, and the few other file
// operations a store needs. It is the only package that knows about mapping.
// [OS] maps files of the operating system, [NewMemory] keeps them in memory.
package mfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"
)

// PageSize is the unit in which dirty data is counted and flushed, as Apache's
// OS_PAGE_SIZE; it does not depend on the machine's own page size.
const PageSize = 4096

// ErrLocked is returned by [FS.Lock] when someone else holds the lock.
var ErrLocked = errors.New("mfile: locked by another process or store")

// FormatError is a file that cannot belong to a store with these settings.
type FormatError struct {
	Path   string
	Offset int64 // within the file
	Reason string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s at byte %d: %s", e.Path, e.Offset, e.Reason)
}

// IOError is a file that could not be made, written or made durable. After a
// failed write or flush, no later success says anything about what was written
// before: systems report a failed write-back once and may drop the data. A
// failed create or reserve (the disk is full) leaves nothing behind.
type IOError struct {
	Op     string // create, reserve, write or flush
	Path   string
	Offset int64 // within the file, of the first byte concerned
	Err    error
}

// Error implements error.
func (e *IOError) Error() string {
	return fmt.Sprintf("%s %s at byte %d: %v", e.Op, e.Path, e.Offset, e.Err)
}

// Unwrap returns the system's error.
func (e *IOError) Unwrap() error { return e.Err }

// Entry is one name in a directory.
type Entry struct {
	Name string
	Size int64
	Dir  bool
	// ModTime is when a file was last changed; zero where that is not known.
	ModTime time.Time
}

// FS is what a store needs of a file system. Paths are those of path/filepath.
// Errors of missing files satisfy errors.Is(err, fs.ErrNotExist). All methods
// are safe for concurrent use.
type FS interface {
	// InMemory reports that files live in the process alone: nothing is ever
	// flushed, and large files cost memory.
	InMemory() bool
	// MkdirAll makes a directory and its parents; it may exist.
	MkdirAll(dir string) error
	// ReadDir lists a directory in order of names.
	ReadDir(dir string) ([]Entry, error)
	// Create makes a file of size zero bytes and opens it; it must not exist.
	// With reserve the disk space is taken now where the system can do that.
	Create(path string, size int64, reserve bool) (*File, error)
	// Open opens a file at its present size, which must not be 0. Wrote and
	// flushed are at its end, as Apache has them after loading.
	Open(path string) (*File, error)
	// Rename replaces what was at newPath.
	Rename(oldPath, newPath string) error
	// Remove removes a file or an empty directory.
	Remove(path string) error
	// RemoveAll removes a directory with all in it; it may be missing. Files
	// that are open stay usable until they are closed.
	RemoveAll(dir string) error
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
	// ReadFile and WriteFile are for small files. WriteFile replaces the file
	// in place and makes its content durable.
	ReadFile(path string) ([]byte, error)
	WriteFile(path string, b []byte) error
	// Lock takes the exclusive lock of a lock file, which is created if
	// missing and holds the word "lock" afterwards. It does not wait: a lock
	// that is held is [ErrLocked]. Closing the result gives the lock back.
	Lock(path string) (io.Closer, error)
	// Usage is the size of the file system that dir is on and what is
	// available in it, in bytes; 0, 0 where that means nothing.
	Usage(dir string) (total, available int64, err error)
}

// MakeDir makes a directory and its parents, and makes sure that those it made
// outlive a crash of the machine.
func MakeDir(fsys FS, dir string) error {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		_, err := fsys.ReadDir(d)
		if err == nil || d == filepath.Dir(d) {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		made = append(made, d)
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range made {
		if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}
