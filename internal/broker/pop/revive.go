package pop

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/rounds"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// The revive service, PopReviveService of Apache's broker. One goroutine reads
// the revive topic and keeps the checkpoints in memory that have messages nobody
// has acknowledged; when the time of one is over these are delivered again
// (again.go). The offset of CID_RMQ_SYS_REVIVE_GROUP in each revive queue is that
// of the last record before the first open checkpoint: from there a restart
// reads on. A checkpoint that stays open for long is written again at the end of
// its queue, so that the way is never long.
//
// The goroutine works in rounds: read what there is, deliver what is due. It sleeps until
// the earliest checkpoint is due, which putCheckpoint tells it, and at most a
// second after anything came.

const (
	readEvery   = time.Second // reviveInterval
	againAfter  = 100 * time.Millisecond
	againAtMost = 10 * time.Second
	// rewriteAfter and rewriteBehind are when a checkpoint is written again: after
	// a time in ms, and when so many records have come since.
	rewriteAfter  = 60 * 60 * 1000
	rewriteBehind = 100_000
	// viaTimer is how much later, in ms, a checkpoint of an Apache broker is
	// due: its acks come by way of the timer, up to a second late.
	viaTimer = 3000
)

// revive is the service. Its methods but run are safe for concurrent use.
type revive struct {
	s    *Service
	work *rounds.Work

	mu    sync.Mutex    // guards all below; nothing but the clock's own lock is taken under it
	next  int64         // ms: when the earliest checkpoint is due as far as is known; 0: there is none
	fresh int64         // ms: the same of those written since the round began
	armed int64         // ms: when the timer goes off; 0: not set
	newer chan struct{} // closed when next becomes earlier
	timer clock.Timer
	ended bool

	// the goroutine's own
	queues [reviveQueues]reviveQueue
	open   map[checkpointKey]*checkpoint
	due    dueHeap
	buf    []byte
	mem    scratch
}

// reviveQueue is one queue of the revive topic.
type reviveQueue struct {
	id        int32
	next      int64         // of the record to read next
	fifo      []*checkpoint // open and closed ones in the order of the queue; the first is open
	committed int64         // what the offset table has; -1: nothing
}

// checkpointKey is what acks name a checkpoint by.
type checkpointKey struct {
	topic, group string
	queue        int32
	start, pop   int64
}

// checkpoint is one that is open, or closed and still in its queue's list.
type checkpoint struct {
	wire.PopCheckpoint
	queue  *reviveQueue
	offset int64 // of the record
	read   int64 // ms: when it was written, or read after a start
	due    int64 // ms
	all    uint32
	fails  int
	index  int // in due; -1: closed
}

func newRevive(s *Service) *revive {
	r := &revive{s: s, work: rounds.New(), newer: make(chan struct{}), open: map[checkpointKey]*checkpoint{}}
	for i := range r.queues {
		r.queues[i].id = int32(i)
	}
	return r
}

// load finds out where to read on. It is called before run.
func (r *revive) load() {
	for i := range r.queues {
		q := &r.queues[i]
		q.committed = -1
		if off, ok := r.s.cfg.Offsets.Offset([]byte(wire.GroupRevive), r.s.revives, q.id); ok {
			q.committed = off
		}
		q.next = q.committed + 1
	}
}

// run is the goroutine.
func (r *revive) run(ctx context.Context) {
	defer r.end()
	for {
		select {
		case <-r.work.Wake():
		case <-ctx.Done():
			return
		}
		seq := r.work.Begin()
		r.round(ctx)
		r.work.End(seq)
	}
}

func (r *revive) end() {
	r.mu.Lock()
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	close(r.newer)
	r.mu.Unlock()
	r.work.Close()
}

// round reads what there is and delivers what is due.
func (r *revive) round(ctx context.Context) {
	r.begin()
	for more := true; more; {
		// In this order: acks that were answered before the time of their
		// checkpoint have been read when it is over.
		now := r.s.now()
		if r.s.store.WaitDispatched(ctx) != nil {
			return
		}
		r.read(now)
		more = false
		for len(r.due) > 0 && r.due[0].due <= now && ctx.Err() == nil {
			r.deliver(r.due[0], now)
			more = true
		}
	}
	for i := range r.queues {
		r.tidy(&r.queues[i])
	}
	r.publish()
}

// read reads the revive topic to its end.
func (r *revive) read(now int64) {
	for i := range r.queues {
		q := &r.queues[i]
		for {
			var res store.GetResult
			r.buf, res = r.s.store.Get(r.buf[:0], store.GetRequest{Topic: r.s.revives, QueueID: q.id, Offset: q.next, MaxMsgs: 32})
			if res.Count == 0 {
				switch {
				case res.NextOffset > q.next: // records were cleaned away
					q.next = res.NextOffset
					continue
				case res.MaxOffset < q.next && res.Status != store.Unavailable:
					r.rewind(q, res.MaxOffset)
				}
				break
			}
			for b := r.buf; len(b) > 0; {
				var rec wire.Record
				n, err := wire.DecodeRecord(b, &rec)
				if err != nil {
					break
				}
				r.record(q, &rec, now)
				b = b[n:]
			}
			q.next = res.NextOffset
		}
	}
}

// rewind goes back to the end of a queue that is shorter than it was: the log
// lost its end in a crash.
func (r *revive) rewind(q *reviveQueue, end int64) {
	r.s.cfg.Log.Warn("revive queue is shorter than the offset of its reader, going back", "queue", q.id, "offset", q.next, "end", end)
	q.next, q.committed = end, end-1
	r.s.cfg.Offsets.Commit([]byte(wire.GroupRevive), r.s.revives, q.id, end-1)
}

// record takes one record of the revive topic.
func (r *revive) record(q *reviveQueue, rec *wire.Record, now int64) {
	tag, _ := rec.Properties.Lookup(wire.PropTags)
	var err error
	switch string(tag) {
	case wire.PopTagCheckpoint:
		var d wire.PopCheckpoint
		if d, err = wire.DecodePopCheckpoint(rec.Body); err == nil {
			r.checkpoint(q, &d, rec, now)
		}
	case wire.PopTagAck, wire.PopTagBatchAck:
		var d wire.PopAck
		if d, err = wire.DecodePopAck(rec.Body); err == nil {
			r.acked(&d)
		}
	}
	if err != nil {
		r.s.cfg.Log.Error("record of the revive topic cannot be read, skipping it", "queue", q.id, "offset", rec.QueueOffset, "err", err)
	}
}

// checkpoint opens a checkpoint, or notes that one was written again.
func (r *revive) checkpoint(q *reviveQueue, d *wire.PopCheckpoint, rec *wire.Record, now int64) {
	if d.Topic == "" || d.Group == "" || d.Len() == 0 {
		return
	}
	k := checkpointKey{d.Topic, d.Group, d.QueueID, d.StartOffset, d.PopTime}
	acks := d.Acked
	if old := r.open[k]; old != nil {
		if old.offset >= rec.QueueOffset && old.queue == q {
			return // tidy has written it
		}
		acks |= old.Acked
		r.close(old)
	}
	c := &checkpoint{PopCheckpoint: *d, queue: q, offset: rec.QueueOffset, read: now, due: d.ReviveTime(), all: uint32(1<<d.Len() - 1)}
	if _, late := rec.Properties.Lookup(wire.PropTimerOutMs); late {
		c.due += viaTimer
	}
	c.Acked = acks
	if c.Acked&c.all == c.all {
		return
	}
	q.fifo = append(q.fifo, c)
	r.open[k] = c
	heap.Push(&r.due, c)
}

// acked takes an acknowledgement. One that has no checkpoint is too late.
func (r *revive) acked(d *wire.PopAck) {
	c := r.open[checkpointKey{d.Topic, d.Group, d.QueueID, d.StartOffset, d.PopTime}]
	if c == nil {
		return
	}
	if d.Offsets == nil {
		c.done(d.Offset)
	}
	for _, off := range d.Offsets {
		c.done(off)
	}
	if c.Acked&c.all == c.all {
		r.close(c)
	}
}

func (c *checkpoint) done(offset int64) {
	if i := c.Index(offset); i >= 0 {
		c.Acked |= 1 << i
	}
}

func (c *checkpoint) key() checkpointKey {
	return checkpointKey{c.Topic, c.Group, c.QueueID, c.StartOffset, c.PopTime}
}

// close forgets a checkpoint.
func (r *revive) close(c *checkpoint) {
	delete(r.open, c.key())
	if c.index >= 0 {
		heap.Remove(&r.due, c.index)
	}
}

// tidy moves a queue's committed offset, and writes those checkpoints again
// that have been in its way for long.
func (r *revive) tidy(q *reviveQueue) {
	now := r.s.now()
	for len(q.fifo) > 0 {
		c := q.fifo[0]
		if c.index < 0 {
			q.fifo[0] = nil
			q.fifo = q.fifo[1:]
			continue
		}
		if now-c.read < rewriteAfter && q.next-c.offset < rewriteBehind {
			break
		}
		res := r.s.putCheckpoint(&r.mem, q.id, &c.PopCheckpoint)
		if !res.Status.Stored() {
			break
		}
		c.offset, c.read = res.QueueOffset, now
		q.fifo = append(q.fifo[1:], c)
	}
	off := q.next - 1
	if len(q.fifo) > 0 {
		off = q.fifo[0].offset - 1
	}
	if off > q.committed {
		q.committed = off
		r.s.cfg.Offsets.Commit([]byte(wire.GroupRevive), r.s.revives, q.id, off)
	}
}

// expect tells the service that a checkpoint has been written.
func (r *revive) expect(due int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if r.fresh == 0 || due < r.fresh {
		r.fresh = due
	}
	if r.next == 0 || due < r.next {
		r.announce(due)
	}
	r.arm(due)
}

// arrived is told of each record that can be read from the revive topic.
func (r *revive) arrived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.arm(r.s.now() + readEvery.Milliseconds())
	}
}

// begin begins a round: from here on the timer is for the next one.
func (r *revive) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed, r.fresh = 0, 0
}

// publish says when the next checkpoint is due, after a round.
func (r *revive) publish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.fresh
	if len(r.due) > 0 && (next == 0 || r.due[0].due < next) {
		next = r.due[0].due
	}
	if r.announce(next); next != 0 {
		r.arm(next)
	}
}

// announce sets next.
func (r *revive) announce(next int64) {
	r.next = next
	if next != 0 {
		close(r.newer)
		r.newer = make(chan struct{})
	}
}

// arm sets the timer to a time unless it goes off earlier.
func (r *revive) arm(at int64) {
	if r.armed != 0 && r.armed <= at {
		return
	}
	r.armed = at
	now := r.s.clock.Now()
	d := time.UnixMilli(at).Sub(now)
	if d <= 0 {
		r.work.Ask()
		return
	}
	if r.timer == nil {
		r.timer = r.s.clock.AfterFunc(d, func() { r.work.Ask() })
	} else {
		r.timer.Reset(d)
	}
	if r.s.clock.Now().Sub(now) >= time.Millisecond { // a clock that is moved by hand has been moved meanwhile
		r.work.Ask()
	}
}

// nextDue is when the next checkpoint is due as far as is known; false if there
// is none. changed is closed when there is an earlier one, or the service ends.
func (r *revive) nextDue() (at time.Time, ok bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.UnixMilli(r.next), r.next != 0, r.newer
}

// dueHeap is the open checkpoints by time.
type dueHeap []*checkpoint

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].offset < h[j].offset
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *dueHeap) Push(x any) {
	c := x.(*checkpoint)
	c.index = len(*h)
	*h = append(*h, c)
}
func (h *dueHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.index = -1
	return c
}
