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
// background by prepare before the present one is full. Records are copied
// into the mapped file, or with synchronous flush into a group that the
// flusher writes.
type commitLog struct {
	seq *mfile.Sequence // files are added under mu

	// end is the log's end for readers: everything before it is written, and
	// with synchronous flush durable. It is stored after the bytes.
	end atomic.Int64
	// storeTime is the store time of the newest record, ms.
	storeTime atomic.Int64

	mu     sync.Mutex
	closed bool
	cur    *mfile.File // the file being written; nil until the first one is ready
	pos    int64       // where the next record goes within cur
	// attention is the position within cur at which prepare is woken.
	attention int64

	next    *mfile.File   // comes after cur; owned by the log until it is in seq
	nextErr error         // why next could not be made
	wanted  bool          // an appender waits for next
	ready   chan struct{} // closed, and replaced, when next or nextErr is set

	kick chan struct{} // wakes prepare

	grouped bool          // records go into group; does not change once there are appenders
	group   *group        // what the flusher will take
	failed  error         // a flush has failed: why nothing is taken any more
	broken  chan struct{} // closed when failed is set
	busy    bool          // the flusher is stuck
	room    chan struct{} // closed, and replaced, when an appender may find room in group
	queued  bool          // appenders wait for room
}

func newCommitLog(seq *mfile.Sequence) *commitLog {
	return &commitLog{
		seq: seq, ready: make(chan struct{}), kick: make(chan struct{}, 1),
		broken: make(chan struct{}), room: make(chan struct{}),
	}
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

// tail is where the next record goes, as a log position; mu must be held.
func (l *commitLog) tail() int64 {
	if l.cur == nil {
		return l.end.Load()
	}
	return l.cur.Start() + l.pos
}

// position is tail for those who do not hold mu.
func (l *commitLog) position() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail()
}

// lock takes the append lock with room for n bytes and the filler in cur. On
// error it is not taken. n plus the filler must fit into a file.
func (l *commitLog) lock(n int64) error {
	for waited := false; ; {
		l.mu.Lock()
		switch {
		case l.closed:
			l.mu.Unlock()
			return errClosed
		case l.failed != nil:
			l.mu.Unlock()
			return l.failure()
		case l.grouped && l.group.full(n):
			room, busy := l.room, l.busy
			l.queued = l.queued || !busy
			l.mu.Unlock()
			if busy {
				return errBusy
			}
			<-room
			continue
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
		waited = true
	}
}

// statusOf is the status of a message for which lock returned err.
func (l *commitLog) statusOf(err error) Status {
	switch {
	case errors.Is(err, errBusy):
		return OSPageCacheBusy
	case errors.Is(err, errClosed) || l.failure() != nil:
		return ServiceNotAvailable
	default:
		return CreateMappedFileFailed
	}
}

// roll closes cur with the filler and goes on in next; mu must be held.
func (l *commitLog) roll() {
	switch {
	case l.cur == nil:
	case l.grouped:
		l.group.fill(l.cur, int(l.cur.Size()-l.pos))
	default:
		rest := l.cur.Data()[l.pos:]
		wire.AppendBlank(rest[:0], len(rest))
		l.cur.SetWrote(l.cur.Size())
	}
	l.seq.Add(l.next)
	l.cur, l.next, l.pos = l.next, nil, 0
	l.attention = min(populateStep, l.cur.Size()/2)
	if !l.grouped {
		l.end.Store(l.cur.Start())
	}
}

// write copies records to the log's end and returns the new end; mu must be
// held with room for them.
func (l *commitLog) write(b []byte, storeTime int64) int64 {
	end := l.cur.Start() + l.pos + int64(len(b))
	if l.grouped {
		l.group.add(l.cur, b)
		l.group.end, l.group.storeTime = end, storeTime
		l.pos += int64(len(b))
	} else {
		// Size and magic come last: a process that is killed in between
		// leaves no record at all rather than a torn one.
		dst := l.cur.Data()[l.pos:]
		copy(dst[wire.BlankSize:], b[wire.BlankSize:])
		copy(dst, b[:wire.BlankSize])
		l.pos += int64(len(b))
		l.cur.SetWrote(l.pos)
		l.end.Store(end)
	}
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
	l.makeRoom()
}

// collect makes appenders fill groups. There must be none yet.
func (l *commitLog) collect() { l.grouped, l.group = true, &group{} }

// discard gives up what no flusher will take. There must be no appenders any
// more.
func (l *commitLog) discard() {
	if l.grouped {
		l.group.reset()
	}
}

// take hands over the group that has been appended, nil if there is nothing,
// and begins another with the empty one that it is given.
func (l *commitLog) take(empty *group) *group {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.group
	if g.empty() || l.failed != nil {
		return nil
	}
	l.group = empty
	l.makeRoom()
	return g
}

// makeRoom lets appenders that wait for the flusher look again; mu must be
// held.
func (l *commitLog) makeRoom() {
	if l.queued {
		l.queued = false
		close(l.room)
		l.room = make(chan struct{})
	}
}

// setBusy tells appenders whether it makes sense to wait for the flusher.
func (l *commitLog) setBusy(busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if busy && !l.busy {
		l.makeRoom()
	}
	l.busy = busy
}

// fail makes the log refuse everything. It reports whether this is the first
// failure.
func (l *commitLog) fail(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return false
	}
	l.failed = err
	close(l.broken)
	l.makeRoom()
	return true
}

// failure is why the log takes no more messages, nil if it does.
func (l *commitLog) failure() error {
	select {
	case <-l.broken:
		return fmt.Errorf("store: no more messages are taken, what has been flushed is unknown: %w", l.failed)
	default:
		return nil
	}
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
