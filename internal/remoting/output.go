package remoting

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// output is the write side of a connection. Frames are appended to buf under
// mu. At any time at most one goroutine is the writer (writing is true): it
// swaps buf for the spare buffer and writes without the lock, again and again
// until buf is empty. The right to write passes from a caller to the flusher
// through the connection's kick channel.
type output struct {
	mu      sync.Mutex // guards all below
	buf     []byte     // frames that no writer has taken yet
	spare   []byte     // the buffer written last, empty
	rest    []byte     // what the writer has taken and not yet written
	taken   []byte     // the buffer that rest is the end of
	writing bool       // somebody is the writer, or the flusher was kicked
	inWrite bool       // a write is under way
	caller  bool       // it is a caller's, who must get out
	expired bool       // the sweeper ended it
	closed  bool
	moves   uint64        // writes that moved bytes; for the sweeper
	room    chan struct{} // closed when there is room again; nil: nobody waits
	drained chan struct{} // closed when all is written; nil: nobody waits
}

const (
	keepBuffer  = 1 << 20 // larger buffers are left to the collector after use
	callerTurns = 4       // writes a caller does before the flusher takes over
	tlsChunk    = 256 << 10
)

// longAgo is the write deadline that ends a write under way.
func longAgo() time.Time { return time.Unix(1, 0) }

// queued is how many bytes wait to be written. mu is held.
func (o *output) queued() int { return len(o.buf) + len(o.rest) }

// request adds the frame that a appends and reports whether the caller has
// become the writer, which it then must be (or kick the flusher). A panic of
// the encoder leaves the buffer as it was.
func (o *output) request(limit int, a Appender, opaque int32) (writer bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false, ErrClosed
	}
	had := len(o.buf)
	b := a.AppendFrame(o.buf, opaque)
	if len(b)-had > limit {
		return false, ErrFrameTooLarge
	}
	o.buf = b
	writer = !o.writing
	o.writing = true
	return writer, nil
}

// reply adds the frame that r appends. It makes nobody the writer, see claim.
// queued is what waits now.
func (o *output) reply(limit int, r Responder, h wire.Head) (queued int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, ErrClosed
	}
	had := len(o.buf)
	b := r.AppendResponse(o.buf, h)
	if len(b)-had > limit {
		return 0, ErrFrameTooLarge
	}
	o.buf = b
	return o.queued(), nil
}

// claim makes the caller the writer if there is something to write and nobody
// does it.
func (o *output) claim() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing || o.closed || len(o.buf) == 0 {
		return false
	}
	o.writing = true
	return true
}

// take hands the writer what is to be written next, nil if there is nothing:
// then it is the writer no more.
func (o *output) take(caller bool) []byte {
	o.mu.Lock()
	if o.closed || len(o.rest) == 0 && len(o.buf) == 0 {
		o.writing = false
		wake := o.drained
		o.drained = nil
		o.mu.Unlock()
		signal(wake)
		return nil
	}
	defer o.mu.Unlock()
	if len(o.rest) == 0 {
		o.taken = o.buf
		o.rest = o.taken
		o.buf, o.spare = o.spare[:0], nil
	}
	o.caller, o.inWrite = caller, true
	return o.rest
}

// wrote notes that the first n bytes of what take gave are written. If the
// sweeper ended the write, reset takes its deadline off again; under mu, so
// that it cannot meet the sweeper setting the next one. more says that there
// is more to write by now.
func (o *output) wrote(n, highWater int, reset func()) (expired, more bool) {
	o.mu.Lock()
	o.inWrite = false
	if expired = o.expired; expired {
		o.expired = false
		reset()
	}
	if n > 0 {
		o.moves++
		o.rest = o.rest[n:]
	}
	if len(o.rest) == 0 {
		if cap(o.taken) <= keepBuffer {
			o.spare = o.taken[:0]
		}
		o.rest, o.taken = nil, nil
	}
	var wake chan struct{}
	if o.room != nil && o.queued() < highWater {
		wake, o.room = o.room, nil
	}
	more = o.queued() > 0
	o.mu.Unlock()
	signal(wake)
	return expired, more
}

// full returns nil if there is room, else a channel that is closed once there
// is or the connection is closed.
func (o *output) full(highWater int) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.queued() < highWater {
		return nil
	}
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room
}

// busy returns nil if everything is written, else a channel that is closed
// once it is or the connection is closed.
func (o *output) busy() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.writing && o.queued() == 0 {
		return nil
	}
	if o.drained == nil {
		o.drained = make(chan struct{})
	}
	return o.drained
}

// close drops what is queued and wakes all who wait.
func (o *output) close() {
	o.mu.Lock()
	o.closed = true
	o.buf, o.spare = nil, nil
	room, drained := o.room, o.drained
	o.room, o.drained = nil, nil
	o.mu.Unlock()
	signal(room)
	signal(drained)
}

func signal(ch chan struct{}) {
	if ch != nil {
		close(ch)
	}
}

// progress is what the sweeper remembers of a write under way.
type progress struct {
	watching bool
	moves    uint64
	since    int64 // when moves was first seen, nanoseconds
}

// stuck judges the write under way for the sweeper. A caller's write that did
// not move from one sweep to the next is ended, so that the caller can leave
// the rest to the flusher; the flusher's own is ended after limit (0: never), to
// learn whether bytes moved inside it. If the write cannot be ended without breaking
// the stream (end is false) the connection is dead.
func (o *output) stuck(p *progress, now int64, limit time.Duration, end func() bool) (dead bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) == 0 || o.closed {
		p.watching = false
		return false
	}
	if !p.watching || p.moves != o.moves {
		*p = progress{watching: true, moves: o.moves, since: now}
		return false
	}
	tooLong := limit > 0 && now-p.since >= int64(limit)
	if !o.inWrite || o.expired || !o.caller && !tooLong {
		return false
	}
	if !end() {
		return true
	}
	o.expired = true
	return false
}

// shrink gives the memory of an idle connection back.
func (o *output) shrink() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writing && len(o.buf) == 0 {
		o.buf, o.spare = nil, nil
	}
}

// unwritten reports whether there is output for the sweeper to watch.
func (o *output) unwritten() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.closed && o.queued() > 0
}

// write is what the writer does until the buffer is empty. A caller, that is
// whoever is not the flusher, leaves the work to the flusher when it has done
// its share or is stuck. With yield it lets the scheduler run others first,
// who may be about to add frames.
func (c *Conn) write(caller, yield bool) {
	c.watch()
	for turn := 0; ; turn++ {
		if yield {
			runtime.Gosched()
		}
		if caller && turn == callerTurns {
			c.kick <- struct{}{}
			return
		}
		out := c.out.take(caller)
		if out == nil {
			return
		}
		if !c.resumable && len(out) > tlsChunk {
			out = out[:tlsChunk] // progress is only seen between writes
		}
		n, err := c.nc.Write(out)
		expired, more := c.out.wrote(n, c.cfg.HighWater, c.clearDeadline)
		if n > 0 {
			c.sent.Add(1)
		}
		switch {
		case err == nil:
		case !expired || !errors.Is(err, os.ErrDeadlineExceeded):
			c.fail("write", err)
		case caller:
			c.kick <- struct{}{}
			return
		case n == 0:
			c.fail("write", ErrStalled)
		}
		yield = more // else the next turn only finds that all is done
	}
}

// flush is the flusher goroutine.
func (c *Conn) flush() {
	for {
		select {
		case <-c.kick:
			c.write(false, true)
		case <-c.done:
			return
		}
	}
}

// endWrite makes a write under way return, if the stream survives that.
func (c *Conn) endWrite() bool {
	return c.resumable && c.nc.SetWriteDeadline(longAgo()) == nil
}

func (c *Conn) clearDeadline() { _ = c.nc.SetWriteDeadline(time.Time{}) }
