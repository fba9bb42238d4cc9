package index

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// ErrNotReady is returned by [Index.Put] when there is no place for a key:
// [Index.Prepare] makes it.
var ErrNotReady = errors.New("index: no room for the next key")

// Put adds a record under its unique id and each of its keys. Records come in
// the order of the log; those that the index has are ignored, as are rolled
// back ones. It allocates nothing and does no I/O. With ErrNotReady part of the
// keys may be in; the same call goes on with the others.
func (x *Index) Put(r *wire.Record) error {
	if r.SysFlag&wire.SysTranMask == wire.SysTranRollback {
		return nil
	}
	f, skip := x.last(), 0
	if f != nil {
		end := f.endPhy.Load()
		if r.PhyOffset < end {
			return nil
		}
		if r.PhyOffset == end {
			skip = x.keys
		}
	}
	p := putting{x: x, f: f, r: r, skip: skip}
	if id, ok := r.Properties.Lookup(wire.PropUniqKey); ok {
		if !p.key(id) {
			return ErrNotReady
		}
	}
	keys, _ := r.Properties.Lookup(wire.PropKeys)
	for key, rest := nextKey(keys); key != nil; key, rest = nextKey(rest) {
		if !p.key(key) {
			return ErrNotReady
		}
	}
	return nil
}

// putting is one Put under way.
type putting struct {
	x      *Index
	f      *file
	r      *wire.Record
	skip   int   // keys that are in already
	prefix int32 // hash of what the keys have in common
	seen   int   // keys up to now
}

// key adds the next key; false if there is no place for it.
func (p *putting) key(key []byte) bool {
	p.seen++
	if p.seen <= p.skip {
		return true
	}
	if p.f == nil || !p.f.ready() {
		return false
	}
	if p.prefix == 0 {
		p.prefix = wire.IndexHashPrefix(p.r.Topic)
	}
	p.f.put(wire.IndexHashOf(p.prefix, key), p.r.PhyOffset, p.r.StoreTime)
	p.x.keys = p.seen
	return true
}

// nextKey splits keys at their spaces. There are no empty ones; nil ends them.
func nextKey(keys []byte) (key, rest []byte) {
	for len(keys) > 0 && keys[0] == ' ' {
		keys = keys[1:]
	}
	if len(keys) == 0 {
		return nil, nil
	}
	if i := bytes.IndexByte(keys, ' '); i >= 0 {
		return keys[:i], keys[i:]
	}
	return keys, nil
}

// Prepare makes a place for the next key: a file, or disk space in the newest
// one. It blocks for the disk. With an error it can be repeated.
func (x *Index) Prepare() error {
	f := x.last()
	if f != nil && !f.full() {
		if f.ready() {
			return nil
		}
		return x.failed(f.Path(), f.grow())
	}
	if err := x.cfg.FS.MkdirAll(x.cfg.Dir); err != nil {
		return x.failed(x.cfg.Dir, err)
	}
	path := filepath.Join(x.cfg.Dir, x.nextName())
	m, err := x.cfg.FS.Create(path, x.size, false)
	if err != nil {
		return x.failed(path, err)
	}
	next := newFile(m, x.cfg.Slots, x.cfg.Entries)
	if err := next.grow(); err != nil {
		return x.failed(path, errors.Join(err, next.Destroy()))
	}
	if f != nil {
		next.begin(f)
	}
	x.mu.Lock()
	old := x.list()
	files := append(old[:len(old):len(old)], next)
	x.files.Store(&files)
	x.mu.Unlock()
	return nil
}

func (x *Index) failed(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("index: no room for the next key: %w", &mfile.IOError{Op: "create", Path: path, Err: err})
}
