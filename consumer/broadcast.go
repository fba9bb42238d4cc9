package consumer

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/consume"
)

// Model is how the members of a group have the messages among them.
type Model uint8

// The models. All members of a group must have the same.
const (
	Clustering   Model = iota // each message goes to one member
	Broadcasting              // each message goes to every member, see WithModel
)

// String is the model's name, in lower case.
func (m Model) String() string {
	switch m {
	case Clustering:
		return "clustering"
	case Broadcasting:
		return "broadcasting"
	}
	return fmt.Sprintf("model %d", uint8(m))
}

// WithModel says whether the members of a group share its messages, which is the
// default, or each gets all of them. With Broadcasting:
//
//   - Every member takes all queues. [WithStrategy] has nothing to divide.
//   - Offsets are the member's own and not the broker's: [WithOffsetStore] says
//     where they are kept. By default that is memory: each run begins at
//     [StartFrom].
//   - A failed message is logged and dropped, as in Java's client: another attempt
//     would have to reach this member alone, and the broker cannot do that. So
//     [RetryAfter] and [DeadLetter] do nothing more than any other error, and
//     [WithMaxAttempts] is an error. A handler that has to succeed retries by itself.
//   - Latest means the end of a queue also if it is young. A queue that comes while
//     the member runs, because the topic was enlarged or its broker was away, is
//     read from the first message stored since Run was called, by the broker's clock.
//
// At least once holds as long as the offset store has the offsets: a member that
// dies handles again what came after the last save, which is every 5 s.
//
// [NewOrdered] takes Clustering only.
func WithModel(m Model) Option {
	return func(c *config) {
		c.only(handling, "WithModel", "use AssignTo, with which it shares its queues with nobody", "it shares its queues with nobody anyway")
		c.model = m
	}
}

// WithOffsetStore says where a member with [Broadcasting] keeps its offsets. The
// default is [MemoryOffsets]. With Clustering it is an error: there the offsets
// are the group's, and are at the brokers, where the other members find them.
func WithOffsetStore(s OffsetStore) Option {
	return func(c *config) {
		c.only(handling, "WithOffsetStore", "use AssignTo, WithManualCommit and Seek to keep offsets elsewhere", "the application keeps the offsets, or calls Commit")
		c.store, c.hasStore = s, true
	}
}

// OffsetStore keeps the offsets of members that broadcast, see [WithOffsetStore].
// An offset is that of the first message of a queue that is not done. A member makes one
// call at a time, with a context that ends after 3 s, and never while a lock is
// held. Several members can use one store at the same time if they are of
// different groups: the key is group and queue, and two members of one group are
// at different places. [FileOffsets] and [MemoryOffsets] refuse the second.
type OffsetStore interface {
	// Load returns the offsets of a group for these queues. A queue of which none
	// is stored is not in the result, which is not an error, and begins at
	// StartFrom. On an error no queue begins, and Load is called again a second
	// later; but with one that matches ErrOffsetsDamaged the result counts. It is
	// called when queues come, that is, for each topic when the member starts and
	// seldom afterwards. group has the client's namespace, if there is one.
	Load(ctx context.Context, group string, queues []rocketmq.Queue) (map[rocketmq.Queue]int64, error)
	// Save stores offsets of a group; those of other queues stay. It is called with
	// what has changed, every 5 s at most if nothing extraordinary happens, and when
	// the member closes. What is saved last counts, also if it is less: then the
	// offset was reset. After an error the member goes on consuming, and the offsets are saved
	// with the next call; when closing it is returned by Run. The map must not be
	// changed and not be kept.
	Save(ctx context.Context, group string, offsets map[rocketmq.Queue]int64) error
}

// ErrOffsetsDamaged is what [OffsetStore.Load] returns, together with the offsets
// that could be restored, when stored offsets were there and cannot be read any
// more. The consumer logs it as an error and goes on with what was restored;
// queues that are not among it begin at [StartFrom].
var ErrOffsetsDamaged = consume.ErrOffsetsDamaged

// exclusive is a store that one member of a group can have at a time.
type exclusive interface {
	// acquire makes ready what the store has of a group, or says why it cannot.
	acquire(ctx context.Context, group string) (release func(), err error)
}

// claims are the groups that have a member.
type claims struct {
	mu    sync.Mutex // guards taken
	taken map[string]bool
}

func (c *claims) claim(group string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken[group] {
		return nil, fmt.Errorf("%w: the offset store has a running consumer of group %q already, every member of a group needs a store of its own",
			rocketmq.ErrInvalidOption, group)
	}
	if c.taken == nil {
		c.taken = make(map[string]bool)
	}
	c.taken[group] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.taken, group)
	}, nil
}

// MemoryOffsets keeps offsets for as long as the value lives: a consumer that is
// made anew in the same process goes on where the one before it was closed, and a new
// process begins at [StartFrom].
func MemoryOffsets() OffsetStore {
	return &memoryOffsets{groups: make(map[string]map[rocketmq.Queue]int64)}
}

type memoryOffsets struct {
	claims claims

	mu     sync.Mutex // guards groups
	groups map[string]map[rocketmq.Queue]int64
}

func (s *memoryOffsets) acquire(_ context.Context, group string) (func(), error) {
	return s.claims.claim(group)
}

// Load implements [OffsetStore].
func (s *memoryOffsets) Load(_ context.Context, group string, queues []rocketmq.Queue) (map[rocketmq.Queue]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return pick(s.groups[group], queues), nil
}

// Save implements [OffsetStore].
func (s *memoryOffsets) Save(_ context.Context, group string, offsets map[rocketmq.Queue]int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[group] == nil {
		s.groups[group] = make(map[rocketmq.Queue]int64, len(offsets))
	}
	maps.Copy(s.groups[group], offsets)
	return nil
}

// pick is the part of a table that some queues have.
func pick(table map[rocketmq.Queue]int64, queues []rocketmq.Queue) map[rocketmq.Queue]int64 {
	out := make(map[rocketmq.Queue]int64, len(queues))
	for _, q := range queues {
		if off, ok := table[q]; ok {
			out[q] = off
		}
	}
	return out
}
