package client

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// register is what a broker knows of its clients: who is here by heartbeats and
// unregistering, in the order in which it takes effect.
type register struct {
	mu     sync.Mutex // guards all below
	groups []string   // here now
	left   []string   // unregistered, one entry a request
	slow   time.Duration
}

// registerOf makes a broker keep a register. A heartbeat takes effect, and is
// answered, when slow has passed: as if it had waited for a thread.
func registerOf(t *testing.T, s *server) *register {
	g := &register{}
	s.on(wire.ReqHeartBeat, func(q *remoting.Request) {
		hb, err := wire.DecodeHeartbeat(q.Frame().Body)
		if err != nil {
			t.Error(err)
		}
		g.mu.Lock()
		slow := g.slow
		g.mu.Unlock()
		reply := q.Replier()
		time.AfterFunc(slow, func() {
			g.mu.Lock()
			for _, c := range hb.Consumers {
				if !slices.Contains(g.groups, c.Group) {
					g.groups = append(g.groups, c.Group)
				}
			}
			for _, p := range hb.Producers {
				if !slices.Contains(g.groups, p) {
					g.groups = append(g.groups, p)
				}
			}
			g.mu.Unlock()
			reply.Reply(wire.RespSuccess, "", nil, nil)
		})
	})
	s.on(wire.ReqUnregisterClient, func(q *remoting.Request) {
		var h wire.UnregisterClientRequest
		if err := h.DecodeExt(q.Frame()); err != nil {
			t.Error(err)
		}
		name := h.ConsumerGroup + h.ProducerGroup
		g.mu.Lock()
		g.groups = slices.DeleteFunc(g.groups, func(x string) bool { return x == name })
		g.left = append(g.left, name)
		g.mu.Unlock()
		q.Reply(wire.RespSuccess, "", nil, nil)
	})
	return g
}

func (g *register) delay(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slow = d
}

func (g *register) here() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(slices.Values(g.groups))
}

func (g *register) gone() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.left)
}

// joined is a runtime with consumer group "g" that the broker knows.
func joined(t *testing.T, f Consumer) (*Runtime, *register, *server) {
	c := newCluster(t)
	c.nameServer("ns:1").know("a", routeOf(1, "b1=b1:0"))
	b := c.broker("b1:0")
	reg := registerOf(t, b)
	r := c.runtime(Config{NameServers: []string{"ns:1"}})
	_, err := r.Route(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, r.RegisterConsumer(f))
	synctest.Wait()
	time.Sleep(time.Millisecond)
	synctest.Wait()
	require.Equal(t, []string{"g"}, reg.here())
	return r, reg, b
}

// A broker may take a heartbeat later than a request that came after it. The
// group that has left must not come back with it.
func TestHeartbeatUnderWayDoesNotBringAGroupBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reg, _ := joined(t, &fakeConsumer{group: "g"})
		reg.delay(200 * time.Millisecond)
		go func() { _ = r.HeartbeatNow(context.Background()) }()
		synctest.Wait()
		require.NoError(t, r.UnregisterConsumer(t.Context(), "g"))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, reg.here())
		require.Equal(t, []string{"g"}, reg.gone())
	})
}

// gated is a consumer whose heartbeat data takes time.
type gated struct {
	fakeConsumer
	gate chan struct{}
}

func (g *gated) HeartbeatData() wire.ConsumerData {
	<-g.gate
	return g.fakeConsumer.HeartbeatData()
}

// The same with a heartbeat that has been put together and is not sent yet.
func TestHeartbeatInTheMakingDoesNotBringAGroupBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &gated{fakeConsumer{group: "g"}, make(chan struct{}, 1)}
		f.gate <- struct{}{}
		r, reg, _ := joined(t, f)
		go func() { _ = r.HeartbeatNow(context.Background()) }()
		synctest.Wait() // it has looked who is here
		left := make(chan error, 1)
		go func() { left <- r.UnregisterConsumer(context.Background(), "g") }()
		synctest.Wait()
		f.gate <- struct{}{}
		require.NoError(t, <-left)
		synctest.Wait()
		require.Empty(t, reg.here())
	})
}

// A broker that has not answered the last heartbeat may have taken it: it is
// told, but nobody waits for it again.
func TestLeaveWithoutAnAnsweredHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reg, b := joined(t, &fakeConsumer{group: "g"})
		reg.delay(time.Hour)
		require.ErrorIs(t, r.HeartbeatNow(t.Context()), ErrTimeout)
		require.NoError(t, b.connections()[0].Err())
		began := time.Now()
		require.NoError(t, r.UnregisterConsumer(t.Context(), "g"))
		require.Zero(t, time.Since(began))
		synctest.Wait()
		require.Equal(t, []string{"g"}, reg.gone())
		require.Empty(t, reg.here())
	})
}

// Whoever joins in the name of one who is just leaving stays.
func TestJoinWhileLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reg, _ := joined(t, &fakeConsumer{group: "g"})
		reg.delay(200 * time.Millisecond)
		go func() { _ = r.HeartbeatNow(context.Background()) }()
		synctest.Wait()
		left := make(chan error, 1)
		go func() { left <- r.UnregisterConsumer(context.Background(), "g") }()
		synctest.Wait()
		require.NoError(t, r.RegisterConsumer(&fakeConsumer{group: "g"}))
		require.NoError(t, <-left)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"g"}, reg.here())
	})
}

// The wait for a heartbeat under way ends with the context of who leaves.
func TestLeaveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reg, _ := joined(t, &fakeConsumer{group: "g"})
		reg.delay(time.Hour)
		go func() { _ = r.HeartbeatNow(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := r.UnregisterConsumer(ctx, "g")
		require.ErrorIs(t, err, ErrTimeout)
		require.ErrorContains(t, err, "b1:0")
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		synctest.Wait()
		require.Equal(t, []string{"g"}, reg.gone(), "told on the way out all the same")
	})
}

// Each group that comes is announced once, whatever else causes heartbeats at
// that moment.
func TestNewsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reg, b := joined(t, &fakeConsumer{group: "g"})
		before := b.count(wire.ReqHeartBeat)
		reg.delay(100 * time.Millisecond)
		r.RegisterProducer("p1", ProducerHooks{})
		synctest.Wait() // p1 is being told of
		r.RegisterProducer("p2", ProducerHooks{})
		r.RegisterProducer("p2", ProducerHooks{}) // a second one of the group is no news
		for range 3 {
			r.beats.kick()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.Equal(t, []string{"g", "p1", "p2"}, reg.here())
		require.Equal(t, before+2, b.count(wire.ReqHeartBeat))
	})
}
