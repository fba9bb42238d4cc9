// Package alloc is the arithmetic that divides the queues of a topic among
// the members of a consumer group. Every member computes the whole division
// by itself from the same sorted inputs and keeps its own part, so the
// results must equal those of Apache's Java classes to the last queue: a
// group may be mixed. All functions are pure.
package alloc

import (
	"errors"
	"slices"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Queue names one queue. Callers have their own type of the same shape; the
// functions here take any of them.
type Queue struct {
	Topic, Broker string
	ID            int
}

// AnyQueue is satisfied by every struct of the shape of [Queue].
type AnyQueue interface {
	~struct {
		Topic, Broker string
		ID            int
	}
}

// Inputs that cannot be divided. Apache's classes throw for the same three.
var (
	ErrNoSelf    = errors.New("own client id is empty")
	ErrNoMembers = errors.New("the group has no members")
	ErrNoQueues  = errors.New("the topic has no queues")
)

// Check reports inputs for which no division exists.
func Check[Q AnyQueue](self string, members []string, queues []Q) error {
	switch {
	case self == "":
		return ErrNoSelf
	case len(queues) == 0:
		return ErrNoQueues
	case len(members) == 0:
		return ErrNoMembers
	}
	return nil
}

// SortMembers sorts client ids as Java does: by UTF-16 code unit.
func SortMembers(ids []string) { slices.SortFunc(ids, wire.CompareJava) }

// SortQueues sorts queues as Java does: by topic, broker (both by UTF-16 code
// unit), then number.
func SortQueues[Q AnyQueue](qs []Q) {
	slices.SortFunc(qs, func(a, b Q) int { return Compare(Queue(a), Queue(b)) })
}

// Compare orders queues as [SortQueues] does.
func Compare(a, b Queue) int {
	if c := wire.CompareJava(a.Topic, b.Topic); c != 0 {
		return c
	}
	if c := wire.CompareJava(a.Broker, b.Broker); c != 0 {
		return c
	}
	return a.ID - b.ID
}

// Averagely gives each member one contiguous range; the first members get
// one more when it does not come out even (AllocateMessageQueueAveragely).
// A self that is no member gets nothing.
func Averagely[Q AnyQueue](self string, members []string, queues []Q) []Q {
	i, n, c := slices.Index(members, self), len(queues), len(members)
	if i < 0 {
		return nil
	}
	mod := n % c
	size := 1
	if n > c {
		size = n / c
		if i < mod {
			size++
		}
	}
	start := i * size
	if i >= mod {
		start += mod
	}
	if start >= n {
		return nil
	}
	return slices.Clone(queues[start:min(start+size, n)])
}

// ByCircle deals the queues out one by one
// (AllocateMessageQueueAveragelyByCircle).
func ByCircle[Q AnyQueue](self string, members []string, queues []Q) []Q {
	i := slices.Index(members, self)
	if i < 0 {
		return nil
	}
	var out []Q
	for k := i; k < len(queues); k += len(members) {
		out = append(out, queues[k])
	}
	return out
}

// MachineRoom divides the queues of brokers named "room@broker" whose room is
// one of rooms; all others belong to nobody
// (AllocateMessageQueueByMachineRoom).
func MachineRoom[Q AnyQueue](self string, members []string, queues []Q, rooms []string) []Q {
	i, c := slices.Index(members, self), len(members)
	if i < 0 {
		return nil
	}
	var kept []Q
	for _, q := range queues {
		room, broker, ok := strings.Cut(Queue(q).Broker, "@")
		// Java splits at every "@" and drops empty pieces at the end.
		broker = strings.TrimRight(broker, "@")
		if ok && broker != "" && !strings.Contains(broker, "@") && slices.Contains(rooms, room) {
			kept = append(kept, q)
		}
	}
	m, rest := len(kept)/c, len(kept)%c
	out := slices.Clone(kept[i*m : (i+1)*m])
	if i < rest {
		out = append(out, kept[m*c+i])
	}
	return out
}
