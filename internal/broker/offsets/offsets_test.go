package offsets_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/clock"
)

var (
	group = []byte("CG")
	topic = []byte("T")
)

func newTable() *offsets.Table {
	return offsets.New(clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

func TestCommitGoesBothWays(t *testing.T) {
	table := newTable()
	_, ok := table.Offset(group, topic, 0)
	require.False(t, ok)
	for _, off := range []int64{5, 3, 0} {
		require.True(t, table.Commit(group, topic, 0, off))
		got, ok := table.Offset(group, topic, 0)
		require.True(t, ok)
		require.Equal(t, off, got)
	}
	require.True(t, table.TakeChanged())
	require.True(t, table.Commit(group, topic, 0, 0))
	require.False(t, table.TakeChanged(), "the same offset again is no change")
	table.NotSaved()
	require.True(t, table.TakeChanged())
}

// pull is a pull of queue 1 over a connection.
func pull(offset int64, conn any, held bool) *offsets.Pull {
	return &offsets.Pull{Group: group, Topic: topic, QueueID: 1, Offset: offset, Conn: conn, Held: held}
}

func TestC44_ResetIsToldUntilItIsKnown(t *testing.T) {
	one, two := new(int), new(int) // connections
	type step struct {
		pull *offsets.Pull
		told bool
	}
	for name, steps := range map[string][]step{
		"the same connection pulls again":       {{pull(90, one, false), true}, {pull(90, one, false), false}},
		"from the target":                       {{pull(90, one, false), true}, {pull(10, two, false), false}},
		"the answer was lost":                   {{pull(90, one, false), true}, {pull(90, two, false), true}, {pull(90, one, false), true}, {pull(90, one, false), false}},
		"two are held, nobody waits for one":    {{pull(90, one, true), true}, {pull(90, one, true), true}, {pull(10, one, false), false}},
		"the target before anybody was told":    {{pull(10, one, false), true}, {pull(10, one, false), false}},
		"held at the target after one was told": {{pull(90, one, false), true}, {pull(10, two, true), true}, {pull(10, two, false), false}},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			table.Commit(group, topic, 1, 90)
			_, ok := table.BeginPull(pull(90, one, false))
			require.False(t, ok)
			table.Reset(group, topic, 1, 10)
			for i, s := range steps {
				require.False(t, table.Commit(group, topic, 1, 95), "it belongs to the time before")
				off, _ := table.Offset(group, topic, 1)
				require.EqualValues(t, 10, off)
				off, told := table.BeginPull(s.pull)
				require.Equal(t, s.told, told, "pull %d", i)
				if told {
					require.EqualValues(t, 10, off)
				}
			}
			require.True(t, table.Commit(group, topic, 1, 11))
			off, _ := table.Offset(group, topic, 1)
			require.EqualValues(t, 11, off)
		})
	}
}

func TestPullsAloneAreNoOffsets(t *testing.T) {
	table := newTable()
	table.BeginPull(pull(7, nil, false))
	require.EqualValues(t, 7, table.PullOffset(group, topic, 1))
	require.Zero(t, table.PullOffset(group, []byte("other"), 1))
	_, ok := table.Offset(group, topic, 1)
	require.False(t, ok)
	require.Empty(t, table.Topics("CG"))
	require.Empty(t, table.Groups("T"))
	require.Empty(t, table.Snapshot().Offsets)
}

func TestRemove(t *testing.T) {
	table := newTable()
	table.Commit(group, topic, 0, 1)
	table.Commit([]byte("Other"), topic, 0, 1)
	table.Commit(group, []byte("T2"), 0, 1)
	require.Equal(t, []string{"CG", "Other"}, table.Groups("T"))
	require.Equal(t, []string{"T", "T2"}, table.Topics("CG"))
	table.RemoveTopic("T")
	require.Empty(t, table.Groups("T"))
	require.Equal(t, []string{"T2"}, table.Topics("CG"))
	table.RemoveGroup("CG")
	require.Empty(t, table.Topics("CG"))
}

func TestFileRoundTrip(t *testing.T) {
	table := newTable()
	table.Commit(group, topic, 0, 12)
	table.Commit(group, topic, 1, 7)
	table.Commit(group, []byte("%RETRY%CG"), 0, 1)
	again := newTable()
	require.NoError(t, again.Decode(table.Encode()))
	require.Equal(t, table.Snapshot(), again.Snapshot())
	require.Error(t, again.Decode([]byte("{")))
}

func TestVersionStepsWithCommits(t *testing.T) {
	table := newTable()
	for i := range 1000 {
		table.Commit(group, topic, 0, int64(i+1))
	}
	require.EqualValues(t, 2, table.Snapshot().Version.Counter)
}

func TestCommitDoesNotAllocate(t *testing.T) {
	table := newTable()
	table.Commit(group, topic, 0, 1)
	n := int64(1)
	require.Zero(t, testing.AllocsPerRun(100, func() { n++; table.Commit(group, topic, 0, n) }))
}

func TestPopEndsAReset(t *testing.T) {
	tab := offsets.New(clock.NewManual(time.UnixMilli(1000)))
	g, topic := []byte("G"), []byte("T")
	_, ok, _ := tab.BeginPop(g, topic, 0)
	require.False(t, ok)
	require.True(t, tab.Commit(g, topic, 0, 5))
	off, ok, reset := tab.BeginPop(g, topic, 0)
	require.True(t, ok)
	require.False(t, reset)
	require.EqualValues(t, 5, off)
	tab.Reset(g, topic, 0, 2)
	require.False(t, tab.Commit(g, topic, 0, 6))
	off, _, reset = tab.BeginPop(g, topic, 0)
	require.True(t, reset)
	require.EqualValues(t, 2, off)
	require.EqualValues(t, 2, tab.PullOffset(g, topic, 0))
	require.True(t, tab.Commit(g, topic, 0, 3))
	_, _, reset = tab.BeginPop(g, topic, 0)
	require.False(t, reset)
}
