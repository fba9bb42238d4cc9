package rebalance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/alloc"
	"github.com/gorocketmq/rocketmq/rebalance"
)

// row is one recorded answer of Java's classes, see internal/alloc/testdata.
type row struct {
	Kind, Strategy      string
	Queues, Cids, Rooms []string
	VirtualNodes        int                        `json:"virtual_nodes"`
	Configured          []int                      `json:"configured_indexes"`
	Result              map[string]json.RawMessage `json:"result_indexes_of_queues"`
}

func rows(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("../internal/alloc/testdata/alloc.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var out []row
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<22)
	for sc.Scan() {
		var r row
		require.NoError(t, json.Unmarshal(sc.Bytes(), &r))
		if r.Kind == "allocate" {
			out = append(out, r)
		}
	}
	require.NoError(t, sc.Err())
	return out
}

func (r *row) queues(t *testing.T) (out []rocketmq.Queue) {
	for _, s := range r.Queues {
		p := strings.Split(s, "/")
		id, err := strconv.Atoi(p[2])
		require.NoError(t, err)
		out = append(out, rocketmq.Queue{Topic: p[0], Broker: p[1], ID: id})
	}
	return out
}

// room is how the recorded brokers and clients name theirs.
func room(name string) string { r, _, _ := strings.Cut(name, "-"); return r }

func (r *row) strategy(t *testing.T, name string, queues []rocketmq.Queue) rebalance.Strategy {
	if inner, ok := strings.CutPrefix(name, "MACHINE_ROOM_NEARBY-"); ok {
		return rebalance.Nearby(room, r.strategy(t, inner, queues))
	}
	switch name {
	case "AVG":
		return rebalance.Averagely()
	case "AVG_BY_CIRCLE":
		return rebalance.AveragelyByCircle()
	case "CONSISTENT_HASH":
		return rebalance.ConsistentHash(r.VirtualNodes)
	case "MACHINE_ROOM":
		return rebalance.MachineRoom(r.Rooms...)
	case "CONFIG":
		var fixed []rocketmq.Queue
		for _, i := range r.Configured {
			fixed = append(fixed, queues[i])
		}
		return rebalance.Config(fixed...)
	}
	t.Fatalf("unknown strategy %q", name)
	return nil
}

// What the constructors return answers as Java's class does, by every row and for
// every member.
func TestGoldenAllocations(t *testing.T) {
	seen, asked := map[string]int{}, 0
	for _, r := range rows(t) {
		queues := r.queues(t)
		s := r.strategy(t, r.Strategy, queues)
		require.Equal(t, r.Strategy, s.Name())
		seen[r.Strategy]++
		for self, raw := range r.Result {
			asked++
			about := fmt.Sprintf("%s for %q of %v, %d queues", r.Strategy, self, r.Cids, len(queues))
			got, err := s.Allocate(rebalance.Input{Group: "G", Topic: "TopicA", Self: self, Members: r.Cids, Queues: queues})
			if raw[0] == '{' {
				require.Error(t, err, about)
				continue
			}
			require.NoError(t, err, about)
			var want []int
			require.NoError(t, json.Unmarshal(raw, &want))
			require.Len(t, got, len(want), about)
			for i, q := range got {
				require.Equal(t, queues[want[i]], q, about)
			}
		}
	}
	require.Len(t, seen, 8, "%v", seen)
	require.Greater(t, asked, 1000)
}

// Whatever a group looks like, the members of it agree: each queue has one owner,
// who is there, gets it in the order of the topic, and gets the same when asked again.
func TestEveryDivisionIsOne(t *testing.T) {
	nearby := func(name string) string { return "room" + name[len(name)-1:] }
	for _, s := range []rebalance.Strategy{
		rebalance.Averagely(), rebalance.AveragelyByCircle(), rebalance.ConsistentHash(0), rebalance.ConsistentHash(3), rebalance.MachineRoom("r"),
		rebalance.Nearby(nearby, rebalance.Averagely()), rebalance.Nearby(nearby, rebalance.ConsistentHash(0)),
	} {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := rebalance.Input{Group: "G", Topic: "T"}
				in.Members = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,4}[0-3]`), 1, 12, rapid.ID).Draw(t, "members")
				alloc.SortMembers(in.Members)
				for i := range rapid.IntRange(1, 50).Draw(t, "queues") {
					in.Queues = append(in.Queues, rocketmq.Queue{Topic: "T", Broker: fmt.Sprintf("r@b%d", i%4), ID: i / 4})
				}
				alloc.SortQueues(in.Queues)
				before := in
				before.Members, before.Queues = slices.Clone(in.Members), slices.Clone(in.Queues)
				owners := map[rocketmq.Queue]string{}
				for _, in.Self = range in.Members {
					got, err := s.Allocate(in)
					require.NoError(t, err)
					for _, q := range got {
						require.Empty(t, owners[q], "queue %s has two owners", q)
						owners[q] = in.Self
					}
					if !strings.HasPrefix(s.Name(), "MACHINE_ROOM") {
						require.True(t, slices.IsSortedFunc(got, rocketmq.Queue.Compare))
					}
					again, err := s.Allocate(in)
					require.NoError(t, err)
					require.Equal(t, got, again)
				}
				require.Len(t, owners, len(in.Queues), "each queue has one")
				require.Equal(t, before.Members, in.Members)
				require.Equal(t, before.Queues, in.Queues)
				in.Self = "nobody"
				got, err := s.Allocate(in)
				require.NoError(t, err)
				require.Empty(t, got, "who is not there gets nothing")
			})
		})
	}
}

// What consistent hashing is for: when a member goes, the queues of the others
// stay where they are.
func TestConsistentHashMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rebalance.Input{Topic: "T"}
		in.Members = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]{1,6}`), 2, 9, rapid.ID).Draw(t, "members")
		alloc.SortMembers(in.Members)
		for i := range 40 {
			in.Queues = append(in.Queues, rocketmq.Queue{Topic: "T", Broker: "b", ID: i})
		}
		gone := rapid.SampledFrom(in.Members).Draw(t, "gone")
		less := in
		less.Members = slices.DeleteFunc(slices.Clone(in.Members), func(m string) bool { return m == gone })
		for _, self := range less.Members {
			in.Self, less.Self = self, self
			before, err := rebalance.ConsistentHash(0).Allocate(in)
			require.NoError(t, err)
			after, err := rebalance.ConsistentHash(0).Allocate(less)
			require.NoError(t, err)
			for _, q := range before {
				require.Contains(t, after, q)
			}
		}
	})
}
