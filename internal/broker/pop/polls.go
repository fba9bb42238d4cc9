package pop

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/deadlines"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Long polling, PopLongPollingService of Apache's broker. A request that finds
// nothing is held: it costs its op and no goroutine. Of those that wait for a
// topic in one group an event wakes one, the one that has waited longest; if it
// leaves something over it wakes the next. It is taken out of the tables by
// exactly one of
//
//   - an arrival that it wants, in the topic or in a retry topic of the group,
//   - the look after parking, for what came between read and parking,
//   - a POP that left something over, or gave a queue back that was in use,
//   - in order: an ack, or the end of an invisible time,
//   - its time, the end of its connection, or the service's.
//
// All but the last two hand it to the runners, which try again.

// forceEvery makes every so many messages of a queue wake somebody whatever his
// filter says, so that the group's offset follows
// (popLongPollingForceNotifyInterval).
const forceEvery = 800

// maxHold bounds what a client may ask for, in ms.
const maxHold = 60 * 60 * 1000

// parked is a request that waits. again tries once more and answers, unless
// there is still nothing and it may go on waiting: then it parks itself again.
type parked interface {
	held() *hold
	again()
	drop()
	wants(a arrival) bool
}

// want is what a request looks for.
type want struct {
	topic, group string
	queue        int32 // -1: any
	order        bool
	attempt      string
}

// arrival is what is known of a message that has come.
type arrival struct {
	store.Arrival
	forced bool // wake somebody whatever he wants
}

// hold is the part of a request that polls owns while it is held.
type hold struct {
	replier  remoting.Replier
	mem      []byte // the request's bytes
	deadline deadlines.Entry
	final    bool // answer whatever comes of the next try
	list     *waitList
	seq      uint64 // order of parking
	inConn   int    // index in conns[conn]
}

// waiting is all that waits for a topic in one group.
type waiting struct {
	topic, group string
	retries      [2]string           // the group's retry topics
	lists        map[int32]*waitList // by the queue that was asked for, -1 for any
}

// waitList is those who asked for the same queue, in the order in which they
// came but for those that were taken out in between.
type waitList struct {
	of    *waiting
	queue int32
	ops   []parked
}

// polls is all requests that are held. All methods are safe for concurrent
// use; none blocks but run and close.
type polls struct {
	s     *Service
	clock clock.Clock
	n     atomic.Int64  // requests held; written under mu
	work  chan struct{} // for a runner

	mu     sync.Mutex                     // guards all below; only the clock's own lock is taken under it
	topics map[string]map[string]*waiting // by topic, retry topics included, and group
	conns  map[*remoting.Conn][]parked
	heap   deadlines.Heap[parked]
	timer  clock.Timer
	ready  []parked
	head   int // of ready
	seq    uint64
	closed bool
}

func newPolls(s *Service) *polls {
	return &polls{
		s: s, clock: s.clock, work: make(chan struct{}, runners), topics: map[string]map[string]*waiting{}, conns: map[*remoting.Conn][]parked{},
		heap: deadlines.New(func(op parked) *deadlines.Entry { return &op.held().deadline }),
	}
}

// verdict is what became of the wish to wait.
type verdict uint8

const (
	noWait verdict = iota
	waits
	full
)

// park holds a request that found nothing in w.
func (p *polls) park(op parked, w want) verdict {
	h := op.held()
	if !h.deadline.At.After(p.clock.Now()) {
		return noWait
	}
	conn := h.replier.Conn()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return noWait
	}
	l := p.list(w.topic, w.group, w.queue)
	if p.n.Load() >= pollsInAll || len(l.ops) > pollsPerQueue {
		p.mu.Unlock()
		return full
	}
	p.insert(op, l, conn)
	p.mu.Unlock()
	// op may be gone from here on. What came since the read has either seen the
	// count that insert raised, or is seen here.
	if p.s.mayHave(w) {
		p.wake(w.topic, w.group, func(queue int32) bool { return queue == w.queue })
	}
	if conn.Err() != nil {
		p.dropConn(conn)
	}
	return waits
}

func (p *polls) list(topic, group string, queue int32) *waitList {
	w := p.topics[topic][group]
	if w == nil {
		w = &waiting{topic: topic, group: group, lists: map[int32]*waitList{}}
		w.retries = retryTopics(group, topic)
		p.enter(topic, w)
		for _, r := range w.retries {
			p.enter(r, w)
		}
	}
	l := w.lists[queue]
	if l == nil {
		l = &waitList{of: w, queue: queue}
		w.lists[queue] = l
	}
	return l
}

func (p *polls) enter(topic string, w *waiting) {
	byGroup := p.topics[topic]
	if byGroup == nil {
		byGroup = map[string]*waiting{}
		p.topics[topic] = byGroup
	}
	byGroup[w.group] = w
}

func (p *polls) insert(op parked, l *waitList, conn *remoting.Conn) {
	h := op.held()
	p.seq++
	h.list, h.seq = l, p.seq
	l.ops = append(l.ops, op)
	h.inConn = len(p.conns[conn])
	p.conns[conn] = append(p.conns[conn], op)
	p.n.Add(1)
	if p.heap.Push(op) {
		p.arm()
	}
}

// take removes op from the tables.
func (p *polls) take(op parked) {
	h := op.held()
	l := h.list
	for i, x := range l.ops {
		if x == op {
			copy(l.ops[i:], l.ops[i+1:])
			l.ops[len(l.ops)-1] = nil
			l.ops = l.ops[:len(l.ops)-1]
			break
		}
	}
	conn := h.replier.Conn()
	list := p.conns[conn]
	last := len(list) - 1
	list[h.inConn] = list[last]
	list[h.inConn].held().inConn = h.inConn
	list[last] = nil
	p.conns[conn] = list[:last]
	p.heap.Remove(op)
	h.list = nil
	p.n.Add(-1)
}

// release hands op to the runners.
func (p *polls) release(op parked) {
	p.take(op)
	p.ready = append(p.ready, op)
}

// arrived is the store's notice of a record that can be read. It runs on the
// store's dispatcher for every record.
func (p *polls) arrived(a store.Arrival) {
	if p.n.Load() == 0 {
		return
	}
	x := arrival{Arrival: a, forced: a.Offset%forceEvery == 0}
	p.mu.Lock()
	before := len(p.ready)
	for _, w := range p.topics[string(a.Topic)] {
		if string(a.Topic) != w.topic {
			p.first(w)
			continue
		}
		for _, queue := range [...]int32{-1, a.QueueID} {
			if l := w.lists[queue]; l != nil {
				for _, op := range l.ops {
					if op.wants(x) {
						p.release(op)
						break
					}
				}
			}
		}
	}
	n := len(p.ready) - before
	p.mu.Unlock()
	if n > 0 {
		p.kick()
	}
}

// first wakes the one who has waited longest for anything of the topic.
func (p *polls) first(w *waiting) {
	var oldest parked
	for _, l := range w.lists {
		if len(l.ops) > 0 && (oldest == nil || l.ops[0].held().seq < oldest.held().seq) {
			oldest = l.ops[0]
		}
	}
	if oldest != nil {
		p.release(oldest)
	}
}

// wake wakes the one who has waited longest of those who asked for the same
// queue, for each of the queues that which chooses; -1 is any queue.
func (p *polls) wake(topic, group string, which func(queue int32) bool) {
	if p.n.Load() == 0 {
		return
	}
	p.mu.Lock()
	if w := p.topics[topic][group]; w != nil {
		for queue, l := range w.lists {
			if len(l.ops) > 0 && which(queue) {
				p.release(l.ops[0])
			}
		}
	}
	p.mu.Unlock()
	p.kick()
}

// wakeQueue wakes some who would pop from a queue: all of them read retry
// topics.
func (p *polls) wakeQueue(k queueKey) {
	if p.n.Load() == 0 {
		return
	}
	retry := wire.IsRetryTopic(k.topic)
	p.wake(k.topic, k.group, func(queue int32) bool { return retry || queue < 0 || queue == k.queue })
}

// wakeTopic makes all who wait for a topic look again, when it was deleted.
func (p *polls) wakeTopic(topic string) {
	p.mu.Lock()
	for _, w := range p.topics[topic] {
		for _, l := range w.lists {
			for len(l.ops) > 0 {
				p.release(l.ops[0])
			}
		}
		if w.topic != topic {
			continue
		}
		for _, name := range append(w.retries[:], topic) {
			delete(p.topics[name], w.group)
			if len(p.topics[name]) == 0 {
				delete(p.topics, name)
			}
		}
	}
	p.mu.Unlock()
	p.kick()
}

// count is how many wait for a queue.
func (p *polls) count(topic, group string, queue int32) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.topics[topic][group]; w != nil {
		if l := w.lists[queue]; l != nil {
			return len(l.ops)
		}
	}
	return 0
}

// expire hands over the requests whose time is over.
func (p *polls) expire() {
	p.mu.Lock()
	now := p.clock.Now()
	for p.heap.Len() > 0 && !p.heap.Next().After(now) {
		op := p.heap.First()
		op.held().final = true
		p.release(op)
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

// dropConn forgets the requests of a connection that is gone.
func (p *polls) dropConn(conn *remoting.Conn) {
	p.mu.Lock()
	gone := append([]parked(nil), p.conns[conn]...)
	for _, op := range gone {
		p.take(op)
	}
	delete(p.conns, conn)
	p.mu.Unlock()
	for _, op := range gone {
		op.drop()
	}
}

func (p *polls) kick() {
	select {
	case p.work <- struct{}{}:
	default: // all runners have been told
	}
}

// run is a runner: it tries again for the requests that were taken out.
func (p *polls) run(ctx context.Context) {
	for {
		select {
		case <-p.work:
		case <-ctx.Done():
			return
		}
		for op := p.pick(); op != nil; op = p.pick() {
			op.again()
		}
	}
}

func (p *polls) pick() parked {
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

// close answers all requests that are held and refuses further ones.
func (p *polls) close() {
	p.mu.Lock()
	p.closed = true
	for p.heap.Len() > 0 {
		p.heap.First().held().final = true
		p.release(p.heap.First())
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	for op := p.pick(); op != nil; op = p.pick() {
		op.again()
	}
}

// abandon forgets all requests, as if the process had died.
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
