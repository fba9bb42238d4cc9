package trans

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// copies is how many half messages are copies of others.
func (r *rig) copies() (n int) {
	for _, rec := range r.records(wire.TopicHalf) {
		if rec.Properties.Text(wire.PropTranPreparedOffset) != "" {
			n++
		}
	}
	return n
}

// TestYoungHalfMessagesStay where they are, with the store's own idea of how
// large its files are.
func TestYoungHalfMessagesStay(t *testing.T) {
	r := newRig(t, nil, func(c *store.Config) { c.CommitLogFileSize = 0 })
	r.half("a")
	for range 3 {
		r.flush()
	}
	require.Zero(t, r.copies())
	require.Equal(t, 1, r.s.Undecided())
}

// TestCopiesAreOneTransaction also for a process that reads all of them, because
// the offsets that are on disk are old.
func TestCopiesAreOneTransaction(t *testing.T) {
	r := newRig(t, nil, func(c *store.Config) { c.CommitLogFileSize = 4 << 10 })
	r.half("a", wire.PropCheckImmunitySeconds, "36000")
	for range 3 {
		for i := range 30 {
			r.rollback(r.half(name(i)))
		}
		r.flush()
		r.settle()
	}
	require.GreaterOrEqual(t, r.copies(), 2)
	require.Equal(t, 1, r.s.Undecided())

	r.restart() // nothing was saved
	r.settle()
	require.Equal(t, 1, r.s.Undecided())
	r.pass(10 * time.Hour)
	q := r.taken()
	require.Equal(t, []string{"a"}, ids(q))
	r.commit(requestOf(q[0]))
	require.Zero(t, r.s.Undecided())
	require.Equal(t, []string{"a"}, r.bodies("T"))
	require.Empty(t, r.s.byOrigin)
}

// TestCopyThatIsNotTheNewestIsPassed: it was copied before it was seen.
func TestCopyThatIsNotTheNewestIsPassed(t *testing.T) {
	r := newRig(t, nil)
	r.half("a", wire.PropCheckImmunitySeconds, "36000")
	r.settle()
	r.s.mu.Lock()
	e := r.s.head
	read := r.s.read
	r.s.move(e, read+1, e.phy, e.size)
	r.s.mu.Unlock()
	r.s.pass(&half{Record: wire.Record{QueueOffset: read}, prepared: 0})
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	require.Len(t, r.s.byOffset, 1)
	require.Equal(t, read+1, e.offset)
}
