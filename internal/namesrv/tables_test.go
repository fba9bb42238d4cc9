package namesrv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakePeer is a connection that only has an identity.
type fakePeer struct{ closed int }

func (p *fakePeer) Close(error) { p.closed++ }

// topicSet makes configurations with 4 queues and permission 6.
func topicSet(names ...string) map[string]wire.TopicConfig {
	m := map[string]wire.TopicConfig{}
	for _, n := range names {
		m[n] = wire.TopicConfig{Name: n, ReadQueues: 4, WriteQueues: 4, Perm: 6}
	}
	return m
}

// report is a registration of a broker of cluster c.
func report(name string, id int64, addr string, topics ...string) *registration {
	return &registration{
		cluster: "c", name: name, id: id, addr: addr, haAddr: addr + "/ha",
		timeout: 2 * time.Minute, version: wire.DataVersion{Counter: 1},
		topics: topicSet(topics...), conn: &fakePeer{}, now: epoch,
	}
}

func mustRegister(t *testing.T, tb *tables, r *registration) {
	t.Helper()
	_, err := tb.register(r)
	require.NoError(t, err)
}

func allTopicNames(tb *tables) []string {
	return tb.topicNames(func(map[string]wire.QueueData) bool { return true })
}

// perm is the permission a topic has on a broker, -1 if the broker lacks it.
func perm(tb *tables, topic, broker string) int32 {
	d, _ := tb.routeData(topic)
	for _, q := range d.Queues {
		if q.BrokerName == broker {
			return q.Perm
		}
	}
	return -1
}

func TestSingleTopicOfAnUnknownBrokerIsRefused(t *testing.T) {
	tb := newTables()
	_, err := tb.register(report("a", 0, "h:1", "T"))
	require.ErrorIs(t, err, errSingleTopic)
	require.Empty(t, tb.clusterInfo().Brokers, "a refusal leaves no trace")
	require.Empty(t, tb.clusterInfo().Clusters)

	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	next := report("a", 0, "h:1", "V")
	next.version.Counter = 2
	mustRegister(t, tb, next)
	require.Equal(t, []string{"T", "U", "V"}, allTopicNames(tb), "topics never go by absence")
}

func TestRegistrationWithoutTopicsIsTaken(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1"))
	require.Contains(t, tb.clusterInfo().Brokers, "a")
}

func TestTopicsChangeOnlyWithTheDataVersion(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	require.Equal(t, 2, tb.wipeWrite("a"))

	mustRegister(t, tb, report("a", 0, "h:1", "T", "U", "V"))
	require.EqualValues(t, wire.PermRead, perm(tb, "T", "a"), "same version: what is known stays")
	require.EqualValues(t, 6, perm(tb, "V", "a"), "same version: what is unknown is taken")

	for i, v := range []wire.DataVersion{{Counter: 2}, {Counter: 2, Timestamp: 1}, {Counter: 2, Timestamp: 1, StateVersion: 1}} {
		tb.wipeWrite("a")
		r := report("a", 0, "h:1", "T", "U")
		r.version = v
		mustRegister(t, tb, r)
		require.EqualValues(t, 6, perm(tb, "T", "a"), "version %d", i)
	}
}

func TestSlaveJoinsButItsTopicsDoNot(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	res, err := tb.register(report("a", 1, "h:2", "X", "Y"))
	require.NoError(t, err)
	require.Equal(t, registered{joined: true, master: "h:1", masterHA: "h:1/ha"}, res)
	require.Equal(t, []string{"T", "U"}, allTopicNames(tb))
	require.Equal(t, map[int64]string{0: "h:1", 1: "h:2"}, tb.member("c", "a").Addrs)

	// The master's topics stay readable through the slave.
	tb.unregister(liveKey{"c", "h:1"}, "a")
	d, ok := tb.routeData("T")
	require.True(t, ok)
	require.Equal(t, map[int64]string{1: "h:2"}, d.Brokers[0].Addrs)
	res, err = tb.register(report("a", 1, "h:2"))
	require.NoError(t, err)
	require.Equal(t, registered{}, res, "no live master, no address")
}

func TestPrimeSlaveReportsTopics(t *testing.T) {
	tb := newTables()
	yes, no := true, false
	r := report("a", 2, "h:2", "T", "U")
	r.acting = &yes
	mustRegister(t, tb, r)
	require.EqualValues(t, wire.PermRead, perm(tb, "T", "a"), "an acting master takes no writes")

	r = report("a", 1, "h:1", "V", "W")
	r.acting = &no
	mustRegister(t, tb, r)
	require.EqualValues(t, 6, perm(tb, "V", "a"), "not acting: the permission stays")

	r = report("a", 3, "h:3", "X", "Y")
	r.acting = &no
	mustRegister(t, tb, r)
	require.EqualValues(t, -1, perm(tb, "X", "a"), "not the lowest id")
}

func TestLossOfAMasterWithActingSlavesStopsWrites(t *testing.T) {
	tb := newTables()
	yes := true
	for id, addr := range []string{"h:0", "h:1"} {
		r := report("a", int64(id), addr, "T", "U")
		r.acting = &yes
		mustRegister(t, tb, r)
	}
	require.EqualValues(t, 6, perm(tb, "T", "a"))
	tb.unregister(liveKey{"c", "h:0"}, "a")
	require.EqualValues(t, wire.PermRead, perm(tb, "T", "a"))
}

func TestPromotedSlaveLeavesItsOldID(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	mustRegister(t, tb, report("a", 1, "h:2"))
	tb.unregister(liveKey{"c", "h:1"}, "a")
	mustRegister(t, tb, report("a", 0, "h:2", "T", "U"))
	require.Equal(t, map[int64]string{0: "h:2"}, tb.member("c", "a").Addrs)
}

func TestLaterElectedHolderOfAnIDWins(t *testing.T) {
	tb := newTables()
	r := report("a", 0, "h:1", "T", "U")
	r.version.StateVersion = 5
	mustRegister(t, tb, r)

	old := report("a", 0, "h:2", "X", "Y")
	old.version.StateVersion = 4
	mustRegister(t, tb, old) // ignored, not refused
	require.Equal(t, map[int64]string{0: "h:1"}, tb.member("c", "a").Addrs)
	require.Equal(t, []string{"T", "U"}, allTopicNames(tb))

	newer := report("a", 0, "h:2", "T", "U")
	newer.version.StateVersion = 6
	mustRegister(t, tb, newer)
	require.Equal(t, map[int64]string{0: "h:2"}, tb.member("c", "a").Addrs)
	// The loser's end must not take the winner along.
	tb.unregister(liveKey{"c", "h:1"}, "a")
	require.Equal(t, map[int64]string{0: "h:2"}, tb.member("c", "a").Addrs)
}

func TestExpiryByEachBrokersOwnTimeout(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	quick := report("b", 0, "h:2", "T", "V")
	quick.timeout = 10 * time.Second
	mustRegister(t, tb, quick)

	require.Empty(t, tb.expire(epoch.Add(10*time.Second)), "exactly the limit is not over it")
	out := tb.expire(epoch.Add(11 * time.Second))
	require.Len(t, out, 1)
	require.Equal(t, "b", out[0].name)
	require.Same(t, quick.conn, out[0].conn)
	require.Equal(t, []string{"T", "U"}, allTopicNames(tb), "V had only b")
	require.EqualValues(t, -1, perm(tb, "T", "b"))

	tb.touch(liveKey{"c", "h:1"}, epoch.Add(time.Minute))
	require.Empty(t, tb.expire(epoch.Add(3*time.Minute)))
	require.Len(t, tb.expire(epoch.Add(3*time.Minute+time.Second)), 1)
	require.Empty(t, allTopicNames(tb))
	require.Empty(t, tb.clusterInfo().Clusters)
	tb.touch(liveKey{"c", "h:1"}, epoch) // unknown: nothing happens
	require.Empty(t, tb.live)
}

func TestLatestConnectionCounts(t *testing.T) {
	tb := newTables()
	first, second := report("a", 0, "h:1", "T", "U"), report("a", 0, "h:1", "T", "U")
	mustRegister(t, tb, first)
	mustRegister(t, tb, second)
	require.Empty(t, tb.disconnected(first.conn), "the broker reconnected before")
	require.Len(t, tb.disconnected(second.conn), 1)
	require.Empty(t, allTopicNames(tb))
}

// TestRestartedBrokerBeforeTheEndOfItsOldConnection: the new process registers
// before the server has seen that the old one is gone.
func TestRestartedBrokerBeforeTheEndOfItsOldConnection(t *testing.T) {
	tb := newTables()
	old := report("a", 0, "h:1", wire.TopicSelfTest, wire.TopicDefault, "T")
	mustRegister(t, tb, old)
	mustRegister(t, tb, report("b", 0, "h:2", wire.TopicDefault, "U"))

	part := report("a", 0, "h:1", "T", "V") // changed topics alone tell nothing of the others
	mustRegister(t, tb, part)
	require.EqualValues(t, 6, perm(tb, wire.TopicDefault, "a"))

	next := report("a", 0, "h:1", wire.TopicSelfTest, "T", "V")
	mustRegister(t, tb, next)
	require.EqualValues(t, -1, perm(tb, wire.TopicDefault, "a"))
	require.EqualValues(t, 6, perm(tb, wire.TopicDefault, "b"), "another broker's is not touched")
	require.Empty(t, tb.disconnected(old.conn))
	require.EqualValues(t, 6, perm(tb, "T", "a"))

	same := report("a", 0, "h:1", wire.TopicSelfTest, "T")
	same.conn = next.conn
	mustRegister(t, tb, same)
	require.EqualValues(t, 6, perm(tb, "V", "a"), "over the same connection absence means nothing, as in Apache")
}

func TestDeleteTopicInOneClusterOrAll(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	other := report("b", 0, "h:2", "T", "U")
	other.cluster = "d"
	mustRegister(t, tb, other)
	require.Equal(t, []string{"T", "U"}, tb.clusterTopics("d"))
	tb.deleteTopic("T", "d")
	require.Equal(t, []string{"U"}, tb.clusterTopics("d"))
	require.EqualValues(t, 6, perm(tb, "T", "a"))
	tb.deleteTopic("U", "")
	require.Equal(t, []string{"T"}, allTopicNames(tb))
	require.Empty(t, tb.clusterTopics("d"))
}

func TestAddQueuesOfKnownBrokers(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	n := tb.addQueues("N", []wire.QueueData{{BrokerName: "x", Perm: 6}, {BrokerName: "a", ReadQueues: 2, WriteQueues: 2, Perm: 6}})
	require.Equal(t, 1, n)
	d, ok := tb.routeData("N")
	require.True(t, ok)
	require.Equal(t, []wire.QueueData{{BrokerName: "a", ReadQueues: 2, WriteQueues: 2, Perm: 6}}, d.Queues)
}

func TestBrokerThatMovesToAnotherCluster(t *testing.T) {
	tb := newTables()
	mustRegister(t, tb, report("a", 0, "h:1", "T", "U"))
	r := report("a", 0, "h:1", "T", "U")
	r.cluster = "d"
	mustRegister(t, tb, r)
	require.Equal(t, map[string][]string{"d": {"a"}}, tb.clusterInfo().Clusters)
	// The entry under the old cluster expires without harm.
	tb.unregister(liveKey{"c", "h:1"}, "a")
	require.Contains(t, tb.clusterInfo().Brokers, "a")
}

// TestEncodedRouteFollowsEveryChange walks through all that a route shows and
// looks at the cached answer after each step.
func TestEncodedRouteFollowsEveryChange(t *testing.T) {
	tb := newTables()
	look := func() string { return string(tb.route("T", true)) }
	require.Empty(t, look())
	last := ""
	step := func(what string, f func()) {
		t.Helper()
		f()
		now := look()
		require.NotEqual(t, last, now, what)
		require.Equal(t, now, look(), "cached")
		require.Equal(t, now == "", len(tb.route("T", false)) == 0)
		last = now
	}
	step("registration", func() { mustRegister(t, tb, report("a", 0, "h:1", "T", "U")) })
	step("slave", func() { mustRegister(t, tb, report("a", 1, "h:2")) })
	step("new address", func() { mustRegister(t, tb, report("a", 1, "h:3")) })
	step("second broker", func() { mustRegister(t, tb, report("b", 0, "h:4", "T", "U")) })
	step("zone", func() { r := report("b", 0, "h:4", "T", "U"); r.zone = "z"; mustRegister(t, tb, r) })
	step("acting", func() { r := report("b", 0, "h:4", "T", "U"); yes := true; r.acting = &yes; mustRegister(t, tb, r) })
	step("topic change", func() {
		r := report("b", 0, "h:4", "T")
		r.version.Counter++
		r.topics["T"] = wire.TopicConfig{Name: "T", ReadQueues: 9, WriteQueues: 9, Perm: 6}
		mustRegister(t, tb, r)
	})
	step("wipe", func() { tb.wipeWrite("a") })
	step("add", func() { tb.addWrite("a") })
	step("order", func() { tb.setOrder(map[string]string{"T": "a:4"}) })
	step("queues", func() { tb.addQueues("T", []wire.QueueData{{BrokerName: "a", ReadQueues: 1, WriteQueues: 1, Perm: 6}}) })
	step("slave left", func() { tb.unregister(liveKey{"c", "h:3"}, "a") })
	step("broker left", func() { tb.unregister(liveKey{"c", "h:4"}, "b") })
	step("delete", func() { tb.deleteTopic("T", "") })
	require.Empty(t, last)
}

func TestZoneRoute(t *testing.T) {
	tb := newTables()
	for name, zone := range map[string]string{"a": "z1", "b": "z2", "n": ""} {
		r := report(name, 0, name+":1", "T", "U")
		r.zone = zone
		mustRegister(t, tb, r)
	}
	d, err := wire.DecodeRouteData(tb.zoneRoute("T", "z1"))
	require.NoError(t, err)
	var brokers, queues []string
	for _, b := range d.Brokers {
		brokers = append(brokers, b.BrokerName)
	}
	for _, q := range d.Queues {
		queues = append(queues, q.BrokerName)
	}
	require.Equal(t, []string{"a", "n"}, brokers)
	require.Equal(t, brokers, queues)
	require.Nil(t, tb.zoneRoute("absent", "z1"))
	all, ok := tb.routeData("T")
	require.True(t, ok)
	require.Len(t, all.Brokers, 3, "the filter works on a copy")
}
