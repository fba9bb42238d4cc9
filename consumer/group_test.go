package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/rebalance"
	"github.com/gorocketmq/rocketmq/selector"
)

// assigned is how many queues of topic T a member has.
func assigned(c *running) int {
	n := 0
	for _, q := range c.Health().Queues {
		if q.Queue.Topic == "T" {
			n++
		}
	}
	return n
}

func TestMembersShareAndTakeOver(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 8)
		var got received
		sub := consumer.Subscribe("T", selector.All, got.handler())
		first := start(t, newPush(t, b.client(), sub))
		require.Equal(t, 8, assigned(first))
		second := start(t, newPush(t, b.client(), sub))
		synctest.Wait()
		time.Sleep(2 * time.Second) // well before the next round of 20 s
		synctest.Wait()
		require.Equal(t, 4, assigned(first), "a newcomer gets its share at once")
		require.Equal(t, 4, assigned(second))
		for i := range 80 {
			b.put("T", i%8, fmt.Sprint(i))
		}
		synctest.Wait()
		require.Len(t, got.bodies(), 80)
		require.NoError(t, second.stop())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 8, assigned(first))
		for i := range 80 {
			b.put("T", i%8, fmt.Sprint(100+i))
		}
		synctest.Wait()
		for body, n := range got.bodies() {
			require.Equal(t, 1, n, "message %s", body)
		}
		require.Len(t, got.bodies(), 160)
		require.NoError(t, first.stop())
	})
}

// A handler of a queue that goes to another member may finish within a second,
// and what it did is committed; after that its context ends.
func TestRevokedQueue(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.put("T", 1, "quick")
		b.put("T", 1, "slow")
		causes := make(chan error, 1)
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
				if string(m.Body) == "quick" {
					time.Sleep(500 * time.Millisecond)
					return nil
				}
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return context.Cause(ctx)
			}))))
		synctest.Wait()
		began := time.Now()
		other := b.client(rocketmq.WithInstanceName("zzz")) // sorts behind, gets queue 1
		second := start(t, newPush(t, other, consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		require.ErrorIs(t, <-causes, rocketmq.ErrRevoked)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, assigned(c))
		require.Empty(t, b.sendBacks)
		require.GreaterOrEqual(t, b.stored("T", 1), int64(1), "the quick one counts")
		require.NoError(t, c.stop())
		require.NoError(t, second.stop())
	})
}

func TestUnlistedMemberKeepsItsQueuesForOneRound(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		var hide atomic.Int32
		hide.Store(1)
		b.on(wire.ReqGetConsumerListByGroup, func(r *remoting.Request) bool {
			if hide.Load() == 0 {
				return false
			}
			hide.Add(1)
			l := wire.ConsumerList{IDs: []string{"somebody else"}}
			r.Reply(wire.RespSuccess, "", nil, l.AppendJSON(nil))
			return true
		})
		beats := func() int {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.beats)
		}
		before := beats()
		b.notify("G")
		synctest.Wait()
		require.Greater(t, beats(), before, "it tells the broker that it is there")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Zero(t, assigned(c), "others have them by now")
		hide.Store(0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 4, assigned(c))
		require.NoError(t, c.stop())
	})
}

// A broker that has not noticed yet that an old connection is dead lists its
// client twice.
func TestMemberThatIsListedTwiceHasOneShare(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		cl := b.client()
		b.on(wire.ReqGetConsumerListByGroup, func(r *remoting.Request) bool {
			l := wire.ConsumerList{IDs: []string{cl.ID(), cl.ID()}}
			r.Reply(wire.RespSuccess, "", nil, l.AppendJSON(nil))
			return true
		})
		c := start(t, newPush(t, cl, consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		require.Equal(t, 4, assigned(c))
		require.NoError(t, c.stop())
	})
}

type badStrategy struct{ out []rocketmq.Queue }

func (badStrategy) Name() string                                         { return "bad" }
func (s badStrategy) Allocate(rebalance.Input) ([]rocketmq.Queue, error) { return s.out, s.err() }
func (s badStrategy) err() error {
	if s.out == nil {
		return errors.New("no idea")
	}
	return nil
}

func TestFaultyStrategyChangesNothing(t *testing.T) {
	q := rocketmq.Queue{Topic: "T", Broker: "b"}
	for _, out := range [][]rocketmq.Queue{nil, {q, q}, {{Topic: "T", Broker: "b", ID: 9}}} {
		bubble(t, func(t *testing.T, b *fake) {
			b.topic("T", 2)
			p := newPush(t, b.client(), consumer.WithStrategy(badStrategy{out}), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)))
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			require.NoError(t, p.Run(ctx))
			select {
			case <-p.Ready():
				t.Fatal("ready without a valid assignment")
			default:
			}
			require.Empty(t, b.pulls)
		})
	}
}

func TestConfigStrategy(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		c := start(t, newPush(t, b.client(), consumer.WithStrategy(rebalance.Config(rocketmq.Queue{Topic: "T", Broker: "b", ID: 2})),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		require.Equal(t, 1, assigned(c))
		require.Equal(t, 2, c.Health().Queues[0].Queue.ID)
		require.NoError(t, c.stop())
	})
}

// A retry topic that appears later is read from its beginning, and its
// messages go to the handler of their original topic.
func TestRetryTopicIsReadByTheOriginalHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("A", 1)
		b.topic("B", 1)
		var a, bb received
		c := start(t, newPush(t, b.client(),
			consumer.Subscribe("A", selector.Tags("x"), a.handler()), consumer.Subscribe("B", selector.All, bb.handler())))
		b.topic("%RETRY%G", 1)
		for i, topic := range []string{"A", "A", "B", "A", "gone"} {
			b.put("%RETRY%G", 0, topic+fmt.Sprint(i), withProps("RETRY_TOPIC", topic, "UNIQ_KEY", "u"), func(r *wire.Record) { r.ReconsumeTimes = 3 })
		}
		time.Sleep(21 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int{"A0": 1, "A1": 1, "A3": 1, "gone4": 1}, a.bodies())
		require.Equal(t, map[string]int{"B2": 1}, bb.bodies())
		m := bb.msgs[0]
		require.Equal(t, "B", m.Topic)
		require.Equal(t, 4, m.Attempt)
		require.Equal(t, "%RETRY%G", m.Queue.Topic)
		require.NoError(t, c.stop())
		require.EqualValues(t, 5, b.stored("%RETRY%G", 0))
	})
}

func TestOneConsumerOfAGroupPerClient(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		cl := b.client()
		sub := consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))
		c := start(t, newPush(t, cl, sub))
		require.ErrorContains(t, newPush(t, cl, sub).Run(context.Background()), "already has a consumer")
		require.NoError(t, c.stop())
		again := start(t, newPush(t, cl, sub))
		require.NoError(t, again.stop())
	})
}

func TestNamespaceStaysAtTheEdge(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("NS%T", 1)
		b.put("NS%T", 0, "m")
		var got received
		c := start(t, newPush(t, b.client(rocketmq.WithNamespace("NS")), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Equal(t, "T", got.msgs[0].Topic)
		require.Equal(t, "T", got.msgs[0].Queue.Topic)
		hb := b.beats[0].Consumers[0]
		require.Equal(t, "NS%G", hb.Group)
		require.Equal(t, "%RETRY%NS%G", hb.Subscriptions[1].Topic)
		require.NoError(t, c.stop())
		require.EqualValues(t, 1, b.stored("NS%T", 0))
	})
}

// One of two brokers takes connections and says nothing: the queues of the
// other are consumed all the same, and at once.
func TestOneBrokerIsABlackHole(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		const hole = "hole:10911"
		ln, err := b.net.Listen(hole)
		require.NoError(t, err)
		silent := remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: func(r *remoting.Request) { r.Drop() }}})
		require.NoError(t, silent.Serve(ln))
		defer func() { _ = silent.Close(context.Background()) }()
		b.topic("T", 2)
		b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool {
			var h wire.RouteRequest
			_ = h.DecodeExt(r.Frame())
			if h.Topic != "T" {
				return false
			}
			d := wire.RouteData{
				Queues: []wire.QueueData{{BrokerName: "b", ReadQueues: 2, WriteQueues: 2, Perm: 6}, {BrokerName: "hole", ReadQueues: 2, WriteQueues: 2, Perm: 6}},
				Brokers: []wire.BrokerData{
					{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: fakeBroker}}, {Cluster: "c", BrokerName: "hole", Addrs: map[int64]string{0: hole}},
				},
			}
			r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
			return true
		})
		b.put("T", 0, "a")
		b.put("T", 1, "b")
		var got received
		p := newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler()))
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- p.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, got.bodies(), 2)
		time.Sleep(20 * time.Second)
		b.put("T", 0, "c")
		synctest.Wait()
		require.Len(t, got.bodies(), 3)
		began := time.Now()
		cancel()
		<-result // the black hole cannot be told that we leave
		require.Less(t, time.Since(began), 7*time.Second)
	})
}
