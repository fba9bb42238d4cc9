package client

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func pushOf(id string) *wire.PushReplyRequest {
	h := &wire.PushReplyRequest{Group: "g", Topic: "c_REPLY_TOPIC", DefaultTopic: "TBW102", BornHost: "1.2.3.4:5", StoreHost: "1.2.3.4:6"}
	if id != "" {
		h.Properties = string(wire.AppendProperty(nil, wire.PropCorrelationID, id))
	}
	return h
}

// Replies find who waits for them, whichever producer that is; those that
// nobody waits for are answered, too.
func TestReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1").know("a", routeOf(1, "b1=b1:0"))
		b := c.broker("b1:0")
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		r.RegisterProducer("p1", ProducerHooks{})
		r.RegisterProducer("p2", ProducerHooks{})
		synctest.Wait()
		conn := b.connections()[0]
		push := func(h wire.ExtEncoder, body string) <-chan *wire.Frame {
			answer := make(chan *wire.Frame, 1)
			go func() {
				f, err := conn.Call(t.Context(), &wire.Command{Code: wire.ReqPushReplyMessageToClient, Ext: h, Body: []byte(body)})
				if err == nil {
					answer <- f
				}
				close(answer)
			}()
			synctest.Wait()
			return answer
		}
		one, two, three := r.ExpectReply("one"), r.ExpectReply("two"), r.ExpectReply("three")

		second := push(pushOf("two"), "reply to two")
		first := push(pushOf("one"), "reply to one")
		require.Empty(t, first, "the broker is answered when the reply was read")
		got := <-one.C()
		require.Equal(t, "reply to one", string(got.Body))
		require.Equal(t, *pushOf("one"), got.Head)
		require.Equal(t, time.Now(), got.Arrived)
		got.Answer(nil)
		require.Equal(t, wire.RespSuccess, (<-first).Code)
		require.False(t, one.Cancel(), "too late")

		(<-two.C()).Answer(errors.New("not zlib"))
		f := <-second
		require.Equal(t, wire.RespSystemError, f.Code)
		require.Contains(t, string(f.Remark), "not zlib")

		require.True(t, three.Cancel())
		for _, id := range []string{"one", "three", "never"} {
			require.Equal(t, wire.RespSuccess, (<-push(pushOf(id), "x")).Code)
		}
		require.Empty(t, three.C())
		require.Empty(t, r.replies.waiting)

		f = <-push(pushOf(""), "x")
		require.Equal(t, wire.RespSystemError, f.Code)
		require.Contains(t, string(f.Remark), "CORRELATION_ID")
	})
}

// All brokers that may get the reply hear of this client before a request, once.
func TestIntroduce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(1, "b1=b1:0"))
		ns.know("c_REPLY_TOPIC", routeOf(1, "b1=b1:0", "b2=b2:0"))
		b1, b2 := c.broker("b1:0"), c.broker("b2:0")
		gate := make(chan remoting.Replier, 2)
		hold := func(q *remoting.Request) { gate <- q.Replier() }
		b1.on(wire.ReqHeartBeat, hold)
		b2.on(wire.ReqHeartBeat, hold)
		r := c.runtime(Config{NameServers: []string{"ns:1"}, HeartbeatEvery: time.Hour})
		r.Introduce(t.Context(), "a") // not known yet: nothing to do
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		r.RegisterProducer("p", ProducerHooks{})

		introduced := make(chan struct{})
		go func() {
			r.Introduce(t.Context(), "a")
			close(introduced)
		}()
		synctest.Wait()
		require.Len(t, gate, 2)
		(<-gate).Reply(wire.RespSuccess, "", nil, nil)
		synctest.Wait()
		select {
		case <-introduced:
			t.Fatal("a broker does not know yet")
		default:
		}
		(<-gate).Reply(wire.RespSuccess, "", nil, nil)
		<-introduced
		synctest.Wait()
		n, asked := b1.count(wire.ReqHeartBeat)+b2.count(wire.ReqHeartBeat), ns.count(wire.ReqGetRouteInfoByTopic)
		start := time.Now()
		r.Introduce(t.Context(), "a")
		require.Equal(t, n, b1.count(wire.ReqHeartBeat)+b2.count(wire.ReqHeartBeat), "they know")
		require.Equal(t, asked, ns.count(wire.ReqGetRouteInfoByTopic))
		require.Equal(t, start, time.Now())
	})
}

// A broker that is dead is waited for once, and a cluster without a reply topic
// is asked for it once in a while.
func TestIntroduceToTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ns := c.nameServer("ns:1")
		ns.know("a", routeOf(1, "b1=b1:0", "b2=b2:0"))
		b1 := c.broker("b1:0")
		b2 := c.broker("b2:0")
		b2.on(wire.ReqHeartBeat, func(q *remoting.Request) { q.Drop() })
		r := c.runtime(Config{NameServers: []string{"ns:1"}, HeartbeatEvery: time.Hour, RouteRefresh: time.Hour, RequestTimeout: time.Second})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		r.RegisterProducer("p", ProducerHooks{})
		r.Introduce(t.Context(), "a")
		require.Equal(t, 1, b1.count(wire.ReqHeartBeat))
		asked := ns.count(wire.ReqGetRouteInfoByTopic)
		start := time.Now()
		for range 10 {
			r.Introduce(t.Context(), "a")
		}
		require.Equal(t, start, time.Now())
		require.Equal(t, asked, ns.count(wire.ReqGetRouteInfoByTopic))

		time.Sleep(time.Hour)
		ns.know("c_REPLY_TOPIC", routeOf(1, "b1=b1:0"))
		r.Introduce(t.Context(), "a")
		_, ok := r.CachedRoute("c_REPLY_TOPIC")
		require.True(t, ok)
	})
}
