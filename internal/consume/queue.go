package consume

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
)

// phase is what a queue's pulling is doing.
type phase uint8

const (
	phaseIdle       phase = iota // about to pull
	phasePulling                 // a pull is on its way or waits at the broker
	phaseConnecting              // waits for a connection
	phaseWaiting                 // backs off after a failure
	phaseFull                    // the cache is full
	phasePaused                  // the topic is
	phaseHandover                // gives the owner before time to commit, see handover.go
	phaseLocking                 // ordered: waits for its lock, or for a handler of the queue before it, see locks.go
	phaseGone                    // not ours any more, for good
)

// queue is one queue while it is assigned to this member: its cache, its
// pulling and its offset.
type queue struct {
	c      *Consumer
	topic  *topic
	key    rocketmq.Queue // with the public topic name
	ctx    context.Context
	cancel context.CancelCauseFunc // ends the handlers' context with a cause

	count    atomic.Int64 // unfinished messages in the cache
	bytes    atomic.Int64 // and their encoded size
	full     atomic.Bool  // pulling stopped for lack of room
	gone     atomic.Bool  // set once, before idle is looked at
	revoked  atomic.Bool  // gone, and others handle its messages
	stale    atomic.Bool  // gone, and its offset counts no more: it was moved
	told     atomic.Int64 // the highest offset in any frame that was encoded, see tell
	running  atomic.Int32 // workers at work on the queue's messages, and failures being settled in order
	unlocked atomic.Bool  // ordered: the lock was let go, for good
	known    *atomic.Bool // the listener has been told that it is ours; shared with a queue that takes the place after a reset
	lease    atomic.Int64 // ordered: until when the lock is ours, as time since Consumer.epoch; 0: it is not

	mu    sync.Mutex // guards all below
	pages []*page    // in the order of offsets; finished ones leave at the head
	next  int64      // the offset to pull next

	phase    phase
	handover bool // next is not settled yet, see handover.go and locks.go

	// In order, see locks.go and owned.go.
	pred    *queue    // the queue of the same name before this one, whose handler may still run
	fixed   bool      // next was given by an operator or the broker
	foreign bool      // likewise, but the lock was somebody else's, and so is the new offset to apply
	lost    bool      // there was a lock
	joining bool      // acquire is at it
	lockAt  time.Time // when the lock was taken or renewed last

	pull     pullRequest
	pulls    uint64 // number of the current pull
	conn     *remoting.Conn
	addr     string
	token    remoting.Token
	source   int64 // broker id to pull from
	failures int   // in a row, of pulls
	empties  int   // answers in a row that came at once and brought nothing
	unmoved  bool  // the last answer moved the offset to where it was
	sentAt   time.Time

	noReplica time.Time // until then no replica is asked

	taken   int64     // messages that came into the cache
	doneAt  time.Time // when the last page was finished
	watched watched

	lastErr   error
	lastPull  time.Time // last answer
	max       int64     // the broker's maximum at the last answer
	began     int64     // the broker's offset when we began; -1: it knows of none
	committed int64     // sent to the broker last, -1 for nothing
	confirmed int64     // what it has confirmed last, -1 for nothing
	sentTime  time.Time // when
	idle      chan struct{}

	// Of a Lite, see poll.go.
	mark   int64  // the offset to begin with, or committed by the application since; -1 for none
	handed uint64 // number of the poll that messages were handed out to last, 0 for none
	since  int64  // the first of these
	inLine inLine // Lite.mu guards it
}

// lowest is the offset to commit: of the first unfinished message, or the one
// to pull next if there is none. Everything before it is done.
func (q *queue) lowest() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lowestLocked()
}

func (q *queue) lowestLocked() int64 {
	q.trimLocked()
	for _, p := range q.pages {
		// The bits of a page can all be set a moment before it counts as done.
		if i := p.lowest(); i < len(p.views) {
			return p.views[i].Offset
		}
	}
	return q.next
}

// trimLocked drops finished pages at the head.
func (q *queue) trimLocked() {
	n := 0
	for n < len(q.pages) && q.pages[n].left.Load() == 0 {
		n++
	}
	if n == 0 {
		return
	}
	left := copy(q.pages, q.pages[n:]) // a few pointers, rather than a new slice now and then
	clear(q.pages[left:])
	q.pages = q.pages[:left]
}

// hasRoom reports whether another pull may be sent.
func (q *queue) hasRoomLocked() bool {
	l := &q.topic.limits
	if q.count.Load() >= l.messages.Load() || q.bytes.Load() >= l.bytes.Load() {
		return false
	}
	if len(q.pages) == 0 || q.c.cfg.Ordered { // in order it is what the cache holds
		return true
	}
	// A message that takes long must not let the distance between the
	// committed and the newest offset grow without bound: all of it is handled
	// again by whoever gets the queue after a crash.
	return q.next-q.lowestLocked() <= l.span.Load()
}

// finish marks message i of a page as done, whoever did it.
func (q *queue) finish(p *page, i int) {
	size := int64(p.meta[i].size)
	last := p.finish(i)
	q.count.Add(-1)
	q.bytes.Add(-size)
	if last {
		q.mu.Lock()
		// A finished page behind an unfinished one must not keep its bodies.
		p.views, p.ptrs, p.meta = nil, nil, nil
		q.doneAt = time.Now()
		q.trimLocked()
		empty := len(q.pages) == 0
		q.mu.Unlock()
		if empty && q.c.local == nil { // a file is not written that often
			q.c.commitSoon()
		}
	}
	if q.full.Load() {
		q.roomMade()
	}
}

// roomMade pulls again if the cache was full and is not any more.
func (q *queue) roomMade() {
	l := &q.topic.limits
	if q.count.Load() >= l.messages.Load() || q.bytes.Load() >= l.bytes.Load() {
		return
	}
	q.mu.Lock()
	again := q.phase == phaseFull && q.hasRoomLocked()
	if again {
		q.phase = phaseIdle
		q.full.Store(false)
	}
	q.mu.Unlock()
	if again {
		q.startPull()
	}
}

// enter and leave bracket a worker's stay with the queue's messages. enter is
// false if the queue is gone.
func (q *queue) enter() bool {
	q.running.Add(1)
	if q.gone.Load() {
		q.leave()
		return false
	}
	return true
}

func (q *queue) leave() {
	if q.running.Add(-1) == 0 && q.gone.Load() {
		q.signalIdle()
	}
}

func (q *queue) signalIdle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running.Load() != 0 {
		return
	}
	select {
	case <-q.idle:
	default:
		close(q.idle)
	}
}

// stop ends pulling for good and keeps workers from beginning further
// messages. The channel is closed once no worker is at work on the queue.
func (q *queue) stop() <-chan struct{} {
	q.gone.Store(true)
	q.mu.Lock()
	pulling, conn, token := q.phase == phasePulling, q.conn, q.token
	q.phase = phaseGone
	q.mu.Unlock()
	if pulling && conn != nil {
		conn.Cancel(token)
	}
	q.topic.forget(q)
	if q.running.Load() == 0 {
		q.signalIdle()
	}
	return q.idle
}

// begun lists the offsets of messages that were handed out and are not
// finished: in a handler, or waiting for their retry.
func (q *queue) begun() []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []int64
	for _, p := range q.pages {
		for i := range p.views {
			if p.begun(i) && !p.finished(i) {
				out = append(out, p.views[i].Offset)
			}
		}
	}
	return out
}
