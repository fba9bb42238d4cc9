package producer_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

func TestC03_FirstNameServerIsABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		c.broker("b1:0")
		hole := c.serve("hole:9876")
		hole.on(wire.ReqGetRouteInfoByTopic, func(q *remoting.Request) { q.Drop() })
		// Which one a client asks first is random: try until it was the hole.
		for hole.count(wire.ReqGetRouteInfoByTopic) == 0 {
			p, err := producer.New(c.client(rocketmq.WithNameServers("hole:9876")))
			require.NoError(t, err)
			start := time.Now()
			_, err = p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(start), 2*time.Second)
			require.NoError(t, p.Close(t.Context()))
		}
	})
}

func TestC09_NameServerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		c.broker("b1:0")
		p := c.producer()
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				_, err := p.Send(t.Context(), message("orders"))
				assert.NoError(t, err)
				n++
				time.Sleep(100 * time.Millisecond)
			}
		})
		time.Sleep(time.Minute)
		c.ns.stop()
		time.Sleep(3 * time.Minute) // down
		c.mu.Lock()
		d := c.topics["orders"]
		clear(c.topics)
		c.mu.Unlock()
		ns := c.serve("ns:9876")
		ns.on(wire.ReqGetRouteInfoByTopic, c.ns.h[wire.ReqGetRouteInfoByTopic])
		time.Sleep(30 * time.Second) // up, and knows nothing
		c.mu.Lock()
		c.topics["orders"] = d
		c.mu.Unlock()
		time.Sleep(time.Minute)
		cancel()
		wg.Wait()
		require.Greater(t, n, 3000)
		require.Positive(t, ns.count(wire.ReqGetRouteInfoByTopic))
	})
}

func TestC10_ConnectionDiesUnderRequest(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := newCluster(t)
	addr := ln.Addr().String()
	c.topic("orders", 4, "b1="+addr)
	b := c.serveOn(ln, addr)
	arrived := make(chan struct{}, 200)
	b.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
		q.Drop()
		arrived <- struct{}{}
	})
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "ns:9876" {
			return c.net.Dial(ctx, network, addr)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	p, err := producer.New(c.client(rocketmq.WithDialer(dial)), producer.WithRetries(0), producer.WithTimeout(30*time.Second, 30*time.Second))
	require.NoError(t, err)
	errs := make(chan error, 100)
	for range cap(errs) {
		go func() {
			_, err := p.Send(t.Context(), message("orders"))
			errs <- err
		}()
	}
	for range cap(errs) {
		<-arrived
	}
	b.mu.Lock()
	conns := b.conns
	b.mu.Unlock()
	start := time.Now()
	for _, x := range conns {
		x.Close(errors.New("reset"))
	}
	for range cap(errs) {
		err := <-errs
		require.ErrorIs(t, err, rocketmq.ErrConnection)
		require.NotErrorIs(t, err, rocketmq.ErrTimeout)
		require.True(t, rocketmq.IsRetryable(err))
	}
	require.Less(t, time.Since(start), 500*time.Millisecond) // 100 ms on an idle machine
	b.answer(wire.RespSuccess, "")
	_, err = p.Send(t.Context(), message("orders"))
	require.NoError(t, err, "the next send reconnects")
}

func TestC14_DeadFirstBrokerDoesNotEatTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0", "b=b:0")
		a, b := c.broker("a:0"), c.broker("b:0")
		a.silent()
		p := c.producer()
		// Whichever queue comes first, two sends meet A.
		var slow, fast int
		for range 10 {
			start := time.Now()
			res, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			require.Equal(t, "b", res.Queue.Broker)
			took := time.Since(start)
			require.Less(t, took, 2*time.Second)
			if took > 500*time.Millisecond {
				slow++
			} else {
				fast++
			}
		}
		require.Equal(t, 1, slow, "A is avoided after one send has met it")
		require.Equal(t, 9, fast)
		require.Equal(t, 1, a.count(wire.ReqSendMessageV2))
		ids := make(map[string]bool)
		for _, s := range b.got() {
			ids[s.id] = true
		}
		require.Len(t, ids, 10)

		// Once the time is over one send at a time may try A again.
		a.answer(wire.RespSuccess, "")
		time.Sleep(11 * time.Second)
		brokers := make(map[string]int)
		for range 10 {
			res, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			brokers[res.Queue.Broker]++
		}
		require.Equal(t, map[string]int{"a": 5, "b": 5}, brokers)

		// Both are dead: the error tells of each attempt.
		a.silent()
		b.silent()
		start := time.Now()
		_, err := p.Send(t.Context(), message("orders"))
		took := time.Since(start)
		require.Greater(t, took, 2*time.Second)
		require.LessOrEqual(t, took, 3200*time.Millisecond)
		require.ErrorIs(t, err, rocketmq.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var se *rocketmq.SendError
		require.ErrorAs(t, err, &se)
		require.GreaterOrEqual(t, len(se.Attempts), 2)
		require.NotEqual(t, se.Attempts[0].Queue.Broker, se.Attempts[1].Queue.Broker)
		for _, at := range se.Attempts[:2] {
			require.ErrorIs(t, at.Err, rocketmq.ErrTimeout)
			require.InDelta(t, time.Second, at.Took, float64(100*time.Millisecond))
			require.Equal(t, at.Queue.Broker+":0", at.Addr)
		}
	})
}

func TestBusyIsRetriedElsewhereWithTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0", "b=b:0")
		a, b := c.broker("a:0"), c.broker("b:0")
		a.answer(wire.RespSystemBusy, "[REJECTREQUEST]system busy")
		p := c.producer()
		for range 4 {
			_, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
		}
		require.NotEmpty(t, a.got())
		for _, x := range a.got() {
			found := false
			for _, y := range b.got() {
				found = found || x.id == y.id
			}
			require.True(t, found, "the id is kept")
		}
		b.answer(wire.RespSystemBusy, "busy, too")
		_, err := p.Send(t.Context(), message("orders"))
		require.ErrorIs(t, err, rocketmq.ErrBusy)
		require.True(t, rocketmq.IsRetryable(err))
		var se *rocketmq.SendError
		require.ErrorAs(t, err, &se)
		require.Len(t, se.Attempts, 3)
		var be *rocketmq.BrokerError
		require.ErrorAs(t, err, &be)
		require.Equal(t, rocketmq.CodeSystemBusy, be.Code)
		require.NotEmpty(t, be.Remark)
	})
}

func TestCodesThatAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0", "b=b:0")
		for _, addr := range []string{"a:0", "b:0"} {
			c.broker(addr).answer(wire.RespMessageIllegal, "too big for me")
		}
		p := c.producer()
		_, err := p.Send(t.Context(), message("orders"))
		require.ErrorIs(t, err, rocketmq.ErrInvalidMessage)
		require.False(t, rocketmq.IsRetryable(err))
		var se *rocketmq.SendError
		require.ErrorAs(t, err, &se)
		require.Len(t, se.Attempts, 1)
	})
}

func TestShardingKeyStaysWithItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0", "b=b:0")
		brokers := []*server{c.broker("a:0"), c.broker("b:0")}
		for _, b := range brokers {
			b.answer(wire.RespSystemBusy, "busy")
		}
		p := c.producer()
		m := message("orders")
		m.ShardingKey = "k"
		start := time.Now()
		_, err := p.Send(t.Context(), m)
		require.ErrorIs(t, err, rocketmq.ErrBusy)
		require.Equal(t, 3, max(len(brokers[0].got()), len(brokers[1].got())), "all attempts at one broker")
		require.Equal(t, 0, min(len(brokers[0].got()), len(brokers[1].got())))
		require.Greater(t, time.Since(start), 40*time.Millisecond, "with time between them")
	})
}

func TestContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0", "b=b:0")
		a, b := c.broker("a:0"), c.broker("b:0")
		a.silent()
		b.silent()
		p := c.producer()
		cause := errors.New("user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(200*time.Millisecond, func() { cancel(cause) })
		start := time.Now()
		_, err := p.Send(ctx, message("orders"))
		require.ErrorIs(t, err, cause)
		require.Equal(t, 200*time.Millisecond, time.Since(start))
		_, err = p.Send(ctx, message("orders"))
		require.ErrorIs(t, err, cause)

		// A hurried caller does not give brokers a bad name.
		hurried, cancel2 := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel2()
		_, err = p.Send(hurried, message("orders"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.answer(wire.RespSuccess, "")
		b.answer(wire.RespSuccess, "")
		brokers := make(map[string]int)
		for range 10 {
			res, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			brokers[res.Queue.Broker]++
		}
		require.Equal(t, map[string]int{"a": 5, "b": 5}, brokers)
	})
}

func TestBrokerIsRestartedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0", "b=b:0")
		a := c.broker("a:0")
		c.broker("b:0")
		p := c.producer()
		for range 2 {
			_, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
		}
		a.stop()
		c.broker("a:1")
		c.topic("orders", 1, "a=a:1", "b=b:0")
		for range 4 {
			_, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
		}
		// The failure had the route fetched at once, not after 30 s.
		time.Sleep(11 * time.Second)
		brokers := make(map[string]int)
		for range 4 {
			res, err := p.Send(t.Context(), message("orders"))
			require.NoError(t, err)
			brokers[res.Queue.Broker]++
		}
		require.Equal(t, map[string]int{"a": 2, "b": 2}, brokers)
	})
}

func TestOnlyBrokerIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0")
		a := c.broker("a:0")
		p := c.producer()
		_, err := p.Send(t.Context(), message("orders"))
		require.NoError(t, err)
		a.stop()
		time.AfterFunc(400*time.Millisecond, func() { a = c.broker("a:0") })
		_, err = p.Send(t.Context(), message("orders"))
		require.NoError(t, err, "the attempts are spread over the time it takes")
	})
}

func TestGoAwayIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0")
		a := c.broker("a:0")
		p := c.producer(producer.WithRetries(0))
		var mu sync.Mutex
		away := true
		a.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
			mu.Lock()
			first := away
			away = false
			mu.Unlock()
			if first {
				q.Reply(wire.RespGoAway, "", nil, nil)
				return
			}
			a.store(q, wire.RespSuccess, "")
		})
		_, err := p.Send(t.Context(), message("orders"))
		require.NoError(t, err)
		require.Len(t, a.conns, 2)
	})
}

// sendHook keeps what it is told.
type sendHook struct {
	mu  sync.Mutex
	got []rocketmq.SendInfo
}

func (h *sendHook) OnSend(_ context.Context, s rocketmq.SendInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, s)
}

func TestHookSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 1, "a=a:0")
		a := c.broker("a:0")
		h := &sendHook{}
		p, err := producer.New(c.client(rocketmq.WithHooks(h)))
		require.NoError(t, err)
		res, err := p.Send(t.Context(), message("orders"))
		require.NoError(t, err)
		a.answer(wire.RespSystemBusy, "")
		_, failure := p.Send(t.Context(), message("orders"))
		require.Error(t, failure)
		require.Len(t, h.got, 2)
		assert.Equal(t, rocketmq.SendInfo{Topic: "orders", MessageID: res.MessageID, Queue: res.Queue, Addr: "a:0", Bytes: 5, Attempts: 1}, h.got[0])
		assert.Equal(t, 3, h.got[1].Attempts)
		assert.Equal(t, failure, h.got[1].Err)
		assert.Equal(t, a.got()[1].id, h.got[1].MessageID)
	})
}
