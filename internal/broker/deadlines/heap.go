// Package deadlines keeps what waits sorted by when its time is over, for as
// many as wait: whatever comes first is found at once, and anything can be taken
// out at any time.
package deadlines

import "time"

// Entry is what a [Heap] needs to know of a thing. Things have one of their own
// for each heap that they are in.
type Entry struct {
	At    time.Time // must not change while the thing is in the heap
	index int
}

// Heap has the thing with the earliest time first. It is not safe for concurrent
// use.
type Heap[T any] struct {
	entry func(T) *Entry
	all   []T
}

// New makes an empty heap. entry finds a thing's entry.
func New[T any](entry func(T) *Entry) Heap[T] { return Heap[T]{entry: entry} }

// Len is how many things there are.
func (h *Heap[T]) Len() int { return len(h.all) }

// First is the thing with the earliest time. There must be one.
func (h *Heap[T]) First() T { return h.all[0] }

// Next is the earliest time. There must be one.
func (h *Heap[T]) Next() time.Time { return h.entry(h.all[0]).At }

// Push adds a thing and tells whether it is now the first.
func (h *Heap[T]) Push(x T) (first bool) {
	e := h.entry(x)
	e.index = len(h.all)
	h.all = append(h.all, x)
	h.up(e.index)
	return e.index == 0
}

// Remove takes out a thing, which must be in the heap.
func (h *Heap[T]) Remove(x T) {
	i, last := h.entry(x).index, len(h.all)-1
	h.swap(i, last)
	var none T
	h.all[last] = none
	h.all = h.all[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h *Heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *Heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.all) {
			return
		}
		if right := child + 1; right < len(h.all) && h.before(right, child) {
			child = right
		}
		if !h.before(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *Heap[T]) before(i, j int) bool { return h.entry(h.all[i]).At.Before(h.entry(h.all[j]).At) }

func (h *Heap[T]) swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.entry(h.all[i]).index = i
	h.entry(h.all[j]).index = j
}
