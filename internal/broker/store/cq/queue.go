package cq

import (
	"fmt"
	"sort"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// reserveStep is how much disk space a queue takes at a time: its files are
// sparse, because a broker has many queues and most are small.
const reserveStep = 64 << 10

// Queue is one consume queue. One goroutine writes (Append, Truncate,
// RemoveFirst, Destroy, Close); the reading methods, Flush, and one CorrectMin
// at a time, are safe beside it. Offsets count units.
type Queue struct {
	seq *mfile.Sequence

	min atomic.Int64 // first offset whose record is in the log
	max atomic.Int64 // offset after the last unit; stored after the unit's bytes

	// covered is the log position up to which records of this queue have
	// their units; records before it are dropped when they come again. The
	// writer's own.
	covered int64

	// former is the end, in units, of the first file that Rebuild has removed
	// with all others: the queue began before it. The writer's own.
	former int64
}

// New returns the queue that will be in dir, without looking there. Files of
// fileSize bytes, a multiple of [UnitSize], are made when they are needed.
func New(fs mfile.FS, dir string, fileSize int64) *Queue {
	return &Queue{seq: mfile.NewSequence(fs, dir, fileSize)}
}

// Open opens the files of the queue in dir and changes nothing. The queue is
// empty until Recover.
func Open(fs mfile.FS, dir string, fileSize int64) (*Queue, error) {
	seq, err := mfile.OpenSequence(fs, dir, fileSize)
	if err != nil {
		return nil, err
	}
	if f := seq.Last(); f != nil {
		f.SetReadAhead(false)
	}
	return &Queue{seq: seq}, nil
}

// Recover finds the units of a queue that was just opened: it ends before the
// first one that was never written, searched from the third newest file on;
// what comes after that in its page is cleared.
func (q *Queue) Recover() error {
	files := q.seq.Files()
	if len(files) == 0 {
		return nil
	}
	end := int64(0)
	for i := max(0, len(files)-3); ; i-- {
		end = files[i].Start()
		for _, f := range files[i:] {
			n, covered := walk(f.Data())
			q.covered = max(q.covered, covered)
			end += n
			if n < f.Size() {
				break
			}
		}
		// An empty file tells nothing about the records before it.
		if end > files[i].Start() || i == 0 {
			break
		}
	}
	if f := q.seq.Find(end); f != nil {
		in := end - f.Start()
		f.Clear(in, min(in&^(mfile.PageSize-1)+mfile.PageSize, f.Size()))
	}
	q.min.Store(files[0].Start() / UnitSize)
	q.max.Store(end / UnitSize)
	return q.seq.Truncate(end)
}

// Rebuild prepares a queue that was just opened for being built anew from the
// log position phy on, after a crash. The units of records that end at or
// before phy are known to be on the disk and stay. Whatever else is in the
// files may be from before, from the crash or torn, and goes. A queue that
// keeps no unit has no files afterwards and may begin at any offset.
func (q *Queue) Rebuild(phy int64) error {
	q.seq.DistrustNames()
	files := q.seq.Files()
	if len(files) == 0 {
		return nil
	}
	last := len(files) - 1
	for last > 0 && !before(files[last].Data(), phy) {
		last--
	}
	f := files[last]
	in := int64(0)
	q.covered = 0
	for data := f.Data(); in+UnitSize <= f.Size(); in += UnitSize {
		u := Get(data[in:])
		if !u.valid() || u.end() > phy || u.end() < q.covered {
			break
		}
		q.covered = u.end()
	}
	if last == 0 && q.covered == 0 {
		q.min.Store(0)
		q.max.Store(0)
		q.former = f.End() / UnitSize
		return q.seq.Truncate(f.Start())
	}
	f.Clear(in, f.Size())
	end := f.Start() + in
	q.min.Store(files[0].Start() / UnitSize)
	q.max.Store(end / UnitSize)
	err := q.seq.Truncate(end)
	f.Distrust()
	return err
}

// FirstPhy is the log position of the first unit in the files of a queue that
// was just opened; false when there is none.
func (q *Queue) FirstPhy() (int64, bool) {
	f := q.seq.First()
	if f == nil {
		return 0, false
	}
	for b := f.Data(); len(b) >= UnitSize; b = b[UnitSize:] {
		switch u := Get(b); {
		case !u.valid():
			return 0, false
		case !u.IsFiller():
			return u.Phy, true
		}
	}
	return 0, false
}

// Lacks reports whether a queue that is built anew does not have the units
// that it should have when the one of the given offset comes next.
func (q *Queue) Lacks(offset int64) bool {
	if q.seq.Last() == nil && offset < q.former {
		return offset < q.former-q.FileUnits()
	}
	return offset > q.max.Load()
}

// before reports whether the first unit of a file is that of a record which
// ends at or before phy.
func before(b []byte, phy int64) bool {
	u := Get(b)
	return u.valid() && u.end() <= phy
}

// walk returns how many bytes of b are units, and the log position they cover.
func walk(b []byte) (n, covered int64) {
	for ; int(n)+UnitSize <= len(b); n += UnitSize {
		u := Get(b[n:])
		if !u.valid() {
			break
		}
		covered = max(covered, u.end())
	}
	return n, covered
}

// Outcome is what Append did.
type Outcome uint8

// The outcomes.
const (
	Appended  Outcome = iota
	Known             // the queue had the unit already
	Gap               // appended, but units before it are missing
	Misplaced         // dropped: no queue has such an offset
)

// maxOffset keeps byte positions and file names within 63 bits.
const maxOffset = 1 << 58

// Append adds the unit of the record with the given queue offset. Records
// that the queue knows are dropped, so that a log may be dispatched again.
// A queue without files may begin at any offset. With an error nothing was
// appended and the same call can be repeated.
func (q *Queue) Append(offset int64, u Unit) (Outcome, error) {
	if offset < 0 || offset > maxOffset {
		return Misplaced, nil
	}
	if u.end() <= q.covered {
		return Known, nil
	}
	at, out := q.max.Load(), Appended
	f := q.seq.Last()
	switch {
	case f == nil:
		at = offset
	case offset < at:
		return Known, nil
	case offset > at:
		out = Gap
	}
	pos := at * UnitSize
	if f == nil || pos >= f.End() {
		var err error
		if f, err = q.grow(pos, f == nil); err != nil {
			return out, err
		}
	}
	in := pos - f.Start()
	if err := f.Reserve(in+UnitSize, reserveStep); err != nil {
		return out, fmt.Errorf("consume queue: %w", err)
	}
	u.Put(f.Data()[in:])
	f.SetWrote(in + UnitSize)
	q.covered = u.end()
	q.max.Store(at + 1)
	return out, nil
}

// grow adds the file that has the byte at pos. If it is the first one, units
// before pos are filled up and the queue begins at pos.
func (q *Queue) grow(pos int64, first bool) (*mfile.File, error) {
	size := q.seq.FileSize()
	f, err := q.seq.Create(pos/size*size, false)
	if err != nil {
		return nil, fmt.Errorf("consume queue: %w", err)
	}
	if in := pos - f.Start(); first && in > 0 {
		if err := f.Reserve(in, reserveStep); err != nil {
			_ = f.Destroy()
			return nil, fmt.Errorf("consume queue: %w", err)
		}
		for i := int64(0); i < in; i += UnitSize {
			filler().Put(f.Data()[i:])
		}
		f.SetWrote(in)
	}
	if first {
		// Before anybody can read the fillers.
		q.min.Store(pos / UnitSize)
		q.max.Store(pos / UnitSize)
	}
	// Most queues are short, and there are many of them.
	f.SetReadAhead(false)
	if full := q.seq.Last(); full != nil {
		full.SetReadAhead(true)
	}
	q.seq.Add(f)
	return f, nil
}

// Truncate removes the units of records that end after the log position phy.
func (q *Queue) Truncate(phy int64) error {
	end := q.max.Load()
	first := q.seq.First()
	if first == nil {
		return nil
	}
	begin := first.Start() / UnitSize
	keep := begin + int64(sort.Search(int(end-begin), func(i int) bool {
		u, ok := q.unit(begin + int64(i))
		return ok && u.end() > phy
	}))
	if keep == end {
		return nil
	}
	// Clear what is cut: when the queue grows again to just before one of
	// these, a later recovery would take it for a unit.
	for i := keep; i < end; i++ {
		if f := q.seq.Find(i * UnitSize); f != nil {
			in := i*UnitSize - f.Start()
			clear(f.Data()[in : in+UnitSize])
		}
	}
	q.max.Store(keep)
	q.min.Store(min(q.min.Load(), keep))
	q.covered = 0
	if u, ok := q.unit(keep - 1); ok {
		q.covered = u.end()
	}
	return q.seq.Truncate(keep * UnitSize)
}

// unit reads a unit of the writer's own queue.
func (q *Queue) unit(i int64) (Unit, bool) {
	f := q.seq.Find(i * UnitSize)
	if f == nil || i < 0 {
		return Unit{}, false
	}
	return Get(f.Data()[i*UnitSize-f.Start():]), true
}

// CorrectMin moves the minimum to the first unit whose record is at or after
// logMin, the start of the log; to the maximum if there is none. The minimum
// never goes back.
func (q *Queue) CorrectMin(logMin int64) {
	first := q.seq.First()
	if first == nil {
		return
	}
	begin, end := max(q.min.Load(), first.Start()/UnitSize), q.max.Load()
	gone := func(i int64) bool {
		u, ok := q.At(i)
		return !ok || u.IsFiller() || u.Phy < logMin
	}
	switch {
	case begin >= end || !gone(begin): // the usual case
		q.min.Store(begin)
	case gone(end - 1):
		q.min.Store(end)
	default:
		q.min.Store(begin + int64(sort.Search(int(end-begin), func(i int) bool { return !gone(begin + int64(i)) })))
	}
}

// FirstExpired reports whether the queue's oldest file has only units of
// records before logMin. The newest file, which has the queue's maximum, never
// counts. It is safe beside the writer.
func (q *Queue) FirstExpired(logMin int64) bool {
	files := q.seq.Files()
	if len(files) < 2 {
		return false
	}
	u, ok := q.At(files[0].End()/UnitSize - 1)
	return ok && u.Phy < logMin
}

// RemoveFirst removes the oldest file, but not the only one.
func (q *Queue) RemoveFirst() error {
	files := q.seq.Files()
	if len(files) < 2 {
		return nil
	}
	q.min.Store(max(q.min.Load(), files[1].Start()/UnitSize))
	return q.seq.RemoveFirst()
}

// SyncDir makes a RemoveFirst durable.
func (q *Queue) SyncDir() error { return q.seq.SyncDir() }

// Covered is the log position up to which this queue's records have units.
// It belongs to the writer.
func (q *Queue) Covered() int64 { return q.covered }

// Min is the offset of the first readable record.
func (q *Queue) Min() int64 { return q.min.Load() }

// Max is the offset after the last unit.
func (q *Queue) Max() int64 { return q.max.Load() }

// FileUnits is how many units one file has.
func (q *Queue) FileUnits() int64 { return q.seq.FileSize() / UnitSize }

// Flush makes all units durable, and the files' names up to two directories
// above the queue's own.
func (q *Queue) Flush() error {
	if _, err := q.seq.Flush(); err != nil {
		return err
	}
	return q.seq.SyncNames(2)
}

// DirtyPages is how many pages wait for Flush.
func (q *Queue) DirtyPages() int64 { return q.seq.DirtyPages() }

// Files lists the queue's files, oldest first.
func (q *Queue) Files() []*mfile.File { return q.seq.Files() }

// Close closes the files without flushing them.
func (q *Queue) Close() error { return q.seq.Close() }

// Destroy removes the queue's files and directory; readers can finish.
func (q *Queue) Destroy() error { return q.seq.Destroy() }

// View is a run of units within one file, held for reading.
type View struct {
	f *mfile.File
	b []byte
}

// View holds the units from offset to the end of the file they are in, or to
// the queue's end. It is empty when there is no unit at offset. The caller
// must release it.
func (q *Queue) View(offset int64) View {
	end := q.max.Load()
	if offset < 0 || offset >= end {
		return View{}
	}
	f := q.seq.Hold(offset * UnitSize)
	if f == nil {
		return View{}
	}
	b := f.Data()[offset*UnitSize-f.Start() : min(end*UnitSize, f.End())-f.Start()]
	return View{f: f, b: b}
}

// Len is the number of units.
func (v View) Len() int { return len(v.b) / UnitSize }

// At is the i-th unit.
func (v View) At(i int) Unit { return Get(v.b[i*UnitSize:]) }

// Release ends the use of the view. Releasing an empty one does nothing.
func (v View) Release() {
	if v.f != nil {
		v.f.Release()
	}
}

// At reads the unit at offset; false when there is none.
func (q *Queue) At(offset int64) (Unit, bool) {
	v := q.View(offset)
	defer v.Release()
	if v.Len() == 0 {
		return Unit{}, false
	}
	return v.At(0), true
}
