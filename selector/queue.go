package selector

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// ErrNoQueue is returned by the selectors of this package for an empty list.
var ErrNoQueue = errors.New("no queue to select from")

// QueueSelector chooses the queue a message goes to. It is called by many
// goroutines at once, once for each attempt of a send.
type QueueSelector interface {
	// Select returns an index into queues, which holds at least one entry, is
	// sorted by broker and id, and must not be changed or kept. avoid is the
	// broker of the attempt that failed before, "" on the first; a selector
	// that keeps messages together ignores it. An error ends the send.
	Select(m *rocketmq.Message, queues []rocketmq.Queue, avoid string) (int, error)
}

// QueueFunc is a function as a [QueueSelector].
type QueueFunc func(m *rocketmq.Message, queues []rocketmq.Queue, avoid string) (int, error)

// Select implements [QueueSelector].
func (f QueueFunc) Select(m *rocketmq.Message, queues []rocketmq.Queue, avoid string) (int, error) {
	return f(m, queues, avoid)
}

// RoundRobin takes the queues of each topic in turn, beginning at a random one,
// and passes over those of the broker to avoid unless there is no other.
func RoundRobin() QueueSelector { return &roundRobin{} }

type roundRobin struct{ turns turns }

func (s *roundRobin) Select(m *rocketmq.Message, queues []rocketmq.Queue, avoid string) (int, error) {
	return pick(int(s.turns.next(m.Topic)), queues, func(q *rocketmq.Queue) bool { return q.Broker != avoid })
}

// Random takes any queue with equal chance, but for those of the broker to
// avoid unless there is no other.
func Random() QueueSelector {
	return QueueFunc(func(_ *rocketmq.Message, queues []rocketmq.Queue, avoid string) (int, error) {
		return pick(rand.IntN(1<<30), queues, func(q *rocketmq.Queue) bool { return q.Broker != avoid })
	})
}

// Hash sends messages of one sharding key to one queue as long as the topic has
// the same number of queues. Java's SelectMessageQueueByHash chooses the same
// queue for the same string. Messages without a key take turns.
func Hash() QueueSelector { return &hash{} }

type hash struct{ turns turns }

func (s *hash) Select(m *rocketmq.Message, queues []rocketmq.Queue, avoid string) (int, error) {
	if m.ShardingKey != "" && len(queues) > 0 {
		return HashIndex(m.ShardingKey, len(queues)), nil
	}
	return pick(int(s.turns.next(m.Topic)), queues, func(q *rocketmq.Queue) bool { return q.Broker != avoid })
}

// HashIndex is the index from 0 to n-1 that [Hash] chooses for a key. n must be
// positive.
func HashIndex(key string, n int) int {
	i := int(wire.JavaHash(key)) % n
	if i < 0 {
		return -i
	}
	return i
}

// MachineRoom takes turns among the queues of brokers in one of the rooms and
// leaves them only if no such broker is left. As for
// AllocateMessageQueueByMachineRoom, a broker's room is what stands before the @
// in its name.
func MachineRoom(rooms ...string) QueueSelector {
	m := &machineRoom{rooms: make(map[string]bool, len(rooms))}
	for _, r := range rooms {
		m.rooms[r] = true
	}
	return m
}

type machineRoom struct {
	rooms map[string]bool // never changed
	turns turns
}

func (s *machineRoom) Select(m *rocketmq.Message, queues []rocketmq.Queue, avoid string) (int, error) {
	return pick(int(s.turns.next(m.Topic)), queues,
		func(q *rocketmq.Queue) bool { return q.Broker != avoid && s.near(q) },
		func(q *rocketmq.Queue) bool { return q.Broker != avoid })
}

func (s *machineRoom) near(q *rocketmq.Queue) bool {
	room, _, ok := strings.Cut(q.Broker, "@")
	return ok && s.rooms[room]
}

// pick returns the first queue from start on, around, that meets the first of
// the wishes that can be met, or else simply the one at start.
func pick(start int, queues []rocketmq.Queue, wishes ...func(q *rocketmq.Queue) bool) (int, error) {
	n := len(queues)
	if n == 0 {
		return 0, ErrNoQueue
	}
	for _, ok := range wishes {
		for i := range n {
			if j := (start + i) % n; ok(&queues[j]) {
				return j, nil
			}
		}
	}
	return start % n, nil
}

// turns counts for each topic on its own: with one counter for all, a sender
// that alternates between two topics would use every other queue of each.
type turns struct {
	m  atomic.Pointer[map[string]*atomic.Uint32] // copied on write
	mu sync.Mutex                                // guards writes of m
}

func (t *turns) next(topic string) uint32 {
	if m := t.m.Load(); m != nil {
		if c := (*m)[topic]; c != nil {
			return (c.Add(1) - 1) & (1<<30 - 1)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var next map[string]*atomic.Uint32
	if m := t.m.Load(); m != nil {
		next = maps.Clone(*m)
	} else {
		next = make(map[string]*atomic.Uint32)
	}
	c := next[topic]
	if c == nil {
		c = &atomic.Uint32{}
		c.Store(rand.Uint32N(1 << 20))
		next[topic] = c
	}
	t.m.Store(&next)
	return (c.Add(1) - 1) & (1<<30 - 1)
}
