package client

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// beatsOf makes a broker keep the heartbeats it gets.
func beatsOf(t *testing.T, s *server) func() []wire.Heartbeat {
	var mu sync.Mutex
	var got []wire.Heartbeat
	s.on(wire.ReqHeartBeat, func(q *remoting.Request) {
		hb, err := wire.DecodeHeartbeat(q.Frame().Body)
		assert.NoError(t, err)
		mu.Lock()
		got = append(got, hb)
		mu.Unlock()
		q.Reply(wire.RespSuccess, "", nil, nil)
	})
	return func() []wire.Heartbeat {
		mu.Lock()
		defer mu.Unlock()
		return append([]wire.Heartbeat(nil), got...)
	}
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(1, "b1=b1:0,b1:1"))
		master, replica := c.broker("b1:0"), c.broker("b1:1")
		beats := beatsOf(t, master)
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)

		require.NoError(t, r.HeartbeatNow(t.Context()))
		synctest.Wait()
		require.Empty(t, beats(), "nobody is here to tell of")

		unregister := r.RegisterProducer("p", ProducerHooks{})
		synctest.Wait()
		require.Len(t, beats(), 1)
		assert.Equal(t, wire.Heartbeat{ClientID: r.ClientID(), Producers: []string{"p"}, Consumers: beats()[0].Consumers}, beats()[0])
		assert.Empty(t, beats()[0].Consumers)
		require.Zero(t, replica.count(wire.ReqHeartBeat), "replicas only serve consumers")

		require.NoError(t, r.RegisterConsumer(&fakeConsumer{group: "g", topics: []string{"a"}}))
		synctest.Wait()
		require.Len(t, beats(), 2)
		assert.Equal(t, "g", beats()[1].Consumers[0].Group)
		require.Equal(t, 1, replica.count(wire.ReqHeartBeat))

		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		require.Len(t, beats(), 12, "one each 30 s")

		require.NoError(t, unregister(t.Context()))
		require.NoError(t, unregister(t.Context()), "twice does no harm")
		require.Equal(t, 1, master.count(wire.ReqUnregisterClient))
		require.NoError(t, r.UnregisterConsumer(t.Context(), "g"))
		require.Equal(t, 2, master.count(wire.ReqUnregisterClient))
		time.Sleep(5 * time.Minute)
		require.Len(t, beats(), 12, "nobody is left")
	})
}

// A broker knows a client by its connection: whoever has a new one says who is
// here, without waiting for the next period.
func TestHeartbeatOverANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1").know("a", routeOf(1, "b1=b1:0"))
		b := c.broker("b1:0")
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		require.NoError(t, r.RegisterConsumer(&fakeConsumer{group: "g"}))
		synctest.Wait()
		require.Equal(t, 1, b.count(wire.ReqHeartBeat))

		b.connections()[0].Close(nil)
		synctest.Wait()
		require.Equal(t, 2, b.count(wire.ReqHeartBeat), "the connection was cut")

		b.stop()
		synctest.Wait()
		b = c.broker("b1:0") // restarted
		time.Sleep(5 * time.Second)
		_, err = r.Conn(t.Context(), "b1:0") // as a pull would
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, b.count(wire.ReqHeartBeat))
		h := r.Health()
		require.Len(t, h, 2)
		assert.True(t, h[0].NameServer)
		assert.Equal(t, "b1:0", h[1].Addr)
		assert.True(t, h[1].Connected)
		assert.True(t, h[1].LastSuccess.After(h[1].LastFailure))
	})
}

func TestHeartbeatToNewBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(1, "b1=b1:0"))
		b1, b2 := c.broker("b1:0"), c.broker("b2:0")
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		r.RegisterProducer("p", ProducerHooks{})
		synctest.Wait()
		ns.know("a", routeOf(1, "b1=b1:0", "b2=b2:0"))
		_, err = r.FetchRoute(t.Context(), "a")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, b1.count(wire.ReqHeartBeat))
		require.Equal(t, 1, b2.count(wire.ReqHeartBeat))
	})
}

func TestDeadBrokerDoesNotDelayHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1").know("a", routeOf(1, "b1=hole:1", "b2=b2:0"))
		c.blackHole("hole:1")
		var at time.Time
		b2 := c.broker("b2:0")
		b2.on(wire.ReqHeartBeat, func(q *remoting.Request) {
			at = time.Now()
			q.Reply(wire.RespSuccess, "", nil, nil)
		})
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		r.RegisterProducer("p", ProducerHooks{})
		synctest.Wait()
		start := time.Now()
		err = r.HeartbeatNow(t.Context())
		require.ErrorIs(t, err, ErrTimeout)
		require.ErrorContains(t, err, "hole:1")
		require.Less(t, at.Sub(start), 10*time.Millisecond)
	})
}

func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1").know("a", routeOf(1, "b1=gone:0", "b2=b2:0"))
		b := c.broker("b2:0")
		b.on(wire.ReqGetConsumerListByGroup, func(q *remoting.Request) {
			if q.Frame().Text("consumerGroup") != "g" {
				q.Reply(wire.RespSystemError, "no consumer for this group", nil, nil)
				return
			}
			list := wire.ConsumerList{IDs: []string{"x", "y"}}
			q.Reply(wire.RespSuccess, "", nil, list.AppendJSON(nil))
		})
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		ids, err := r.Members(t.Context(), "g", "a")
		require.NoError(t, err, "the first broker is down, the second one knows as well")
		require.Equal(t, []string{"x", "y"}, ids)
		ids, err = r.Members(t.Context(), "nobody", "a")
		require.NoError(t, err)
		require.Empty(t, ids)
		_, err = r.Members(t.Context(), "g", "typo")
		require.ErrorIs(t, err, ErrTopicNotFound)
		b.stop()
		_, err = r.Members(t.Context(), "g", "a")
		require.ErrorIs(t, err, ErrConnection)
	})
}

// fakeConsumer is a Consumer that keeps what it is told.
type fakeConsumer struct {
	group  string
	topics []string

	mu      sync.Mutex
	changed int
	reset   map[wire.MessageQueue]int64
	record  []byte
	err     error
}

func (f *fakeConsumer) Group() string    { return f.group }
func (f *fakeConsumer) Topics() []string { return f.topics }
func (f *fakeConsumer) HeartbeatData() wire.ConsumerData {
	return wire.ConsumerData{Group: f.group, ConsumeType: "CONSUME_PASSIVELY", Model: "CLUSTERING", From: "CONSUME_FROM_LAST_OFFSET"}
}

func (f *fakeConsumer) IDsChanged() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed++
}

func (f *fakeConsumer) ResetOffsets(_ context.Context, topic string, offsets map[wire.MessageQueue]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics, f.reset = append(f.topics, topic), offsets
}

func (f *fakeConsumer) Offsets(topic string) map[wire.MessageQueue]int64 {
	return map[wire.MessageQueue]int64{{Topic: topic, Broker: "b1", QueueID: 3}: 7}
}

func (f *fakeConsumer) RunningInfo(_ context.Context, jstack bool) ([]byte, error) {
	if jstack {
		return []byte("stacks"), f.err
	}
	return []byte("info"), f.err
}

func (f *fakeConsumer) ConsumeDirectly(_ context.Context, broker string, record []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record = record
	return []byte("consumed from " + broker), f.err
}
