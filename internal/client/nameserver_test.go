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

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestC03_FirstNameServerIsABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		hole := c.blackHole("hole:9876")
		ns := c.nameServer("ns:9876")
		ns.know("a", routeOf(2, "b1=b1:1"))
		ns.know("b", routeOf(2, "b1=b1:1"))
		r := c.runtime(Config{NameServers: []string{"hole:9876", "ns:9876"}})

		start := time.Now()
		rt, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		require.Len(t, rt.Publish, 2)
		took := time.Since(start)
		require.GreaterOrEqual(t, took, time.Second, "the black hole was to be asked first")
		require.LessOrEqual(t, took, DefaultAttemptTimeout+100*time.Millisecond)

		start = time.Now()
		_, err = r.Route(t.Context(), "b")
		require.NoError(t, err)
		require.Less(t, time.Since(start), 10*time.Millisecond, "the healthy one is asked first now")

		// So it stays, also when the routes are fetched again.
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, hole())
		require.Greater(t, ns.count(wire.ReqGetRouteInfoByTopic), 20)
	})
}

func TestNameServerThatDiesIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns1, ns2 := c.nameServer("ns1:1"), c.nameServer("ns2:1")
		for _, ns := range []*server{ns1, ns2} {
			ns.know("a", routeOf(1, "b1=b1:1"))
			ns.know("b", routeOf(1, "b1=b1:1"))
		}
		r := c.runtime(Config{NameServers: []string{"ns1:1", "ns2:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 0, ns2.count(wire.ReqGetRouteInfoByTopic))
		ns1.stop()
		start := time.Now()
		_, err = r.Route(t.Context(), "b")
		require.NoError(t, err)
		require.Less(t, time.Since(start), 100*time.Millisecond)
		require.Equal(t, 1, ns2.count(wire.ReqGetRouteInfoByTopic))
	})
}

func TestNoNameServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.blackHole("hole:1")
		r := c.runtime(Config{NameServers: []string{"hole:1", "nobody:1"}})
		_, err := r.Route(t.Context(), "a")
		require.ErrorIs(t, err, ErrNameServer)
		require.NotErrorIs(t, err, ErrTopicNotFound)
		require.ErrorIs(t, err, ErrConnection)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var re *RouteError
		require.ErrorAs(t, err, &re)
		require.Equal(t, "a", re.Topic)
		require.Len(t, re.Asked, 2)
		assert.Equal(t, "hole:1", re.Asked[0].Addr)
		assert.Equal(t, DefaultAttemptTimeout, re.Asked[0].Took.Round(100*time.Millisecond))
		require.Error(t, r.Ping(t.Context()))
		require.ErrorIs(t, r.Ping(t.Context()), ErrNameServer)
	})
}

func TestTopicThatNoNameServerKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns1:1")
		c.nameServer("ns2:1")
		r := c.runtime(Config{NameServers: []string{"ns1:1", "ns2:1"}})
		_, err := r.Route(t.Context(), "typo")
		require.ErrorIs(t, err, ErrTopicNotFound)
		require.NotErrorIs(t, err, ErrNameServer)
		var re *RouteError
		require.ErrorAs(t, err, &re)
		require.Len(t, re.Asked, 2, "each one's answer")
		for i, addr := range []string{"ns1:1", "ns2:1"} {
			assert.Equal(t, addr, re.Asked[i].Addr)
			assert.Equal(t, wire.RespTopicNotExist, re.Asked[i].Code)
			assert.Contains(t, re.Asked[i].Remark, "typo")
		}
	})
}

// A name server that was restarted knows nothing until brokers register again.
func TestAnotherNameServerMayKnowBetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("empty:1")
		c.nameServer("ns:1").know("a", routeOf(1, "b1=b1:1"))
		r := c.runtime(Config{NameServers: []string{"empty:1", "ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
	})
}

func TestResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("old:1").know("a", routeOf(1, "b1=b1:1"))
		var mu sync.Mutex
		found, failure, calls := []string{"old:1"}, error(nil), 0
		r := c.runtime(Config{Resolve: func(context.Context) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return found, failure
		}})
		asked := func() int {
			mu.Lock()
			defer mu.Unlock()
			return calls
		}
		resolveTo := func(addrs []string, err error) {
			mu.Lock()
			defer mu.Unlock()
			found, failure = addrs, err
		}
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 1, asked())
		_, err = r.FetchRoute(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 1, asked(), "not before its time")

		// A resolver that fails takes nothing away.
		resolveTo(nil, errors.New("no DNS"))
		time.Sleep(ResolveEvery + time.Second)
		synctest.Wait()
		require.Greater(t, asked(), 1)
		_, err = r.FetchRoute(t.Context(), "a")
		require.NoError(t, err)

		// The servers moved: after a total failure the resolver is asked at once.
		resolveTo([]string{"new:1"}, nil)
		time.Sleep(ResolveEvery + time.Second)
		synctest.Wait()
		c.nameServer("new:1").know("a", routeOf(1, "b1=b1:2"))
		rt, err := r.FetchRoute(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "b1:2", rt.MasterOf("b1"))
	})
}
