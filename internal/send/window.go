package send

import (
	"context"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// window bounds what asynchronous sends have under way, in messages and in
// bytes. Whoever finds it full waits in line. A message larger than all the
// bytes goes alone.
type window struct {
	mu       sync.Mutex // guards all below
	messages int        // free
	bytes    int        // free; may be negative
	limit    int        // of bytes

	first, last *place // the line
	places      sync.Pool
}

// place is one who waits in line.
type place struct {
	bytes      int
	turn       chan struct{} // one slot, filled when it is inside
	inside     bool
	prev, next *place
	late       *time.Timer
}

func (w *window) init(messages, bytes int) {
	w.messages, w.bytes, w.limit = messages, bytes, bytes
	w.places.New = func() any {
		pl := &place{turn: make(chan struct{}, 1), late: time.NewTimer(time.Hour)}
		pl.late.Stop()
		return pl
	}
}

// fits reports whether there is room. mu is held.
func (w *window) fits(bytes int) bool {
	return w.messages > 0 && (w.bytes >= bytes || w.bytes == w.limit)
}

// tryEnter takes room if there is some and nobody waits for it.
func (w *window) tryEnter(bytes int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first != nil || !w.fits(bytes) {
		return false
	}
	w.messages--
	w.bytes -= bytes
	return true
}

// enter takes room and waits for it until the deadline or the end of ctx.
func (w *window) enter(ctx context.Context, bytes int, deadline time.Time) error {
	if w.tryEnter(bytes) {
		return nil
	}
	pl := w.places.Get().(*place)
	pl.bytes, pl.inside = bytes, false
	w.mu.Lock()
	w.queue(pl)
	w.admit() // room may have come meanwhile
	w.mu.Unlock()
	pl.late.Reset(time.Until(deadline))
	var err error
	select {
	case <-pl.turn:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-pl.late.C:
		err = errWindowFull
	}
	pl.late.Stop()
	if err != nil {
		w.giveUp(pl)
	}
	w.places.Put(pl)
	return err
}

// giveUp takes back what a place has, or had in line.
func (w *window) giveUp(pl *place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pl.inside { // just now
		<-pl.turn
		w.messages++
		w.bytes += pl.bytes
	} else {
		w.unqueue(pl)
	}
	w.admit()
}

func (w *window) queue(pl *place) {
	if pl.prev = w.last; pl.prev != nil {
		pl.prev.next = pl
	} else {
		w.first = pl
	}
	w.last = pl
}

func (w *window) unqueue(pl *place) {
	if pl.prev != nil {
		pl.prev.next = pl.next
	} else {
		w.first = pl.next
	}
	if pl.next != nil {
		pl.next.prev = pl.prev
	} else {
		w.last = pl.prev
	}
	pl.prev, pl.next = nil, nil
}

// leave gives room back.
func (w *window) leave(bytes int) {
	w.mu.Lock()
	w.messages++
	w.bytes += bytes
	w.admit()
	w.mu.Unlock()
}

// admit lets those in who stand first in line. mu is held.
func (w *window) admit() {
	for pl := w.first; pl != nil && w.fits(pl.bytes); pl = w.first {
		w.messages--
		w.bytes -= pl.bytes
		w.unqueue(pl)
		pl.inside = true
		pl.turn <- struct{}{} // its slot is free
	}
}

// errWindowFull is both: the time is over, and sending less helps.
var errWindowFull = &windowFull{}

type windowFull struct{}

func (*windowFull) Error() string {
	return "the window of asynchronous sends stayed full; raise WithInflight or send less"
}

func (*windowFull) Unwrap() []error { return []error{rocketmq.ErrTimeout, rocketmq.ErrBusy} }
