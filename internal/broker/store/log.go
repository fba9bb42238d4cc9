package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// errClosed is the reason for refusing work after Close.
var errClosed = errors.New("store: closed")

// commitLog is the log of all records. The append lock (mu) orders it; what
// happens inside is copying, never I/O: the next file is made in the
// background by prepare before the present one is full.
type commitLog struct {
	seq *mfile.Sequence // files are added under mu

	// end is the log's end: everything before it is written. Readers go no
	// further. It is stored after the bytes.
	end atomic.Int64
	// storeTime is the store time of the newest record, ms.
	storeTime atomic.Int64

	mu     sync.Mutex
	closed bool
	cur    *mfile.File // the file being written; nil until the first one is ready
	pos    int64       // end of the log within cur
	// attention is the position within cur at which prepare is woken.
	attention int64

	next    *mfile.File   // comes after cur; owned by the log until it is in seq
	nextErr error         // why next could not be made
	wanted  bool          // an appender waits for next
	ready   chan struct{} // closed, and replaced, when next or nextErr is set

	kick chan struct{} // wakes prepare
}

func newCommitLog(seq *mfile.Sequence) *commitLog {
	return &commitLog{seq: seq, ready: make(chan struct{}), kick: make(chan struct{}, 1)}
}

// resume puts the log's end to what recovery found. The sequence has been
// truncated there.
func (l *commitLog) resume(end, storeTime int64) {
	l.end.Store(end)
	l.storeTime.Store(storeTime)
	if f := l.seq.Last(); f != nil && end < f.End() {
		l.cur, l.pos = f, end-f.Start()
		l.attention = f.Size()
	}
	l.wake()
}

// begin is the log's minimum: where the oldest file starts.
func (l *commitLog) begin() int64 {
	if f := l.seq.First(); f != nil {
		return f.Start()
	}
	return l.end.Load()
}

// lock takes the append lock with room for n bytes and the filler in cur. On
// error it is not taken. n plus the filler must fit into a file.
func (l *commitLog) lock(n int64) error {
	for waited := false; ; waited = true {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			return errClosed
		case l.cur != nil && l.cur.Size()-l.pos >= n+wire.BlankSize:
			return nil
		case l.next != nil:
			l.roll()
			return nil
		case waited && l.nextErr != nil:
			err := l.nextErr
			l.mu.Unlock()
			return err
		}
		l.wanted = true
		ready := l.ready
		l.mu.Unlock()
		l.wake()
		<-ready // closed on failure and on stop, too
	}
}

// roll closes cur with the filler and goes on in next; mu must be held.
func (l *commitLog) roll() {
	if l.cur != nil {
		rest := l.cur.Data()[l.pos:]
		wire.AppendBlank(rest[:0], len(rest))
		l.cur.SetWrote(l.cur.Size())
	}
	l.seq.Add(l.next)
	l.cur, l.next, l.pos = l.next, nil, 0
	l.attention = min(populateStep, l.cur.Size()/2)
	l.end.Store(l.cur.Start())
}

// write copies records to the log's end and returns the new end; mu must be
// held with room for them. The caller unlocks and then calls wrote.
func (l *commitLog) write(b []byte, storeTime int64) int64 {
	// Size and magic come last: a process that is killed in between leaves
	// no record at all rather than a torn one.
	dst := l.cur.Data()[l.pos:]
	copy(dst[wire.BlankSize:], b[wire.BlankSize:])
	copy(dst, b[:wire.BlankSize])
	l.pos += int64(len(b))
	l.cur.SetWrote(l.pos)
	end := l.cur.Start() + l.pos
	l.end.Store(end)
	l.storeTime.Store(storeTime)
	if l.pos >= l.attention {
		l.attention = l.cur.Size() // prepare sets it anew
		l.wake()
	}
	return end
}

// shut refuses further appends.
func (l *commitLog) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// hold returns the file that has the byte at phy and its bytes from there to
// the end of what is written in it. The caller releases the file. It is nil
// when phy is not in the log.
func (l *commitLog) hold(phy int64) (*mfile.File, []byte) {
	end := l.end.Load()
	if phy < 0 || phy >= end {
		return nil, nil
	}
	f := l.seq.Hold(phy)
	if f == nil {
		return nil, nil
	}
	return f, f.Data()[phy-f.Start() : min(end, f.End())-f.Start()]
}

// storeTimeAt reads the store time of the record at phy; 0, as Apache has it,
// when it cannot be read.
func (l *commitLog) storeTimeAt(phy int64) int64 {
	f, b := l.hold(phy)
	if f == nil {
		return 0
	}
	defer f.Release()
	return recordStoreTime(b)
}

// damage is an error that names the place of damage in the log.
func (l *commitLog) damage(phy int64, reason string) error {
	path, at := l.seq.Dir(), phy
	if f := l.seq.Find(phy); f != nil {
		path, at = f.Path(), phy-f.Start()
	}
	return fmt.Errorf("store: commit log: %w", &mfile.FormatError{Path: path, Offset: at, Reason: reason})
}
