package trans

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// TestC25_NoChecksForFinishedTransactions: 2,000 transactions a second, half of
// them committed or rolled back at once, some just before they are due, the
// others unknown for 10 s. 20 s of it, which is twice as long as anything is
// remembered.
func TestC25_NoChecksForFinishedTransactions(t *testing.T) {
	const (
		steps = 2000
		step  = 10 * time.Millisecond
	)
	perStep := 20
	if raceEnabled {
		perStep = 4
	}
	r := newRig(t, nil)
	type transaction struct {
		req    *wire.EndTransactionRequest
		closed bool
		checks int
	}
	all := map[string]*transaction{}
	justBefore := map[int][]*transaction{} // by step, those with an age of 5.99 s
	last := map[int][]*transaction{}       // by step, those with an age of 10 s
	committed := 0
	end := func(x *transaction, what int32) {
		x.closed = true
		if what == wire.SysTranCommit {
			committed++
		}
		require.Equal(t, ended{}, r.end(x.req, what))
	}
	for i := range steps + 1001 {
		for k := 0; k < perStep && i < steps; k++ {
			id := name(len(all))
			x := &transaction{req: r.half(id)}
			all[id] = x
			switch {
			case k%4 == 0:
				end(x, wire.SysTranCommit)
			case k%4 == 2:
				end(x, wire.SysTranRollback)
			case k == 1:
				justBefore[i+599] = append(justBefore[i+599], x)
			default:
				last[i+1000] = append(last[i+1000], x)
			}
		}
		for _, x := range justBefore[i] {
			end(x, wire.SysTranCommit)
		}
		for _, x := range last[i] {
			require.Equal(t, 1, x.checks, "every unknown one is checked")
			end(x, wire.SysTranCommit)
		}
		delete(justBefore, i)
		delete(last, i)
		r.clock.Advance(step)
		r.settle()
		for _, q := range r.taken() {
			x := all[q.Header.MsgID]
			x.checks++
			require.False(t, x.closed, "%s was finished", q.Header.MsgID)
			r.reply(q, 0)
		}
	}
	require.Zero(t, r.s.Undecided())
	r.pass(time.Hour)
	require.Empty(t, r.taken())
	require.EqualValues(t, committed, r.store.MaxOffset("T", 0))
	require.Empty(t, r.s.byOrigin)
	require.Empty(t, r.s.groups)
	require.Empty(t, r.s.done)
	require.LessOrEqual(t, len(r.s.ops), 1, "memory is given back")
}
