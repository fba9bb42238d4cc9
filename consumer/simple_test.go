package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/rebalance"
	"github.com/gorocketmq/rocketmq/selector"
)

// popBubble runs f in virtual time with a broker that knows POP and has a topic
// T of four queues.
func popBubble(t *testing.T, f func(t *testing.T, b *fake, p *fakePop)) {
	t.Helper()
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		f(t, b, newFakePop(b))
	})
}

// newSimple is a member of group G, closed with the test.
func newSimple(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) *consumer.Simple {
	t.Helper()
	s, err := consumer.NewSimple(cl, "G", append([]consumer.Option{consumer.StartFrom(rocketmq.Earliest())}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

var fromT = consumer.SubscribeTo("T", selector.All)

// receive wants n messages at once.
func receive(t testing.TB, s *consumer.Simple, n int, invisible time.Duration) []*consumer.Received {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	got, err := s.Receive(ctx, 32, invisible)
	require.NoError(t, err)
	require.Len(t, got, n)
	return got
}

// nothing comes for so long.
func nothing(t testing.TB, s *consumer.Simple, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	got, err := s.Receive(ctx, 32, time.Minute)
	require.Empty(t, got)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestSimpleReceivesAndAcknowledges(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		for i := range 6 {
			b.put("T", i%2, fmt.Sprint(i), withProps(wire.PropTags, "A", wire.PropKeys, "k"+fmt.Sprint(i), wire.PropUniqKey, fmt.Sprint("id", i)))
		}
		s := newSimple(t, b.client(), fromT)
		began := time.Now()
		got := receive(t, s, 6, time.Minute)
		bodies := map[string]bool{}
		for _, m := range got {
			bodies[string(m.Body)] = true
			require.Equal(t, "T", m.Topic)
			require.Equal(t, "T", m.Queue.Topic)
			require.Equal(t, "b", m.Queue.Broker)
			require.Equal(t, "A", m.Tag)
			require.Equal(t, "id"+string(m.Body), m.ID)
			require.Equal(t, []string{"k" + string(m.Body)}, m.Keys)
			require.Equal(t, 1, m.Attempt)
			require.Equal(t, began.Add(time.Minute), m.Deadline())
			require.NoError(t, m.Ack(t.Context()))
			require.NoError(t, m.Ack(t.Context()), "a second one does nothing")
		}
		require.Len(t, bodies, 6)
		require.Len(t, p.acks, 6)
		for i, a := range p.acks {
			off := i % 3
			require.Equal(t, wire.AckRequest{
				Group: "G", Topic: "T", QueueID: int32(i / 3), Offset: int64(off),
				Handle: fmt.Sprintf("0 %d 60000 0 0 b %d %d", began.UnixMilli(), i/3, off),
			}, a)
		}
		require.Equal(t, wire.PopRequest{QueueID: wire.AnyQueue, MaxMsgs: 32, InvisibleMillis: 60000, InitMode: wire.PopFromMin}, p.pops[0])
		nothing(t, s, 2*time.Minute)
		require.NoError(t, s.Close(t.Context()))
		synctest.Wait() // a heartbeat was due at the same moment: it is told that the group has left, and not waited for

		hb := b.beats[len(b.beats)-1].Consumers
		require.Len(t, hb, 1)
		require.Equal(t, "G", hb[0].Group)
		require.Equal(t, wire.ConsumePop, hb[0].ConsumeType)
		require.Equal(t, wire.Clustering, hb[0].Model)
		require.Equal(t, wire.FromFirstOffset, hb[0].From)
		require.Equal(t, "T", hb[0].Subscriptions[0].Topic)
		require.Equal(t, []string{"G"}, b.left)
	})
}

func TestSimpleComesAgain(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 3, "m", withProps(wire.PropUniqKey, "id"))
		s := newSimple(t, b.client(), fromT)
		began := time.Now()
		first := receive(t, s, 1, 10*time.Second)[0]
		for attempt := 2; attempt <= 4; attempt++ {
			m := receive(t, s, 1, 10*time.Second)[0]
			require.Equal(t, time.Duration(attempt-1)*10*time.Second, time.Since(began), "when it is visible again, and not later")
			require.Equal(t, attempt, m.Attempt)
			require.Equal(t, "id", m.ID)
			require.Equal(t, "T", m.Topic, "the topic it was sent to")
			require.Equal(t, rocketmq.Queue{Topic: "%RETRY%G_T", Broker: "b"}, m.Queue)
			if attempt == 4 {
				require.NoError(t, m.Ack(t.Context()))
				require.Equal(t, "%RETRY%G_T", p.acks[0].Topic)
			}
		}
		nothing(t, s, time.Minute)

		var he *rocketmq.HandleError
		err := first.Ack(t.Context())
		require.ErrorAs(t, err, &he)
		require.ErrorIs(t, err, rocketmq.ErrHandle)
		require.Equal(t, "id", he.ID)
		require.Equal(t, rocketmq.Queue{Topic: "T", Broker: "b", ID: 3}, he.Queue)
		require.Equal(t, first.Deadline(), he.Deadline)
		require.False(t, rocketmq.IsRetryable(err))
		require.ErrorIs(t, first.Extend(t.Context(), time.Minute), rocketmq.ErrHandle)
		require.Len(t, p.acks, 1, "nothing was sent for a handle that is too late")
	})
}

func TestSimpleExtend(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 0, "before")
		b.put("T", 0, "m")
		s := newSimple(t, b.client(), fromT)
		got := receive(t, s, 2, 10*time.Second)
		require.NoError(t, got[0].Ack(t.Context()))
		m := got[1]
		for range 5 {
			time.Sleep(8 * time.Second)
			require.NoError(t, m.Extend(t.Context(), 10*time.Second))
			require.Equal(t, 10*time.Second, time.Until(m.Deadline()))
		}
		require.Equal(t, fmt.Sprintf("1 %d 10000 7 0 b 0 1", time.Now().Add(-8*time.Second).UnixMilli()), p.acks[5].Handle, "what the extension before has made")
		require.Equal(t, int64(10_000), p.acks[5].InvisibleMillis)
		require.NoError(t, m.Extend(t.Context(), time.Second), "sooner than it was to be")
		time.Sleep(900 * time.Millisecond)
		require.NoError(t, m.Ack(t.Context()))
		nothing(t, s, time.Minute)
		require.ErrorIs(t, m.Extend(t.Context(), time.Second), rocketmq.ErrHandle, "after Ack")

		b.put("T", 0, "again")
		m = receive(t, s, 1, time.Minute)[0]
		require.NoError(t, m.Extend(t.Context(), time.Second))
		began := time.Now()
		require.Equal(t, 2, receive(t, s, 1, time.Minute)[0].Attempt)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// What a broker does not know, though its time is not over.
func TestSimpleUnknownHandle(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 0, "m")
		s := newSimple(t, b.client(), fromT)
		m := receive(t, s, 1, time.Minute)[0]
		p.f.mu.Lock()
		p.out = nil
		p.f.mu.Unlock()
		for _, err := range []error{m.Ack(t.Context()), m.Extend(t.Context(), time.Minute)} {
			require.ErrorIs(t, err, rocketmq.ErrHandle)
			var be *rocketmq.BrokerError
			require.ErrorAs(t, err, &be)
			require.ErrorContains(t, err, "unknown handle")
		}
		b.on(wire.ReqAckMessage, func(r *remoting.Request) bool {
			r.Reply(wire.RespSystemError, "oops", nil, nil)
			return true
		})
		err := m.Ack(t.Context())
		require.NotErrorIs(t, err, rocketmq.ErrHandle)
		require.ErrorContains(t, err, "oops")
	})
}

func TestSimpleDeadLetter(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprint("own limit ", own), func(t *testing.T) {
			popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
				b.put("T", 1, "m", withProps(wire.PropUniqKey, "id"))
				limit, opts := 17, []consumer.Option{fromT}
				if own {
					limit, opts = 3, append(opts, consumer.WithMaxAttempts(3))
				}
				s := newSimple(t, b.client(), opts...)
				for attempt := 1; attempt <= limit; attempt++ {
					require.Equal(t, attempt, receive(t, s, 1, time.Second)[0].Attempt)
				}
				nothing(t, s, 2*time.Minute)
				require.Equal(t, []wire.SendBackRequest{{
					Offset: 100_000 + int64(limit) - 1, Group: "G", DelayLevel: -1, OriginMsgID: "id", OriginTopic: "%RETRY%G_T",
				}}, p.buried)
				invisible, _, _ := p.counts()
				require.Zero(t, invisible, "acknowledged")
			})
		})
	}
}

// A message that cannot be sent to the dead letters is not lost.
func TestSimpleDeadLetterRefused(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 1, "m")
		refuse := true
		b.on(wire.ReqConsumerSendMsgBack, func(r *remoting.Request) bool {
			b.mu.Lock()
			no := refuse
			b.mu.Unlock()
			if no {
				r.Reply(wire.RespSystemError, "no", nil, nil)
			} else {
				p.sendBack(r)
			}
			return true
		})
		s := newSimple(t, b.client(), fromT, consumer.WithMaxAttempts(1))
		receive(t, s, 1, time.Second)
		nothing(t, s, 10*time.Second)
		require.Empty(t, p.acks)
		b.mu.Lock()
		refuse = false
		b.mu.Unlock()
		nothing(t, s, 2*time.Minute)
		require.Len(t, p.buried, 1)
		require.Len(t, p.acks, 1)
	})
}

// A Receive that waits costs a request in 15 s, and is woken at once.
func TestSimpleWaits(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		s := newSimple(t, b.client(), fromT)
		nothing(t, s, 5*time.Minute)
		_, pops, notices := p.counts()
		require.InDelta(t, 20, notices, 1)
		require.InDelta(t, 20, pops, 1)

		var wg sync.WaitGroup
		for range 10 { // all wait with one request
			wg.Go(func() {
				got, err := s.Receive(t.Context(), 1, time.Minute)
				assert.NoError(t, err)
				assert.Len(t, got, 1)
			})
		}
		synctest.Wait()
		p.f.mu.Lock()
		require.Len(t, p.polls, 1)
		p.f.mu.Unlock()
		began := time.Now()
		for i := range 10 {
			b.put("T", i%4, fmt.Sprint(i))
		}
		wg.Wait()
		require.Less(t, time.Since(began), 100*time.Millisecond)
	})
}

// Brokers that answer wrongly, or tell of messages that are not to be had, are not
// asked in a tight loop.
func TestSimpleDoesNotSpin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has  bool
		rest int64
	}{"always announced": {true, 0}, "never held": {false, 0}, "always more": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
				asked := 0
				b.on(wire.ReqPopMessage, func(r *remoting.Request) bool {
					b.mu.Lock()
					asked++
					b.mu.Unlock()
					r.Reply(wire.RespPollingTimeout, "", &wire.PopResponse{PopTime: 1, Rest: c.rest}, nil)
					return true
				})
				b.on(wire.ReqNotification, func(r *remoting.Request) bool {
					r.Reply(wire.RespSuccess, "", &wire.NotificationResponse{HasMsg: c.has}, nil)
					return true
				})
				s := newSimple(t, b.client(), fromT)
				nothing(t, s, time.Minute)
				b.mu.Lock()
				defer b.mu.Unlock()
				if c.rest > 0 {
					require.InDelta(t, time.Minute/(40*time.Millisecond), asked, 50)
				} else {
					require.InDelta(t, 60, asked, 20)
				}
			})
		})
	}
}

func TestSimpleEnds(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		s := newSimple(t, b.client(), fromT)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		time.AfterFunc(time.Minute, func() { cancel(why) })
		began := time.Now()
		_, err := s.Receive(ctx, 1, time.Minute)
		require.ErrorIs(t, err, why)
		require.Equal(t, time.Minute, time.Since(began))
		_, err = s.Receive(ctx, 1, time.Minute)
		require.ErrorIs(t, err, why, "and what had ended before")

		b.put("T", 0, "m")
		m := receive(t, s, 1, time.Hour)[0]
		time.AfterFunc(time.Minute, func() { assert.NoError(t, s.Close(context.Background())) })
		began = time.Now()
		_, err = s.Receive(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
		require.Equal(t, time.Minute, time.Since(began))
		_, err = s.Receive(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, m.Ack(t.Context()), "after Close")
		synctest.Wait()
		require.Equal(t, []string{"G"}, b.left)
	})
}

// A client that closes takes its consumers along, one of a group at a time.
func TestSimpleAndItsClient(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		cl := b.client()
		s := newSimple(t, cl, fromT)
		second := newSimple(t, cl, fromT)
		nothing(t, s, time.Second)
		_, err := second.Receive(t.Context(), 1, time.Minute)
		require.ErrorContains(t, err, "already has a consumer")
		go func() { assert.NoError(t, cl.Close(context.Background())) }()
		_, err = s.Receive(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
		_, err = newSimple(t, cl, fromT).Receive(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
	})
}

// A POP that was sent is waited for, but not for ever.
func TestSimpleOutlasts(t *testing.T) {
	for name, late := range map[string]time.Duration{"in time": 300 * time.Millisecond, "too late": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
				b.put("T", 0, "m")
				b.on(wire.ReqPopMessage, func(r *remoting.Request) bool {
					time.Sleep(time.Second + late)
					p.pop(r)
					return true
				})
				s := newSimple(t, b.client(), fromT)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				got, err := s.Receive(ctx, 1, time.Minute)
				if late < 500*time.Millisecond {
					require.NoError(t, err)
					require.Len(t, got, 1)
					require.NoError(t, got[0].Ack(t.Context()))
					return
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 1500*time.Millisecond, time.Since(began))
				synctest.Wait()
			})
		})
	}
}

func TestSimpleOldBroker(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		s := newSimple(t, b.client(), fromT)
		_, err := s.Receive(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, rocketmq.ErrUnsupported)
		require.ErrorContains(t, err, "needs brokers of Apache RocketMQ 5.0")
	})
}

func TestSimpleRefusals(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		s := newSimple(t, b.client(), consumer.SubscribeTo("none", selector.All))
		_, err := s.Receive(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		b.topic("none", 1)
		b.put("none", 0, "m")
		receive(t, s, 1, time.Minute)
		b.on(wire.ReqPopMessage, func(r *remoting.Request) bool {
			r.Reply(wire.RespNoPermission, "subscription group no permission", nil, nil)
			return true
		})
		_, err = s.Receive(t.Context(), 1, time.Minute)
		require.ErrorIs(t, err, rocketmq.ErrNoPermission)
		b.on(wire.ReqPopMessage, func(*remoting.Request) bool { return false })
		newFakePop(b)
		time.Sleep(time.Second)
		receive(t, s, 1, time.Minute)
	})
}

// Failures are waited for, and named when there is no more time.
func TestSimpleOutlivesFailures(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 0, "m")
		asked := 0
		b.on(wire.ReqPopMessage, func(r *remoting.Request) bool {
			b.mu.Lock()
			asked++
			n := asked
			b.mu.Unlock()
			switch {
			case n == 3 || n == 4:
				r.Conn().Close(errors.New("broken"))
			case n < 6:
				r.Reply(wire.RespSystemError, "not yet", nil, nil)
			default:
				p.pop(r)
			}
			return true
		})
		s := newSimple(t, b.client(), fromT)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := s.Receive(ctx, 1, time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "not yet")
		began := time.Now()
		receive(t, s, 1, time.Minute)
		require.Less(t, time.Since(began), 20*time.Second)
	})
}

// Tags with the same hash code pass the broker's filter.
func TestSimpleTags(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		for i, tag := range []string{"AaAa", "BBBB", "other", "AaBB"} {
			b.put("T", 0, fmt.Sprint(i), withProps(wire.PropTags, tag))
		}
		s := newSimple(t, b.client(), consumer.SubscribeTo("T", selector.Tags("BBBB")))
		got := receive(t, s, 1, time.Minute)
		require.Equal(t, "BBBB", got[0].Tag)
		require.NoError(t, got[0].Ack(t.Context()))
		nothing(t, s, 2*time.Minute)
		invisible, _, _ := p.counts()
		require.Zero(t, invisible, "what is not wanted does not come again")
	})
}

func TestSimpleAckAll(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		for i := range 8 {
			b.put("T", i%2, fmt.Sprint(i))
		}
		s := newSimple(t, b.client(), fromT)
		got := receive(t, s, 8, time.Minute)
		require.NoError(t, got[1].Ack(t.Context()))
		require.NoError(t, got[2].Extend(t.Context(), 3*time.Minute))
		require.NoError(t, s.AckAll(t.Context(), got...))
		require.Len(t, p.acks, 2)
		require.Len(t, p.batches, 1)
		require.Equal(t, "b", p.batches[0].Broker)
		require.Len(t, p.batches[0].Acks, 4, "checkpoints: one before and behind that of the third message, its own, that of the second queue")
		nothing(t, s, 4*time.Minute)
		require.NoError(t, s.AckAll(t.Context()))

		b.put("T", 0, "late")
		late := receive(t, s, 1, time.Second)[0]
		require.Equal(t, 2, receive(t, s, 1, time.Minute)[0].Attempt)
		b.put("T", 0, "single")
		single := receive(t, s, 1, time.Minute)[0]
		var be consumer.BatchError
		err := s.AckAll(t.Context(), single, late)
		require.ErrorAs(t, err, &be)
		require.Len(t, be, 2)
		require.NoError(t, be[0])
		require.ErrorIs(t, be[1], rocketmq.ErrHandle)
		require.Len(t, p.batches, 1, "a single one is no batch")
	})
}

// Brokers before 5.1 do not know batches.
func TestSimpleAckAllOldBroker(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.on(wire.ReqBatchAckMessage, func(r *remoting.Request) bool {
			r.Reply(wire.RespRequestCodeNotSupported, "", nil, nil)
			return true
		})
		for i := range 3 {
			b.put("T", 0, fmt.Sprint(i))
		}
		s := newSimple(t, b.client(), fromT)
		require.NoError(t, s.AckAll(t.Context(), receive(t, s, 3, time.Minute)...))
		require.Len(t, p.acks, 3)
		nothing(t, s, 2*time.Minute)
	})
}

// Two brokers and two topics, all full: none is favoured. One that has nothing
// holds nobody up.
func TestSimpleTakesTurns(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		other := newFake(t)
		pops := []*fakePop{newFakePop(b), newFakePop(other)}
		pops[1].name = "c"
		for _, f := range []*fake{b, other} {
			for _, topic := range []string{"T", "U"} {
				f.topic(topic, 1)
				for i := range 20 {
					f.put(topic, 0, fmt.Sprint(i))
				}
			}
		}
		b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool {
			d := wire.RouteData{
				Queues: []wire.QueueData{{BrokerName: "b", ReadQueues: 1, WriteQueues: 1, Perm: 6}, {BrokerName: "c", ReadQueues: 1, WriteQueues: 1, Perm: 6}},
				Brokers: []wire.BrokerData{
					{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: fakeBroker}}, {Cluster: "c", BrokerName: "c", Addrs: map[int64]string{0: "c:1"}},
				},
			}
			r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
			return true
		})
		cl := b.client(rocketmq.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "c:1" {
				return other.net.Dial(ctx, network, fakeBroker)
			}
			return b.net.Dial(ctx, network, addr)
		}))
		s := newSimple(t, cl, fromT, consumer.SubscribeTo("U", selector.All))
		from := map[string]int{}
		var all []*consumer.Received
		for range 40 {
			got, err := s.Receive(t.Context(), 2, time.Minute)
			require.NoError(t, err)
			require.LessOrEqual(t, len(got), 2)
			from[got[0].Topic+got[0].Queue.Broker] += len(got)
			all = append(all, got...)
			if len(all) == 40 {
				require.Equal(t, map[string]int{"Tb": 10, "Tc": 10, "Ub": 10, "Uc": 10}, from)
			}
		}
		require.NoError(t, s.AckAll(t.Context(), all...))
		require.Len(t, pops[0].batches, 2, "one per topic and broker")
		require.Len(t, pops[1].batches, 2)
		nothing(t, s, 2*time.Minute)
		for range 3 {
			other.put("U", 0, "only here")
			began := time.Now()
			require.NoError(t, receive(t, s, 1, time.Minute)[0].Ack(t.Context()))
			require.Less(t, time.Since(began), 50*time.Millisecond)
		}
	})
}

// Many at once get each message once.
func TestSimpleConcurrently(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		s := newSimple(t, b.client(), fromT)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		seen := map[string]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					got, err := s.Receive(ctx, 5, time.Minute)
					if err != nil {
						assert.ErrorIs(t, err, context.Canceled)
						return
					}
					for _, m := range got {
						mu.Lock()
						seen[string(m.Body)]++
						mu.Unlock()
					}
					assert.NoError(t, s.AckAll(context.Background(), got...))
				}
			})
		}
		for i := range 1000 {
			b.put("T", i%4, fmt.Sprint(i))
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(10 * time.Second)
		cancel()
		wg.Wait()
		require.Len(t, seen, 1000)
		for body, n := range seen {
			require.Equal(t, 1, n, "message %s", body)
		}
		invisible, _, _ := p.counts()
		require.Zero(t, invisible)
	})
}

// Calls for one message take turns.
func TestSimpleOneMessageConcurrently(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 0, "m")
		b.put("T", 0, "n")
		b.on(wire.ReqChangeMessageInvisibletime, func(r *remoting.Request) bool {
			time.Sleep(time.Second)
			p.ack(r)
			return true
		})
		s := newSimple(t, b.client(), fromT)
		got := receive(t, s, 2, time.Minute)
		m := got[0]
		extended := make(chan error, 1)
		go func() { extended <- m.Extend(t.Context(), 3*time.Minute) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, m.Ack(ctx), context.DeadlineExceeded)
		require.NoError(t, s.AckAll(t.Context(), got...))
		require.NoError(t, <-extended)
		require.True(t, slices.ContainsFunc(p.acks, func(a wire.AckRequest) bool {
			h, err := wire.ParsePopHandle(a.Handle)
			return err == nil && a.InvisibleMillis == 0 && h.InvisibleMillis == 180_000
		}), "acknowledged with the new handle")
		nothing(t, s, 4*time.Minute)
	})
}

// A record that cannot be read does not keep those before it back.
func TestSimpleMalformed(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 0, "good")
		b.put("T", 0, "bad", withProps(wire.PropPopCK, "no handle"))
		s := newSimple(t, b.client(), fromT)
		require.Equal(t, "good", string(receive(t, s, 1, time.Minute)[0].Body))
	})
}

func TestSimpleCompressed(t *testing.T) {
	popBubble(t, func(t *testing.T, b *fake, p *fakePop) {
		b.put("T", 0, "x\x9c\xcbH\xcd\xc9\xc9\x07\x00\x06,\x02\x15", func(r *wire.Record) { r.SysFlag |= wire.SysCompressed })
		b.put("T", 0, "none", func(r *wire.Record) { r.SysFlag |= wire.SysCompressed })
		s := newSimple(t, b.client(), fromT)
		require.Equal(t, "hello", string(receive(t, s, 1, time.Minute)[0].Body))
	})
}

func TestSimpleOptions(t *testing.T) {
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers("ns:1"))
	require.NoError(t, err)
	for what, opts := range map[string][]consumer.Option{
		"no topic":     nil,
		"illegal name": {consumer.SubscribeTo("a b", selector.All)},
		"twice":        {fromT, fromT},
		"Earliest":     {fromT, consumer.StartFrom(rocketmq.AtTime(time.Now()))},
		"drain":        {fromT, consumer.WithDrainTimeout(-1)},
		"attempts":     {fromT, consumer.WithMaxAttempts(0)},
		"no handlers":  {fromT, consumer.Subscribe("T", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error { return nil }))},
		"shares no":    {fromT, consumer.WithStrategy(rebalance.Averagely())},
		"SQL":          {consumer.SubscribeTo("T", selector.SQL("a >"))},
	} {
		_, err := consumer.NewSimple(cl, "G", opts...)
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption, what)
		require.ErrorContains(t, err, what)
	}
	_, err = consumer.NewPush(cl, "G", fromT)
	require.ErrorContains(t, err, "use Subscribe")
	_, err = consumer.NewSimple(nil, "G", fromT)
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	_, err = consumer.NewSimple(cl, "CID_RMQ_SYS_x", fromT)
	require.ErrorContains(t, err, "reserved")
	_, err = consumer.NewSimple(cl, "", fromT)
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)

	s, err := consumer.NewSimple(cl, "G", fromT, nil)
	require.NoError(t, err)
	for _, d := range []time.Duration{0, -time.Second, 999 * time.Millisecond, 13 * time.Hour} {
		_, err = s.Receive(t.Context(), 1, d)
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	}
	_, err = s.Receive(t.Context(), 0, time.Minute)
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	require.NoError(t, s.Close(t.Context()), "never used")
	require.NoError(t, cl.Close(t.Context()))
}
