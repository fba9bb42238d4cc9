package producer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		b := c.broker("b1:0")
		p := c.producer()
		m := &rocketmq.Message{
			Topic: "orders", Body: []byte("body"), Tag: "paid", Keys: []string{"k1", "k2"},
			Properties: map[string]string{"trace": "t\n1"}, Delay: rocketmq.DelayLevel(3),
		}
		before := m.Clone()
		res, err := p.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, before, m, "the message is not touched")
		got := b.got()
		require.Len(t, got, 1)
		assert.Equal(t, "orders", got[0].topic)
		assert.Equal(t, "body", got[0].body)
		assert.Equal(t, map[string]string{
			wire.PropUniqKey: res.MessageID, wire.PropWait: "true", wire.PropTags: "paid", wire.PropKeys: "k1 k2", wire.PropDelay: "3", "trace": "t\n1",
		}, got[0].props)
		h := got[0].head
		assert.Equal(t, producer.DefaultGroup, string(h.Group))
		assert.Equal(t, "TBW102", string(h.DefaultTopic))
		assert.Equal(t, int32(4), h.DefaultTopicQueues)
		assert.Equal(t, "b1", string(h.BrokerName))
		assert.Equal(t, time.Now().UnixMilli(), h.BornTime)

		_, err = wire.ParseUniqID(res.MessageID)
		require.NoError(t, err)
		assert.Equal(t, producer.Result{
			MessageID: res.MessageID, OffsetID: "0A00000100002A9F00000000000003E8", TransactionID: res.MessageID,
			Queue: rocketmq.Queue{Topic: "orders", Broker: "b1", ID: int(got[0].queue)}, Offset: 0, Status: producer.StatusOK,
		}, res)

		synctest.Wait()
		require.Equal(t, 1, b.count(wire.ReqHeartBeat), "the group is known after the first send")
		require.NoError(t, p.Close(t.Context()))
		require.Equal(t, 1, b.count(wire.ReqUnregisterClient))
		_, err = p.Send(t.Context(), m)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
		_, err = p.Queues(t.Context(), "orders")
		require.ErrorIs(t, err, rocketmq.ErrClosed)
	})
}

func TestSendTakesQueuesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 3, "b1=b1:0", "b2=b2:0")
		c.broker("b1:0")
		c.broker("b2:0")
		p := c.producer()
		counts := make(map[rocketmq.Queue]int)
		for range 12 {
			res, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			counts[res.Queue]++
		}
		qs, err := p.Queues(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, qs, 6)
		for _, q := range qs {
			assert.Equal(t, 2, counts[q], q)
		}
	})
}

func TestSendWhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 3, "b1=b1:0", "b2=b2:0")
		c.broker("b1:0")
		c.broker("b2:0")
		p := c.producer()
		q := rocketmq.Queue{Broker: "b2", ID: 1}
		full := rocketmq.Queue{Topic: "orders", Broker: "b2", ID: 1}
		for range 3 {
			res, err := p.Send(t.Context(), message("orders"), producer.To(q))
			require.NoError(t, err)
			require.Equal(t, full, res.Queue)
		}
		_, err := p.Send(t.Context(), message("orders"), producer.To(rocketmq.Queue{Broker: "b2", ID: 3}))
		require.ErrorIs(t, err, rocketmq.ErrNoQueue)
		_, err = p.Send(t.Context(), message("orders"), producer.To(rocketmq.Queue{Topic: "other", Broker: "b2"}))
		require.ErrorIs(t, err, rocketmq.ErrInvalidMessage)

		keyed := message("orders")
		keyed.ShardingKey = "customer 7"
		want := selector.HashIndex("customer 7", 6)
		for range 3 {
			res, err := p.Send(t.Context(), keyed)
			require.NoError(t, err)
			require.Equal(t, rocketmq.Queue{Topic: "orders", Broker: []string{"b1", "b2"}[want/3], ID: want % 3}, res.Queue)
		}

		var seen []rocketmq.Queue
		pick := selector.QueueFunc(func(m *rocketmq.Message, qs []rocketmq.Queue, avoid string) (int, error) {
			seen = qs
			return 5, nil
		})
		res, err := p.Send(t.Context(), message("orders"), producer.Via(pick))
		require.NoError(t, err)
		require.Equal(t, seen[5], res.Queue)
		for _, bad := range []selector.QueueFunc{
			func(*rocketmq.Message, []rocketmq.Queue, string) (int, error) { return 6, nil },
			func(*rocketmq.Message, []rocketmq.Queue, string) (int, error) { return -1, nil },
			func(*rocketmq.Message, []rocketmq.Queue, string) (int, error) { return 0, errors.New("undecided") },
		} {
			_, err := p.Send(t.Context(), message("orders"), producer.Via(bad))
			require.ErrorContains(t, err, "queue selector")
		}
	})
}

func TestSendToMissingTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.producer()
		_, err := p.Send(t.Context(), message("typo"))
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		require.False(t, rocketmq.IsRetryable(err))
		var re *rocketmq.RouteError
		require.ErrorAs(t, err, &re)
		require.Equal(t, "typo", re.Topic)
		require.Len(t, re.Asked, 1)
		assert.Equal(t, "ns:9876", re.Asked[0].Addr)
		assert.Equal(t, rocketmq.CodeTopicNotExist, re.Asked[0].Code)
		var se *rocketmq.SendError
		require.ErrorAs(t, err, &se)
		require.Empty(t, se.Attempts)

		c.topic("readonly", 0, "b1=b1:0")
		_, err = p.Send(t.Context(), message("readonly"))
		require.ErrorIs(t, err, rocketmq.ErrNoQueue)
	})
}

func TestC01_StartOnAMissingTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for range 100 {
			cl := c.client()
			p, err := producer.New(cl)
			require.NoError(t, err)
			_, err = p.Send(t.Context(), message("absent"))
			require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
			var re *rocketmq.RouteError
			require.ErrorAs(t, err, &re)
			require.Equal(t, "absent", re.Topic)
			require.Equal(t, "ns:9876", re.Asked[0].Addr)
			require.NoError(t, cl.Close(t.Context()))
		}
		// Nothing is left of them: the bubble would not end with a goroutine
		// still in it, and these are the server's ends of the connections.
		synctest.Wait()
		c.ns.mu.Lock()
		defer c.ns.mu.Unlock()
		require.Len(t, c.ns.conns, 100)
		for _, x := range c.ns.conns {
			require.Error(t, x.Err())
		}
	})
}

func TestSendCreatesTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic(wire.TopicDefault, 8, "b1=b1:0")
		b := c.broker("b1:0")
		p := c.producer(producer.WithAutoCreate(6))
		_, err := p.Send(t.Context(), message("young"))
		require.NoError(t, err)
		require.Equal(t, int32(6), b.got()[0].head.DefaultTopicQueues)
		qs, err := p.Queues(t.Context(), "young")
		require.NoError(t, err)
		require.Len(t, qs, 6, "no more than asked for")
		// While the topic has no route yet, name servers are asked now and then,
		// not for each send.
		asked := c.ns.count(wire.ReqGetRouteInfoByTopic)
		for range 100 {
			_, err := p.Send(t.Context(), message("young"))
			require.NoError(t, err)
		}
		require.LessOrEqual(t, c.ns.count(wire.ReqGetRouteInfoByTopic)-asked, 2)

		// The broker has registered it: with the queues it really has.
		c.topic("young", 2, "b1=b1:0")
		time.Sleep(2 * time.Second)
		qs, err = p.Queues(t.Context(), "young")
		require.NoError(t, err)
		require.Len(t, qs, 2)

		// No broker creates topics.
		strict := newStrict(t, c)
		_, err = strict.Send(t.Context(), message("nowhere"))
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
	})
}

func newStrict(t *testing.T, c *cluster) *producer.Producer {
	t.Helper()
	c.mu.Lock()
	delete(c.topics, wire.TopicDefault)
	c.mu.Unlock()
	return c.producer(producer.WithAutoCreate(4))
}

func TestC20_Properties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "b1=b1:0")
		b := c.broker("b1:0")
		p := c.producer()
		for name, change := range map[string]func(m *rocketmq.Message){
			"0x01 in a value":     func(m *rocketmq.Message) { m.Properties = map[string]string{"k": "a\x01b"} },
			"0x02 in a value":     func(m *rocketmq.Message) { m.Properties = map[string]string{"k": "a\x02b"} },
			"empty value":         func(m *rocketmq.Message) { m.Properties = map[string]string{"k": ""} },
			"empty name":          func(m *rocketmq.Message) { m.Properties = map[string]string{"": "v"} },
			"0x01 in a name":      func(m *rocketmq.Message) { m.Properties = map[string]string{"k\x01": "v"} },
			"reserved name":       func(m *rocketmq.Message) { m.Properties = map[string]string{"UNIQ_KEY": "v"} },
			"sharding key by map": func(m *rocketmq.Message) { m.Properties = map[string]string{"__SHARDINGKEY": "v"} },
			"broken UTF-8":        func(m *rocketmq.Message) { m.Properties = map[string]string{"k": "a\xff"} },
			"0x01 in the tag":     func(m *rocketmq.Message) { m.Tag = "a\x01" },
			"tag with an or":      func(m *rocketmq.Message) { m.Tag = "a||b" },
			"0x02 in a key":       func(m *rocketmq.Message) { m.Keys = []string{"a\x02"} },
			"blank in a key":      func(m *rocketmq.Message) { m.Keys = []string{"a b"} },
			"empty key":           func(m *rocketmq.Message) { m.Keys = []string{"a", ""} },
			"0x01 in shardingkey": func(m *rocketmq.Message) { m.ShardingKey = "\x01" },
			"empty body":          func(m *rocketmq.Message) { m.Body = nil },
			"illegal topic":       func(m *rocketmq.Message) { m.Topic = "or ders" },
			"no topic":            func(m *rocketmq.Message) { m.Topic = "" },
			"system topic":        func(m *rocketmq.Message) { m.Topic = "SCHEDULE_TOPIC_XXXX" },
			"negative delay":      func(m *rocketmq.Message) { m.Delay = rocketmq.DelayFor(-time.Second) },
			"negative level":      func(m *rocketmq.Message) { m.Delay = rocketmq.DelayLevel(-1) },
		} {
			m := message("orders")
			change(m)
			_, err := p.Send(t.Context(), m)
			assert.ErrorIs(t, err, rocketmq.ErrInvalidMessage, name)
			assert.NotErrorIs(t, err, rocketmq.ErrTooLarge, name)
			assert.ErrorIs(t, m.Validate(), rocketmq.ErrInvalidMessage, name)
		}
		for name, change := range map[string]func(m *rocketmq.Message){
			"40,000 bytes of properties": func(m *rocketmq.Message) { m.Properties = map[string]string{"k": strings.Repeat("x", 40000)} },
			"many keys":                  func(m *rocketmq.Message) { m.Keys = strings.Split(strings.Repeat("0123456789,", 4000)+"0", ",") },
			"body":                       func(m *rocketmq.Message) { m.Body = make([]byte, rocketmq.MaxBody+1) },
		} {
			m := message("orders")
			change(m)
			_, err := p.Send(t.Context(), m)
			assert.ErrorIs(t, err, rocketmq.ErrTooLarge, name)
			assert.ErrorIs(t, err, rocketmq.ErrInvalidMessage, name)
			assert.False(t, rocketmq.IsRetryable(err), name)
		}
		require.Empty(t, b.got(), "refused before sending")

		m := message("orders")
		m.Keys = []string{"a", "b"}
		m.Properties = map[string]string{"k": strings.Repeat("x", 32000)}
		m.Body = make([]byte, rocketmq.MaxBody)
		_, err := p.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, "a b", b.got()[0].props[wire.PropKeys])
		require.LessOrEqual(t, len(b.got()[0].head.Properties), rocketmq.MaxProperties)
	})
}

func TestNotDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "b1=b1:0")
		b := c.broker("b1:0")
		strict, weak := c.producer(), c.producer(producer.WithWeakAck())
		for code, status := range map[int32]producer.Status{
			wire.RespFlushDiskTimeout:  producer.StatusFlushTimeout,
			wire.RespSlaveNotAvailable: producer.StatusNoReplica,
			wire.RespFlushSlaveTimeout: producer.StatusReplicaTimeout,
		} {
			b.answer(code, "late")
			n := len(b.got())
			res, err := strict.Send(t.Context(), message("orders"))
			require.ErrorIs(t, err, rocketmq.ErrNotDurable)
			require.False(t, rocketmq.IsRetryable(err), "it is stored: again would be twice")
			require.Len(t, b.got(), n+1, "not sent again")
			require.NotEmpty(t, res.MessageID)
			require.NotEmpty(t, res.OffsetID)
			require.Equal(t, status, res.Status)
			require.Equal(t, int64(n), res.Offset)
			res, err = weak.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			require.Equal(t, status, res.Status)
		}
	})
}

func TestNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("dev%orders", 1, "b1=b1:0")
		b := c.broker("b1:0")
		p, err := producer.New(c.client(rocketmq.WithNamespace("dev")), producer.WithGroup("g"))
		require.NoError(t, err)
		res, err := p.Send(t.Context(), message("orders"))
		require.NoError(t, err)
		require.Equal(t, "orders", res.Queue.Topic)
		require.Equal(t, "dev%orders", b.got()[0].topic)
		require.Equal(t, "dev%g", string(b.got()[0].head.Group))
		_, err = p.Send(t.Context(), message("typo"))
		var re *rocketmq.RouteError
		require.ErrorAs(t, err, &re)
		require.Equal(t, "typo", re.Topic)
	})
}

func TestCloseWaitsForSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "b1=b1:0")
		c.broker("b1:0").silent()
		p := c.producer(producer.WithTimeout(2*time.Second, 2*time.Second), producer.WithRetries(0))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := p.Send(context.Background(), message("orders"))
			assert.ErrorIs(t, err, rocketmq.ErrTimeout)
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorContains(t, p.Close(ctx), "1 sends are still under way")
		require.Equal(t, time.Second, time.Since(start))
		wg.Wait()
		require.Error(t, p.Close(t.Context()), "the first call's error")
	})
}

func TestClientCloseClosesProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "b1=b1:0")
		b := c.broker("b1:0")
		cl := c.client()
		p, err := producer.New(cl)
		require.NoError(t, err)
		_, err = p.Send(t.Context(), message("orders"))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, cl.Close(t.Context()))
		require.Equal(t, 1, b.count(wire.ReqUnregisterClient))
		_, err = p.Send(t.Context(), message("orders"))
		require.ErrorIs(t, err, rocketmq.ErrClosed)
		require.NoError(t, p.Close(t.Context()))
		_, err = producer.New(cl)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
		_, err = producer.New(nil)
		require.Error(t, err)
	})
}

func TestOptions(t *testing.T) {
	c := newCluster(t)
	cl := c.client()
	_, err := producer.New(cl, producer.WithGroup("a b"), producer.WithTimeout(time.Second, 2*time.Second), producer.WithRetries(-1), producer.WithAutoCreate(0))
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	for _, name := range []string{"WithGroup", "WithTimeout", "WithRetries", "WithAutoCreate"} {
		require.ErrorContains(t, err, name, "all faults at once")
	}
	for _, o := range []producer.Option{
		producer.WithGroup(""), producer.WithGroup("DEFAULT_PRODUCER"), producer.WithTimeout(0, 0), producer.WithRetries(17), producer.WithAutoCreate(1025),
		producer.WithInflight(0, 1), producer.WithInflight(1, 0), producer.WithInterceptors(nil),
		producer.WithLinger(0, 1), producer.WithLinger(time.Millisecond, 0), producer.WithLinger(3*time.Second, 1), producer.WithLinger(time.Millisecond, 5<<20),
		producer.WithCompression(9, 1, 1), producer.WithCompression(producer.ZLIB, 0, 1), producer.WithCompression(producer.LZ4, 10, 1), producer.WithCompression(producer.ZSTD, 23, 1),
		producer.WithCompression(producer.ZLIB, 5, -1),
		producer.WithFaultAvoidance(producer.Avoidance{{Latency: 2, For: 1}, {Latency: 1, For: 1}}), producer.WithFaultAvoidance(producer.Avoidance{{Latency: -1}}),
	} {
		_, err := producer.New(cl, o)
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	}
	p, err := producer.New(cl, nil, producer.WithGroup("g"), producer.WithRetries(0), producer.WithAutoCreate(1), producer.WithSelector(selector.Random()))
	require.NoError(t, err)
	require.NoError(t, p.Close(t.Context()))
}
