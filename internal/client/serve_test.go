package client

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// TestBrokerRequests asks a client what brokers ask.
func TestBrokerRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1").know("a", routeOf(1, "b1=b1:0"))
		b := c.broker("b1:0")
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		f := &fakeConsumer{group: "g"}
		require.NoError(t, r.RegisterConsumer(f))
		require.ErrorIs(t, r.RegisterConsumer(&fakeConsumer{group: "g"}), ErrGroupTaken)
		synctest.Wait()
		conn := b.connections()[0]
		call := func(code int32, ext wire.ExtEncoder, body []byte) *wire.Frame {
			t.Helper()
			a, err := conn.Call(t.Context(), &wire.Command{Code: code, Ext: ext, Body: body})
			require.NoError(t, err)
			return a
		}
		q := wire.MessageQueue{Topic: "a", Broker: "b1", QueueID: 3}

		require.NoError(t, conn.CallOneway(&wire.Command{Code: wire.ReqNotifyConsumerIdsChanged, Ext: &wire.GroupRequest{Group: "g"}}))
		require.NoError(t, conn.CallOneway(&wire.Command{Code: wire.ReqNotifyConsumerIdsChanged, Ext: &wire.GroupRequest{Group: "other"}}))
		synctest.Wait()
		require.Equal(t, 1, f.changed)

		table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{q: 5}}
		reset := &wire.ResetOffsetRequest{Topic: "a", Group: "g", Timestamp: 1, Force: true}
		require.NoError(t, conn.CallOneway(&wire.Command{Code: wire.ReqResetConsumerClientOffset, Ext: reset, Body: table.AppendJSON(nil)}))
		synctest.Wait()
		require.Equal(t, table.Offsets, f.reset)

		a := call(wire.ReqGetConsumerStatusFromClient, &wire.ConsumerStatusRequest{Topic: "a", Group: "g"}, nil)
		require.Equal(t, wire.RespSuccess, a.Code)
		st, err := wire.DecodeConsumerStatus(a.Body)
		require.NoError(t, err)
		require.Equal(t, map[wire.MessageQueue]int64{q: 7}, st.Queues)

		a = call(wire.ReqGetConsumerRunningInfo, &wire.RunningInfoRequest{Group: "g", ClientID: r.ClientID(), JStack: true}, nil)
		require.Equal(t, "stacks", string(a.Body))

		a = call(wire.ReqConsumeMessageDirectly, &wire.ConsumeDirectlyRequest{Group: "g", BrokerName: "b1"}, []byte("record"))
		require.Equal(t, "consumed from b1", string(a.Body))
		require.Equal(t, "record", string(f.record))

		f.err = errors.New("no way")
		a = call(wire.ReqGetConsumerRunningInfo, &wire.RunningInfoRequest{Group: "g", ClientID: r.ClientID()}, nil)
		assert.Equal(t, wire.RespSystemError, a.Code)
		assert.Equal(t, "no way", string(a.Remark))

		a = call(wire.ReqGetConsumerRunningInfo, &wire.RunningInfoRequest{Group: "other", ClientID: "x"}, nil)
		assert.Equal(t, wire.RespSystemError, a.Code)
		assert.Contains(t, string(a.Remark), "other")

		a = call(wire.ReqResetConsumerClientOffset, reset, []byte("{not json"))
		assert.Equal(t, wire.RespSystemError, a.Code)
		a = call(wire.ReqGetConsumerStatusFromClient, nil, nil)
		assert.Equal(t, wire.RespSystemError, a.Code, "a header without its fields")

		a = call(4711, nil, nil)
		assert.Equal(t, wire.RespRequestCodeNotSupported, a.Code)
		a = call(wire.ReqPushReplyMessageToClient, nil, nil)
		assert.Equal(t, wire.RespSystemError, a.Code, "a header without its fields")
	})
}

func TestBrokerRequestsToProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1").know("a", routeOf(1, "b1=b1:0"))
		b := c.broker("b1:0")
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		checks := make(map[string][]byte)
		hooks := func(group string) ProducerHooks {
			return ProducerHooks{
				CheckTransaction: func(_ string, f *wire.Frame) { checks[group] = f.Body },
			}
		}
		r.RegisterProducer("p1", hooks("p1"))
		r.RegisterProducer("p2", hooks("p2"))
		synctest.Wait()
		conn := b.connections()[0]
		rec := wire.AppendRecord(nil, &wire.Record{Topic: []byte("a"), Body: []byte("half"), Properties: wire.AppendProperty(nil, wire.PropProducerGroup, "p2")})
		require.NoError(t, conn.CallOneway(&wire.Command{Code: wire.ReqCheckTransactionState, Body: rec}))
		synctest.Wait()
		require.Equal(t, rec, checks["p2"])
		require.Nil(t, checks["p1"])
	})
}

func TestC10_ConnectionDiesUnderRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1")
		b := c.broker("b1:0")
		b.on(wire.ReqViewMessageByID, func(q *remoting.Request) { q.Replier() }) // never answered
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		errs := make(chan error, 100)
		for range cap(errs) {
			go func() {
				_, err := r.Call(t.Context(), "b1:0", &wire.Command{Code: wire.ReqViewMessageByID})
				errs <- err
			}()
		}
		synctest.Wait()
		conn, err := r.Conn(t.Context(), "b1:0")
		require.NoError(t, err)
		require.Equal(t, 100, conn.Pending())
		require.Len(t, b.connections(), 1)

		b.connections()[0].Close(errors.New("reset"))
		synctest.Wait() // no time passes
		require.Len(t, errs, 100)
		for range cap(errs) {
			err := <-errs
			require.ErrorIs(t, err, ErrConnection)
			require.NotErrorIs(t, err, ErrTimeout)
		}
		require.Zero(t, conn.Pending())

		b.on(wire.ReqViewMessageByID, func(q *remoting.Request) { q.Reply(wire.RespSuccess, "", nil, nil) })
		_, err = r.Call(t.Context(), "b1:0", &wire.Command{Code: wire.ReqViewMessageByID})
		require.NoError(t, err, "the next call reconnects")
	})
}
