package mfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Memory is a file system in memory. Its files outlive the stores that use
// it, as a disk does, so that a restart can be played with it.
type Memory struct {
	mu   sync.Mutex // guards the tree below root and locks
	root *node
	lock map[string]bool
}

// node is a directory (children not nil) or a file.
type node struct {
	children map[string]*node
	data     []byte
}

var _ FS = (*Memory)(nil)

// NewMemory returns an empty file system.
func NewMemory() *Memory {
	return &Memory{root: &node{children: map[string]*node{}}, lock: map[string]bool{}}
}

// InMemory implements [FS].
func (m *Memory) InMemory() bool { return true }

func parts(path string) []string {
	path = filepath.ToSlash(filepath.Clean(path))
	if path == "." {
		return nil
	}
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// find returns the node at path, nil if there is none; mu must be held.
func (m *Memory) find(path string) *node {
	n := m.root
	for _, p := range parts(path) {
		if n = n.children[p]; n == nil {
			return nil
		}
	}
	return n
}

// dirOf returns the directory a path is in and its last part; mu must be held.
func (m *Memory) dirOf(op, path string) (*node, string, error) {
	n := m.find(filepath.Dir(path))
	if n == nil || n.children == nil {
		return nil, "", &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return n, filepath.Base(path), nil
}

// MkdirAll implements [FS].
func (m *Memory) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, p := range parts(dir) {
		c := n.children[p]
		switch {
		case c == nil:
			c = &node{children: map[string]*node{}}
			n.children[p] = c
		case c.children == nil:
			return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
		}
		n = c
	}
	return nil
}

// ReadDir implements [FS].
func (m *Memory) ReadDir(dir string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(dir)
	if n == nil || n.children == nil {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	out := make([]Entry, 0, len(n.children))
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		c := n.children[name]
		out = append(out, Entry{Name: name, Size: int64(len(c.data)), Dir: c.children != nil})
	}
	return out, nil
}

// Create implements [FS].
func (m *Memory) Create(path string, size int64, _ bool) (*File, error) {
	if size <= 0 {
		return nil, fmt.Errorf("mfile: create %s: size %d, want more than 0", path, size)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, name, err := m.dirOf("create", path)
	if err != nil {
		return nil, err
	}
	if d.children[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	n := &node{data: make([]byte, size)}
	d.children[name] = n
	return newFile(path, n.data, memoryFile{m}), nil
}

// Open implements [FS].
func (m *Memory) Open(path string) (*File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil || n.children != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if len(n.data) == 0 {
		return nil, &FormatError{Path: path, Reason: "the file is empty"}
	}
	f := newFile(path, n.data, memoryFile{m})
	f.opened()
	return f, nil
}

// Rename implements [FS].
func (m *Memory) Rename(oldPath, newPath string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldName, err := m.dirOf("rename", oldPath)
	if err != nil {
		return err
	}
	to, newName, err := m.dirOf("rename", newPath)
	if err != nil {
		return err
	}
	n := from.children[oldName]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: oldPath, Err: fs.ErrNotExist}
	}
	delete(from.children, oldName)
	to.children[newName] = n
	return nil
}

// Remove implements [FS].
func (m *Memory) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, name, err := m.dirOf("remove", path)
	if err != nil {
		return err
	}
	n := d.children[name]
	if n == nil {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	}
	if len(n.children) > 0 {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrInvalid}
	}
	delete(d.children, name)
	return nil
}

// RemoveAll implements [FS].
func (m *Memory) RemoveAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, name, err := m.dirOf("remove", dir); err == nil {
		delete(d.children, name)
	}
	return nil
}

// SyncDir implements [FS].
func (m *Memory) SyncDir(string) error { return nil }

// ReadFile implements [FS].
func (m *Memory) ReadFile(path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil || n.children != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return slices.Clone(n.data), nil
}

// WriteFile implements [FS].
func (m *Memory) WriteFile(path string, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, name, err := m.dirOf("create", path)
	if err != nil {
		return err
	}
	d.children[name] = &node{data: slices.Clone(b)}
	return nil
}

// Lock implements [FS].
func (m *Memory) Lock(path string) (io.Closer, error) {
	if err := m.WriteFile(path, []byte("lock")); err != nil {
		return nil, err
	}
	path = filepath.Clean(path)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lock[path] {
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	}
	m.lock[path] = true
	return memoryLock{m, path}, nil
}

// Usage implements [FS].
func (m *Memory) Usage(string) (total, available int64, err error) { return 0, 0, nil }

type memoryLock struct {
	m    *Memory
	path string
}

func (l memoryLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.lock, l.path)
	return nil
}

type memoryFile struct{ m *Memory }

func (memoryFile) sync([]byte, int64, int64) error    { return nil }
func (memoryFile) populate(b []byte, from, to int64)  { populate(b[from:to]) }
func (memoryFile) readAhead([]byte, bool)             {}
func (memoryFile) reserve(string, int64, int64) error { return nil }
func (memoryFile) close([]byte) error                 { return nil }

func (memoryFile) nextData(_ string, from int64) int64 { return from }

func (memoryFile) write(_ string, data, b []byte, at int64) error {
	copy(data[at:], b)
	return nil
}

func (b memoryFile) remove(path string) error {
	err := b.m.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
