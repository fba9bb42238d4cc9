package rebalance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/alloc"
	"github.com/gorocketmq/rocketmq/rebalance"
)

func queues(broker string, n int) []rocketmq.Queue {
	var qs []rocketmq.Queue
	for i := range n {
		qs = append(qs, rocketmq.Queue{Topic: "T", Broker: broker, ID: i})
	}
	return qs
}

func ids(qs []rocketmq.Queue) []int {
	var out []int
	for _, q := range qs {
		out = append(out, q.ID)
	}
	return out
}

// The arithmetic is checked against Java's answers where it lives; here that
// each constructor is wired to its own.
func TestStrategies(t *testing.T) {
	room := func(name string) string { r, _, _ := strings.Cut(name, "-"); return r }
	list := queues("r1@a", 8)
	fixed := []rocketmq.Queue{list[5], list[1], {Topic: "other", Broker: "b", ID: 0}}
	cases := []struct {
		s    rebalance.Strategy
		name string
		want map[string][]int
	}{
		{rebalance.Averagely(), "AVG", map[string][]int{"x-1": {0, 1, 2}, "x-2": {3, 4, 5}, "x-3": {6, 7}}},
		{rebalance.AveragelyByCircle(), "AVG_BY_CIRCLE", map[string][]int{"x-1": {0, 3, 6}, "x-2": {1, 4, 7}, "x-3": {2, 5}}},
		{rebalance.MachineRoom("r1"), "MACHINE_ROOM", map[string][]int{"x-1": {0, 1, 6}, "x-2": {2, 3, 7}, "x-3": {4, 5}}},
		{rebalance.MachineRoom("r2"), "MACHINE_ROOM", map[string][]int{"x-1": nil}},
		{rebalance.Config(fixed...), "CONFIG", map[string][]int{"x-1": {5, 1}, "absent": {5, 1}}},
		{rebalance.Nearby(room, rebalance.AveragelyByCircle()), "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE",
			map[string][]int{"x-1": {0, 3, 6}, "x-2": {1, 4, 7}, "x-3": {2, 5}}},
	}
	for _, c := range cases {
		require.Equal(t, c.name, c.s.Name())
		for self, want := range c.want {
			got, err := c.s.Allocate(rebalance.Input{Group: "G", Topic: "T", Self: self, Members: []string{"x-1", "x-2", "x-3"}, Queues: list})
			require.NoError(t, err)
			require.Equal(t, want, ids(got), "%s for %s", c.name, self)
		}
	}
}

func TestNearbyKeepsToTheRoom(t *testing.T) {
	room := func(name string) string { r, _, _ := strings.Cut(name, "-"); return r }
	list := append(queues("r1-a", 2), append(queues("r2-b", 2), queues("r3-c", 2)...)...)
	s := rebalance.Nearby(room, rebalance.Averagely())
	in := rebalance.Input{Topic: "T", Members: []string{"r1-x", "r2-y"}, Queues: list, Self: "r2-y"}
	got, err := s.Allocate(in)
	require.NoError(t, err)
	require.Equal(t, []rocketmq.Queue{list[2], list[3], list[5]}, got)
}

func TestConsistentHashIsTheJavaRing(t *testing.T) {
	var list []rocketmq.Queue
	for i := range 8 {
		list = append(list, rocketmq.Queue{Topic: "TopicA", Broker: "broker-a", ID: i})
	}
	members := []string{"10.0.0.0@1#1", "10.0.0.1@1#1", "10.0.0.2@1#1"}
	owners := make([]int, len(list))
	for i, self := range members {
		got, err := rebalance.ConsistentHash(0).Allocate(rebalance.Input{Topic: "TopicA", Self: self, Members: members, Queues: list})
		require.NoError(t, err)
		for _, q := range got {
			owners[q.ID] = i
		}
	}
	require.Equal(t, []int{1, 0, 1, 1, 1, 0, 0, 2}, owners)
}

func TestInputsThatCannotBeDivided(t *testing.T) {
	good := rebalance.Input{Group: "G", Topic: "T", Self: "a", Members: []string{"a"}, Queues: queues("b", 1)}
	cases := map[error]func(*rebalance.Input){
		alloc.ErrNoSelf:    func(in *rebalance.Input) { in.Self = "" },
		alloc.ErrNoMembers: func(in *rebalance.Input) { in.Members = nil },
		alloc.ErrNoQueues:  func(in *rebalance.Input) { in.Queues = nil },
	}
	for want, spoil := range cases {
		in := good
		spoil(&in)
		for _, s := range []rebalance.Strategy{rebalance.Averagely(), rebalance.AveragelyByCircle(), rebalance.ConsistentHash(3), rebalance.MachineRoom("r")} {
			_, err := s.Allocate(in)
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, `topic "T", group "G"`)
		}
	}
	_, err := rebalance.Nearby(func(string) string { return "" }, rebalance.Averagely()).Allocate(good)
	require.ErrorContains(t, err, "no machine room is known")
}

func TestInputIsNotChangedOrShared(t *testing.T) {
	in := rebalance.Input{Topic: "T", Self: "a", Members: []string{"a", "b"}, Queues: queues("b", 4)}
	before := slices.Clone(in.Queues)
	got, err := rebalance.Averagely().Allocate(in)
	require.NoError(t, err)
	got[0].ID = 99
	require.Equal(t, before, in.Queues)
}

func ExampleAveragely() {
	in := rebalance.Input{
		Group: "billing", Topic: "orders", Self: "b",
		Members: []string{"a", "b", "c"},
		Queues: []rocketmq.Queue{
			{Topic: "orders", Broker: "broker-0", ID: 0}, {Topic: "orders", Broker: "broker-0", ID: 1},
			{Topic: "orders", Broker: "broker-0", ID: 2}, {Topic: "orders", Broker: "broker-0", ID: 3},
		},
	}
	mine, err := rebalance.Averagely().Allocate(in)
	fmt.Println(mine, err)
	// Output: [orders/broker-0/2] <nil>
}
