package groups_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/groups"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func manual() *clock.Manual { return clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) }

func TestAutoCreation(t *testing.T) {
	table := groups.New(manual(), true)
	g, created := table.Get([]byte("CG"))
	require.True(t, created)
	require.Equal(t, wire.NewSubscriptionGroup("CG"), *g)
	again, created := table.Get([]byte("CG"))
	require.False(t, created)
	require.Same(t, g, again)
	bad, created := table.Get([]byte("no spaces"))
	require.Nil(t, bad)
	require.False(t, created)
}

func TestWithoutAutoCreationOnlySystemGroupsAppear(t *testing.T) {
	table := groups.New(manual(), false)
	g, created := table.Get([]byte("CG"))
	require.Nil(t, g)
	require.False(t, created)
	g, created = table.Get([]byte("CID_RMQ_SYS_X"))
	require.NotNil(t, g)
	require.True(t, created)
	require.NotNil(t, table.Lookup("TOOLS_CONSUMER"))
}

func TestFileRoundTrip(t *testing.T) {
	c := manual()
	table := groups.New(c, true)
	g := wire.NewSubscriptionGroup("CG")
	g.Attributes = map[string]string{"k": "v"}
	g.RetryMaxTimes = 3
	g.ConsumeBroadcastEnable = false
	table.Put(g)
	require.True(t, table.Delete("SELF_TEST_C_GROUP"))
	require.False(t, table.Delete("SELF_TEST_C_GROUP"))

	again := groups.New(c, true)
	require.NoError(t, again.Decode(table.Encode()))
	require.Equal(t, g, *again.Lookup("CG"))
	require.NotNil(t, again.Lookup("SELF_TEST_C_GROUP"), "predefined")
	require.Equal(t, table.Snapshot().Version, again.Snapshot().Version)
	require.Error(t, again.Decode([]byte("[")))
}

func TestGetDoesNotAllocate(t *testing.T) {
	table := groups.New(manual(), true)
	name := []byte("CG")
	table.Get(name)
	require.Zero(t, testing.AllocsPerRun(100, func() { table.Get(name) }))
}
