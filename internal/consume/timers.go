package consume

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timers runs functions later, all on one goroutine, so that a thousand
// queues that back off cost no goroutine each. Functions must not block.
type timers struct {
	mu   sync.Mutex // guards heap
	heap timerHeap
	wake chan struct{} // one slot: the heap has a new first entry
}

type timerEntry struct {
	at time.Time
	f  func()
}

func newTimers() *timers { return &timers{wake: make(chan struct{}, 1)} }

// after has f called once d has passed, unless the goroutine has ended by
// then.
func (t *timers) after(d time.Duration, f func()) {
	e := timerEntry{time.Now().Add(d), f}
	t.mu.Lock()
	heap.Push(&t.heap, e)
	first := t.heap[0].at.Equal(e.at)
	t.mu.Unlock()
	if first {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// run is the goroutine.
func (t *timers) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := t.fire()
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-timer.C:
		}
	}
}

// fire runs what is due and returns how long there is nothing to do.
func (t *timers) fire() time.Duration {
	for {
		t.mu.Lock()
		if len(t.heap) == 0 {
			t.mu.Unlock()
			return time.Hour
		}
		if wait := time.Until(t.heap[0].at); wait > 0 {
			t.mu.Unlock()
			return wait
		}
		e := heap.Pop(&t.heap).(timerEntry)
		t.mu.Unlock()
		e.f()
	}
}

type timerHeap []timerEntry

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(timerEntry)) }
func (h *timerHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = timerEntry{}
	*h = old[:len(old)-1]
	return e
}
