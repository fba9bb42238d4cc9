package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// spy is a client's hooks.
type spy struct {
	mu       sync.Mutex
	consumed []rocketmq.ConsumeInfo
	balanced []rocketmq.RebalanceInfo
	stuck    []rocketmq.StuckInfo
}

func (s *spy) OnConsume(ctx context.Context, c rocketmq.ConsumeInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.consumed = append(s.consumed, c)
}

func (s *spy) OnRebalance(r rocketmq.RebalanceInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.balanced = append(s.balanced, r)
}

func (s *spy) OnStuck(i rocketmq.StuckInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = append(s.stuck, i)
}

// outcomes are those of each body, in order.
func (s *spy) outcomes() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for _, c := range s.consumed {
		body := string(c.Message.Body)
		out[body] = append(out[body], c.Outcome.String())
	}
	return out
}

func (s *spy) of(body string) rocketmq.ConsumeInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.consumed, func(c rocketmq.ConsumeInfo) bool { return string(c.Message.Body) == body })
	return s.consumed[i]
}

var errNo = errors.New("no")

// fails is a handler that does with a message what its body says.
func fails(_ context.Context, m *rocketmq.MessageView) error {
	time.Sleep(10 * time.Millisecond)
	if m.Attempt > 1 {
		return nil
	}
	switch string(m.Body) {
	case "bad":
		return errNo
	case "later":
		return consumer.RetryAfter(45*time.Second, errNo)
	case "dead":
		return consumer.DeadLetter(errNo)
	case "panic":
		panic("at the disco")
	}
	return nil
}

func TestHookConsume(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for _, body := range []string{"good", "bad", "later", "dead", "panic"} {
			b.put("T", 0, body)
		}
		s := &spy{}
		c := start(t, newPush(t, b.client(rocketmq.WithHooks(s)), consumer.StartFrom(rocketmq.Earliest()), each(fails, consumer.Concurrency(1))))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, map[string][]string{"good": {"done"}, "bad": {"retry"}, "later": {"retry"}, "dead": {"dead-letter"}, "panic": {"retry"}}, s.outcomes())
		good := s.of("good")
		require.NoError(t, good.Err)
		good.Message = nil
		require.Equal(t, rocketmq.ConsumeInfo{Group: "G", Took: 10 * time.Millisecond, Batch: 1, Lag: 4}, good)
		require.ErrorIs(t, s.of("bad").Err, errNo)
		later := s.of("later")
		require.Equal(t, 45*time.Second, later.Delay)
		require.EqualValues(t, 2, later.Lag)
		var pe *rocketmq.PanicError
		require.ErrorAs(t, s.of("panic").Err, &pe)
		require.NoError(t, c.stop())
	})
}

func TestHookConsumeOfBatches(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 4 {
			b.put("T", 0, fmt.Sprint(i))
		}
		s := &spy{}
		c := start(t, newPush(t, b.client(rocketmq.WithHooks(s)), consumer.StartFrom(rocketmq.Earliest()), consumer.WithMaxAttempts(1),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(_ context.Context, ms []*rocketmq.MessageView) error {
				if len(ms) == 4 {
					return consumer.Acked(1, consumer.BatchError{errNo})
				}
				return nil
			}), consumer.Batch(4))))
		synctest.Wait()
		require.Equal(t, map[string][]string{"0": {"done"}, "1": {"dead-letter"}, "2": {"untried", "done"}, "3": {"untried", "done"}}, s.outcomes(),
			"with one attempt a failure is the last")
		require.Equal(t, 4, s.of("3").Batch)
		require.NoError(t, c.stop())
	})
}

func TestHookConsumeInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for _, body := range []string{"good", "bad", "later", "dead"} {
			b.put("T", 0, body)
		}
		s := &spy{}
		c := start(t, newOrdered(t, b.client(rocketmq.WithHooks(s)), each(fails)))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string][]string{"good": {"done"}, "bad": {"retry", "done"}, "later": {"retry", "done"}, "dead": {"dead-letter"}}, s.outcomes())
		require.NoError(t, c.stop())
	})
}

func TestHookConsumeBroadcast(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for _, body := range []string{"good", "bad", "later", "dead"} {
			b.put("T", 0, body)
		}
		s := &spy{}
		c := start(t, newPush(t, b.client(rocketmq.WithHooks(s)), consumer.WithModel(consumer.Broadcasting), consumer.StartFrom(rocketmq.Earliest()), each(fails)))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, map[string][]string{"good": {"done"}, "bad": {"dropped"}, "later": {"dropped"}, "dead": {"dropped"}}, s.outcomes())
		require.NoError(t, c.stop())
	})
}

// A handler that is cut short has not failed.
func TestHookConsumeWhenCutShort(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, _ func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		b.put("T", 0, "slow")
		s := &spy{}
		cl := b.client(rocketmq.WithHooks(s))
		opts := []consumer.Option{consumer.WithDrainTimeout(time.Second), each(func(ctx context.Context, m *rocketmq.MessageView) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})}
		var p role
		if t.Name()[len(t.Name())-4:] == "push" {
			p = newPush(t, cl, append(opts, consumer.StartFrom(rocketmq.Earliest()))...)
		} else {
			p = newOrdered(t, cl, opts...)
		}
		c := start(t, p)
		synctest.Wait()
		require.Error(t, c.stop())
		synctest.Wait()
		require.Equal(t, map[string][]string{"slow": {"revoked"}}, s.outcomes())
	})
}

func TestHookRebalance(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		s := &spy{}
		sub := consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))
		first := start(t, newPush(t, b.client(rocketmq.WithHooks(s), rocketmq.WithInstanceName("a")), sub))
		second := start(t, newPush(t, b.client(rocketmq.WithInstanceName("b")), sub))
		time.Sleep(2 * time.Second)
		require.NoError(t, second.stop())
		time.Sleep(2 * time.Second)
		b.on(wire.ReqGetConsumerListByGroup, func(r *remoting.Request) bool {
			r.Reply(wire.RespNoPermission, "busy", nil, nil)
			return true
		})
		b.notify("G")
		synctest.Wait()
		require.ErrorContains(t, first.Health().RebalanceError, "busy")
		b.on(wire.ReqGetConsumerListByGroup, nil)
		last := first.Health().Rebalanced
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.NoError(t, first.Health().RebalanceError)
		require.Greater(t, first.Health().Rebalanced, last)
		q := func(ids ...int) (out []rocketmq.Queue) {
			for _, id := range ids {
				out = append(out, rocketmq.Queue{Topic: "T", Broker: "b", ID: id})
			}
			return out
		}
		require.Len(t, s.balanced, 4)
		failed := s.balanced[3]
		require.ErrorContains(t, failed.Err, "busy")
		require.Equal(t, []rocketmq.RebalanceInfo{
			{Group: "G", Topic: "T", Assigned: q(0, 1, 2, 3), Gained: q(0, 1, 2, 3)},
			{Group: "G", Topic: "T", Assigned: q(0, 1), Lost: q(2, 3)},
			{Group: "G", Topic: "T", Assigned: q(0, 1, 2, 3), Gained: q(2, 3)},
		}, s.balanced[:3])
		require.NoError(t, first.stop())
	})
}

// ownStrategy does what a test says.
type ownStrategy struct {
	mu sync.Mutex
	f  func(in rebalance.Input) ([]rocketmq.Queue, error)
}

func (*ownStrategy) Name() string { return "own" }
func (s *ownStrategy) Allocate(in rebalance.Input) ([]rocketmq.Queue, error) {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	return f(in)
}

// A strategy of the application's that fails, panics, or gives queues that are
// not the topic's changes nothing of what is assigned, and is seen.
func TestFaultyStrategyKeepsTheAssignment(t *testing.T) {
	t.Parallel()
	all := func(in rebalance.Input) ([]rocketmq.Queue, error) { return in.Queues, nil }
	for name, tc := range map[string]struct {
		f    func(in rebalance.Input) ([]rocketmq.Queue, error)
		want string
	}{
		"error": {func(rebalance.Input) ([]rocketmq.Queue, error) { return nil, errNo }, "no"},
		"panic": {func(rebalance.Input) ([]rocketmq.Queue, error) { panic("at the disco") }, "at the disco"},
		"foreign queue": {func(in rebalance.Input) ([]rocketmq.Queue, error) {
			return []rocketmq.Queue{{Topic: in.Topic, Broker: "elsewhere"}}, nil
		}, "elsewhere"},
		"queue of another topic": {func(in rebalance.Input) ([]rocketmq.Queue, error) {
			return []rocketmq.Queue{{Topic: "U", Broker: "b"}}, nil
		}, "U/b/0"},
		"a queue twice": {func(in rebalance.Input) ([]rocketmq.Queue, error) { return append(in.Queues, in.Queues[0]), nil }, "twice"},
		"its input changed": {func(in rebalance.Input) ([]rocketmq.Queue, error) {
			in.Queues[1].ID = 9
			return in.Queues[1:2], nil
		}, "T/b/9"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 2)
				s, st := &spy{}, &ownStrategy{f: all}
				var got received
				c := start(t, newPush(t, b.client(rocketmq.WithHooks(s)), consumer.WithStrategy(st), consumer.Subscribe("T", selector.All, got.handler())))
				st.mu.Lock()
				st.f = tc.f
				st.mu.Unlock()
				b.notify("G")
				time.Sleep(30 * time.Second)
				synctest.Wait()
				require.Equal(t, 2, assigned(c))
				require.ErrorContains(t, c.Health().RebalanceError, tc.want)
				require.ErrorContains(t, c.Health().RebalanceError, `"T"`)
				s.mu.Lock()
				require.ErrorContains(t, s.balanced[len(s.balanced)-1].Err, tc.want)
				s.mu.Unlock()
				b.put("T", 1, "m")
				synctest.Wait()
				require.Len(t, got.bodies(), 1)
				st.mu.Lock()
				st.f = func(in rebalance.Input) ([]rocketmq.Queue, error) { return in.Queues[:1], nil }
				st.mu.Unlock()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				require.Equal(t, 1, assigned(c))
				require.NoError(t, c.Health().RebalanceError)
				require.NoError(t, c.stop())
			})
		})
	}
}
