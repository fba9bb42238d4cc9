package pop

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// OrdersFile is where the state of ordered POPs is kept, in the config folder.
const OrdersFile = "consumerOrderInfo.json"

// keepOrders is how long a queue that nobody pops from any more is remembered,
// in ms.
const keepOrders = 24 * 60 * 60 * 1000

// orders is what has been popped in order and is not finished,
// ConsumerOrderInfoManager of Apache's broker. A queue is blocked while one of
// the messages that were popped last is neither acknowledged nor visible again,
// but for a repetition of the same attempt.
type orders struct {
	s *Service

	mu      sync.Mutex // guards all below; the offset table's and the clock's own lock are taken under it
	queues  map[queueKey]*orderInfo
	changed bool
}

type orderInfo struct {
	wire.PopOrder
	timer clock.Timer // wakes those who wait when the block ends
}

func newOrders(s *Service) *orders {
	return &orders{s: s, queues: map[queueKey]*orderInfo{}}
}

// blocked tells whether a queue may not be popped from.
func (o *orders) blocked(k queueKey, attempt []byte, invisible int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.queues[k]
	if i == nil || i.AttemptID != "" && i.AttemptID == string(attempt) {
		return false
	}
	if i.InvisibleMillis <= 0 {
		i.InvisibleMillis = invisible
	}
	_, blocked := i.free(o.s.now())
	return blocked
}

// free is when the block ends, if there is one now.
func (i *orderInfo) free(now int64) (at int64, blocked bool) {
	for n, off := range i.Offsets {
		if i.Acked&(1<<n) != 0 {
			continue
		}
		visible, changed := i.Visible[off]
		if !changed {
			visible = i.PopTime + i.InvisibleMillis
		}
		if now < visible {
			at, blocked = max(at, visible), true
		}
	}
	return at, blocked
}

// popped notes what is given out of a queue, and appends to counts how often
// each message has been given out before.
func (o *orders) popped(k queueKey, retry byte, attempt string, at, invisible int64, offsets []int64, counts []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := &orderInfo{PopOrder: wire.PopOrder{
		AttemptID: attempt, PopTime: at, InvisibleMillis: invisible, Offsets: slices.Clone(offsets), LastTime: at,
	}}
	if old := o.queues[k]; old != nil {
		old.stop()
		i.Consumed = consumed(&old.PopOrder, attempt, offsets)
	}
	o.queues[k] = i
	o.changed = true
	least := int32(0)
	if len(i.Consumed) == len(offsets) {
		least = 1<<31 - 1
	}
	for _, off := range offsets {
		if n, again := i.Consumed[off]; again {
			counts = wire.AppendPopMessageCount(counts, retry, k.queue, off, n)
			least = min(least, n)
		}
	}
	o.arm(k, i)
	return wire.AppendPopCount(counts, retry, k.queue, least)
}

// consumed counts how often messages have been given out before. A repetition
// of the same attempt does not count.
func consumed(old *wire.PopOrder, attempt string, offsets []int64) map[int64]int32 {
	if old.AttemptID != "" && old.AttemptID == attempt {
		return old.Consumed
	}
	counts := map[int64]int32{}
	for _, off := range offsets {
		if slices.Contains(old.Offsets, off) {
			counts[off] = old.Consumed[off] + 1
		}
	}
	return counts
}

// acked is what an acknowledgement leads to.
type acked uint8

const (
	ackCommits acked = iota // the group's offset moves
	ackStale                // it is about an earlier POP
	ackUnknown              // no such message was popped
)

// ack notes that a message is done, and has commit move the group's offset to
// the first one that is not.
func (o *orders) ack(k queueKey, offset, popTime int64, commit func(next int64)) acked {
	o.mu.Lock() // commit included: offsets must move in the order of the acks
	defer o.mu.Unlock()
	i := o.queues[k]
	if i == nil {
		commit(offset + 1)
		return ackCommits
	}
	if popTime != i.PopTime {
		return ackStale
	}
	n := slices.Index(i.Offsets, offset)
	if n < 0 {
		return ackUnknown
	}
	i.Acked |= 1 << n
	o.changed = true
	o.arm(k, i)
	next := i.Offsets[len(i.Offsets)-1] + 1
	for n, off := range i.Offsets {
		if i.Acked&(1<<n) == 0 {
			next = off
			break
		}
	}
	commit(next)
	return ackCommits
}

// hide changes when a message becomes visible again.
func (o *orders) hide(k queueKey, offset, popTime, until int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.queues[k]
	if i == nil || i.PopTime != popTime {
		return
	}
	if i.Visible == nil {
		i.Visible = map[int64]int64{}
	}
	i.Visible[offset] = until
	o.changed = true
	o.arm(k, i)
}

// clear forgets a queue, which goes on elsewhere.
func (o *orders) clear(k queueKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := o.queues[k]; i != nil {
		i.stop()
		delete(o.queues, k)
		o.changed = true
	}
}

// arm sets the timer to the end of the block.
func (o *orders) arm(k queueKey, i *orderInfo) {
	now := o.s.now()
	at, blocked := i.free(now)
	if !blocked {
		i.stop()
		return
	}
	d := time.Duration(at-now) * time.Millisecond
	if i.timer == nil {
		i.timer = o.s.clock.AfterFunc(d, func() { o.s.polls.wakeQueue(k) })
	} else {
		i.timer.Reset(d)
	}
}

func (i *orderInfo) stop() {
	if i.timer != nil {
		i.timer.Stop()
	}
}

// close stops the timers.
func (o *orders) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range o.queues {
		i.stop()
	}
}

// Orders returns the content of [OrdersFile] if it has changed since it was last
// asked for, nil otherwise. Queues that nobody pops from any more, or that are
// gone, are left out and forgotten.
func (s *Service) Orders() []byte {
	o := s.orders
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.changed {
		return nil
	}
	o.changed = false
	now := s.now()
	doc := wire.PopOrders{Table: map[string]map[int32]*wire.PopOrder{}}
	for k, i := range o.queues {
		t := s.cfg.Topics.Lookup(k.topic)
		if t == nil || k.queue >= t.ReadQueues || s.cfg.Groups.Lookup(k.group) == nil || now-i.LastTime > keepOrders {
			i.stop()
			delete(o.queues, k)
			continue
		}
		key := k.topic + "@" + k.group
		if doc.Table[key] == nil {
			doc.Table[key] = map[int32]*wire.PopOrder{}
		}
		doc.Table[key][k.queue] = &i.PopOrder
	}
	return doc.AppendJSON(nil)
}

// OrdersNotSaved takes an Orders back: what it gave is not on the disk.
func (s *Service) OrdersNotSaved() {
	s.orders.mu.Lock()
	defer s.orders.mu.Unlock()
	s.orders.changed = true
}

// LoadOrders replaces the state of ordered POPs by the content of [OrdersFile].
// It is called before Start.
func (s *Service) LoadOrders(doc []byte) error {
	d, err := wire.DecodePopOrders(doc)
	if err != nil {
		return err
	}
	o := s.orders
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, queues := range d.Table {
		topic, group, ok := strings.Cut(key, "@")
		if !ok {
			continue
		}
		for id, i := range queues {
			k := queueKey{topic, group, id}
			o.queues[k] = &orderInfo{PopOrder: *i}
			o.arm(k, o.queues[k])
		}
	}
	return nil
}
