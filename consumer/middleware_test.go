package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
)

// mark is a context's key.
type mark struct{}

func TestMiddlewareOrder(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		b.topic("U", 1)
		b.put("T", 0, "a")
		b.put("U", 0, "b")
		var mu sync.Mutex
		calls := map[string][]string{}
		note := func(name string) consumer.Middleware {
			return func(next consumer.Handler) consumer.Handler {
				return consumer.HandlerFunc(func(ctx context.Context, ms []*rocketmq.MessageView) error {
					mu.Lock()
					calls[ms[0].Topic] = append(calls[ms[0].Topic], name+">")
					mu.Unlock()
					err := next.Handle(context.WithValue(ctx, mark{}, name), ms)
					mu.Lock()
					calls[ms[0].Topic] = append(calls[ms[0].Topic], "<"+name)
					mu.Unlock()
					return err
				})
			}
		}
		h := consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
			mu.Lock()
			defer mu.Unlock()
			calls[m.Topic] = append(calls[m.Topic], fmt.Sprintf("handler in %v", ctx.Value(mark{})))
			return nil
		})
		c := start(t, join(consumer.WithMiddleware(note("1"), note("2")), consumer.Subscribe("T", selector.All, h),
			consumer.WithMiddleware(note("3")), consumer.Subscribe("U", selector.All, h)))
		synctest.Wait()
		for _, topic := range []string{"T", "U"} {
			require.Equal(t, "1>2>3>handler in 3<3<2<1", strings.Join(calls[topic], ""))
		}
		require.NoError(t, c.stop())
	})
}

// What the middleware returns counts, and what panics in it has failed.
func TestMiddlewareDecides(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for _, body := range []string{"swallowed", "panics", "skipped"} {
			b.put("T", 0, body)
		}
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.WithMiddleware(func(next consumer.Handler) consumer.Handler {
			return consumer.HandlerFunc(func(ctx context.Context, ms []*rocketmq.MessageView) error {
				switch string(ms[0].Body) {
				case "panics":
					panic("in the middle")
				case "skipped":
					return nil
				}
				_ = next.Handle(ctx, ms)
				return nil
			})
		}), each(func(_ context.Context, m *rocketmq.MessageView) error { got.add(m); return errNo })))
		synctest.Wait()
		require.Equal(t, map[string]int{"swallowed": 1}, got.bodies())
		require.Len(t, b.sendBacks, 1)
		require.NoError(t, c.stop())
		require.EqualValues(t, 3, b.stored("T", 0))
	})
}

func TestMiddlewareThatIsNone(t *testing.T) {
	cl := newFake(t).client()
	sub := consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))
	_, err := consumer.NewPush(cl, "G", sub, consumer.WithMiddleware(nil))
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	_, err = consumer.NewPush(cl, "G", sub, consumer.WithMiddleware(func(consumer.Handler) consumer.Handler { return nil }))
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	require.ErrorContains(t, err, "returned no handler")
	_, err = consumer.NewPush(cl, "G", sub, consumer.OnRebalance(nil))
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
}
