package index

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// The layout of a file: header, slots, entries. Entry 0 is never used.
const (
	HeaderSize = 40 // bytes of the header
	SlotSize   = 4  // bytes of a slot: the number of the newest entry in it
	EntrySize  = 20 // bytes of an entry: hash 4, log position 8, seconds 4, previous entry 4

	hdBeginTime = 0
	hdEndTime   = 8
	hdBeginPhy  = 16
	hdEndPhy    = 24
	hdSlots     = 32
	hdCount     = 36
)

// FileSize is the size in bytes of a file with so many slots and entries.
func FileSize(slots, entries int32) int64 {
	return HeaderSize + int64(slots)*SlotSize + int64(entries)*EntrySize
}

// reserveStep is how many bytes of entries get their disk space at a time: a
// broker that is small does not take the space of twenty million keys.
const reserveStep = 4 << 20

var be = binary.BigEndian

// entry is one key of one record.
type entry struct {
	hash    int32
	phy     int64
	seconds int32 // since the file's begin time
	prev    int32 // the entry before it in its slot
}

// file is one open index file. One goroutine writes it. Entries do not change
// once a slot leads to them, and a reader gets to them through a slot, so
// only slots need the lock.
type file struct {
	*mfile.File
	slots, entries int32

	mu sync.Mutex // orders loads and stores of slots; held for one of them

	// The header, for readers: its bytes are the writer's.
	count     atomic.Int32 // number of the next entry; the first is 1
	beginTime atomic.Int64 // store time of the first record, ms
	endTime   atomic.Int64 // of the last one
	beginPhy  atomic.Int64
	endPhy    atomic.Int64

	used   int32       // slots in use; the writer's
	room   int64       // bytes from the front that have disk space; the writer's
	synced atomic.Bool // on disk as it is; it never changes again unless it is the last
}

// newFile wraps a file whose header is read from its bytes.
func newFile(f *mfile.File, slots, entries int32) *file {
	f.SetReadAhead(false) // a hash is used here and there
	x := &file{File: f, slots: slots, entries: entries}
	h := f.Data()
	x.beginTime.Store(int64(be.Uint64(h[hdBeginTime:])))
	x.endTime.Store(int64(be.Uint64(h[hdEndTime:])))
	x.beginPhy.Store(int64(be.Uint64(h[hdBeginPhy:])))
	x.endPhy.Store(int64(be.Uint64(h[hdEndPhy:])))
	x.used = int32(be.Uint32(h[hdSlots:]))
	x.count.Store(max(1, int32(be.Uint32(h[hdCount:]))))
	return x
}

// begin makes the header of a fresh file that follows another one.
func (f *file) begin(prev *file) {
	t, phy := prev.endTime.Load(), prev.endPhy.Load()
	h := f.Data()
	be.PutUint64(h[hdBeginTime:], uint64(t))
	be.PutUint64(h[hdEndTime:], uint64(t))
	be.PutUint64(h[hdBeginPhy:], uint64(phy))
	be.PutUint64(h[hdEndPhy:], uint64(phy))
	f.beginTime.Store(t)
	f.endTime.Store(t)
	f.beginPhy.Store(phy)
	f.endPhy.Store(phy)
}

func (f *file) full() bool { return f.count.Load() >= f.entries }

// damage says what is wrong with a header, "" if it can be true.
func (f *file) damage() string {
	n := f.count.Load()
	switch {
	case n <= 1:
		return "it has no entries"
	case n > f.entries:
		return "more entries than it can have"
	case f.used < 1 || f.used > f.slots:
		return "an impossible number of slots"
	case f.beginPhy.Load() < 0 || f.endPhy.Load() < f.beginPhy.Load():
		return "impossible log positions"
	case !possible(f.beginTime.Load()) || !possible(f.endTime.Load()):
		return "impossible times"
	}
	return ""
}

// possible reports whether t, in ms, can be a store time. What is found
// depends on it, and sums of it must not overflow.
func possible(t int64) bool { return t >= 0 && t < 1<<53 }

// at is the place of an entry in the file.
func (f *file) at(n int32) int64 {
	return HeaderSize + int64(f.slots)*SlotSize + int64(n)*EntrySize
}

func (f *file) entry(n int32) entry {
	b := f.Data()[f.at(n):]
	return entry{
		hash: int32(be.Uint32(b)), phy: int64(be.Uint64(b[4:])), seconds: int32(be.Uint32(b[12:])), prev: int32(be.Uint32(b[16:])),
	}
}

// slotAt is the place of a hash's slot in the file.
func (f *file) slotAt(hash int32) int64 { return HeaderSize + int64(hash%f.slots)*SlotSize }

func (f *file) slot(hash int32) []byte {
	at := f.slotAt(hash)
	return f.Data()[at : at+SlotSize]
}

// newest is the number of the newest entry in the slot of a hash; 0 if there
// is none.
func (f *file) newest(hash int32) int32 {
	f.mu.Lock()
	n := int32(be.Uint32(f.slot(hash)))
	f.mu.Unlock()
	// The slot is written before the count.
	if n < 0 || n > f.count.Load() || n >= f.entries {
		return 0
	}
	return n
}

// grow takes the disk space of the next entries.
func (f *file) grow() error {
	to := min(f.at(f.count.Load())+reserveStep, f.Size())
	if err := f.Reserve(to, mfile.PageSize); err != nil {
		return err
	}
	f.room = to
	return nil
}

// ready reports whether put can be called.
func (f *file) ready() bool { return !f.full() && f.at(f.count.Load()+1) <= f.room }

// put adds an entry; the file must be ready for it. A killed process leaves
// the entry, or nothing that leads to it, or a slot that leads to an entry
// which does not count: the latter only in a file that is made anew after a
// crash.
func (f *file) put(hash int32, phy, storeTime int64) {
	if f.synced.Load() {
		f.synced.Store(false)
	}
	n, slot := f.count.Load(), f.slot(hash)
	prev := int32(be.Uint32(slot))
	if prev <= 0 || prev >= n {
		prev = 0
	}
	h := f.Data()[:HeaderSize]
	if n == 1 {
		be.PutUint64(h[hdBeginTime:], uint64(storeTime))
		be.PutUint64(h[hdBeginPhy:], uint64(phy))
		f.beginTime.Store(storeTime)
		f.beginPhy.Store(phy)
	}
	b := f.Data()[f.at(n):]
	be.PutUint32(b, uint32(hash))
	be.PutUint64(b[4:], uint64(phy))
	be.PutUint32(b[12:], uint32(secondsBetween(f.beginTime.Load(), storeTime)))
	be.PutUint32(b[16:], uint32(prev))
	f.mu.Lock()
	be.PutUint32(slot, uint32(n))
	f.mu.Unlock()
	if prev == 0 && f.used < f.slots {
		f.used++
		be.PutUint32(h[hdSlots:], uint32(f.used))
	}
	be.PutUint32(h[hdCount:], uint32(n+1))
	be.PutUint64(h[hdEndPhy:], uint64(phy))
	be.PutUint64(h[hdEndTime:], uint64(storeTime))
	f.endPhy.Store(phy)
	f.endTime.Store(storeTime)
	f.count.Store(n + 1)
}

// secondsBetween is what an entry keeps of a store time.
func secondsBetween(begin, t int64) int32 {
	if begin <= 0 {
		return 0
	}
	return int32(min(max(0, (t-begin)/1000), math.MaxInt32))
}

// trailing is how many of the last entries are of the record at phy.
func (f *file) trailing(phy int64) int {
	n := 0
	for i := min(f.count.Load(), f.entries) - 1; i > 0 && f.entry(i).phy == phy; i-- {
		n++
	}
	return n
}
