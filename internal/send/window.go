package send

import (
	"container/list"
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
	line     list.List  // of *place
}

type place struct {
	bytes int
	turn  chan struct{} // closed when it is inside
}

func (w *window) init(messages, bytes int) { w.messages, w.bytes, w.limit = messages, bytes, bytes }

// fits reports whether there is room. mu is held.
func (w *window) fits(bytes int) bool {
	return w.messages > 0 && (w.bytes >= bytes || w.bytes == w.limit)
}

// tryEnter takes room if there is some and nobody waits for it.
func (w *window) tryEnter(bytes int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line.Len() > 0 || !w.fits(bytes) {
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
	pl := &place{bytes: bytes, turn: make(chan struct{})}
	w.mu.Lock()
	e := w.line.PushBack(pl)
	w.admit() // room may have come meanwhile
	w.mu.Unlock()
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	var err error
	select {
	case <-pl.turn:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
		err = errWindowFull
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-pl.turn: // just now: give it back
		w.messages++
		w.bytes += bytes
	default:
		w.line.Remove(e)
	}
	w.admit()
	return err
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
	for e := w.line.Front(); e != nil; e = w.line.Front() {
		pl := e.Value.(*place)
		if !w.fits(pl.bytes) {
			return
		}
		w.messages--
		w.bytes -= pl.bytes
		w.line.Remove(e)
		close(pl.turn)
	}
}

// errWindowFull is both: the time is over, and sending less helps.
var errWindowFull = &windowFull{}

type windowFull struct{}

func (*windowFull) Error() string {
	return "the window of asynchronous sends stayed full; raise WithInflight or send less"
}

func (*windowFull) Unwrap() []error { return []error{rocketmq.ErrTimeout, rocketmq.ErrBusy} }
