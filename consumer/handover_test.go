package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// churn has members of topic T come and go while put stores messages and time passes, and
// returns how many there were and how many came twice.
func churn(t *testing.T, b *fake, put func(r *rand.Rand) (sent int)) (sent, twice int) {
	var got received
	h := consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
		time.Sleep(3 * time.Millisecond)
		got.add(m)
		return nil
	})
	join := func() *running {
		return start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, h)))
	}
	members := []*running{join()}
	r := rand.New(rand.NewPCG(7, 7))
	for range 60 {
		sent += put(r)
		switch i := r.IntN(len(members)); {
		case len(members) < 2 || len(members) < 5 && r.IntN(2) == 0:
			members = append(members, join())
		default:
			require.NoError(t, members[i].stop())
			members = slices.Delete(members, i, i+1)
		}
	}
	time.Sleep(30 * time.Second)
	synctest.Wait()
	require.Len(t, got.bodies(), sent, "nothing is lost")
	queues := 0
	for _, m := range members {
		queues += assigned(m)
	}
	require.Equal(t, 8, queues, "each queue has one owner")
	for _, m := range members {
		require.NoError(t, m.stop())
	}
	total := int64(0)
	for q := range 8 {
		total += b.stored("T", q)
	}
	require.EqualValues(t, sent, total)
	return sent, len(got.msgs) - sent
}

// Members come and go: nothing is lost, and what was done before a queue
// changed hands is not done again.
func TestChurn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 8)
		n := 0
		sent, twice := churn(t, b, func(r *rand.Rand) int {
			for range 40 {
				b.put("T", r.IntN(8), fmt.Sprint(n))
				n++
			}
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			return 40
		})
		require.Zero(t, twice, "of %d", sent)
	})
}

// The same while messages flow without a break: handlers that are at work when
// their queue is lost have time to end before the next owner begins.
func TestChurnWhileMessagesFlow(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 8)
		n := 0
		flow := func(r *rand.Rand) int {
			began := n
			for range 20 + r.IntN(180) {
				b.put("T", r.IntN(8), fmt.Sprint(n))
				n++
				time.Sleep(5 * time.Millisecond)
			}
			return n - began
		}
		stop, flowed := make(chan struct{}), make(chan int)
		go func() {
			sum := 0
			r := rand.New(rand.NewPCG(8, 8))
			for {
				select {
				case <-stop:
					flowed <- sum
					return
				default:
				}
				sum += flow(r)
			}
		}()
		changes := 0
		_, twice := churn(t, b, func(r *rand.Rand) int {
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
			if changes++; changes == 60 {
				close(stop)
				return <-flowed
			}
			return 0
		})
		require.Zero(t, twice, "of %d", n)
	})
}

// history is a topic whose group has an offset, and messages behind it.
func history(b *fake, done, all int) {
	b.topic("T", 1)
	for i := range all {
		b.put("T", 0, fmt.Sprint(i))
	}
	b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = int64(done)
}

// alsoHere adds a member to the group that does nothing, and sorts behind ours.
func alsoHere(b *fake) {
	b.on(wire.ReqGetConsumerListByGroup, func(r *remoting.Request) bool {
		b.mu.Lock()
		l := wire.ConsumerList{IDs: []string{"zzz@1"}}
		for _, id := range b.members {
			l.IDs = append(l.IDs, id)
		}
		b.mu.Unlock()
		r.Reply(wire.RespSuccess, "", nil, l.AppendJSON(nil))
		return true
	})
}

// firstPull starts a consumer and returns when it was ready, when it pulled
// first and from where, both counted from the start.
func firstPull(t *testing.T, b *fake) (ready, pulled time.Duration, from int64) {
	var first sync.Once
	at, offset := make(chan time.Time, 1), make(chan int64, 1)
	b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
		var h wire.PullRequest
		_ = h.DecodeExt(r.Frame())
		if string(h.Topic) == "T" {
			first.Do(func() { at <- time.Now(); offset <- h.Offset })
		}
		return false
	})
	began := time.Now()
	c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
	ready = time.Since(began)
	pulled = (<-at).Sub(began)
	require.NoError(t, c.stop())
	return ready, pulled, <-offset
}

func TestTakingOver(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script func(b *fake)
		pulled time.Duration
		from   int64
	}{
		{"a member that is alone waits for nobody", func(*fake) {}, 0, 5},
		{"nobody had a queue without an offset", func(b *fake) {
			alsoHere(b)
			b.mu.Lock()
			clear(b.offsets)
			b.topics["T"].min[0] = 1 // not young: no offset is no offset
			b.mu.Unlock()
		}, 0, 1},
		{"an owner that has said all", alsoHere, 100 * time.Millisecond, 5},
		{"an owner that commits later", func(b *fake) {
			alsoHere(b)
			moves(b, 60*time.Millisecond, 7)
		}, 150 * time.Millisecond, 7},
		{"an owner whose handlers take a while", func(b *fake) {
			alsoHere(b)
			moves(b, 60*time.Millisecond, 7)
			moves(b, 130*time.Millisecond, 9)
		}, 200 * time.Millisecond, 9},
		{"an owner that never ends", func(b *fake) {
			alsoHere(b)
			for i := range 100 {
				moves(b, time.Duration(i)*40*time.Millisecond, 6+int64(i)%14)
			}
		}, time.Second, -1},
		{"a broker that does not say", func(b *fake) {
			alsoHere(b)
			var asked atomic.Int32
			b.on(wire.ReqQueryConsumerOffset, func(r *remoting.Request) bool {
				var h wire.QueryOffsetRequest
				_ = h.DecodeExt(r.Frame())
				if h.Topic != "T" || asked.Add(1) == 1 {
					return false
				}
				r.Drop()
				return true
			})
		}, time.Second, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				history(b, 5, 20)
				tc.script(b)
				ready, pulled, from := firstPull(t, b)
				require.Zero(t, ready, "to be ready waits for nobody")
				require.Equal(t, tc.pulled, pulled)
				if tc.from >= 0 {
					require.Equal(t, tc.from, from)
				}
			})
		})
	}
}

// moves has the queue's owner commit later.
func moves(b *fake, in time.Duration, to int64) {
	time.AfterFunc(in, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = to
	})
}

// A consumer that ends before it has begun with a queue leaves the offset to
// the owner before.
func TestCloseWhileTakingOver(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		history(b, 5, 20)
		alsoHere(b)
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		require.Equal(t, "taking over", c.Health().Queues[0].State)
		moves(b, 50*time.Millisecond, 9)
		time.Sleep(60 * time.Millisecond)
		require.NoError(t, c.stop())
		require.EqualValues(t, 9, b.stored("T", 0))
		for _, q := range b.pulls {
			require.NotEqual(t, "T", string(q.Topic))
		}
	})
}

// What handlers get done after their queue was lost is told, unless the next
// owner is further.
func TestRevokedQueueDoesNotTakeTheOffsetBack(t *testing.T) {
	for further, want := range map[int64]int64{0: 20, 3: 20, 60: 60} {
		bubble(t, func(t *testing.T, b *fake) {
			history(b, 0, 20)
			gate := make(chan struct{})
			c := start(t, newPush(t, b.client(rocketmq.WithInstanceName("zzz")), consumer.StartFrom(rocketmq.Earliest()),
				consumer.Subscribe("T", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error { <-gate; return nil }))))
			synctest.Wait()
			b.on(wire.ReqGetConsumerListByGroup, func(r *remoting.Request) bool {
				b.mu.Lock()
				l := wire.ConsumerList{IDs: []string{"0@0"}} // sorts first, has the one queue
				for _, id := range b.members {
					l.IDs = append(l.IDs, id)
				}
				b.mu.Unlock()
				r.Reply(wire.RespSuccess, "", nil, l.AppendJSON(nil))
				return true
			})
			b.notify("G")
			synctest.Wait()
			require.Zero(t, assigned(c))
			moves(b, 10*time.Millisecond, further)
			time.Sleep(20 * time.Millisecond)
			close(gate)
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.Equal(t, want, b.stored("T", 0))
			require.NoError(t, c.stop())
		})
	}
}

// A one-way commit may be lost: whoever ends makes sure.
func TestCloseCommitsWhatWasOnlySent(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		history(b, 0, 20)
		b.on(wire.ReqUpdateConsumerOffset, func(r *remoting.Request) bool {
			return r.Frame().Flag&wire.FlagOneway != 0 // lost
		})
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.Len(t, got.bodies(), 20)
		b.mu.Lock()
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 0 // also what pulls said
		b.mu.Unlock()
		require.NoError(t, c.stop())
		require.EqualValues(t, 20, b.stored("T", 0))
	})
}
