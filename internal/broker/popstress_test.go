package broker

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Many consumers of one group pop at the same time, from any queue and from
// certain ones, and acknowledge in both ways, while messages come: each is given
// out once.
func TestPopByManyAtOnce(t *testing.T) {
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 3))
	const producers, each, consumers = 3, 200, 6
	var mu sync.Mutex
	seen := map[string]int{}
	all := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := run.NewGroup(ctx)
	defer g.Stop()
	for i := range consumers {
		p := dialPop(t, b, "CG", "T")
		g.Go(func(ctx context.Context) {
			for ctx.Err() == nil {
				h := p.header(atMost(int32(1+i)), polling(30*time.Second))
				if i >= 3 {
					h.QueueID = int32(i - 3)
				}
				f, err := p.conn().Call(ctx, &wire.Command{Code: wire.ReqPopMessage, Ext: h})
				if err != nil || f.Code != wire.RespSuccess {
					continue
				}
				for _, m := range p.messages(f) {
					if _, err := p.conn().Call(ctx, &wire.Command{Code: wire.ReqAckMessage, Ext: p.ackHeader(m)}); err != nil {
						return
					}
					mu.Lock()
					if seen[m.body]++; len(seen) == producers*each {
						select {
						case <-all:
						default:
							close(all)
						}
					}
					mu.Unlock()
				}
			}
		})
	}
	for i := range producers {
		p := dial(t, b)
		g.Go(func(ctx context.Context) {
			for k := range each {
				if _, err := p.conn().Call(ctx, &wire.Command{Code: wire.ReqSendMessageV2, Ext: sendHeader("T", int32(k%3)), Body: []byte(strconv.Itoa(i*each + k))}); err != nil {
					return
				}
			}
		})
	}
	select {
	case <-all:
	case <-t.Context().Done():
	}
	cancel()
	g.Stop()
	require.Len(t, seen, producers*each)
	for body, n := range seen {
		require.Equal(t, 1, n, body)
	}
}

// Time runs while consumers pop, forget, hide and acknowledge: nothing is lost.
func TestPopWhileTimeRuns(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	g := wire.NewSubscriptionGroup("CG")
	g.RetryMaxTimes = 1000
	require.NoError(t, b.PutGroup(g))
	const n, consumers = 150, 4
	p := dialPop(t, b, "CG", "T")
	for i := range n {
		p.send(b, "T", int32(i%2), strconv.Itoa(i))
	}
	var mu sync.Mutex
	done := map[string]bool{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	work := run.NewGroup(ctx)
	defer work.Stop()
	for i := range consumers {
		p := dialPop(t, b, "CG", "T")
		work.Go(func(ctx context.Context) {
			for k := i; ctx.Err() == nil; k++ {
				f, err := p.conn().Call(ctx, &wire.Command{Code: wire.ReqPopMessage, Ext: p.header(atMost(7), invisible(2*time.Second))})
				if err != nil || f.Code != wire.RespSuccess {
					continue
				}
				for j, m := range p.messages(f) {
					h := p.ackHeader(m)
					code := int32(wire.ReqAckMessage)
					switch (j + k) % 4 {
					case 0:
						continue // forgotten
					case 1:
						code, h.InvisibleMillis = wire.ReqChangeMessageInvisibletime, 500
					}
					if f, err := p.conn().Call(ctx, &wire.Command{Code: code, Ext: h}); err != nil || f.Code != wire.RespSuccess {
						continue
					}
					if code == wire.ReqAckMessage {
						mu.Lock()
						done[m.body] = true
						mu.Unlock()
					}
				}
			}
		})
	}
	advanceUntil(t, c, 100*time.Millisecond, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(done) == n
	})
	cancel()
	work.Stop()
	for body := range p.drain(b, c) {
		require.Contains(t, done, body)
	}
}
