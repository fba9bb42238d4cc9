package remoting

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// named is an Exchange that is only told from others.
type named struct{ id int }

func (*named) AppendFrame(dst []byte, _ int32) []byte { return dst }
func (*named) Done(*wire.Frame, error)                {}

func TestPendingSkipsWhatIsStillInUse(t *testing.T) {
	var p pending
	poll := &named{1}
	held, ok := p.add(poll, noDeadline)
	require.True(t, ok)
	for range 1000 {
		opaque, ok := p.add(&named{2}, noDeadline)
		require.True(t, ok)
		require.NotEqual(t, held, opaque)
		require.NotNil(t, p.take(opaque))
		require.Nil(t, p.take(opaque), "an answer is taken once")
	}
	assert.Len(t, p.slots, 16, "one long poll does not make the table grow")
	assert.Same(t, poll, p.take(held))
}

func TestPendingNumbersComeRound(t *testing.T) {
	var p pending
	first, _ := p.add(&named{1}, noDeadline)
	p.last = math.MaxInt32 - 1
	seen := map[int32]bool{first: true}
	for range 5 {
		opaque, _ := p.add(&named{2}, noDeadline)
		assert.Positive(t, opaque)
		assert.False(t, seen[opaque], "opaque %d is in use", opaque)
		seen[opaque] = true
	}
}

func TestPendingRefusesAfterClose(t *testing.T) {
	var p pending
	opaque, _ := p.add(&named{1}, noDeadline)
	assert.Len(t, p.close(), 1)
	assert.Nil(t, p.take(opaque))
	_, ok := p.add(&named{2}, noDeadline)
	assert.False(t, ok)
	assert.Zero(t, p.n.Load())
}

func TestPendingAgainstMap(t *testing.T) {
	type entry struct {
		x        Exchange
		deadline int64
	}
	rapid.Check(t, func(t *rapid.T) {
		p := pending{last: rapid.Int32Range(0, math.MaxInt32).Draw(t, "last")}
		want := map[int32]entry{}
		var given []int32
		var now int64
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				x := &named{len(given)}
				d := now + rapid.Int64Range(1, 20).Draw(t, "wait")
				opaque, ok := p.add(x, d)
				require.True(t, ok)
				require.Positive(t, opaque)
				require.NotContains(t, want, opaque)
				want[opaque] = entry{x, d}
				given = append(given, opaque)
			},
			"take": func(t *rapid.T) {
				if len(given) == 0 {
					t.Skip()
				}
				opaque := rapid.SampledFrom(given).Draw(t, "opaque")
				x := p.take(opaque)
				e, ok := want[opaque]
				require.Equal(t, ok, x != nil)
				if ok {
					require.Same(t, e.x, x)
					delete(want, opaque)
				}
			},
			"sweep": func(t *rapid.T) {
				now += rapid.Int64Range(0, 10).Draw(t, "step")
				due := map[Exchange]bool{}
				for opaque, e := range want {
					if e.deadline <= now {
						due[e.x] = true
						delete(want, opaque)
					}
				}
				got := p.overdue(nil, now)
				require.Len(t, got, len(due))
				for _, x := range got {
					require.True(t, due[x])
				}
			},
			"": func(t *rapid.T) { require.EqualValues(t, len(want), p.n.Load()) },
		})
	})
}
