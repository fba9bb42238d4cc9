package store

import (
	"sync"
	"time"
)

// waiting is an answer that is due once the log is durable up to end.
type waiting struct {
	end   int64
	since time.Duration // on the store's own time scale
	res   PutResult
	w     Waiter
}

// waiters are the answers that wait for the flusher, in the order of the log.
type waiters struct {
	mu sync.Mutex // taken after the append lock
	q  []waiting
}

// add appends one; the append lock must be held.
func (l *waiters) add(x waiting) {
	l.mu.Lock()
	l.q = append(l.q, x)
	l.mu.Unlock()
}

// count is how many wait.
func (l *waiters) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.q)
}

// take moves those at the front for which due is true to dst.
func (l *waiters) take(dst []waiting, due func(*waiting) bool) []waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.q) && due(&l.q[n]) {
		n++
	}
	if n == 0 {
		return dst
	}
	dst = append(dst, l.q[:n]...)
	rest := copy(l.q, l.q[n:])
	clear(l.q[rest:])
	l.q = l.q[:rest]
	return dst
}

// answer gives all of ws their results, with what became of them.
func answer(ws []waiting, st Status, err error) {
	for i := range ws {
		x := &ws[i]
		x.res.Status, x.res.Err = st, err
		x.w.Stored(x.res)
	}
	clear(ws)
}
