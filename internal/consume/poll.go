package consume

import (
	"context"
	"slices"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// The way of a message from the cache to the application.
//
// Queues with messages stand in line. A poll takes the first one, hands out
// messages of its first page and puts it to the end, so the queues take turns and
// one that nobody cares for (it is paused, or lost) is in nobody's way. While a
// poll is at a queue no other can be: its messages leave the cache in order.
//
// Messages that were handed out are finished as far as the cache and the next
// pull are concerned. Whether they are done is another question: see
// liteoffsets.go.

// inLine is where a queue is.
type inLine uint8

const (
	lineOut   inLine = iota // nothing to hand out, or paused
	lineIn                  // in the line
	lineHeld                // a poll is at it
	lineAgain               // likewise, and messages came meanwhile
	lineGone                // for good
)

// line is a queue of queues.
type line struct {
	items []*queue
	head  int
}

func (n *line) push(q *queue) {
	if n.head > 0 && len(n.items) == cap(n.items) {
		left := copy(n.items, n.items[n.head:])
		clear(n.items[left:])
		n.items, n.head = n.items[:left], 0
	}
	n.items = append(n.items, q)
}

func (n *line) pop() *queue {
	if n.empty() {
		return nil
	}
	q := n.items[n.head]
	n.items[n.head] = nil
	if n.head++; n.empty() {
		n.items, n.head = n.items[:0], 0
	}
	return q
}

func (n *line) remove(q *queue) {
	if i := slices.Index(n.items[n.head:], q); i >= 0 {
		n.items = slices.Delete(n.items, n.head+i, n.head+i+1)
	}
}

func (n *line) empty() bool { return n.head == len(n.items) }

// BodyError is a message whose body cannot be decompressed.
type BodyError struct {
	View *rocketmq.MessageView // with the body as it came
	Err  error
}

// Error implements error.
func (e *BodyError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BodyError) Unwrap() error { return e.Err }

// Poll hands out up to n messages of one queue. It waits until there are some, ctx
// ends, or Close is called. A message whose body is damaged is a [*BodyError]; it
// counts as handed out.
func (l *Lite) Poll(ctx context.Context, n int) ([]*rocketmq.MessageView, error) {
	l.polls.Add(1)
	l.announce()
	if err := l.Open(ctx); err != nil {
		return nil, err
	}
	for {
		switch {
		case l.life.Err() != nil:
			return nil, rocketmq.ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		if q := l.call(); q != nil {
			msgs, more, err := q.take(n)
			l.dismiss(q, more)
			if len(msgs) > 0 || err != nil {
				return msgs, err
			}
			continue
		}
		select {
		case <-l.wake:
		case <-l.life.Done():
		case <-ctx.Done():
		}
	}
}

// call takes the first queue from the line.
func (l *Lite) call() *queue {
	l.mu.Lock()
	q := l.line.pop()
	if q != nil {
		q.inLine = lineHeld
	}
	more := !l.line.empty()
	l.mu.Unlock()
	if more {
		l.signal()
	}
	return q
}

// dismiss puts a queue back.
func (l *Lite) dismiss(q *queue, more bool) {
	l.mu.Lock()
	switch q.inLine {
	case lineHeld:
		q.inLine = lineOut
	case lineAgain:
		q.inLine, more = lineOut, true
	}
	l.pushLocked(q, more)
}

// offer puts a queue in line that has got messages.
func (l *Lite) offer(q *queue) {
	l.mu.Lock()
	if q.inLine == lineHeld {
		q.inLine = lineAgain
	}
	l.pushLocked(q, true)
}

// pushLocked puts a queue in line if it may be there, and unlocks.
func (l *Lite) pushLocked(q *queue, more bool) {
	more = more && q.inLine == lineOut && !l.paused[q.key]
	if more {
		q.inLine = lineIn
		l.line.push(q)
	}
	l.mu.Unlock()
	if more {
		l.signal()
	}
}

func (l *Lite) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// forget drops a queue that is gone.
func (l *Lite) forget(q *queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.inLine == lineIn {
		l.line.remove(q)
	}
	q.inLine = lineGone
}

// Pause keeps the messages of queues from being handed out, until Resume. They
// are still pulled, up to the limits of the cache.
func (l *Lite) Pause(keys []rocketmq.Queue) {
	qs := l.c.queues()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		l.paused[key] = true
	}
	for _, q := range qs {
		if q.inLine == lineIn && l.paused[q.key] {
			l.line.remove(q)
			q.inLine = lineOut
		}
	}
}

// Resume undoes Pause.
func (l *Lite) Resume(keys []rocketmq.Queue) {
	l.mu.Lock()
	for _, key := range keys {
		delete(l.paused, key)
	}
	l.mu.Unlock()
	for _, q := range l.c.queues() {
		l.offer(q) // those without messages leave the line with the next poll
	}
}

func (l *Lite) isPaused(key rocketmq.Queue) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused[key]
}

// take hands out up to n messages of one page and says whether there are more. It
// is called by one poll at a time.
func (q *queue) take(n int) (msgs []*rocketmq.MessageView, more bool, err error) {
	for {
		q.mu.Lock()
		p, from, to := q.firstLocked(n)
		if p == nil {
			q.mu.Unlock()
			return nil, false, nil
		}
		if err == nil && p.meta[from].sysFlag&wire.SysCompressed != 0 {
			q.mu.Unlock()
			// Not with the lock: the connection's reader wants it.
			if err = q.unpack(p, from, to); err == nil {
				continue
			}
			// It is handed out as an error, or else nobody would get past it.
			q.mu.Lock()
			if q.phase == phaseGone {
				q.mu.Unlock()
				return nil, false, nil
			}
			more = q.handOutLocked(p, from, from+1)
		} else {
			for i := from + 1; i < to; i++ {
				if p.meta[i].sysFlag&wire.SysCompressed != 0 {
					to = i
				}
			}
			msgs = p.ptrs[from:to:to]
			more = q.handOutLocked(p, from, to)
		}
		q.mu.Unlock()
		if q.full.Load() {
			q.roomMade()
		}
		return msgs, more, err
	}
}

// firstLocked is what can be handed out next.
func (q *queue) firstLocked(n int) (p *page, from, to int) {
	if q.phase == phaseGone {
		return nil, 0, 0
	}
	for _, p := range q.pages {
		// The bits of a page can all be set a moment before it counts as done.
		if from := p.lowest(); from < len(p.views) {
			return p, from, min(from+n, len(p.views))
		}
	}
	return nil, 0, 0
}

// unpack decompresses messages that nobody else can have. It fails only if that
// is not possible for the first.
func (q *queue) unpack(p *page, from, to int) error {
	for i := from; i < to; i++ {
		v, m := &p.views[i], &p.meta[i]
		if m.sysFlag&wire.SysCompressed == 0 {
			continue
		}
		body, err := q.c.inflate.Inflate(v.Body, m.sysFlag)
		switch {
		case err == nil:
			v.Body = body
			m.sysFlag &^= wire.SysCompressed
		case i == from:
			return &BodyError{v, err}
		default:
			return nil
		}
	}
	return nil
}

// handOutLocked takes messages out of the cache and reports whether more are
// left.
func (q *queue) handOutLocked(p *page, from, to int) (more bool) {
	if now := q.c.lite.polls.Load(); q.handed != now {
		q.handed, q.since = now, p.views[from].Offset
	}
	size := int64(0)
	last := false
	for i := from; i < to; i++ {
		size += int64(p.meta[i].size)
		last = p.finish(i)
	}
	q.count.Add(int64(from - to))
	q.bytes.Add(-size)
	if last {
		p.views, p.ptrs, p.meta = nil, nil, nil
		q.trimLocked()
	}
	return len(q.pages) > 0
}
