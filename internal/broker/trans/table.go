package trans

import (
	"container/heap"
	"sync"
)

// entry is a transaction that is not decided yet. The table's lock guards it.
type entry struct {
	offset, phy int64 // of the half message, or of its newest copy
	size        int32
	checks      int32 // how often its producer was asked
	origin      int64 // half offset of the first copy
	since       int64 // ms, when it began
	due         int64 // ms, when it is looked at next
	group       *group

	place      int // in the heap; -1: not there
	prev, next *entry
	listed     bool

	busy      bool // somebody decides or copies it right now
	gone      bool // not in the table any more
	asked     any  // who was sent a check and has not answered; nil: nobody
	waiting   bool // due, but no producer is there
	inherited bool // was there when the service began: it may be committed already
}

// group is a producer group that has undecided transactions.
type group struct {
	name    string
	members int
	waiting int
}

// table is the undecided transactions. The lock guards all of it.
type table struct {
	mu   sync.Mutex
	free sync.Cond // of mu: somebody is not busy any more

	read     int64              // half messages before it have been seen
	byOffset map[int64]*entry   // by half offset of the newest copy
	byOrigin map[int64]*entry   // of copies, by half offset of the original
	done     map[int64]struct{} // decided, but not seen yet
	late     map[int64]struct{} // transactions out of the table that are being committed all the same, by origin
	groups   map[string]*group
	due      dueHeap
	head     *entry // of the list by offset
	tail     *entry
	ops      map[int64]int64 // op records from opNext on: the largest half offset of each
	opNext   int64
	asked    int
	quiet    chan struct{} // closed once nothing is asked; nil: nobody waits for that
}

// reset empties the table.
func (t *table) reset() {
	t.read, t.opNext, t.head, t.tail, t.due, t.asked, t.quiet = 0, 0, nil, nil, nil, 0, nil
	t.byOffset, t.byOrigin = map[int64]*entry{}, map[int64]*entry{}
	t.done, t.late, t.groups, t.ops = map[int64]struct{}{}, map[int64]struct{}{}, map[string]*group{}, map[int64]int64{}
}

// add puts a half message into the table.
func (t *table) add(h *half, due int64) *entry {
	g := t.groups[string(h.group)]
	if g == nil {
		g = &group{name: string(h.group)}
		t.groups[g.name] = g
	}
	g.members++
	e := &entry{
		offset: h.QueueOffset, phy: h.PhyOffset, size: h.Size, checks: h.checks, origin: h.origin(), since: h.since(), due: due, group: g, place: -1,
	}
	t.byOffset[e.offset] = e
	if e.origin != e.offset {
		t.byOrigin[e.origin] = e
	}
	heap.Push(&t.due, e)
	return e
}

// remove takes a transaction out: it is decided, or given up.
func (t *table) remove(e *entry) {
	if e.gone {
		return
	}
	e.gone = true
	delete(t.byOffset, e.offset)
	if t.byOrigin[e.origin] == e {
		delete(t.byOrigin, e.origin)
	}
	if e.offset >= t.read {
		t.done[e.offset] = struct{}{}
	}
	if e.place >= 0 {
		heap.Remove(&t.due, e.place)
	}
	t.unlist(e)
	t.answered(e)
	t.setWaiting(e, false)
	if e.group.members--; e.group.members == 0 {
		delete(t.groups, e.group.name)
	}
}

// list puts an entry into the order by offset. It belongs at the end, but for
// few.
func (t *table) list(e *entry) {
	if e.listed {
		return
	}
	e.listed = true
	p := t.tail
	for p != nil && p.offset > e.offset {
		p = p.prev
	}
	e.prev = p
	if p == nil {
		e.next, t.head = t.head, e
	} else {
		e.next, p.next = p.next, e
	}
	if e.next == nil {
		t.tail = e
	} else {
		e.next.prev = e
	}
}

func (t *table) unlist(e *entry) {
	if !e.listed {
		return
	}
	e.listed = false
	if e.prev == nil {
		t.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		t.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// move gives an entry its newest copy.
func (t *table) move(e *entry, offset, phy int64, size int32) {
	delete(t.byOffset, e.offset)
	t.unlist(e)
	e.offset, e.phy, e.size = offset, phy, size
	t.byOffset[offset], t.byOrigin[e.origin] = e, e
	t.list(e)
}

// setDue changes when an entry is looked at.
func (t *table) setDue(e *entry, due int64) {
	e.due = due
	if e.place >= 0 {
		heap.Fix(&t.due, e.place)
	}
}

func (t *table) setWaiting(e *entry, w bool) {
	if e.waiting == w {
		return
	}
	if e.waiting = w; w {
		e.group.waiting++
	} else {
		e.group.waiting--
	}
}

// asking and answered count the checks under way.
func (t *table) asking(e *entry, whom any) {
	if e.asked == nil {
		t.asked++
	}
	e.asked = whom
}

func (t *table) answered(e *entry) {
	if e.asked == nil {
		return
	}
	e.asked = nil
	if t.asked--; t.asked == 0 && t.quiet != nil {
		close(t.quiet)
		t.quiet = nil
	}
}

// find is the transaction of a half message or one of its copies, nil if it is
// not there.
func (t *table) find(h *half) *entry {
	if e := t.byOffset[h.QueueOffset]; e != nil {
		return e
	}
	return t.byOrigin[h.origin()]
}

// hold waits until nobody is busy with an entry, and then is busy with it
// itself. It is false if it is gone by then.
func (t *table) hold(e *entry) bool {
	for e.busy {
		t.free.Wait()
	}
	if e.gone {
		return false
	}
	e.busy = true
	return true
}

func (t *table) let(e *entry) {
	e.busy = false
	t.free.Broadcast()
}

// doneWith is how far half and op queue are done with: what is before was
// decided, given up, or copied to the end.
func (t *table) doneWith() (half, op int64) {
	half = t.read
	if t.head != nil {
		half = min(half, t.head.offset)
	}
	for {
		last, ok := t.ops[t.opNext]
		if !ok || last >= half {
			return half, t.opNext
		}
		delete(t.ops, t.opNext)
		t.opNext++
	}
}

// dueHeap has what is due first on top.
type dueHeap []*entry

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].offset < h[j].offset
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.place = len(*h)
	*h = append(*h, e)
}

func (h *dueHeap) Pop() any {
	old := *h
	n := len(old) - 1
	e := old[n]
	old[n] = nil
	*h, e.place = old[:n], -1
	return e
}
