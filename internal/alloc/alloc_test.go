package alloc_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gorocketmq/rocketmq/internal/alloc"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

type vector struct {
	Kind, Strategy, Topic, Broker, Text string
	Queue                               int
	JavaHash                            int32 `json:"java_hash"`
	In, Out, Queues, Cids, Rooms        []string
	VirtualNodes                        int                        `json:"virtual_nodes"`
	Configured                          []int                      `json:"configured_indexes"`
	Result                              map[string]json.RawMessage `json:"result_indexes_of_queues"`
}

func vectors(t testing.TB, kind string) []vector {
	t.Helper()
	f, err := os.Open("testdata/alloc.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var out []vector
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<22)
	for sc.Scan() {
		var v vector
		require.NoError(t, json.Unmarshal(sc.Bytes(), &v))
		if v.Kind == kind {
			out = append(out, v)
		}
	}
	require.NoError(t, sc.Err())
	require.NotEmpty(t, out)
	return out
}

func parse(t testing.TB, texts []string) []alloc.Queue {
	t.Helper()
	var qs []alloc.Queue
	for _, s := range texts {
		p := strings.Split(s, "/")
		require.Len(t, p, 3, s)
		id, err := strconv.Atoi(p[2])
		require.NoError(t, err)
		qs = append(qs, alloc.Queue{Topic: p[0], Broker: p[1], ID: id})
	}
	return qs
}

type divide func(self string, members []string, queues []alloc.Queue) []alloc.Queue

func strategy(t testing.TB, v vector) func(string, []string, []alloc.Queue) ([]alloc.Queue, error) {
	t.Helper()
	plain := func(f divide) func(string, []string, []alloc.Queue) ([]alloc.Queue, error) {
		return func(self string, members []string, queues []alloc.Queue) ([]alloc.Queue, error) {
			if err := alloc.Check(self, members, queues); err != nil {
				return nil, err
			}
			return f(self, members, queues), nil
		}
	}
	if inner, ok := strings.CutPrefix(v.Strategy, "MACHINE_ROOM_NEARBY-"); ok {
		v.Strategy = inner
		in := strategy(t, v)
		room := func(s string) string { r, _, _ := strings.Cut(s, "-"); return r }
		return func(self string, members []string, queues []alloc.Queue) ([]alloc.Queue, error) {
			return alloc.Nearby(self, members, queues, room, in)
		}
	}
	switch v.Strategy {
	case "AVG":
		return plain(alloc.Averagely[alloc.Queue])
	case "AVG_BY_CIRCLE":
		return plain(alloc.ByCircle[alloc.Queue])
	case "CONSISTENT_HASH":
		return plain(func(s string, m []string, q []alloc.Queue) []alloc.Queue {
			return alloc.ConsistentHash(s, m, q, v.VirtualNodes)
		})
	case "MACHINE_ROOM":
		return plain(func(s string, m []string, q []alloc.Queue) []alloc.Queue {
			return alloc.MachineRoom(s, m, q, v.Rooms)
		})
	}
	t.Fatalf("unknown strategy %q", v.Strategy)
	return nil
}

func TestGoldenAllocations(t *testing.T) {
	seen := map[string]int{}
	for _, v := range vectors(t, "allocate") {
		if v.Strategy == "CONFIG" {
			continue // a fixed list: no arithmetic
		}
		seen[v.Strategy]++
		queues := parse(t, v.Queues)
		f := strategy(t, v)
		for cid, raw := range v.Result {
			name := fmt.Sprintf("%s %v of %v, %d queues", v.Strategy, cid, v.Cids, len(queues))
			got, err := f(cid, v.Cids, queues)
			if raw[0] == '{' {
				require.Error(t, err, name)
				continue
			}
			require.NoError(t, err, name)
			var idx []int
			require.NoError(t, json.Unmarshal(raw, &idx))
			var want []alloc.Queue
			for _, i := range idx {
				want = append(want, queues[i])
			}
			if len(want) == 0 {
				require.Empty(t, got, name)
			} else {
				require.Equal(t, want, got, name)
			}
		}
	}
	require.Len(t, seen, 7, "every strategy has vectors: %v", seen)
}

func TestGoldenSortOrders(t *testing.T) {
	for _, v := range vectors(t, "queue_sort") {
		qs := parse(t, v.In)
		alloc.SortQueues(qs)
		require.Equal(t, parse(t, v.Out), qs)
	}
	for _, v := range vectors(t, "client_id_sort") {
		alloc.SortMembers(v.In)
		require.Equal(t, v.Out, v.In)
	}
}

func TestGoldenQueueText(t *testing.T) {
	for _, v := range vectors(t, "queue_text") {
		text := string(alloc.AppendText(nil, alloc.Queue{Topic: v.Topic, Broker: v.Broker, ID: v.Queue}))
		require.Equal(t, v.Text, text)
	}
}

func TestMachineRoomSplitsLikeJava(t *testing.T) {
	queues := parse(t, []string{"T/r@/0", "T/r@b@/1", "T/r@b@c/2", "T/@b/3", "T/r@@b/4", "T/b/5"})
	got := alloc.MachineRoom("c", []string{"c"}, queues, []string{"r", ""})
	require.Equal(t, []alloc.Queue{{Topic: "T", Broker: "r@b@", ID: 1}, {Topic: "T", Broker: "@b", ID: 3}}, got)
}

func TestNearbyNeedsEveryRoom(t *testing.T) {
	queues := parse(t, []string{"T/a-b/0"})
	inner := func(s string, m []string, q []alloc.Queue) ([]alloc.Queue, error) {
		return alloc.Averagely(s, m, q), nil
	}
	room := func(s string) string { r, _, _ := strings.Cut(s, "-"); return r }
	_, err := alloc.Nearby("-c", []string{"-c"}, queues, room, inner)
	require.ErrorContains(t, err, `client "-c"`)
	_, err = alloc.Nearby("a-c", []string{"a-c"}, parse(t, []string{"T/-b/0"}), room, inner)
	require.ErrorContains(t, err, `broker "-b"`)
}

// Whatever the group looks like, each queue has exactly one owner.
func TestDivisionsAreCompleteAndDisjoint(t *testing.T) {
	all := map[string]divide{
		"averagely": alloc.Averagely[alloc.Queue],
		"circle":    alloc.ByCircle[alloc.Queue],
		"hash": func(s string, m []string, q []alloc.Queue) []alloc.Queue {
			return alloc.ConsistentHash(s, m, q, 0)
		},
		"room": func(s string, m []string, q []alloc.Queue) []alloc.Queue {
			return alloc.MachineRoom(s, m, q, []string{"r"})
		},
		"nearby": func(s string, m []string, q []alloc.Queue) []alloc.Queue {
			out, err := alloc.Nearby(s, m, q, func(n string) string { return "r" + n[len(n)-1:] },
				func(s string, m []string, q []alloc.Queue) ([]alloc.Queue, error) {
					return alloc.ByCircle(s, m, q), nil
				})
			require.NoError(t, err)
			return out
		},
	}
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				members := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]{1,6}`), 1, 9, rapid.ID).Draw(t, "members")
				alloc.SortMembers(members)
				n := rapid.IntRange(1, 40).Draw(t, "queues")
				var queues []alloc.Queue
				for i := range n {
					queues = append(queues, alloc.Queue{Topic: "T", Broker: fmt.Sprintf("r@b%d", i%3), ID: i})
				}
				alloc.SortQueues(queues)
				var union []alloc.Queue
				for _, m := range members {
					union = append(union, f(m, members, queues)...)
				}
				alloc.SortQueues(union)
				require.Equal(t, queues, union)
				require.Empty(t, f("no member", members, queues))
			})
		})
	}
}

func TestCompareJavaIsUsedForBrokers(t *testing.T) {
	a, b := alloc.Queue{Broker: "\U0001F600"}, alloc.Queue{Broker: "\uFF21"}
	require.Negative(t, alloc.Compare(a, b))
	require.Equal(t, wire.CompareJava(a.Broker, b.Broker) < 0, alloc.Compare(a, b) < 0)
}

func BenchmarkConsistentHash(b *testing.B) {
	var members []string
	for i := range 16 {
		members = append(members, fmt.Sprintf("10.0.0.%d@1#1", i))
	}
	alloc.SortMembers(members)
	var queues []alloc.Queue
	for i := range 1000 {
		queues = append(queues, alloc.Queue{Topic: "TopicA", Broker: "broker-a", ID: i})
	}
	b.ReportAllocs()
	for b.Loop() {
		alloc.ConsistentHash(members[3], members, queues, 0)
	}
}
