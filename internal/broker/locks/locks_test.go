package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/locks"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestLocks(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	table := locks.New(c)
	q0, q1 := wire.MessageQueue{Topic: "T", Broker: "b"}, wire.MessageQueue{Topic: "T", Broker: "b", QueueID: 1}
	both := []wire.MessageQueue{q0, q1}

	require.Equal(t, both, table.Lock("CG", "a", both))
	require.Empty(t, table.Lock("CG", "b", both))
	require.Equal(t, both, table.Lock("Other", "b", both), "groups do not meet")
	require.True(t, table.Locked("CG"))

	c.Advance(40 * time.Second)
	require.Equal(t, []wire.MessageQueue{q0}, table.Lock("CG", "a", []wire.MessageQueue{q0}), "renewed")
	c.Advance(21 * time.Second)
	require.Equal(t, []wire.MessageQueue{q1}, table.Lock("CG", "b", both), "only the lock that was not renewed has expired")

	table.Unlock("CG", "a", both)
	require.Equal(t, both, table.Lock("CG", "b", both), "unlock frees one's own only")
	c.Advance(61 * time.Second)
	require.False(t, table.Locked("CG"))
	table.Unlock("CG", "b", both)
	require.False(t, table.Locked("none"))
}
