package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// Members of one group receive from two brokers, drop what they like, hold back,
// acknowledge, leave and come back. Every message is acknowledged by somebody in the
// end, or is a dead letter after three attempts; attempts are counted; and what was
// acknowledged or is invisible does not come.
func TestSimpleChurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := testbroker.New(t, testbroker.Virtual(), testbroker.Brokers(2), testbroker.Topic("T", 2))
		p, err := producer.New(b.Client(t))
		require.NoError(t, err)
		const messages, hopeless = 400, 8 // one in so many
		for i := range messages {
			_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: fmt.Append(nil, i)})
			require.NoError(t, err)
		}
		var mu sync.Mutex
		attempts, acked := map[string]int{}, map[string]bool{}
		until := map[string]time.Time{} // invisible
		work := func(s *consumer.Simple, r *rand.Rand) {
			for {
				got, err := s.Receive(t.Context(), 1+r.IntN(16), 10*time.Second)
				if errors.Is(err, rocketmq.ErrClosed) {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				for _, m := range got {
					body := string(m.Body)
					var n int
					_, _ = fmt.Sscan(body, &n)
					mu.Lock()
					attempts[body]++
					assert.Equal(t, attempts[body], m.Attempt, body)
					assert.False(t, acked[body], "%s was acknowledged", body)
					assert.False(t, time.Now().Before(until[body]), "%s is invisible", body)
					until[body] = m.Deadline()
					mu.Unlock()
					if r.IntN(3) == 0 { // held back
						assert.NoError(t, m.Extend(t.Context(), 20*time.Second))
						mu.Lock()
						until[body] = m.Deadline()
						mu.Unlock()
					}
					if n%hopeless == 0 || m.Attempt < 3 && r.IntN(4) == 0 {
						continue // dropped
					}
					mu.Lock()
					acked[body] = true
					mu.Unlock()
					assert.NoError(t, m.Ack(t.Context()))
				}
			}
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for life := range 3 {
					s := newSimple(t, b.Client(t), fromT, consumer.WithMaxAttempts(3))
					r := rand.New(rand.NewPCG(uint64(i), uint64(life)))
					rest := time.Duration(20+r.IntN(20)) * time.Second
					var mine sync.WaitGroup
					mine.Go(func() { work(s, r) })
					time.Sleep(rest)
					assert.NoError(t, s.Close(context.Background()))
					mine.Wait()
				}
			})
		}
		wg.Wait()
		last := newSimple(t, b.Client(t), fromT, consumer.WithMaxAttempts(3))
		nothing(t, last, time.Minute)
		require.NoError(t, last.Close(t.Context()))
		require.Len(t, acked, messages-messages/hopeless)
		for body, n := range attempts {
			require.LessOrEqual(t, n, 3, body)
		}
		dead := map[string]int{}
		for _, m := range b.DeadLetters("G") {
			dead[string(m.Body)]++
		}
		require.Len(t, dead, messages/hopeless)
		for i := range messages / hopeless {
			require.Equal(t, 1, dead[fmt.Sprint(i*hopeless)])
		}
	})
}

// A broker that restarts still has what is invisible.
func TestSimpleBrokerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 2))
		p, err := producer.New(b.Client(t))
		require.NoError(t, err)
		send := func(body string) {
			_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Tag: "A", Body: []byte(body)})
			require.NoError(t, err)
		}
		send("acknowledged")
		s := newSimple(t, b.Client(t), consumer.SubscribeTo("T", selector.Tags("A")))
		require.NoError(t, receive(t, s, 1, time.Minute)[0].Ack(t.Context()))
		send("not acknowledged")
		m := receive(t, s, 1, time.Minute)[0]
		b.Restart("broker-a", 0)
		began := time.Now()
		again := receive(t, s, 1, time.Minute)[0]
		require.Equal(t, "not acknowledged", string(again.Body))
		require.Equal(t, 2, again.Attempt)
		require.GreaterOrEqual(t, time.Since(began), 50*time.Second)
		require.ErrorIs(t, m.Ack(t.Context()), rocketmq.ErrHandle)
		require.NoError(t, again.Ack(t.Context()))
		send("after")
		require.Equal(t, "after", string(receive(t, s, 1, time.Minute)[0].Body))
	})
}
