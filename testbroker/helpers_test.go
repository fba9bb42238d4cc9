package testbroker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// bodies collects the bodies that a consumer gets.
type bodies struct {
	mu   sync.Mutex // guards seen
	seen map[string]int
	news chan struct{} // capacity 1
}

func newBodies() *bodies { return &bodies{seen: map[string]int{}, news: make(chan struct{}, 1)} }

func (b *bodies) handle(_ context.Context, m *rocketmq.MessageView) error {
	b.mu.Lock()
	b.seen[string(m.Body)]++
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
	return nil
}

func (b *bodies) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

// await blocks until n different bodies have come.
func (b *bodies) await(t *testing.T, n int) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for b.count() < n {
		select {
		case <-b.news:
		case <-limit:
			require.FailNow(t, "messages are missing", "%d of %d came", b.count(), n)
		}
	}
}

// consume runs a consumer until the returned function is called.
func consume(t *testing.T, cl *rocketmq.Client, group, topic string, b *bodies) (stop func()) {
	t.Helper()
	c, err := consumer.NewPush(cl, group,
		consumer.Subscribe(topic, selector.All, consumer.Each(b.handle)), consumer.StartFrom(rocketmq.Earliest()))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	select {
	case <-c.Ready():
	case err := <-ended:
		require.NoError(t, err)
		require.FailNow(t, "the consumer ended")
	}
	return func() {
		t.Helper()
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, <-ended)
	}
}

// send sends n messages with bodies prefix-0, prefix-1 and so on.
func send(t *testing.T, p *producer.Producer, topic, prefix string, n int) {
	t.Helper()
	for i := range n {
		_, err := p.Send(t.Context(), &rocketmq.Message{Topic: topic, Body: fmt.Appendf(nil, "%s-%d", prefix, i)})
		require.NoError(t, err)
	}
}

// patient keeps a starved machine from having sends repeated: the copies
// would be counted.
func patient() producer.Option { return producer.WithTimeout(30*time.Second, 15*time.Second) }

func newProducer(t *testing.T, c *testbroker.Cluster, opts ...producer.Option) *producer.Producer {
	t.Helper()
	p, err := producer.New(c.Client(t), append([]producer.Option{patient()}, opts...)...)
	require.NoError(t, err)
	return p
}
