package consume

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
)

func testDispatcher(limit int, ordered bool) *dispatcher {
	c := &Consumer{}
	c.cfg.Ordered = ordered
	return newDispatcher(c, Subscription{Settings: Settings{Concurrency: limit, Batch: 1}})
}

// enqueue puts a page of n messages in line without waking anybody.
func enqueue(d *dispatcher, q *queue, n int) *work {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &work{p: &page{q: q}, views: make([]*rocketmq.MessageView, n)}
	l := d.laneLocked(q)
	l.add(w)
	d.offerLocked(l)
	return w
}

// takeAll has as many workers claim work as get some, and counts them by queue.
func takeAll(d *dispatcher) (ws []*worker, by map[*queue]int) {
	by = map[*queue]int{}
	for {
		d.active++
		w, more := d.claim(nil)
		if w == nil {
			return ws, by
		}
		if more {
			d.active-- // the test wakes all there are itself
		}
		ws, by[w.lane.q] = append(ws, w), by[w.lane.q]+1
	}
}

func TestOneQueueLeavesRoomForOthers(t *testing.T) {
	for limit, most := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 8: 6, 20: 15} {
		d := testDispatcher(limit, false)
		a, b := newTestQueue(), newTestQueue()
		enqueue(d, a, 1000)
		d.attach(b)
		ws, by := takeAll(d)
		require.Len(t, ws, most, "limit %d", limit)
		require.Equal(t, map[*queue]int{a: most}, by)
		if limit == 1 {
			continue
		}
		enqueue(d, b, 1000)
		_, by = takeAll(d)
		require.NotZero(t, by[b], "limit %d", limit)
		require.Zero(t, by[a])
	}
}

func TestALoneQueueHasAll(t *testing.T) {
	d := testDispatcher(20, false)
	q := newTestQueue()
	enqueue(d, q, 1000)
	d.mu.Lock()
	require.Equal(t, 20, d.mostLocked())
	d.mu.Unlock()
}

// In order a queue has one worker, also while its work waits, and none while it
// is suspended.
func TestOrderedLaneHasOneWorker(t *testing.T) {
	d := testDispatcher(20, true)
	a, b := newTestQueue(), newTestQueue()
	enqueue(d, a, 10)
	enqueue(d, a, 10)
	enqueue(d, b, 10)
	ws, by := takeAll(d)
	require.Equal(t, map[*queue]int{a: 1, b: 1}, by)
	la := d.lanes[a]
	until := time.Now().Add(time.Hour)
	d.hold(la, until)
	require.Equal(t, standing{suspended: true, until: until}, d.standing(a))
	for _, w := range ws {
		d.mu.Lock()
		d.releaseLocked(w)
		d.mu.Unlock()
	}
	_, by = takeAll(d)
	require.Equal(t, map[*queue]int{b: 1}, by, "a is suspended")
	d.active = d.limit // so that nobody is woken
	d.resume(la)
	d.active = 0
	_, by = takeAll(d)
	require.Equal(t, map[*queue]int{a: 1}, by)
	d.forget(a)
	d.resume(la)
	_, by = takeAll(d)
	require.Empty(t, by, "a queue that is gone has no work")
	require.Equal(t, standing{}, d.standing(a))
}

// The time of a call is taken exactly if calls are slow, and now and then if they
// are quick.
func TestTick(t *testing.T) {
	w := &worker{}
	var s stats
	w.tick(&s)
	began := w.since.Load()
	require.NotZero(t, began)
	for range callsPerTick - 1 {
		w.tick(&s)
		require.Equal(t, began, w.since.Load())
	}
	w.since.Store(time.Now().Add(-time.Minute).UnixNano())
	w.tick(&s)
	require.True(t, w.slow)
	for range 3 {
		before := time.Now().UnixNano()
		w.since.Store(before - int64(time.Second))
		w.tick(&s)
		require.GreaterOrEqual(t, w.since.Load(), before, "each call")
	}
	w.since.Store(time.Now().UnixNano())
	w.tick(&s)
	require.False(t, w.slow)
	w.ok = 30
	w.idle(&s)
	require.Zero(t, w.since.Load())
	require.EqualValues(t, callsPerTick+5, s.calls.Load(), "all of them")
	require.EqualValues(t, 30, s.ok.Load())
	require.InDelta(t, float64(63*time.Second), float64(s.callTime.Load()), 1e9)
}

func TestLockerTimes(t *testing.T) {
	l := newLocker()
	at := time.Now()
	names := map[string]bool{"a": true, "b": true}
	l.gained("a", at, false)
	l.gained("b", at, true)
	ask, next := l.due(names, at)
	require.Empty(t, ask)
	require.Equal(t, at.Add(lockFirst), next)
	at = at.Add(lockFirst)
	ask, next = l.due(names, at)
	require.Equal(t, []string{"b"}, ask)
	require.Equal(t, at.Add(-lockFirst).Add(lockEvery), next)
	ask, _ = l.due(names, at)
	require.Empty(t, ask, "one request at a time")
	for _, gap := range []time.Duration{lockFirst, 2 * lockFirst, 4 * lockFirst, 8 * lockFirst, lockMost, lockMost} {
		l.begin("b")
		l.asked("b", at, false)
		_, next = l.due(map[string]bool{"b": true}, at)
		require.Equal(t, at.Add(gap), next)
	}
	l.begin("b")
	l.now("b") // while the request is under way: what it was about is not in it
	l.asked("b", at, true)
	_, next = l.due(map[string]bool{"b": true}, at)
	require.Equal(t, at.Add(lockGap), next)
	l.begin("b")
	l.asked("b", at, true)
	_, next = l.due(map[string]bool{"b": true}, at)
	require.Equal(t, at.Add(lockEvery), next)
}
