package producer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

// stamp adds a property to a copy of each message, and notes what it sees.
type stamp struct {
	name string
	mu   sync.Mutex
	seen []string
}

func (s *stamp) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

func (s *stamp) intercept(next producer.SendFunc) producer.SendFunc {
	return func(ctx context.Context, m *rocketmq.Message) (producer.Result, error) {
		m = m.Clone()
		if m.Properties == nil {
			m.Properties = map[string]string{}
		}
		m.Properties["stamp"] += s.name
		s.note("before %s", m.Body)
		res, err := next(ctx, m)
		s.note("after %s %t", m.Body, err == nil)
		return res, err
	}
}

func TestInterceptors(t *testing.T) {
	for name, lingering := range map[string][]producer.Option{"plain": nil, "lingering": {producer.WithLinger(time.Millisecond, 10_000)}} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.topic("orders", 4, "b1=b1:0")
			b := c.broker("b1:0")
			b.answerBatches(wire.RespSuccess)
			outer, inner := &stamp{name: "a"}, &stamp{name: "b"}
			p := c.producer(append(lingering, producer.WithInterceptors(outer.intercept, inner.intercept))...)
			m := &rocketmq.Message{Topic: "orders", Body: []byte("sync")}
			res, err := p.Send(t.Context(), m)
			require.NoError(t, err)
			require.NotEmpty(t, res.MessageID)
			require.Nil(t, m.Properties)
			require.NoError(t, p.SendOneway(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("oneway")}))
			o := newOutcomes()
			for i := range 200 {
				p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("async")}, o.done(i))
			}
			require.NoError(t, p.Flush(t.Context()))
			require.Empty(t, o.once(t, 200))
			rs, err := p.SendBatch(t.Context(), batch(3))
			require.NoError(t, err)
			require.Len(t, rs, 3)
			require.NoError(t, p.Close(t.Context()))
			require.Eventually(t, func() bool { return len(b.got()) == 205 }, patience, tick)
			for _, s := range b.got() {
				require.Equal(t, "ab", s.props["stamp"], s.body)
			}
			require.Equal(t, []string{"before body 0", "before body 1", "before body 2", "after body 2 true", "after body 1 true", "after body 0 true"}, outer.seen[len(outer.seen)-6:])
			done := make(chan error, 1)
			p.SendAsync(t.Context(), m, func(_ producer.Result, err error) { done <- err })
			require.ErrorIs(t, <-done, rocketmq.ErrClosed)
		})
	}
}

// Interceptors may refuse, answer themselves, send twice, or panic.
func TestInterceptorsDecide(t *testing.T) {
	c := newCluster(t)
	c.topic("orders", 4, "b1=b1:0")
	b := c.broker("b1:0")
	b.answerBatches(wire.RespSuccess)
	mine := errors.New("mine")
	p := c.producer(producer.WithInterceptors(func(next producer.SendFunc) producer.SendFunc {
		return func(ctx context.Context, m *rocketmq.Message) (producer.Result, error) {
			switch m.Tag {
			case "refuse":
				return producer.Result{}, mine
			case "own":
				return producer.Result{MessageID: "own"}, nil
			case "twice":
				if res, err := next(ctx, m); err != nil {
					return res, err
				}
			case "panic":
				panic("mine")
			}
			return next(ctx, m)
		}
	}))
	send := func(tag string) (producer.Result, error) {
		return p.Send(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("x"), Tag: tag})
	}
	_, err := send("refuse")
	require.ErrorIs(t, err, mine)
	res, err := send("own")
	require.NoError(t, err)
	require.Equal(t, "own", res.MessageID)
	_, err = send("twice")
	require.NoError(t, err)
	require.Len(t, b.got(), 2)
	done := make(chan error, 1)
	p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("x"), Tag: "panic"}, func(_ producer.Result, err error) { done <- err })
	var pe *rocketmq.PanicError
	require.ErrorAs(t, <-done, &pe)

	tags := []string{"refuse", "", "own", "twice", ""}
	rs, err := p.SendBatch(t.Context(), batch(5, func(i int, m *rocketmq.Message) { m.Tag = tags[i] }))
	var be producer.BatchError
	require.ErrorAs(t, err, &be)
	require.ErrorIs(t, be[0], mine)
	require.NoError(t, be[1])
	require.NoError(t, be[2])
	require.ErrorIs(t, be[3], rocketmq.ErrInvalidMessage)
	require.NoError(t, be[4])
	require.Equal(t, "own", rs[2].MessageID)
	require.NotEmpty(t, rs[4].MessageID)
	require.Len(t, b.got(), 5)
	_, err = p.SendBatch(t.Context(), batch(2, func(i int, m *rocketmq.Message) { m.Tag = "own" }))
	require.NoError(t, err)
	_, err = p.SendBatch(t.Context(), nil)
	require.ErrorIs(t, err, rocketmq.ErrInvalidMessage)
	_, err = p.SendBatch(t.Context(), batch(2, func(i int, m *rocketmq.Message) { m.Delay = rocketmq.DelayLevel(1) }))
	require.ErrorIs(t, err, rocketmq.ErrInvalidMessage)
}
