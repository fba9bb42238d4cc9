package broker

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func withNameServers(addrs ...string) func(*Config) { return func(c *Config) { c.NameServers = addrs } }

// closedAddr is an address where nobody listens.
func closedAddr(tb testing.TB) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer ln.Close()
	return ln.Addr().String()
}

func TestRegisteredWithEveryNameServerWhenReady(t *testing.T) {
	ns1, ns2 := startNameServer(t, "127.0.0.1:0"), startNameServer(t, "127.0.0.1:0")
	b := startBroker(t, withNameServers(ns1.addr+";"+ns2.addr, closedAddr(t)))
	for _, ns := range []*nameServerStub{ns1, ns2} {
		require.NotEmpty(t, ns.all())
		r := ns.all()[0]
		require.EqualValues(t, wire.ReqRegisterBroker, r.code)
		require.Equal(t, b.Addr(), r.header.BrokerAddr)
		require.Equal(t, "broker-a", r.header.BrokerName)
		require.Equal(t, "DefaultCluster", r.header.ClusterName)
		require.NotEmpty(t, r.header.HAServerAddr)
		require.NotNil(t, r.header.EnableActingMaster)
		require.Greater(t, len(r.body.Topics), 1, "name servers of 5.x refuse a first registration with one topic")
		require.EqualValues(t, 7, r.body.Topics["TBW102"].Perm)
	}
}

func TestTopicChangesAreRegisteredAtOnce(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	b := startBroker(t, withNameServers(ns.addr, closedAddr(t)))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	r := ns.last() // CreateTopic has waited for it
	require.Len(t, r.body.Topics, 1)
	require.EqualValues(t, 4, r.body.Topics["T"].WriteQueues)
	v := r.body.Version

	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	require.Equal(t, v, ns.last().body.Version, "nothing changed, nothing sent")

	for len(ns.came) > 0 {
		<-ns.came
	}
	dial(t, b).must(wire.ReqSendMessageV2, sendHeader("Auto", 0), []byte("x"))
	r = ns.next(t)
	require.Contains(t, r.body.Topics, "Auto")
	require.Greater(t, r.body.Version.Counter, v.Counter)
}

func TestRegistersPeriodicallyWithTheWholeTable(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	c := clock.NewManual(testStart)
	startBroker(t, withClock(c), withNameServers(ns.addr))
	n := len(ns.all())
	c.Advance(29 * time.Second)
	require.Len(t, ns.all(), n)
	c.Advance(time.Second)
	ns.next(t)
	advanceUntil(t, c, 0, func() bool { return len(ns.all()) > n })
	require.Contains(t, ns.last().body.Topics, "TBW102")
}

// TestC09_RegistersAgainAfterANameServerRestart is the broker's part of the case.
func TestC09_RegistersAgainAfterANameServerRestart(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), withNameServers(ns.addr))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	idle := waiting(t, c)
	ns.stop()
	require.NoError(t, b.CreateTopic(t.Context(), "WhileAway", 4))

	idle()
	again := startNameServer(t, ns.addr)
	for len(again.all()) == 0 {
		c.Advance(time.Second)
		require.LessOrEqual(t, c.Now().Sub(testStart), 30*time.Second, "within the interval")
		idle()
	}
	r := again.all()[0]
	for _, topic := range []string{"T", "WhileAway", "TBW102"} {
		require.Contains(t, r.body.Topics, topic)
	}
}

// waiting returns a function that waits until all who go by the clock wait
// for it again, as they do now.
func waiting(tb testing.TB, c *clock.Manual) func() {
	n := c.Pending()
	return func() {
		require.Eventually(tb, func() bool { return c.Pending() == n }, 30*time.Second, time.Millisecond)
	}
}

// TestC09_TemplateGoesWithAutoCreation: a broker restarted with auto-creation
// off takes TBW102 out of its registration, under a new data version.
func TestC09_TemplateGoesWithAutoCreation(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	cfg := testConfig(withNameServers(ns.addr))
	b := startWith(t, cfg)
	before := ns.last()
	require.Contains(t, before.body.Topics, "TBW102")
	require.NoError(t, b.Close(t.Context()))
	require.EqualValues(t, wire.ReqUnregisterBroker, ns.last().code)

	cfg.AutoCreateTopic = false
	startWith(t, cfg)
	after := ns.last()
	require.NotContains(t, after.body.Topics, "TBW102")
	require.NotEqual(t, before.body.Version, after.body.Version)
}

func TestRefusedRegistrationIsRepeated(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	ns.answer = wire.RespSystemError
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), withNameServers(ns.addr))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1), "a name server that refuses holds nobody up")
	ns.mu.Lock()
	ns.answer = wire.RespSuccess
	ns.mu.Unlock()
	n := len(ns.all())
	advanceUntil(t, c, time.Second, func() bool { return len(ns.all()) > n })
	require.Greater(t, len(ns.last().body.Topics), 1, "whole")
}

func TestOrderTopicsComeFromTheNameServer(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	table := wire.KVTable{Table: map[string]string{"T": "broker-a:4"}}
	ns.body = table.AppendJSON(nil)
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), withNameServers(ns.addr))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
	require.NoError(t, b.CreateTopic(t.Context(), "U", 4))
	require.Eventually(t, func() bool { cfg, _ := b.Topic("T"); return cfg.Order }, 30*time.Second, time.Millisecond)
	cfg, _ := b.Topic("U")
	require.False(t, cfg.Order)
}

func TestBrokerPermissionLimitsItsTopics(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	startBroker(t, withNameServers(ns.addr), func(c *Config) { c.Permission = wire.PermRead })
	for name, cfg := range ns.last().body.Topics {
		require.Zero(t, cfg.Perm&wire.PermWrite, name)
	}
}

func TestKilledBrokerDoesNotUnregister(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	b := startBroker(t, withNameServers(ns.addr))
	b.Kill()
	for _, r := range ns.all() {
		require.EqualValues(t, wire.ReqRegisterBroker, r.code)
	}
}
