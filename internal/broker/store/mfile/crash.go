package mfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
)

// Crash is a file system in memory that knows what a power failure would
// leave of it, and whose operations can be made to fail. It is for tests.
//
// It keeps apart what programs see and what the disk has. A write reaches the
// disk with a sync of its range, a change of a directory with [Crash.SyncDir];
// [Crash.PowerLoss] makes of both what a machine may find when it starts
// again.
type Crash struct {
	mu    sync.Mutex // guards the tree, locks, ops and fault
	root  *crashNode
	lock  map[string]bool
	ops   int
	fault func(CrashOp) error
}

// CrashOp is one operation that may be made to fail.
type CrashOp struct {
	N    int    // from 1 on, counted by the file system
	Kind string // mkdir, readdir, create, size, open, rename, remove, syncdir, read, truncate, write, lock, sync, append, reserve
	Path string
}

// crashNode is a directory (children not nil) or a file.
type crashNode struct {
	children map[string]*crashNode // as programs see it
	entries  map[string]*crashNode // as the disk has it
	pending  []dirChange           // what makes children of entries, oldest first

	data  []byte   // as programs see it
	disk  []byte   // as the disk has it
	sized bool     // the disk knows the file's size
	maybe [][]byte // a WriteFile was interrupted: one of these, whole
}

// dirChange is one change of a directory, all or nothing.
type dirChange struct {
	remove string     // name that disappears; "" if none does
	add    string     // name that appears; "" if none does
	node   *crashNode // what appears, or whose size is set
}

var _ FS = (*Crash)(nil)

// NewCrash returns an empty file system.
func NewCrash() *Crash { return &Crash{root: newCrashDir(), lock: map[string]bool{}} }

func newCrashDir() *crashNode {
	return &crashNode{children: map[string]*crashNode{}, entries: map[string]*crashNode{}}
}

// SetFault has f decide about every operation from now on: its error makes
// the operation fail. It has no effect then, but what consists of several
// operations (WriteFile) or parts (File.Append) stays half done. f is called
// with the file system locked; nil lets everything pass.
func (c *Crash) SetFault(f func(CrashOp) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// Ops is how many operations there were, those that failed included.
func (c *Crash) Ops() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ops
}

// op counts an operation and lets it fail; mu must be held.
func (c *Crash) op(kind, path string) error {
	c.ops++
	if c.fault == nil {
		return nil
	}
	if err := c.fault(CrashOp{N: c.ops, Kind: kind, Path: path}); err != nil {
		return &fs.PathError{Op: kind, Path: path, Err: err}
	}
	return nil
}

func (c *Crash) find(path string) *crashNode {
	n := c.root
	for _, p := range parts(path) {
		if n = n.children[p]; n == nil {
			return nil
		}
	}
	return n
}

func (c *Crash) file(path string) (*crashNode, error) {
	n := c.find(path)
	if n == nil || n.children != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return n, nil
}

func (c *Crash) dirOf(op, path string) (*crashNode, string, error) {
	n := c.find(filepath.Dir(path))
	if n == nil || n.children == nil {
		return nil, "", &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return n, filepath.Base(path), nil
}

// change changes a directory as programs see it.
func (n *crashNode) change(d dirChange) {
	d.apply(n.children)
	n.pending = append(n.pending, d)
}

func (d dirChange) apply(m map[string]*crashNode) {
	if d.remove != "" {
		delete(m, d.remove)
	}
	if d.add != "" {
		m[d.add] = d.node
	}
}

// InMemory implements [FS]. It is false: the files are a disk's to their users.
func (c *Crash) InMemory() bool { return false }

// MkdirAll implements [FS].
func (c *Crash) MkdirAll(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("mkdir", dir); err != nil {
		return err
	}
	n := c.root
	for _, p := range parts(dir) {
		d := n.children[p]
		switch {
		case d == nil:
			d = newCrashDir()
			n.change(dirChange{add: p, node: d})
		case d.children == nil:
			return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
		}
		n = d
	}
	return nil
}

// ReadDir implements [FS].
func (c *Crash) ReadDir(dir string) ([]Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("readdir", dir); err != nil {
		return nil, err
	}
	n := c.find(dir)
	if n == nil || n.children == nil {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	out := make([]Entry, 0, len(n.children))
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		e := n.children[name]
		out = append(out, Entry{Name: name, Size: int64(len(e.data)), Dir: e.children != nil})
	}
	return out, nil
}

// Create implements [FS]. It is two operations, "create" and "size".
func (c *Crash) Create(path string, size int64, reserve bool) (*File, error) {
	if size <= 0 {
		return nil, fmt.Errorf("mfile: create %s: size %d, want more than 0", path, size)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("create", path); err != nil {
		return nil, err
	}
	d, name, err := c.dirOf("create", path)
	if err != nil {
		return nil, err
	}
	if d.children[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	n := &crashNode{}
	d.change(dirChange{add: name, node: n})
	if err := c.op("size", path); err != nil {
		d.change(dirChange{remove: name}) // as OSFiles does
		return nil, err
	}
	n.data, n.disk = make([]byte, size), make([]byte, size)
	d.change(dirChange{node: n})
	f := newFile(path, n.data, crashFile{c, n, path})
	if reserve {
		f.reserved.Store(size)
	}
	return f, nil
}

// Open implements [FS].
func (c *Crash) Open(path string) (*File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("open", path); err != nil {
		return nil, err
	}
	n, err := c.file(path)
	if err != nil {
		return nil, err
	}
	if len(n.data) == 0 {
		return nil, &FormatError{Path: path, Reason: "the file is empty"}
	}
	f := newFile(path, n.data, crashFile{c, n, path})
	f.opened()
	return f, nil
}

// Rename implements [FS]. Within a directory the disk has it whole or not at
// all; from one to another it may have the old name, the new one, both or none.
func (c *Crash) Rename(oldPath, newPath string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("rename", oldPath); err != nil {
		return err
	}
	from, oldName, err := c.dirOf("rename", oldPath)
	if err != nil {
		return err
	}
	to, newName, err := c.dirOf("rename", newPath)
	if err != nil {
		return err
	}
	n := from.children[oldName]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: oldPath, Err: fs.ErrNotExist}
	}
	if from == to {
		from.change(dirChange{remove: oldName, add: newName, node: n})
		return nil
	}
	from.change(dirChange{remove: oldName})
	to.change(dirChange{add: newName, node: n})
	return nil
}

// Remove implements [FS].
func (c *Crash) Remove(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("remove", path); err != nil {
		return err
	}
	d, name, err := c.dirOf("remove", path)
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
	d.change(dirChange{remove: name})
	return nil
}

// RemoveAll implements [FS].
func (c *Crash) RemoveAll(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("remove", dir); err != nil {
		return err
	}
	if d, name, err := c.dirOf("remove", dir); err == nil && d.children[name] != nil {
		d.change(dirChange{remove: name})
	}
	return nil
}

// SyncDir implements [FS].
func (c *Crash) SyncDir(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("syncdir", dir); err != nil {
		return err
	}
	n := c.find(dir)
	if n == nil || n.children == nil {
		return &fs.PathError{Op: "syncdir", Path: dir, Err: fs.ErrNotExist}
	}
	n.settle(len(n.pending))
	return nil
}

// settle brings the first k pending changes of a directory to the disk.
func (n *crashNode) settle(k int) {
	for _, d := range n.pending[:k] {
		d.apply(n.entries)
		if d.add == "" && d.node != nil {
			d.node.sized = true
		}
	}
	n.pending = n.pending[k:]
}

// ReadFile implements [FS].
func (c *Crash) ReadFile(path string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("read", path); err != nil {
		return nil, err
	}
	n, err := c.file(path)
	if err != nil {
		return nil, err
	}
	return slices.Clone(n.data), nil
}

// WriteFile implements [FS]. It is two operations, "truncate" and "write": a
// failure of the second leaves an empty file.
func (c *Crash) WriteFile(path string, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.op("truncate", path); err != nil {
		return err
	}
	d, name, err := c.dirOf("create", path)
	if err != nil {
		return err
	}
	n := d.children[name]
	switch {
	case n == nil:
		n = &crashNode{sized: true}
		d.change(dirChange{add: name, node: n})
	case n.children != nil:
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrInvalid}
	}
	n.maybe = append(n.maybe, n.disk, nil, slices.Clone(b[:len(b)/2]), slices.Clone(b))
	n.data = nil
	if err := c.op("write", path); err != nil {
		return err
	}
	n.data, n.disk, n.maybe, n.sized = slices.Clone(b), slices.Clone(b), nil, true
	return nil
}

// Lock implements [FS].
func (c *Crash) Lock(path string) (io.Closer, error) {
	c.mu.Lock()
	err := c.op("lock", path)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := c.WriteFile(path, []byte("lock")); err != nil {
		return nil, err
	}
	path = filepath.Clean(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock[path] {
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	}
	c.lock[path] = true
	return crashLock{c, path}, nil
}

// Usage implements [FS].
func (c *Crash) Usage(string) (total, available int64, err error) { return 0, 0, nil }

type crashLock struct {
	c    *Crash
	path string
}

func (l crashLock) Close() error {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	delete(l.c.lock, l.path)
	return nil
}

// crashFile is the backing of an open file.
type crashFile struct {
	c    *Crash
	n    *crashNode
	path string
}

func (f crashFile) sync(data []byte, from, to int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.op("sync", f.path); err != nil {
		return err
	}
	// The system writes whole pages, but nobody can count on what is behind
	// the range; and someone may be writing there.
	snapshot(f.n.disk[from:to], data[from:to])
	f.n.sized = true
	return nil
}

// snapshot copies while someone may be writing, as a system does that flushes
// a mapping: what it gets of that is not durable yet for anybody.
//
//go:norace
func snapshot(dst, src []byte) {
	for i := range dst { // the race detector would see a copy
		dst[i] = src[i]
	}
}

func (f crashFile) write(_ string, data, b []byte, at int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.op("append", f.path); err != nil {
		copy(data[at:], b[:len(b)/2])
		return err
	}
	copy(data[at:], b)
	return nil
}

func (crashFile) populate([]byte, int64, int64) {}

func (crashFile) readAhead([]byte, bool) {}

func (f crashFile) reserve(path string, _, _ int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.c.op("reserve", path)
}

func (crashFile) nextData(_ string, from int64) int64 { return from }

func (crashFile) close([]byte) error { return nil }

func (f crashFile) remove(path string) error {
	err := f.c.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
