package selector

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
)

func queues(n int, brokers ...string) (qs []rocketmq.Queue) {
	for _, b := range brokers {
		for i := range n {
			qs = append(qs, rocketmq.Queue{Topic: "t", Broker: b, ID: i})
		}
	}
	return qs
}

func TestRoundRobinTakesTurnsPerTopic(t *testing.T) {
	s := RoundRobin()
	qs := queues(2, "a", "b")
	counts := make(map[string][4]int)
	for range 8 {
		for _, topic := range []string{"x", "y"} { // in step, which one counter for both would not survive
			i, err := s.Select(&rocketmq.Message{Topic: topic}, qs, "")
			require.NoError(t, err)
			c := counts[topic]
			c[i]++
			counts[topic] = c
		}
	}
	require.Equal(t, map[string][4]int{"x": {2, 2, 2, 2}, "y": {2, 2, 2, 2}}, counts)
}

func TestSelectorsAvoid(t *testing.T) {
	m := &rocketmq.Message{Topic: "t"}
	qs := queues(3, "a", "b")
	for name, s := range map[string]QueueSelector{"round robin": RoundRobin(), "random": Random(), "hash": Hash(), "room": MachineRoom("r")} {
		for range 50 {
			i, err := s.Select(m, qs, "a")
			require.NoError(t, err)
			require.Equal(t, "b", qs[i].Broker, name)
		}
		i, err := s.Select(m, qs[:3], "a")
		require.NoError(t, err)
		require.Less(t, i, 3, "%s: there is no other", name)
		_, err = s.Select(m, nil, "")
		require.ErrorIs(t, err, ErrNoQueue, name)
	}
}

func TestRandomReachesAll(t *testing.T) {
	s := Random()
	seen := make(map[int]bool)
	for range 1000 {
		i, err := s.Select(&rocketmq.Message{Topic: "t"}, queues(4, "a"), "")
		require.NoError(t, err)
		seen[i] = true
	}
	require.Len(t, seen, 4)
}

func TestHash(t *testing.T) {
	// String.hashCode of Java: "TagA" 2598919, "polygenelubricants" the least
	// number there is.
	assert.Equal(t, 2598919%7, HashIndex("TagA", 7))
	assert.Equal(t, 2147483648%7, HashIndex("polygenelubricants", 7))
	assert.Equal(t, 0, HashIndex("polygenelubricants", 8))
	assert.Equal(t, 0, HashIndex("anything", 1))

	s := Hash()
	qs := queues(4, "a", "b")
	for k := range 100 {
		m := &rocketmq.Message{Topic: "t", ShardingKey: fmt.Sprint("customer ", k)}
		first, err := s.Select(m, qs, "")
		require.NoError(t, err)
		again, err := s.Select(m, qs, qs[first].Broker)
		require.NoError(t, err)
		require.Equal(t, first, again, "also when its broker has just failed")
	}
	seen := make(map[int]bool)
	for range 8 {
		i, err := s.Select(&rocketmq.Message{Topic: "t"}, qs, "")
		require.NoError(t, err)
		seen[i] = true
	}
	require.Len(t, seen, 8, "without a key in turn")
}

func TestMachineRoom(t *testing.T) {
	s := MachineRoom("east", "north")
	qs := queues(2, "east@a", "north@b", "west@c", "none")
	seen := make(map[string]int)
	for range 40 {
		i, err := s.Select(&rocketmq.Message{Topic: "t"}, qs, "")
		require.NoError(t, err)
		seen[qs[i].Broker]++
	}
	require.Len(t, seen, 2)
	require.Positive(t, seen["east@a"])
	require.Positive(t, seen["north@b"])
	i, err := s.Select(&rocketmq.Message{Topic: "t"}, queues(1, "east@a", "west@c"), "east@a")
	require.NoError(t, err)
	require.Equal(t, 1, i, "another room is better than the broker that failed")
}

func TestQueueFunc(t *testing.T) {
	want := errors.New("undecided")
	_, err := QueueFunc(func(*rocketmq.Message, []rocketmq.Queue, string) (int, error) { return 0, want }).Select(nil, nil, "")
	require.ErrorIs(t, err, want)
}

func TestSelectorsTogether(t *testing.T) {
	s := RoundRobin()
	qs := queues(4, "a")
	var mu sync.Mutex
	counts := make([]int, 4)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for k := range 100 {
				i, err := s.Select(&rocketmq.Message{Topic: fmt.Sprint(g%2, k%2)}, qs, "")
				assert.NoError(t, err)
				mu.Lock()
				counts[i]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, []int{200, 200, 200, 200}, counts)
	m := &rocketmq.Message{Topic: "00"}
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = s.Select(m, qs, "") }))
}
