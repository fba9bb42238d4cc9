package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/deadlines"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Long polling. A pull that finds nothing is held: it costs its op and no
// goroutine. It is taken out of the tables, by exactly one of
//
//   - an arrival whose tag or properties it wants (store dispatcher),
//   - the look after parking, for what arrived between read and parking,
//   - the periodic look at the queue's maximum, which may move unannounced,
//   - its time (one timer at the earliest deadline),
//   - the end of its connection, or the broker's.
//
// All but the last hand it to the runners, which read again. What then still
// has nothing to deliver and time left is parked again, from behind what was
// filtered out.

// maxHold bounds what a client may ask for.
const maxHold = time.Hour

// hold is the part of a pullOp that polls owns while the pull is held.
type hold struct {
	replier  remoting.Replier
	mem      []byte // the request's bytes
	deadline deadlines.Entry
	final    bool // answer whatever the next read gives
	queue    *queuePolls
	inQueue  int // index in queue.held
	inConn   int // index in conns[conn]
}

// queuePolls are the pulls held for one queue.
type queuePolls struct {
	topic   string
	queueID int32
	held    []*pullOp
}

// polls is all pulls that are held. All methods are safe for concurrent use;
// none blocks but run and close.
type polls struct {
	clock clock.Clock
	store *store.Store
	n     atomic.Int64  // pulls held; written under mu
	wake  chan struct{} // work for a runner; capacity is the number of runners

	mu     sync.Mutex // guards all below; only the clock's own lock is taken under it
	queues map[string]map[int32]*queuePolls
	conns  map[*remoting.Conn][]*pullOp
	heap   deadlines.Heap[*pullOp]
	timer  clock.Timer
	ready  []*pullOp
	head   int // of ready
	closed bool
}

func newPolls(c clock.Clock, runners int) *polls {
	return &polls{
		clock: c, wake: make(chan struct{}, runners),
		queues: map[string]map[int32]*queuePolls{}, conns: map[*remoting.Conn][]*pullOp{},
		heap: deadlines.New(func(op *pullOp) *deadlines.Entry { return &op.hold.deadline }),
	}
}

// park holds a pull that found nothing. If it is false the caller answers.
func (p *polls) park(op *pullOp, replier remoting.Replier) bool {
	wait := time.Duration(min(op.req.SuspendMillis, int64(maxHold/time.Millisecond))) * time.Millisecond
	if !op.b.cfg.LongPolling {
		wait = op.b.cfg.ShortPolling
	}
	if wait <= 0 {
		return false
	}
	h := &op.hold
	h.replier = replier
	h.deadline.At = p.clock.Now().Add(wait)
	own(&h.mem, &op.req)
	return p.hold(op)
}

// own moves what the request points to into memory of the op.
func own(mem *[]byte, req *wire.PullRequest) {
	m := (*mem)[:0]
	for _, b := range [...]*[]byte{&req.Group, &req.Topic, &req.Subscription, &req.ExpressionType} {
		m = append(m, *b...)
	}
	*mem = m
	for _, b := range [...]*[]byte{&req.Group, &req.Topic, &req.Subscription, &req.ExpressionType} {
		n := len(*b)
		*b, m = m[:n:n], m[n:]
	}
	req.BrokerName = nil
}

// hold puts op into the tables and looks once more whether anything has come.
func (p *polls) hold(op *pullOp) bool {
	topic, queueID, from := op.topic.Name, op.req.QueueID, op.req.Offset
	conn := op.hold.replier.Conn()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	p.insert(op)
	p.mu.Unlock()
	// op may be gone from here on. An arrival since the read has either seen
	// the count that insert raised, or is seen here.
	if p.store.MaxOffset(topic, queueID) > from {
		p.wakeQueue(topic, queueID, func(op *pullOp) bool { return op.req.Offset == from })
	}
	if conn.Err() != nil {
		p.drop(conn)
	}
	return true
}

func (p *polls) insert(op *pullOp) {
	byID := p.queues[op.topic.Name]
	if byID == nil {
		byID = map[int32]*queuePolls{}
		p.queues[op.topic.Name] = byID
	}
	q := byID[op.req.QueueID]
	if q == nil {
		q = &queuePolls{topic: op.topic.Name, queueID: op.req.QueueID}
		byID[op.req.QueueID] = q
	}
	h, conn := &op.hold, op.hold.replier.Conn()
	h.queue, h.inQueue = q, len(q.held)
	q.held = append(q.held, op)
	h.inConn = len(p.conns[conn])
	p.conns[conn] = append(p.conns[conn], op)
	p.n.Add(1)
	if p.heap.Push(op) {
		p.arm()
	}
}

// take removes op from the tables. Lists that become empty stay for the next
// pull: a queue's until its topic is deleted, a connection's until its end.
func (p *polls) take(op *pullOp) {
	h := &op.hold
	q := h.queue
	last := len(q.held) - 1
	q.held[h.inQueue] = q.held[last]
	q.held[h.inQueue].hold.inQueue = h.inQueue
	q.held[last] = nil
	q.held = q.held[:last]
	conn := h.replier.Conn()
	list := p.conns[conn]
	last = len(list) - 1
	list[h.inConn] = list[last]
	list[h.inConn].hold.inConn = h.inConn
	list[last] = nil
	p.conns[conn] = list[:last]
	p.heap.Remove(op)
	h.queue = nil
	p.n.Add(-1)
}

// arrived is the store's notice of a record that can be read. It runs on the
// store's dispatcher for every record.
func (p *polls) arrived(a store.Arrival) {
	if p.n.Load() == 0 {
		return
	}
	p.mu.Lock()
	if q := p.queues[string(a.Topic)][a.QueueID]; q != nil {
		for i := len(q.held) - 1; i >= 0; i-- { // take fills the gap from the end
			op := q.held[i]
			if op.req.Offset <= a.Offset && op.want.MatchCode(a.TagsCode) && op.want.matchProperties(a.Properties) {
				p.take(op)
				p.ready = append(p.ready, op)
			}
		}
	}
	n := len(p.ready) - p.head
	p.mu.Unlock()
	if n > 0 {
		p.kick()
	}
}

// wakeQueue hands the pulls of a queue to the runners.
func (p *polls) wakeQueue(topic string, queueID int32, which func(*pullOp) bool) {
	p.mu.Lock()
	if q := p.queues[topic][queueID]; q != nil {
		for i := len(q.held) - 1; i >= 0; i-- {
			if op := q.held[i]; which(op) {
				p.take(op)
				p.ready = append(p.ready, op)
			}
		}
	}
	p.mu.Unlock()
	p.kick()
}

// recheck looks at the maxima of all queues with held pulls.
func (p *polls) recheck() {
	if p.n.Load() == 0 {
		return
	}
	type queue struct {
		topic   string
		queueID int32
	}
	var all []queue
	p.mu.Lock()
	for topic, byID := range p.queues {
		for id, q := range byID {
			if len(q.held) > 0 {
				all = append(all, queue{topic, id})
			}
		}
	}
	p.mu.Unlock()
	for _, q := range all {
		limit := p.store.MaxOffset(q.topic, q.queueID)
		p.wakeQueue(q.topic, q.queueID, func(op *pullOp) bool { return op.req.Offset < limit })
	}
}

// wakeTopic makes all pulls of a topic look again, when it has been deleted.
func (p *polls) wakeTopic(topic string) {
	p.mu.Lock()
	for _, q := range p.queues[topic] {
		for len(q.held) > 0 {
			op := q.held[len(q.held)-1]
			p.take(op)
			p.ready = append(p.ready, op)
		}
	}
	delete(p.queues, topic)
	p.mu.Unlock()
	p.kick()
}

// expire hands over the pulls whose time is over.
func (p *polls) expire() {
	p.mu.Lock()
	now := p.clock.Now()
	for p.heap.Len() > 0 && !p.heap.Next().After(now) {
		op := p.heap.First()
		p.take(op)
		op.hold.final = true
		p.ready = append(p.ready, op)
	}
	p.arm()
	p.mu.Unlock()
	p.kick()
}

// arm sets the timer to the earliest deadline.
func (p *polls) arm() {
	if p.heap.Len() == 0 || p.closed {
		return
	}
	d := p.heap.Next().Sub(p.clock.Now())
	if p.timer == nil {
		p.timer = p.clock.AfterFunc(d, p.expire)
	} else {
		p.timer.Reset(d)
	}
}

// drop forgets the pulls of a connection that is gone.
func (p *polls) drop(conn *remoting.Conn) {
	p.mu.Lock()
	gone := append([]*pullOp(nil), p.conns[conn]...)
	for _, op := range gone {
		p.take(op)
	}
	delete(p.conns, conn)
	p.mu.Unlock()
	for _, op := range gone {
		op.release()
	}
}

func (p *polls) kick() {
	select {
	case p.wake <- struct{}{}:
	default: // all runners have been told
	}
}

// run is a runner: it reads again for the pulls that were taken out.
func (p *polls) run(ctx context.Context) {
	for {
		select {
		case <-p.wake:
		case <-ctx.Done():
			return
		}
		for op := p.next(); op != nil; op = p.next() {
			p.again(op)
		}
	}
}

func (p *polls) next() *pullOp {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head == len(p.ready) {
		p.ready, p.head = p.ready[:0], 0
		return nil
	}
	op := p.ready[p.head]
	p.ready[p.head] = nil
	p.head++
	if p.head < len(p.ready) {
		p.kick() // another runner may help
	}
	return op
}

// again answers a pull that was held, or holds it again.
func (p *polls) again(op *pullOp) {
	if op.check() {
		op.read(op.hold.replier.Conn(), true)
		nothing := op.code == wire.RespPullNotFound || op.remark == store.NoMatchedMessage.String()
		onward := op.resp.NextOffset > op.req.Offset || op.resp.NextOffset >= op.resp.MaxOffset // else it would spin
		if nothing && onward && !op.hold.final && p.clock.Now().Before(op.hold.deadline.At) {
			op.req.Offset = op.resp.NextOffset
			if p.hold(op) {
				return
			}
		}
	}
	op.hold.replier.ReplyAppend(op)
	op.release()
}

// close answers all pulls that are held and refuses further ones.
func (p *polls) close() {
	p.mu.Lock()
	p.closed = true
	for p.heap.Len() > 0 {
		op := p.heap.First()
		p.take(op)
		p.ready = append(p.ready, op)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	for op := p.next(); op != nil; op = p.next() {
		op.hold.final = true
		p.again(op)
	}
}

// abandon forgets all pulls, as if the process had died.
func (p *polls) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.heap.Len() > 0 {
		p.take(p.heap.First())
	}
	p.ready, p.head = nil, 0
	if p.timer != nil {
		p.timer.Stop()
	}
}
