// Package rebalance holds the strategies by which the members of a consumer
// group divide the queues of a topic. There is no coordinator: every member
// computes the division from the same inputs and keeps its own part. So all
// members of a group must use the same strategy, and a strategy of your own
// must give the same answer for the same input in every process.
//
// The strategies here divide exactly as Apache's Java classes do; groups of
// Java, C++ and Go members can be mixed.
package rebalance

import (
	"fmt"
	"slices"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/alloc"
)

// Input is what one member knows of one topic.
type Input struct {
	Group, Topic string
	Self         string           // the member's own client id
	Members      []string         // client ids of all members, sorted as Java sorts them
	Queues       []rocketmq.Queue // the topic's readable queues, sorted by broker name and number
}

// Strategy divides the queues of a topic among the members of a group.
// Implementations must be pure and safe for concurrent use, and must not
// change or keep the input's slices.
type Strategy interface {
	// Name identifies the strategy in logs, as Apache's classes do.
	Name() string
	// Allocate returns the queues that belong to in.Self, none if it is not
	// among in.Members. An error, a panic, or an answer with a queue that is not one
	// of in.Queues, or with one twice, leaves the member's assignment as it is until
	// the next round; it is logged, told to hooks and in the consumer's Health.
	Allocate(in Input) ([]rocketmq.Queue, error)
}

type strategy struct {
	name     string
	allocate func(Input) ([]rocketmq.Queue, error)
}

func (s strategy) Name() string { return s.name }

func (s strategy) Allocate(in Input) ([]rocketmq.Queue, error) {
	if err := alloc.Check(in.Self, in.Members, in.Queues); err != nil {
		return nil, fmt.Errorf("strategy %s, topic %q, group %q: %w", s.name, in.Topic, in.Group, err)
	}
	out, err := s.allocate(in)
	if err != nil {
		return nil, fmt.Errorf("strategy %s, topic %q, group %q: %w", s.name, in.Topic, in.Group, err)
	}
	return out, nil
}

// Averagely gives each member one contiguous range of queues; ranges differ
// by at most one in length. It is the default. Java:
// AllocateMessageQueueAveragely.
func Averagely() Strategy {
	return strategy{"AVG", func(in Input) ([]rocketmq.Queue, error) {
		return alloc.Averagely(in.Self, in.Members, in.Queues), nil
	}}
}

// AveragelyByCircle deals the queues out one by one, so that a broker's queues
// spread over all members. Java: AllocateMessageQueueAveragelyByCircle.
func AveragelyByCircle() Strategy {
	return strategy{"AVG_BY_CIRCLE", func(in Input) ([]rocketmq.Queue, error) {
		return alloc.ByCircle(in.Self, in.Members, in.Queues), nil
	}}
}

// ConsistentHash puts the members on a hash ring, each at virtual places, and
// gives each queue to the next member on the ring: when a member comes or goes,
// few queues move between the others, at the price of an uneven division. A
// virtual of 0 or less means 10. Java: AllocateMessageQueueConsistentHash.
func ConsistentHash(virtual int) Strategy {
	return strategy{"CONSISTENT_HASH", func(in Input) ([]rocketmq.Queue, error) {
		return alloc.ConsistentHash(in.Self, in.Members, in.Queues, virtual), nil
	}}
}

// Config always answers with the given queues, of any topic, whoever else is
// in the group; of those it takes the ones that belong to the topic asked for.
// Java: AllocateMessageQueueByConfig, which does not look at the topic.
func Config(queues ...rocketmq.Queue) Strategy {
	fixed := slices.Clone(queues)
	return fixedQueues{fixed}
}

// fixedQueues needs no check of its input: it answers also for a topic whose
// queues are not known yet.
type fixedQueues struct{ queues []rocketmq.Queue }

func (fixedQueues) Name() string { return "CONFIG" }

func (f fixedQueues) Allocate(in Input) ([]rocketmq.Queue, error) {
	var out []rocketmq.Queue
	for _, q := range f.queues {
		if q.Topic == in.Topic {
			out = append(out, q)
		}
	}
	return out, nil
}

// MachineRoom divides the queues of those brokers whose name is "room@broker"
// with one of the rooms, averagely but with the remainder dealt out one by one.
// Queues of all other brokers stay unread. Java:
// AllocateMessageQueueByMachineRoom.
func MachineRoom(rooms ...string) Strategy {
	rooms = slices.Clone(rooms)
	return strategy{"MACHINE_ROOM", func(in Input) ([]rocketmq.Queue, error) {
		return alloc.MachineRoom(in.Self, in.Members, in.Queues, rooms), nil
	}}
}

// Nearby divides the queues of each machine room among the members in the same
// room by inner; queues of rooms without members are divided among all
// members. room names the room of a broker (by broker name) and of a member (by
// client id); an empty answer is an error. Java: AllocateMachineRoomNearby.
func Nearby(room func(name string) string, inner Strategy) Strategy {
	return strategy{"MACHINE_ROOM_NEARBY-" + inner.Name(), func(in Input) ([]rocketmq.Queue, error) {
		return alloc.Nearby(in.Self, in.Members, in.Queues, room,
			func(self string, members []string, queues []rocketmq.Queue) ([]rocketmq.Queue, error) {
				part := in
				part.Self, part.Members, part.Queues = self, members, queues
				return inner.Allocate(part)
			})
	}}
}
