package mfile

import (
	"io"
	"sync/atomic"
)

// backing is what a kind of file system does for one open file.
type backing interface {
	// sync makes data[from:to] durable; from is a multiple of PageSize.
	sync(data []byte, from, to int64) error
	// write puts b at data[at:], by way of the system where that is better
	// than touching the mapping. It shows in data when write returns.
	write(path string, data, b []byte, at int64) error
	// populate brings the pages of data[from:to] into memory for writing.
	populate(data []byte, from, to int64)
	// readAhead says whether touching a page brings its neighbours as well.
	readAhead(data []byte, on bool)
	// reserve takes the disk space of [from, to), which may be sparse.
	reserve(path string, from, to int64) error
	// nextData is the first byte at or after from that may not be zero. It
	// may be too small.
	nextData(path string, from int64) int64
	// close ends the use of data.
	close(data []byte) error
	// remove deletes the file, before close where the system allows it. A
	// file that is gone is no error.
	remove(path string) error
}

// File is a file of fixed size used as memory. One writer at a time fills it
// from front to back and moves the wrote position; readers hold the file while
// they touch its data and read only what lies before a position they know to
// be written. All methods are safe for concurrent use.
type File struct {
	path  string
	start int64 // of the file within its sequence
	data  []byte
	back  backing

	wrote    atomic.Int64
	flushed  atomic.Int64
	bad      atomic.Pointer[IOError] // a flush has failed
	reserved atomic.Int64            // disk space is taken up to here

	suspect atomic.Bool // nobody knows what of it is durable, see Distrust

	refs   atomic.Int64 // one for the owner, one per holder; the last one unmaps
	doomed atomic.Bool  // to be removed, and still there
}

func newFile(path string, data []byte, b backing) *File {
	f := &File{path: path, data: data, back: b}
	f.refs.Store(1)
	return f
}

// Path is the file's path, Start its offset within its sequence, Size its
// length in bytes.
func (f *File) Path() string { return f.path }

// Start is the offset of the file's first byte within its sequence.
func (f *File) Start() int64 { return f.start }

// Size is the file's length in bytes.
func (f *File) Size() int64 { return int64(len(f.data)) }

// End is the offset within the sequence of the byte after the file.
func (f *File) End() int64 { return f.start + int64(len(f.data)) }

// Data is the file's content. It may be touched only while the caller holds
// the file or owns it.
func (f *File) Data() []byte { return f.data }

// Wrote is how many bytes from the front are in use.
func (f *File) Wrote() int64 { return f.wrote.Load() }

// SetWrote moves the wrote position; the bytes before it must have been
// written. A flushed position beyond it comes along.
func (f *File) SetWrote(n int64) {
	f.wrote.Store(n)
	if f.flushed.Load() > n {
		f.flushed.Store(n)
	}
}

// Flushed is how many bytes from the front are durable.
func (f *File) Flushed() int64 { return f.flushed.Load() }

// SetFlushed declares the first n bytes durable.
func (f *File) SetFlushed(n int64) { f.flushed.Store(n) }

// DirtyPages is how many pages lie between flushed and wrote, counted as
// Apache does; a file that is full and not flushed counts as dirty whatever
// it has.
func (f *File) DirtyPages() int64 {
	w, fl := f.wrote.Load(), f.flushed.Load()
	if w <= fl {
		return 0
	}
	if w == f.Size() {
		return max(1, w/PageSize)
	}
	return w/PageSize - fl/PageSize
}

// Flush makes all that is written durable and moves the flushed position. It
// blocks for the disk. The caller must hold or own the file. Once it has
// failed it fails until the file is opened anew, whatever the system would say:
// that takes the pages it could not write for clean, and may drop them.
func (f *File) Flush() error {
	if err := f.bad.Load(); err != nil {
		return err
	}
	from, to := f.flushed.Load(), f.wrote.Load()
	if f.suspect.Load() {
		if err := f.back.sync(f.data, 0, f.Size()); err != nil {
			return f.failed(0, err)
		}
		f.suspect.Store(false)
	} else if to <= from {
		return nil
	}
	if to > from {
		if err := f.back.sync(f.data, from&^(PageSize-1), to); err != nil {
			return f.failed(from, err)
		}
	}
	for from < to && !f.flushed.CompareAndSwap(from, to) {
		from = f.flushed.Load() // another Flush was there
	}
	return nil
}

// failed notes that a flush from byte from on has failed.
func (f *File) failed(from int64, err error) error {
	bad := &IOError{Op: "flush", Path: f.path, Offset: from, Err: err}
	f.bad.CompareAndSwap(nil, bad)
	return bad
}

// Distrust makes the next Flush write the whole file, also what lies behind
// the wrote position: after a crash nobody knows what of it the disk has, and
// bytes that recovery has cleared must not come back with the next crash.
func (f *File) Distrust() {
	f.flushed.Store(0)
	f.suspect.Store(true)
}

// Sync makes the whole file durable whatever the positions say. The caller
// must hold or own the file.
func (f *File) Sync() error {
	if err := f.back.sync(f.data, 0, f.Size()); err != nil {
		return &IOError{Op: "flush", Path: f.path, Err: err}
	}
	return nil
}

// Append writes b behind what is written and moves the wrote position. Unlike
// copying into Data it does not touch the mapping where the system can do
// without: whoever touches a page that is just going to the disk waits for the
// disk. It blocks for the system, flushes nothing, and must not be mixed with
// copying. With an error, part of b may be there. Only the writer may call it,
// and must hold or own the file.
func (f *File) Append(b []byte) error {
	at := f.wrote.Load()
	if int64(len(b)) > f.Size()-at {
		return &IOError{Op: "write", Path: f.path, Offset: at, Err: io.ErrShortWrite}
	}
	if err := f.back.write(f.path, f.data, b, at); err != nil {
		return &IOError{Op: "write", Path: f.path, Offset: at, Err: err}
	}
	f.wrote.Store(at + int64(len(b)))
	return nil
}

// Populate brings pages into memory ahead of the writer, so that it does not
// wait for page faults. It is a hint; failures are ignored. The caller must
// hold or own the file.
func (f *File) Populate(from, to int64) {
	from, to = from&^(PageSize-1), min(to, f.Size())
	if from < to {
		f.back.populate(f.data, from, to)
	}
}

// SetReadAhead tells the system whether it pays to bring in the neighbours of
// a page that is touched, as it does unless told otherwise. In a file of which
// little is in use, or which is used here and there, each first touch may else
// cost the machine megabytes. It is a hint. The caller must hold or own the
// file.
func (f *File) SetReadAhead(on bool) { f.back.readAhead(f.data, on) }

// Reserve takes disk space up to at least to, in steps of step bytes, in a
// file that was created sparse. Writing into a mapped page for which the disk
// has no room kills the process; after Reserve it has room. Only the writer
// may call it.
func (f *File) Reserve(to, step int64) error {
	have := f.reserved.Load()
	if to <= have {
		return nil
	}
	to = min((to+step-1)/step*step, f.Size())
	if err := f.back.reserve(f.path, have, to); err != nil {
		return &IOError{Op: "reserve", Path: f.path, Offset: have, Err: err}
	}
	f.reserved.Store(to)
	return nil
}

// Clear zeroes the bytes from n up to to that are not zero already. Parts that
// the disk has no data for are not looked at where the system tells. Only the
// writer may call it.
func (f *File) Clear(n, to int64) {
	for zeros := checkAfter; n < to; {
		if zeros == checkAfter {
			zeros = 0
			if n = f.back.nextData(f.path, n); n >= to {
				return
			}
		}
		page := f.data[n:min(n&^(PageSize-1)+PageSize, to)]
		if allZero(page) {
			zeros++
		} else {
			clear(page)
			zeros = 0
		}
		n += int64(len(page))
	}
}

// checkAfter is how many pages of zeros make Clear ask the system where data
// comes next.
const checkAfter = 16

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Hold takes a reference and reports whether the file was still open. Each
// Hold that returned true needs one [File.Release].
func (f *File) Hold() bool {
	for {
		n := f.refs.Load()
		if n <= 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a reference back. The last one unmaps the file.
func (f *File) Release() { _ = f.release() }

// Close gives up the owner's reference: no Hold succeeds once all holders are
// gone, and the last of them unmaps the file. It does not flush. Call it once.
func (f *File) Close() error { return f.release() }

// Destroy is Close, and removes the file: at once where a file in use can be
// removed, else when nobody holds it any more.
func (f *File) Destroy() error {
	f.doomed.Store(f.back.remove(f.path) != nil)
	return f.release()
}

// Removed reports whether a file that was given to Destroy has left its
// directory. Its disk space is free once nobody holds it, too.
func (f *File) Removed() bool { return !f.doomed.Load() }

// Remove tries again to remove a file that Destroy could not.
func (f *File) Remove() error {
	if f.Removed() {
		return nil
	}
	err := f.back.remove(f.path)
	if err == nil {
		f.doomed.Store(false)
	}
	return err
}

func (f *File) release() error {
	if f.refs.Add(-1) != 0 {
		return nil
	}
	err := f.back.close(f.data)
	if rerr := f.Remove(); err == nil {
		err = rerr
	}
	return err
}
