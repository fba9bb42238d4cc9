package broker

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func (p *peer) consumers(group string) []string {
	p.tb.Helper()
	f := p.call(wire.ReqGetConsumerListByGroup, &wire.GroupRequest{Group: group}, nil)
	if f.Code != wire.RespSuccess {
		require.EqualValues(p.tb, wire.RespSystemError, f.Code)
		require.Equal(p.tb, "no consumer for this group, "+group, string(f.Remark))
		return nil
	}
	list, err := wire.DecodeConsumerList(f.Body)
	require.NoError(p.tb, err)
	return list.IDs
}

// notified takes the next request of the broker and checks that it is 40.
func (p *peer) notified(group string) {
	p.tb.Helper()
	f := p.push()
	require.EqualValues(p.tb, wire.ReqNotifyConsumerIdsChanged, f.Code)
	require.True(p.tb, f.IsOneway())
	require.Equal(p.tb, group, f.Text("consumerGroup"))
}

func TestMembersAreToldOfChanges(t *testing.T) {
	b := startBroker(t)
	p1, p2 := dial(t, b), dial(t, b)
	require.Nil(t, p1.consumers("CG"))
	p1.heartbeat("CG", "id1", 1, "T", "%RETRY%CG")
	p1.notified("CG")
	cfg, ok := b.Topic("%RETRY%CG")
	require.True(t, ok)
	require.EqualValues(t, 1, cfg.ReadQueues)
	_, ok = b.Group("CG")
	require.True(t, ok)

	p2.heartbeat("CG", "id2", 1, "T", "%RETRY%CG")
	p1.notified("CG")
	p2.notified("CG")
	require.Equal(t, []string{"id1", "id2"}, p1.consumers("CG"))
	require.Len(t, b.Members("CG"), 2)

	p2.heartbeat("CG", "id2", 1, "T", "%RETRY%CG") // nothing new, nobody is told
	p2.must(wire.ReqUnregisterClient, &wire.UnregisterClientRequest{ClientID: "id2", ConsumerGroup: "CG"}, nil)
	p1.notified("CG")
	require.Equal(t, []string{"id1"}, p1.consumers("CG"))

	p2.heartbeat("CG", "id2", 1, "T", "%RETRY%CG")
	p1.notified("CG")
	p2.close() // the end of the connection is the end of the member
	p1.notified("CG")
	require.Equal(t, []string{"id1"}, p1.consumers("CG"))
	require.Empty(t, p1.pushed)
}

func TestHeartbeatAnswer(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	hb := wire.Heartbeat{ClientID: "id", Producers: []string{"PG"}}
	f := p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))
	require.Equal(t, "true", f.Text("IS_SUPPORT_HEART_BEAT_V2"))
	require.GreaterOrEqual(t, f.Version, int32(232), "or Java refuses SQL pulls")
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqHeartBeat, nil, []byte("{")).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqHeartBeat, nil, []byte("{}")).Code)

	hb.WithoutSub = true
	hb.Consumers = []wire.ConsumerData{{Group: "CG", Model: wire.Clustering}}
	p.heartbeat("CG", "id", 1, "T")
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))
	s, _, _ := b.clients.Find([]byte("CG"), []byte("T"))
	require.NotNil(t, s, "a heartbeat without subscriptions leaves them")
}

func TestQuietGroupsAreNotNotified(t *testing.T) {
	b := startBroker(t)
	g := wire.NewSubscriptionGroup("Quiet")
	g.NotifyConsumerIDsChanged = false
	require.NoError(t, b.PutGroup(g))
	p := dial(t, b)
	p.heartbeat("Quiet", "id", 1, "T")
	p.heartbeat("Loud", "id", 1, "T")
	p.notified("Loud")
	require.Empty(t, p.pushed)
}

func TestSilentClientsExpire(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p1, p2 := dial(t, b), dial(t, b)
	p1.heartbeat("CG", "id1", 1, "T")
	p1.notified("CG")
	p2.heartbeat("CG", "id2", 1, "T")
	p1.notified("CG")
	c.Advance(100 * time.Second)
	p1.heartbeat("CG", "id1", 1, "T")
	lost := p2.conn().Done()
	advanceUntil(t, c, 5*time.Second, func() bool { return len(b.Members("CG")) == 1 })
	<-lost
	p1.notified("CG")
	require.Equal(t, []string{"id1"}, p1.consumers("CG"))
	require.Less(t, c.Now().Sub(testStart), 3*time.Minute)
}

func TestCheckClientConfig(t *testing.T) {
	p := dial(t, startBroker(t))
	body := wire.CheckClientConfigBody{ClientID: "id", Group: "CG", Subscription: wire.TagSubscription("T", "A || B")}
	p.must(wire.ReqCheckClientConfig, nil, body.AppendJSON(nil))
	body.Subscription.Expr = "||"
	require.EqualValues(t, wire.RespSubscriptionParseFailed, p.call(wire.ReqCheckClientConfig, nil, body.AppendJSON(nil)).Code)
	body.Subscription = wire.Subscription{Topic: "T", Expr: "a > 1", ExprType: wire.ExprSQL}
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqCheckClientConfig, nil, body.AppendJSON(nil)).Code)
}

func TestQueueLocks(t *testing.T) {
	c := clock.NewManual(testStart)
	p := dial(t, startBroker(t, withClock(c)))
	queues := []wire.MessageQueue{{Topic: "T", Broker: "broker-a"}, {Topic: "T", Broker: "broker-a", QueueID: 1}}
	lock := func(client string) int {
		body := wire.LockBody{Group: "CG", ClientID: client, Queues: queues}
		got, err := wire.DecodeLockedQueues(p.must(wire.ReqLockBatchMQ, nil, body.AppendJSON(nil)).Body)
		require.NoError(t, err)
		return len(got.Queues)
	}
	require.Equal(t, 2, lock("a"))
	require.Equal(t, 0, lock("b"))
	c.Advance(61 * time.Second)
	require.Equal(t, 2, lock("b"))
	body := wire.LockBody{Group: "CG", ClientID: "b", Queues: queues[:1]}
	p.must(wire.ReqUnlockBatchMQ, nil, body.AppendJSON(nil))
	require.Equal(t, 1, lock("a"))
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqLockBatchMQ, nil, []byte("[")).Code)
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqUnlockBatchMQ, nil, []byte("[")).Code)
}

func TestQuestionsAreForwardedToTheClient(t *testing.T) {
	b := startBroker(t)
	member, admin := dial(t, b), dial(t, b)
	resp := member.send(b, "T", 0, "look at this")
	member.heartbeat("CG", "id", 1, "T")
	member.notified("CG")

	f := admin.must(wire.ReqGetConsumerRunningInfo, &wire.RunningInfoRequest{Group: "CG", ClientID: "id"}, nil)
	require.Equal(t, "answer", string(f.Body))
	asked := member.push()
	require.EqualValues(t, wire.ReqGetConsumerRunningInfo, asked.Code)
	require.Equal(t, "id", asked.Text("clientId"))

	directly := &wire.ConsumeDirectlyRequest{Group: "CG", ClientID: "id", MsgID: string(resp.OffsetMsgID), Topic: "T"}
	f = admin.must(wire.ReqConsumeMessageDirectly, directly, nil)
	require.Equal(t, "answer", string(f.Body))
	asked = member.push()
	require.Equal(t, []string{"look at this"}, bodies(t, asked))
	require.Equal(t, "broker-a", asked.Text("brokerName"))

	directly.MsgID = "nonsense"
	require.EqualValues(t, wire.RespSystemError, admin.call(wire.ReqConsumeMessageDirectly, directly, nil).Code)
	f = admin.call(wire.ReqGetConsumerRunningInfo, &wire.RunningInfoRequest{Group: "CG", ClientID: "nobody"}, nil)
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "not online")
}

func TestForwardedToAClientThatDies(t *testing.T) {
	b := startBroker(t)
	asked := make(chan struct{})
	member := dial(t, b, func(c *remoting.Config) {
		c.Handler = func(r *remoting.Request) {
			if r.Frame().Code == wire.ReqGetConsumerRunningInfo {
				r.Drop()
				close(asked)
			}
		}
	})
	member.heartbeat("CG", "id", 1, "T")
	got := dial(t, b).async(wire.ReqGetConsumerRunningInfo, &wire.RunningInfoRequest{Group: "CG", ClientID: "id"})
	<-asked
	member.close()
	require.EqualValues(t, wire.RespSystemError, (<-got).Code)
}

func TestUnknownCode(t *testing.T) {
	p := dial(t, startBroker(t))
	f := p.call(9999, nil, nil)
	require.EqualValues(t, wire.RespRequestCodeNotSupported, f.Code)
	require.Equal(t, " request type 9999 not supported", string(f.Remark))
}

// TestHeartbeatIsAnsweredWhenTheRetryTopicIsListed: a consumer that looks for
// its group's retry topic right after its first heartbeat finds it.
func TestHeartbeatIsAnsweredWhenTheRetryTopicIsListed(t *testing.T) {
	ns := startNameServer(t, "127.0.0.1:0")
	b := startBroker(t, withNameServers(ns.addr))
	p := dial(t, b)
	for i := range 20 {
		group := "CG" + strconv.Itoa(i)
		p.heartbeat(group, "c1", 1, "T")
		listed := slices.ContainsFunc(ns.all(), func(r registered) bool {
			_, ok := r.body.Topics[wire.RetryTopic(group)]
			return ok
		})
		require.True(t, listed, group)
	}

	ns.stop()
	began := time.Now()
	p.heartbeat("Later", "c1", 1, "T")
	require.Less(t, time.Since(began), 10*time.Second, "name servers that are away are not waited for")
	_, ok := b.Topic("%RETRY%Later")
	require.True(t, ok)
}
