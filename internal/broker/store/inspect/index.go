package inspect

import (
	"encoding/binary"
	"fmt"
	"path"
)

// Layout of an index file: a header, hash slots of 4 bytes, entries of 20.
// Entry 0 is not used.
const (
	indexHeader = 40
	indexSlot   = 4
	indexEntry  = 20
)

// The sizes of Apache's index files.
const (
	defaultSlots   = 5_000_000
	defaultEntries = 20_000_000
)

// indexFile is one file of the key index.
type indexFile struct {
	path           string
	size           int64
	slots, entries int64
	begin, end     int64 // store times, ms
	beginPhy       int64
	endPhy         int64
	count          int64 // number of the next entry, 1 for none
	adding         int64 // the same, read later
	skip           bool  // cannot be read or understood; reported
	soft           bool  // the next start removes the file: nothing about it is damage
	w              *window
}

// indexed is one entry: one key of one message.
type indexed struct {
	hash    int32
	phy     int64
	seconds int64 // since the file's begin
	prev    int64
}

func (f *indexFile) entryAt(i int64) int64 { return indexHeader + f.slots*indexSlot + i*indexEntry }

// read returns entry i; an error is reported once.
func (f *indexFile) read(c *checker, i int64) (e indexed, ok bool) {
	if f.skip {
		return e, false
	}
	var b []byte
	var err error
	if f.w == nil {
		f.w, err = c.open(f.path)
	}
	if err == nil {
		b, err = f.w.peek(f.entryAt(i), indexEntry)
	}
	if err == nil && len(b) < indexEntry {
		err = fmt.Errorf("the file ends within entry %d", i)
	}
	if err != nil {
		f.skip = true
		c.damage(f.path, f.entryAt(i), "cannot be read: %v", err)
		return e, false
	}
	return indexed{
		hash:    int32(binary.BigEndian.Uint32(b)),
		phy:     int64(binary.BigEndian.Uint64(b[4:])),
		seconds: int64(int32(binary.BigEndian.Uint32(b[12:]))),
		prev:    int64(int32(binary.BigEndian.Uint32(b[16:]))),
	}, true
}

func (f *indexFile) close() {
	if f.w != nil {
		f.w.close()
		f.w = nil
	}
}

// problem reports something about the file.
func (f *indexFile) problem(c *checker, off int64, format string, args ...any) {
	if f.soft {
		c.note(f.path, off, format+"; the file was not flushed, the next start makes it anew", args...)
		return
	}
	c.damage(f.path, off, format, args...)
}

// openIndex reads the headers of the key index and checks each file in
// itself.
func (c *checker) openIndex() {
	c.index = &indexes{c: c}
	es, err := c.list("index")
	if err != nil {
		c.damage("index", whole, "cannot be read: %v", err)
		return
	}
	for i, e := range es {
		p := path.Join("index", e.name)
		switch {
		case e.err != nil:
			c.damage(p, whole, "cannot be read: %v", e.err)
			continue
		case e.dir:
			continue
		case len(e.name) != 17 || !digits(e.name):
			c.damage(p, 0, "foreign file: its name is not a time of 17 digits")
			c.sum.Files++
			continue
		}
		c.sum.Files++
		f := &indexFile{path: p, size: e.size}
		if c.openIndexFile(f, i == len(es)-1) {
			c.index.files = append(c.index.files, f)
		}
	}
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func (c *checker) openIndexFile(f *indexFile, newest bool) bool {
	if f.size == 0 && newest {
		c.note(f.path, whole, "the newest file is empty")
		return false
	}
	var h [indexHeader]byte
	if f.size < indexHeader {
		c.damage(f.path, f.size, "the file has %d bytes, its header alone needs %d", f.size, indexHeader)
		return false
	}
	if err := c.readAt(f.path, h[:], 0); err != nil {
		c.damage(f.path, 0, "cannot be read: %v", err)
		return false
	}
	be := binary.BigEndian
	f.begin, f.end = int64(be.Uint64(h[:])), int64(be.Uint64(h[8:]))
	f.beginPhy, f.endPhy = int64(be.Uint64(h[16:])), int64(be.Uint64(h[24:]))
	used := int64(int32(be.Uint32(h[32:])))
	f.count = max(1, int64(int32(be.Uint32(h[36:])))) // a new file has 0 until its header is first written
	f.soft = c.aborted && f.end > c.stamps[stampIndex]
	if !c.geometry(f) {
		return false
	}
	switch {
	case f.count > f.entries+1:
		f.problem(c, 36, "entry count %d, the file has room for %d", f.count, f.entries)
		return false
	case used < 0 || used > f.slots:
		f.problem(c, 32, "%d used slots, the file has %d", used, f.slots)
	case f.count > 1 && (f.begin > f.end || f.beginPhy > f.endPhy):
		f.problem(c, 0, "it begins at time %d and log position %d, after its end at %d and %d", f.begin, f.beginPhy, f.end, f.endPhy)
	}
	c.chains(f)
	return true
}

// geometry finds out how many slots and entries a file has.
func (c *checker) geometry(f *indexFile) bool {
	size := func(slots, entries int64) int64 { return indexHeader + slots*indexSlot + entries*indexEntry }
	if s, n := c.sizes.IndexSlots, c.sizes.IndexEntries; s > 0 && n > 0 {
		if f.slots, f.entries = s, n; f.size != size(s, n) {
			c.damage(f.path, min(f.size, size(s, n)), "the file has %d bytes, want %d", f.size, size(s, n))
			return false
		}
		return true
	}
	if len(c.index.files) > 0 {
		// All files are alike.
		first := c.index.files[0]
		if f.slots, f.entries = first.slots, first.entries; f.size != first.size {
			c.damage(f.path, min(f.size, first.size), "the file has %d bytes, %s has %d", f.size, path.Base(first.path), first.size)
			return false
		}
		return true
	}
	if f.size == size(defaultSlots, defaultEntries) {
		f.slots, f.entries = defaultSlots, defaultEntries
		return true
	}
	if f.count == 1 {
		return false // nothing in it to check
	}
	if c.guessSlots(f) {
		return true
	}
	c.damage(f.path, whole, "it has %d bytes, and no number of slots fits what is in it; give the settings (-c broker.conf) if it is not damaged", f.size)
	return false
}

// guessSlots looks for the number of slots with which the first entries make
// sense: their log positions rise from the header's, each has the one before
// it in its slot, and the slot has it or a later one.
func (c *checker) guessSlots(f *indexFile) bool {
	w, err := c.open(f.path)
	if err != nil {
		return false
	}
	defer w.close()
	room := f.size - indexHeader
	for slots := int64(1); slots*indexSlot+indexEntry <= room; slots++ {
		if (room-slots*indexSlot)%indexEntry != 0 {
			continue
		}
		f.slots, f.entries = slots, (room-slots*indexSlot)/indexEntry
		if f.entries < f.count-1 {
			break
		}
		if f.plausible(w) {
			return true
		}
	}
	return false
}

// plausible tests one number of slots with the first entries, which are the
// first in their slots or follow one of them.
func (f *indexFile) plausible(w *window) bool {
	last, newest := f.beginPhy, map[int64]int64{}
	for i := int64(1); i < min(f.count, 200); i++ {
		b, err := w.peek(f.entryAt(i), indexEntry)
		if err != nil || len(b) < indexEntry {
			return false
		}
		be := binary.BigEndian
		hash, phy := int64(int32(be.Uint32(b))), int64(be.Uint64(b[4:]))
		slot := hash % f.slots
		if hash < 0 || phy < last || phy > f.endPhy || i == 1 && phy != f.beginPhy || int64(int32(be.Uint32(b[16:]))) != newest[slot] {
			return false
		}
		last, newest[slot] = phy, i
		s, err := w.peek(indexHeader+slot*indexSlot, indexSlot)
		if err != nil || len(s) < indexSlot {
			return false
		}
		// Above the count are entries that a running broker has added since.
		if v := int64(int32(be.Uint32(s))); v < i || v > f.entries || v > f.count && !f.soft {
			return false
		}
	}
	return true
}

// chains compares slots and entries: each slot has the newest entry of its
// hashes, each entry the one before it in its slot.
func (c *checker) chains(f *indexFile) {
	newest := make([]int32, f.slots)
	for i := int64(1); i < f.count; i++ {
		e, ok := f.read(c, i)
		if !ok {
			return
		}
		if i%4096 == 0 && c.stop() != nil {
			return // the walk through the log finds out, too
		}
		if e.hash < 0 {
			f.problem(c, f.entryAt(i), "entry %d has hash %d; there are none below 0", i, e.hash)
			continue
		}
		slot := int64(e.hash) % f.slots
		if e.prev != int64(newest[slot]) {
			f.problem(c, f.entryAt(i)+16, "entry %d says the one before it in slot %d is %d, it is %d", i, slot, e.prev, newest[slot])
		}
		newest[slot] = int32(i)
	}
	f.close()
	w, err := c.open(f.path)
	if err != nil {
		c.damage(f.path, indexHeader, "cannot be read: %v", err)
		return
	}
	defer w.close()
	for slot := range f.slots {
		at := indexHeader + slot*indexSlot
		b, err := w.peek(at, indexSlot)
		if err != nil || len(b) < indexSlot {
			c.damage(f.path, at, "cannot be read: %v", err)
			return
		}
		v := int64(int32(binary.BigEndian.Uint32(b)))
		if v != int64(newest[slot]) && !c.beingAdded(f, v) {
			f.problem(c, at, "slot %d has entry %d, its newest is %d", slot, v, newest[slot])
		}
	}
}

// beingAdded reports whether a slot may have an entry that did not count when
// the header was read: a broker sets the slot before it counts, and goes on
// while this is read.
func (c *checker) beingAdded(f *indexFile, entry int64) bool {
	if !c.aborted || entry < f.count {
		return false
	}
	if entry > f.adding {
		var b [4]byte
		if c.readAt(f.path, b[:], indexHeader-4) != nil {
			return false
		}
		f.adding = max(f.count, int64(int32(binary.BigEndian.Uint32(b[:]))))
	}
	return entry <= f.adding
}
