package mfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// Sequence is an endless file cut into files of one size, each named after
// the offset of its first byte in 20 digits (Apache's MappedFileQueue).
// Reading methods are safe for concurrent use at any time; methods that add or
// remove files have one caller at a time, who owns the sequence.
type Sequence struct {
	fs   FS
	dir  string
	size int64

	// files is replaced, never changed, so that readers need no lock.
	files atomic.Pointer[[]*File]

	names   atomic.Bool // files were made or removed since SyncNames
	parents atomic.Bool // the directory was made since SyncNames
}

// NewSequence returns the sequence in dir without looking there.
func NewSequence(fsys FS, dir string, size int64) *Sequence {
	s := &Sequence{fs: fsys, dir: dir, size: size}
	s.files.Store(&[]*File{})
	return s
}

// OpenSequence opens all files in dir, which may be missing. A newest file
// without content is removed, as Apache does; directories are ignored. Any
// other file that cannot belong to the sequence is a [*FormatError], and
// nothing is left open then.
func OpenSequence(fsys FS, dir string, size int64) (*Sequence, error) {
	s := NewSequence(fsys, dir, size)
	list, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	var names []Entry
	for _, e := range list {
		if !e.Dir {
			names = append(names, e)
		}
	}
	if n := len(names); n > 0 && names[n-1].Size == 0 {
		if err := fsys.Remove(filepath.Join(dir, names[n-1].Name)); err != nil {
			return nil, err
		}
		names = names[:n-1]
	}
	files := make([]*File, 0, len(names))
	for i, e := range names {
		f, err := s.openOne(e)
		if err == nil && i > 0 && f.start != files[i-1].End() {
			err = errors.Join(&FormatError{Path: f.path, Reason: fmt.Sprintf(
				"files are missing before it: the previous one ends at %d", files[i-1].End())}, f.Close())
		}
		if err != nil {
			for _, f := range files {
				err = errors.Join(err, f.Close())
			}
			return nil, err
		}
		files = append(files, f)
	}
	s.files.Store(&files)
	return s, nil
}

func (s *Sequence) openOne(e Entry) (*File, error) {
	path := filepath.Join(s.dir, e.Name)
	start, ok := ParseName(e.Name)
	if !ok || start%s.size != 0 {
		return nil, &FormatError{Path: path, Reason: fmt.Sprintf(
			"not the name of a file of this store: want 20 digits, a multiple of the file size %d", s.size)}
	}
	if e.Size != s.size {
		return nil, &FormatError{Path: path, Offset: min(e.Size, s.size), Reason: fmt.Sprintf(
			"the file has %d bytes, want %d; open the store with the file size it was made with", e.Size, s.size)}
	}
	f, err := s.fs.Open(path)
	if err != nil {
		return nil, err
	}
	f.start = start
	return f, nil
}

// FileName is the name of the file that starts at an offset.
func FileName(start int64) string {
	d := strconv.FormatInt(start, 10)
	return strings.Repeat("0", max(0, 20-len(d))) + d
}

// ParseName reads a file name back.
func ParseName(name string) (start int64, ok bool) {
	if len(name) != 20 {
		return 0, false
	}
	for _, c := range []byte(name) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	start, err := strconv.ParseInt(name, 10, 64)
	return start, err == nil
}

// Dir is the sequence's directory.
func (s *Sequence) Dir() string { return s.dir }

// FileSize is the size of each file in bytes.
func (s *Sequence) FileSize() int64 { return s.size }

// Files lists the files, oldest first. The slice must not be changed.
func (s *Sequence) Files() []*File { return *s.files.Load() }

// First is the oldest file, nil if there is none.
func (s *Sequence) First() *File {
	if fs := s.Files(); len(fs) > 0 {
		return fs[0]
	}
	return nil
}

// Last is the newest file, nil if there is none.
func (s *Sequence) Last() *File {
	if fs := s.Files(); len(fs) > 0 {
		return fs[len(fs)-1]
	}
	return nil
}

// Find returns the file that has the byte at off, nil if there is none.
func (s *Sequence) Find(off int64) *File {
	fs := s.Files()
	if len(fs) == 0 || off < fs[0].start {
		return nil
	}
	i := (off - fs[0].start) / s.size
	if i >= int64(len(fs)) {
		return nil
	}
	return fs[i]
}

// Hold is Find, with a reference that the caller must release. It returns nil
// when there is no such file, or no longer.
func (s *Sequence) Hold(off int64) *File {
	f := s.Find(off)
	if f == nil || !f.Hold() {
		return nil
	}
	return f
}

// Create makes the file that starts at start, a multiple of the file size,
// and the directory if it is missing. The file belongs to the caller until it
// is given to [Sequence.Add].
func (s *Sequence) Create(start int64, reserve bool) (*File, error) {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return nil, &IOError{Op: "create", Path: s.dir, Err: err}
	}
	path := filepath.Join(s.dir, FileName(start))
	f, err := s.fs.Create(path, s.size, reserve)
	if err != nil {
		return nil, &IOError{Op: "create", Path: path, Err: err}
	}
	f.start = start
	if len(s.Files()) == 0 {
		s.parents.Store(true)
	}
	s.names.Store(true)
	return f, nil
}

// SyncNames is SyncDir if files were made or removed since the last call. If
// the sequence had no files before, the directories up to levels above it are
// made durable as well. It may run beside the writer.
func (s *Sequence) SyncNames(levels int) error {
	if !s.names.Swap(false) {
		return nil
	}
	if !s.parents.Swap(false) {
		levels = 0
	}
	var err error
	for dir := s.dir; levels >= 0 && err == nil; dir, levels = filepath.Dir(dir), levels-1 {
		err = s.fs.SyncDir(dir)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && len(s.Files()) == 0:
		return nil // destroyed meanwhile
	}
	s.parents.Store(true)
	s.names.Store(true)
	return fmt.Errorf("flush directory of %s: %w", s.dir, err)
}

// DistrustNames makes the next SyncNames do everything: a process that died may
// have left changes that only the system's cache has.
func (s *Sequence) DistrustNames() {
	s.parents.Store(true)
	s.names.Store(true)
}

// SyncDir makes the presence of files durable.
func (s *Sequence) SyncDir() error { return s.fs.SyncDir(s.dir) }

// Add appends a file to the sequence, which takes it over. It must start
// where the last one ends.
func (s *Sequence) Add(f *File) {
	old := s.Files()
	if n := len(old); n > 0 && old[n-1].End() != f.start {
		panic("mfile: file added out of order: " + f.path)
	}
	// Appending in place is fine: readers of the old slice do not see the
	// element, and there is one owner.
	files := append(old[:len(old):cap(old)], f)
	s.files.Store(&files)
}

// Truncate cuts the sequence at off: files that start there or later are
// removed, the positions of the file that has the byte before off are moved
// to it. Bytes stay as they are.
func (s *Sequence) Truncate(off int64) error {
	old := s.Files()
	keep := len(old)
	for keep > 0 && old[keep-1].start >= off {
		keep--
	}
	files := old[:keep:keep]
	s.files.Store(&files)
	if keep < len(old) {
		s.names.Store(true)
	}
	var err error
	// The newest goes first: a crash on the way must not leave a hole.
	for i := len(old) - 1; i >= keep; i-- {
		err = errors.Join(err, old[i].Destroy())
	}
	if keep > 0 {
		last := files[keep-1]
		last.SetWrote(min(off-last.start, last.Size()))
	}
	return err
}

// RemoveFirst removes the oldest file; readers that hold it can finish.
func (s *Sequence) RemoveFirst() error {
	f := s.DetachFirst()
	if f == nil {
		return nil
	}
	return f.Destroy()
}

// DetachFirst takes the oldest file out of the sequence and gives it to the
// caller, who must destroy it; nil if there is none. It does no I/O. Until the
// file is removed and [Sequence.SyncDir] has returned, no other file may be
// removed: a sequence with a hole cannot be opened.
func (s *Sequence) DetachFirst() *File {
	old := s.Files()
	if len(old) == 0 {
		return nil
	}
	files := append([]*File(nil), old[1:]...)
	s.files.Store(&files)
	return old[0]
}

// Destroy removes all files and the directory.
func (s *Sequence) Destroy() error {
	old := s.Files()
	s.files.Store(&[]*File{})
	var err error
	for _, f := range old {
		err = errors.Join(err, f.Destroy())
	}
	return errors.Join(err, s.fs.RemoveAll(s.dir))
}

// Flush makes everything written durable and returns the offset up to which
// it did. It may run beside the writer and beside other calls of Flush.
func (s *Sequence) Flush() (int64, error) {
	end := int64(0)
	for _, f := range s.Files() {
		if f.Flushed() < f.Wrote() || f.suspect.Load() {
			if !f.Hold() {
				continue // being removed
			}
			err := f.Flush()
			f.Release()
			if err != nil {
				return end, err
			}
		}
		end = f.start + f.Flushed()
	}
	return end, nil
}

// DirtyPages is how many pages wait for [Sequence.Flush].
func (s *Sequence) DirtyPages() int64 {
	n := int64(0)
	fs := s.Files()
	for i := len(fs) - 1; i >= 0; i-- {
		d := fs[i].DirtyPages()
		if d == 0 && fs[i].Flushed() == fs[i].Size() {
			break // all before it are flushed
		}
		n += d
	}
	return n
}

// Close closes all files without flushing them.
func (s *Sequence) Close() error {
	old := s.Files()
	s.files.Store(&[]*File{})
	var err error
	for _, f := range old {
		err = errors.Join(err, f.Close())
	}
	return err
}
