package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestC09_NameServerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(4, "b1=b1:1"))
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		var changes []uint64
		r.OnRouteChange(func(_ string, _, after *Route) { changes = append(changes, after.Version) })
		first, err := r.Route(t.Context(), "a")
		require.NoError(t, err)

		ns.stop()
		time.Sleep(5 * time.Minute)
		rt, err := r.Route(t.Context(), "a")
		require.NoError(t, err, "the last route stays while there is no name server")
		require.Same(t, first, rt)

		// It comes back with nothing in it.
		ns = c.nameServer("ns:1")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Positive(t, ns.count(wire.ReqGetRouteInfoByTopic))
		rt, ok := r.CachedRoute("a")
		require.True(t, ok)
		require.Same(t, first, rt)

		// The broker registers again: same route, no news.
		ns.know("a", routeOf(4, "b1=b1:1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		rt, _ = r.CachedRoute("a")
		require.Same(t, first, rt)
		require.Len(t, changes, 1)

		// It moves: within one period everybody knows.
		ns.know("a", routeOf(4, "b1=b1:2"))
		time.Sleep(DefaultRouteRefresh + time.Second)
		synctest.Wait()
		rt, _ = r.CachedRoute("a")
		require.Equal(t, "b1:2", rt.MasterOf("b1"))
		require.Len(t, changes, 2)
		require.Greater(t, rt.Version, first.Version)
	})
}

func TestRouteQueriesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(1, "b1=b1:1"))
		gate := make(chan struct{})
		ns.on(wire.ReqGetRouteInfoByTopic, func(q *remoting.Request) { <-gate; ns.answerRoute(q) })
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, err := r.Route(t.Context(), "a")
				assert.NoError(t, err)
			})
		}
		// One that gives up does not take the answer away from the others.
		ctx, cancel := context.WithCancelCause(t.Context())
		wg.Go(func() {
			_, err := r.Route(ctx, "a")
			assert.ErrorIs(t, err, errGaveUp)
		})
		synctest.Wait()
		cancel(errGaveUp)
		synctest.Wait()
		close(gate)
		wg.Wait()
		require.Equal(t, 1, ns.count(wire.ReqGetRouteInfoByTopic))
	})
}

var errGaveUp = errors.New("gave up")

func TestRefreshRouteIsCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(1, "b1=b1:1"))
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		synctest.Wait()
		ns.know("a", routeOf(2, "b1=b1:1"))
		before := ns.count(wire.ReqGetRouteInfoByTopic)
		start := time.Now()
		for time.Since(start) < time.Second {
			for range 100 {
				r.RefreshRoute("a")
			}
			time.Sleep(time.Millisecond)
		}
		rt, _ := r.CachedRoute("a")
		require.Len(t, rt.Publish, 2)
		asked := ns.count(wire.ReqGetRouteInfoByTopic) - before
		require.GreaterOrEqual(t, asked, 3)
		require.LessOrEqual(t, asked, 6)
	})
}

func TestRouteListenerRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(1, "b1=b1:1"))
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		calls := 0
		remove := r.OnRouteChange(func(topic string, before, after *Route) {
			calls++
			assert.Equal(t, "a", topic)
			assert.Nil(t, before)
			assert.Len(t, after.Readable, 1)
		})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 1, calls, "called before the route is handed out")
		remove()
		ns.know("a", routeOf(2, "b1=b1:1"))
		_, err = r.FetchRoute(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 1, calls)
	})
}

func TestMalformedRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.on(wire.ReqGetRouteInfoByTopic, func(q *remoting.Request) { q.Reply(wire.RespSuccess, "", nil, []byte(`{"brokerDatas":[`)) })
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.ErrorContains(t, err, "route of topic")
		_, ok := r.CachedRoute("a")
		require.False(t, ok)
	})
}

func TestMakeRoute(t *testing.T) {
	const rw = wire.PermRead | wire.PermWrite
	brokers := func(list ...wire.BrokerData) []wire.BrokerData { return list }
	a := wire.BrokerData{BrokerName: "a", Addrs: map[int64]string{0: "a:0", 1: "a:1"}}
	b := wire.BrokerData{BrokerName: "b", Addrs: map[int64]string{0: "b:0"}}
	headless := wire.BrokerData{BrokerName: "h", Addrs: map[int64]string{2: "h:2", 1: "h:1"}}
	q := func(broker string, ids ...int32) (qs []Queue) {
		for _, id := range ids {
			qs = append(qs, Queue{"t", broker, id})
		}
		return qs
	}
	tests := []struct {
		name              string
		data              wire.RouteData
		publish, readable []Queue
	}{
		{"sorted by broker", wire.RouteData{Brokers: brokers(b, a), Queues: []wire.QueueData{
			{BrokerName: "b", ReadQueues: 1, WriteQueues: 2, Perm: rw}, {BrokerName: "a", ReadQueues: 2, WriteQueues: 1, Perm: rw},
		}}, append(q("a", 0), q("b", 0, 1)...), append(q("a", 0, 1), q("b", 0)...)},
		{"permissions", wire.RouteData{Brokers: brokers(a, b), Queues: []wire.QueueData{
			{BrokerName: "a", ReadQueues: 1, WriteQueues: 1, Perm: wire.PermRead}, {BrokerName: "b", ReadQueues: 1, WriteQueues: 1, Perm: wire.PermWrite},
		}}, q("b", 0), q("a", 0)},
		{"no master", wire.RouteData{Brokers: brokers(headless), Queues: []wire.QueueData{
			{BrokerName: "h", ReadQueues: 1, WriteQueues: 1, Perm: rw},
		}}, nil, q("h", 0)},
		{"queue without a broker", wire.RouteData{Brokers: brokers(a), Queues: []wire.QueueData{
			{BrokerName: "gone", ReadQueues: 1, WriteQueues: 1, Perm: rw},
		}}, nil, nil},
		{"broker without an address", wire.RouteData{Brokers: brokers(wire.BrokerData{BrokerName: "a"}), Queues: []wire.QueueData{
			{BrokerName: "a", ReadQueues: 1, WriteQueues: 1, Perm: rw},
		}}, nil, nil},
		{"order configuration", wire.RouteData{OrderTopicConf: "b:2;a:1;junk;c:x;d:-1", Brokers: brokers(a, b), Queues: []wire.QueueData{
			{BrokerName: "a", ReadQueues: 1, WriteQueues: 8, Perm: rw},
		}}, append(q("a", 0), q("b", 0, 1)...), q("a", 0)},
		{"absurd counts", wire.RouteData{Brokers: brokers(a), Queues: []wire.QueueData{
			{BrokerName: "a", ReadQueues: -3, WriteQueues: -1 << 31, Perm: rw},
		}}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rt := makeRoute("t", &tt.data)
			assert.Equal(t, tt.publish, rt.Publish)
			assert.Equal(t, tt.readable, rt.Readable)
		})
	}
	rt := makeRoute("t", &wire.RouteData{Brokers: brokers(a), Queues: []wire.QueueData{{BrokerName: "a", ReadQueues: 1 << 30, Perm: rw}}})
	require.Len(t, rt.Readable, maxQueues)

	h := makeRoute("t", &wire.RouteData{Brokers: brokers(headless, a)})
	assert.Equal(t, "", h.MasterOf("h"))
	assert.Equal(t, "h:1", h.Brokers["h"].Any(0))
	assert.Equal(t, "h:2", h.Brokers["h"].Any(2))
	assert.Equal(t, "a:0", h.Brokers["a"].Any(7))
	assert.Equal(t, "", h.MasterOf("nobody"))
	assert.Equal(t, []string{"a", "h"}, h.BrokerNames())
}

func TestCachedRouteAllocatesNothing(t *testing.T) {
	c := newCluster(t)
	ns := c.nameServer("ns:1")
	ns.know("a", routeOf(1, "b1=b1:1"))
	r := c.runtime(Config{NameServers: []string{"ns:1"}})
	_, err := r.Route(t.Context(), "a")
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = r.CachedRoute("a") }))
}
