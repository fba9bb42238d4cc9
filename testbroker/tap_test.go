package testbroker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// TestRulesUnderLoad makes and removes rules of all kinds that do no lasting
// harm while messages stream through, frozen servers included: each message
// arrives, whatever byte of its frame a rule has begun or ended at.
func TestRulesUnderLoad(t *testing.T) {
	for _, place := range []string{"sockets", "virtual"} {
		t.Run(place, func(t *testing.T) {
			test := func(t *testing.T) {
				opts := []testbroker.Option{testbroker.Topic("T", 4), testbroker.Brokers(2)}
				if place == "virtual" {
					opts = append(opts, testbroker.Virtual())
				}
				c := testbroker.New(t, opts...)
				got := newBodies()
				stop := consume(t, c.Client(t), "G", "T", got)
				p := newProducer(t, c, producer.WithRetries(16))
				const n = 800
				done := make(chan error, n)
				go func() {
					for i := range n {
						m := &rocketmq.Message{Topic: "T", Body: append(fmt.Appendf(nil, "m-%d-", i), make([]byte, i%5000)...)}
						p.SendAsync(context.Background(), m, func(_ producer.Result, err error) { done <- err })
					}
				}()
				rnd := rand.New(rand.NewPCG(1, 2))
				for i := 0; len(done) < n && i < 2000; i++ {
					r := c.On().Optional()
					if rnd.IntN(2) == 0 {
						r = r.AfterApply()
					}
					switch rnd.IntN(5) {
					case 0:
						h := r.Hold()
						time.Sleep(time.Millisecond)
						h.Release()
					case 1:
						h := r.Delay(time.Millisecond)
						time.Sleep(2 * time.Millisecond)
						h.Remove()
					case 2:
						h := r.Corrupt(func(b []byte) []byte { return b })
						time.Sleep(time.Millisecond)
						h.Remove()
					case 3:
						server := []string{"broker-a", "broker-b", "namesrv-0"}[rnd.IntN(3)]
						c.Freeze(server)
						time.Sleep(time.Millisecond)
						c.Thaw(server)
					case 4:
						if i%8 == 0 {
							r.Times(1).Disconnect()
						}
						time.Sleep(time.Millisecond)
					}
				}
				for range n {
					require.NoError(t, <-done)
				}
				got.await(t, n)
				require.NoError(t, c.WaitIdle(t.Context()), "copies of what was sent twice")
				stop()
				require.Zero(t, c.Lag("G", "T"))
			}
			if place == "virtual" {
				synctest.Test(t, test)
			} else {
				test(t)
			}
		})
	}
}
