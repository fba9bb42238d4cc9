package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
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

var earliest = consumer.StartFrom(rocketmq.Earliest())

func newLite(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) *consumer.LitePull {
	t.Helper()
	l, err := consumer.NewLitePull(cl, "G", opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func toT(e ...selector.Expr) consumer.Option {
	return consumer.SubscribeTo("T", append(e, selector.All)[0])
}

func tq(id int) rocketmq.Queue { return rocketmq.Queue{Topic: "T", Broker: "b", ID: id} }

// within is a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func bodiesOf(msgs []*rocketmq.MessageView) []string {
	var out []string
	for _, m := range msgs {
		out = append(out, string(m.Body))
	}
	return out
}

// pollAll polls until nothing comes for a second.
func pollAll(t testing.TB, l *consumer.LitePull) (all []*rocketmq.MessageView) {
	t.Helper()
	for {
		msgs, err := l.Poll(within(t, time.Second))
		if errors.Is(err, context.DeadlineExceeded) {
			return all
		}
		require.NoError(t, err)
		all = append(all, msgs...)
	}
}

func TestLitePullPollsAndCommitsWhatPollsBeforeReturned(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 4)
		for i := range 400 {
			b.put("T", i%4, fmt.Sprint(i))
		}
		l := newLite(t, b.client(), toT(), earliest)
		require.NoError(t, l.Ready(context.Background()))
		synctest.Wait()
		last := map[rocketmq.Queue]int64{}
		for n := 0; n < 400; {
			msgs, err := l.Poll(context.Background())
			require.NoError(t, err)
			require.LessOrEqual(t, len(msgs), 32)
			for _, m := range msgs {
				require.Equal(t, msgs[0].Queue, m.Queue, "one queue at a time")
				require.Equal(t, last[m.Queue], m.Offset, "in order, and once")
				last[m.Queue]++
			}
			n += len(msgs)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		sum := func() (n int64) {
			for q := range 4 {
				n += b.stored("T", q)
			}
			return n
		}
		require.Less(t, sum(), int64(400), "the latest poll's are not done")
		require.GreaterOrEqual(t, sum(), int64(400-32))
		_, err := l.Poll(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 400, sum(), "whoever polls again is done with what he got")
		require.NoError(t, l.Close(context.Background()))
		require.Equal(t, []string{"G"}, b.left)
	})
}

func TestLitePullIteratorCommitsByHand(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 100 {
			b.put("T", 0, fmt.Sprint(i))
		}
		l := newLite(t, b.client(), toT(), earliest, consumer.WithManualCommit())
		ctx := context.Background()
		n := 0
		for m, err := range l.Messages(ctx) {
			require.NoError(t, err)
			require.EqualValues(t, n, m.Offset)
			if n == 50 {
				break // not committed
			}
			require.NoError(t, l.Commit(ctx, m.Queue))
			n++
			require.EqualValues(t, n, b.stored("T", 0), "what was worked on, and no more")
			off, found, err := l.Committed(ctx, m.Queue)
			require.NoError(t, err)
			require.True(t, found)
			require.EqualValues(t, n, off)
		}
		time.Sleep(time.Minute)
		require.NoError(t, l.Close(ctx))
		require.EqualValues(t, 50, b.stored("T", 0), "nothing is committed by itself")
		l = newLite(t, b.client(), toT(), consumer.WithManualCommit())
		require.Equal(t, "50", bodiesOf(pollAll(t, l))[0])
		require.NoError(t, l.Commit(ctx))
		require.EqualValues(t, 100, b.stored("T", 0))
		commits := len(b.commits)
		require.NoError(t, l.Commit(ctx))
		require.NoError(t, l.Commit(ctx, tq(0)))
		require.Len(t, b.commits, commits, "what is committed costs nothing")
		require.NoError(t, l.Close(ctx))
		require.Len(t, b.commits, commits)
	})
}

// A loop that is left at a message has not handled it, one whose context ends has.
func TestLitePullIteratorThatIsLeft(t *testing.T) {
	for _, test := range []struct {
		name   string
		stored int64
		leave  func(cancel func()) (stop bool)
	}{
		{"break", 6, func(func()) bool { return true }},
		{"cancel", 7, func(cancel func()) bool { cancel(); return false }},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				for range 10 {
					b.put("T", 0, "m")
				}
				l := newLite(t, b.client(), toT(), earliest)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				var last error
				for m, err := range l.Messages(ctx) {
					if last = err; err != nil {
						continue // there is nothing after it
					}
					if m.Offset == 6 && test.leave(cancel) {
						break
					}
				}
				if test.name == "cancel" {
					require.ErrorIs(t, last, context.Canceled)
				}
				require.NoError(t, l.Close(ctx), "also with a context that has ended")
				require.Equal(t, test.stored, b.stored("T", 0))
			})
		})
	}
}

// One queue is full of messages, another is paused, a third has a broker that does
// not answer: the others' messages come all the same, and soon.
func TestLitePullQueuesTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 5)
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			var h wire.PullRequest
			_ = h.DecodeExt(r.Frame())
			if h.QueueID == 2 {
				r.Drop()
			}
			return h.QueueID == 2
		})
		for range 2000 {
			b.put("T", 0, "many")
		}
		b.put("T", 1, "paused")
		l := newLite(t, b.client(), toT(), earliest)
		l.Pause(tq(1), tq(4))
		require.NoError(t, l.Ready(context.Background()))
		synctest.Wait()
		seen := map[string]int{}
		poll := func(times int) {
			for range times {
				msgs, err := l.Poll(context.Background())
				require.NoError(t, err)
				seen[string(msgs[0].Body)]++
			}
		}
		poll(4)
		b.put("T", 3, "one")
		synctest.Wait()
		poll(2)
		require.Equal(t, map[string]int{"many": 5, "one": 1}, seen)
		synctest.Wait()
		require.Equal(t, "paused", l.Health().Queues[1].State)
		require.Equal(t, "cache full", l.Health().Queues[0].State)
		l.Resume(tq(1), tq(4))
		poll(2)
		require.Equal(t, 1, seen["paused"])
		// A queue that is in line is paused, and goes on where it was.
		l.Pause(tq(0))
		b.put("T", 4, "late")
		synctest.Wait()
		poll(1)
		require.Equal(t, 1, seen["late"])
		_, err := l.Poll(within(t, time.Minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		l.Resume(tq(0))
		n := (seen["many"]) * 32
		require.Len(t, pollAll(t, l), 2000-n)
	})
}

func TestLitePullSeek(t *testing.T) {
	for _, manual := range []bool{false, true} {
		t.Run(fmt.Sprint("manual=", manual), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				ctx := context.Background()
				b.topic("T", 2)
				for i := range 100 {
					b.put("T", 1, fmt.Sprint(i))
				}
				opts := []consumer.Option{toT(), earliest}
				if manual {
					opts = append(opts, consumer.WithManualCommit())
				}
				l := newLite(t, b.client(), opts...)
				require.NoError(t, l.Seek(ctx, tq(1), rocketmq.AtOffset(40)), "it waits for the queue")
				synctest.Wait()
				msgs, err := l.Poll(ctx)
				require.NoError(t, err)
				require.Equal(t, "40", string(msgs[0].Body))
				require.NoError(t, l.Commit(ctx))
				require.EqualValues(t, 40+len(msgs), b.stored("T", 1))
				synctest.Wait() // the cache has the rest

				require.NoError(t, l.Seek(ctx, tq(1), rocketmq.AtOffset(10)))
				synctest.Wait()
				if manual {
					require.EqualValues(t, 40+len(msgs), b.stored("T", 1), "nothing is committed by itself")
				} else {
					require.EqualValues(t, 10, b.stored("T", 1), "that is the group's new offset")
				}
				msgs, err = l.Poll(ctx)
				require.NoError(t, err)
				require.Equal(t, "10", string(msgs[0].Body), "what was cached is stale")
				require.NoError(t, l.Commit(ctx, tq(1)))
				require.EqualValues(t, 10+len(msgs), b.stored("T", 1), "back, because that was wanted")

				for to, want := range map[rocketmq.Position]int64{
					rocketmq.Earliest(): 0, rocketmq.Latest(): 100, rocketmq.StrictLatest(): 100, rocketmq.AtOffset(100): 100,
					rocketmq.AtTime(time.Now().Add(-time.Hour)): 0, rocketmq.AtTime(time.Now().Add(time.Hour)): 100,
				} {
					require.NoError(t, l.Seek(ctx, tq(1), to), to)
					synctest.Wait()
					require.NoError(t, l.Commit(ctx))
					require.Equal(t, want, b.stored("T", 1), to)
				}
				var oe *rocketmq.OffsetError
				require.ErrorAs(t, l.Seek(ctx, tq(1), rocketmq.AtOffset(101)), &oe)
				require.Equal(t, rocketmq.OffsetError{Queue: tq(1), Asked: 101, Max: 100}, *oe)
				require.ErrorIs(t, l.Seek(ctx, tq(2), rocketmq.Earliest()), rocketmq.ErrRevoked)
				require.ErrorIs(t, l.Seek(ctx, tq(1), rocketmq.Position{}), rocketmq.ErrInvalidOption)
				require.ErrorIs(t, l.Commit(ctx, tq(2)), rocketmq.ErrRevoked)
				require.NoError(t, l.Close(ctx))
				require.EqualValues(t, l.Health().Group, "G")
			})
		})
	}
}

// An operator's reset comes by way of the broker, and the broker asks about us.
func TestLitePullAnswersTheBroker(t *testing.T) {
	for _, manual := range []bool{false, true} {
		t.Run(fmt.Sprint("manual=", manual), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				ctx := context.Background()
				b.topic("T", 2)
				for i := range 20 {
					b.put("T", 1, fmt.Sprint(i))
				}
				opts := []consumer.Option{toT(selector.Tags("a", "b")), earliest}
				if manual {
					opts = append(opts, consumer.WithManualCommit())
				}
				l := newLite(t, b.client(), opts...)
				require.NoError(t, l.Ready(ctx))
				require.Equal(t, wire.ConsumeActively, b.beats[0].Consumers[0].ConsumeType)
				require.Len(t, b.beats[0].Consumers[0].Subscriptions, 1, "there is no retry topic")
				for i := range 20 {
					b.put("T", 1, fmt.Sprint("tagged", i), withProps("TAGS", "a"))
				}
				synctest.Wait()
				require.Len(t, pollAll(t, l), 20)
				require.NoError(t, l.Commit(ctx))

				at := wire.MessageQueue{Topic: "T", Broker: "b", QueueID: 1}
				f, err := b.member().Call(ctx, &wire.Command{Code: wire.ReqGetConsumerStatusFromClient, Ext: &wire.ConsumerStatusRequest{Topic: "T", Group: "G"}})
				require.NoError(t, err)
				st, err := wire.DecodeConsumerStatus(f.Body)
				require.NoError(t, err)
				require.EqualValues(t, 40, st.Queues[at])
				f, err = b.member().Call(ctx, &wire.Command{Code: wire.ReqGetConsumerRunningInfo, Ext: &wire.RunningInfoRequest{Group: "G"}})
				require.NoError(t, err)
				info, err := wire.DecodeRunningInfo(f.Body)
				require.NoError(t, err)
				require.EqualValues(t, 40, info.Queues[at].CommitOffset)
				require.Equal(t, wire.ConsumeActively, info.Properties[wire.InfoType])
				r := wire.Record{Topic: []byte("T"), Body: []byte("m")}
				f, err = b.member().Call(ctx, &wire.Command{
					Code: wire.ReqConsumeMessageDirectly, Ext: &wire.ConsumeDirectlyRequest{Group: "G", BrokerName: "b"}, Body: wire.AppendRecord(nil, &r),
				})
				require.NoError(t, err)
				require.Equal(t, wire.RespSystemError, f.Code)
				require.Contains(t, string(f.Remark), "has no handler")

				table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{at: 30}}
				require.NoError(t, b.member().CallOneway(&wire.Command{
					Code: wire.ReqResetConsumerClientOffset, Ext: &wire.ResetOffsetRequest{Topic: "T", Group: "G", Force: true}, Body: table.AppendJSON(nil),
				}))
				time.Sleep(time.Second)
				synctest.Wait()
				require.EqualValues(t, 30, b.stored("T", 1), "by hand or not: the operator has the last word")
				require.Equal(t, "tagged10", bodiesOf(pollAll(t, l))[0])
				require.NoError(t, l.Close(ctx))
			})
		})
	}
}

func TestLitePullAssign(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 4)
		b.topic("U", 1)
		for i := range 8 {
			b.put("T", i%4, fmt.Sprint(i))
		}
		b.put("U", 0, "u")
		l := newLite(t, b.client(), consumer.AssignTo(tq(1), tq(3)), earliest)
		require.ElementsMatch(t, []string{"1", "3", "5", "7"}, bodiesOf(pollAll(t, l)))
		require.Equal(t, []rocketmq.Queue{tq(1), tq(3)}, l.Assignment())
		require.NoError(t, l.Commit(ctx))
		require.EqualValues(t, 2, b.stored("T", 1))
		require.EqualValues(t, -1, b.stored("T", 0))

		u := rocketmq.Queue{Topic: "U", Broker: "b"}
		require.NoError(t, l.Assign(tq(3), tq(0), u))
		b.put("T", 3, "more")
		b.put("T", 1, "not ours any more")
		require.ElementsMatch(t, []string{"0", "4", "u", "more"}, bodiesOf(pollAll(t, l)))
		require.ErrorIs(t, l.Commit(ctx, tq(1)), rocketmq.ErrRevoked)
		require.NoError(t, l.Commit(ctx, u))
		require.EqualValues(t, 1, b.stored("U", 0))
		require.NoError(t, l.Assign(tq(2)))
		require.NoError(t, l.Seek(ctx, tq(2), rocketmq.AtOffset(1)), "it waits for the queue")
		require.Equal(t, []string{"6"}, bodiesOf(pollAll(t, l)))
		require.NoError(t, l.Assign())
		require.Empty(t, pollAll(t, l))
		require.Empty(t, l.Assignment())
		require.ErrorIs(t, l.Assign(rocketmq.Queue{Topic: "T"}), rocketmq.ErrInvalidOption)
		require.NoError(t, l.Close(ctx))
		synctest.Wait()
		require.Empty(t, b.beats, "no member of any group")
		require.Empty(t, b.left)
		for _, p := range b.pulls {
			require.NotZero(t, p.SysFlag&wire.PullSubscription)
		}
	})
}

// What cannot be had is said by the first call, and the next tries again.
func TestLitePullFirstUseFails(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		l := newLite(t, b.client(), toT(), earliest)
		_, err := l.Poll(ctx)
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		require.Empty(t, l.Assignment())
		require.NoError(t, l.Commit(ctx), "there is nothing to commit")
		b.topic("T", 1)
		b.put("T", 0, "m")
		msgs, err := l.Poll(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"m"}, bodiesOf(msgs))
		require.NoError(t, l.Close(ctx))

		l = newLite(t, b.client(), consumer.AssignTo(tq(0), tq(7)))
		require.ErrorIs(t, l.Ready(ctx), rocketmq.ErrNoQueue)
		require.ErrorContains(t, l.Ready(ctx), "7")
		require.NoError(t, l.Assign(tq(0)))
		require.NoError(t, l.Ready(ctx))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = l.Poll(ended)
		require.ErrorIs(t, err, context.Canceled)

		dead := newLite(t, b.client(rocketmq.WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") })), toT())
		_, err = dead.Poll(ctx)
		require.ErrorIs(t, err, rocketmq.ErrNameServer)
	})
}

func TestLitePullCommitFails(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 2)
		b.put("T", 0, "m")
		b.put("T", 1, "m")
		l := newLite(t, b.client(), toT(), earliest, consumer.WithManualCommit())
		require.Len(t, pollAll(t, l), 2)
		refuse := true
		b.on(wire.ReqUpdateConsumerOffset, func(r *remoting.Request) bool {
			var h wire.UpdateOffsetRequest
			_ = h.DecodeExt(r.Frame())
			if !refuse || h.QueueID == 1 {
				return false
			}
			r.Reply(wire.RespSystemError, "out of paper", nil, nil)
			return true
		})
		err := l.Commit(ctx)
		var be *rocketmq.BrokerError
		require.ErrorAs(t, err, &be)
		require.ErrorContains(t, err, "out of paper")
		require.EqualValues(t, -1, b.stored("T", 0))
		require.EqualValues(t, 1, b.stored("T", 1), "the others are")
		b.mu.Lock()
		refuse = false
		b.mu.Unlock()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, b.stored("T", 0), "it is committed again in the background")

		b.put("T", 0, "m")
		require.Len(t, pollAll(t, l), 1)
		b.on(wire.ReqUpdateConsumerOffset, func(r *remoting.Request) bool { r.Drop(); return true })
		began := time.Now()
		require.ErrorIs(t, l.Commit(within(t, 500*time.Millisecond)), context.DeadlineExceeded)
		require.Equal(t, 500*time.Millisecond, time.Since(began))
		require.ErrorIs(t, l.Commit(ctx), rocketmq.ErrTimeout, "3 s without a deadline")
		require.Equal(t, 3500*time.Millisecond, time.Since(began))
		require.ErrorIs(t, l.Close(ctx), context.DeadlineExceeded, "so Close says it, too")
	})
}

func TestLitePullClose(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 1)
		cl := b.client()
		l := newLite(t, cl, toT(), earliest)
		polled := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := l.Poll(ctx)
				polled <- err
			}()
		}
		synctest.Wait()
		require.NoError(t, l.Close(ctx))
		require.ErrorIs(t, <-polled, rocketmq.ErrClosed)
		require.ErrorIs(t, <-polled, rocketmq.ErrClosed)
		_, err := l.Poll(ctx)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
		for _, err := range l.Messages(ctx) {
			require.ErrorIs(t, err, rocketmq.ErrClosed)
		}
		require.ErrorIs(t, l.Commit(ctx), rocketmq.ErrClosed)
		require.ErrorIs(t, l.Seek(ctx, tq(0), rocketmq.Earliest()), rocketmq.ErrClosed)
		require.ErrorIs(t, l.Ready(ctx), rocketmq.ErrClosed)
		require.NoError(t, l.Close(ctx))
		require.Equal(t, []string{"G"}, b.left)

		// One that was never used, one that is just connecting, and one that the
		// client closes.
		require.NoError(t, newLite(t, cl, toT()).Close(ctx))
		route := make(chan struct{})
		other := b.client()
		b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool { r.Drop(); route <- struct{}{}; return true })
		l = newLite(t, other, toT())
		go func() {
			_, err := l.Poll(ctx)
			polled <- err
		}()
		<-route
		require.NoError(t, l.Close(ctx))
		require.ErrorIs(t, <-polled, rocketmq.ErrClosed)
		b.on(wire.ReqGetRouteInfoByTopic, nil)
		b.put("T", 0, "m")
		l = newLite(t, cl, toT())
		require.Len(t, pollAll(t, l), 1)
		require.NoError(t, cl.Close(ctx))
		require.EqualValues(t, 1, b.stored("T", 0))
		_, err = l.Poll(ctx)
		require.ErrorIs(t, err, rocketmq.ErrClosed)
	})
}

// C42 for both ways to commit.
func TestC42_CleanedUpQueueOfALitePull(t *testing.T) {
	for name, opts := range map[string][]consumer.Option{"auto": nil, "manual": {consumer.WithManualCommit()}} {
		for _, code := range []int32{wire.RespPullOffsetMoved, wire.RespPullNotFound, wire.RespPullRetryImmediately} {
			t.Run(fmt.Sprint(name, " ", code), func(t *testing.T) {
				bubble(t, func(t *testing.T, b *fake) {
					b.topic("T", 1)
					b.topics["T"].min[0] = 2020
					b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 0
					told := 0
					b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
						var h wire.PullRequest
						_ = h.DecodeExt(r.Frame())
						if h.Offset >= 2020 {
							return false
						}
						told++
						r.Reply(code, "", &wire.PullResponse{NextOffset: 2020, MinOffset: 2020, MaxOffset: 2020}, nil)
						return true
					})
					l := newLite(t, b.client(), append(opts, toT())...)
					require.NoError(t, l.Ready(context.Background()))
					time.Sleep(6 * time.Second)
					synctest.Wait()
					require.EqualValues(t, 2020, b.stored("T", 0), "without waiting for a message")
					require.Equal(t, 1, told, "it is told once and follows")
					b.put("T", 0, "first")
					require.Len(t, pollAll(t, l), 1)
					require.NoError(t, l.Commit(context.Background()))
					require.EqualValues(t, 2021, b.stored("T", 0))
				})
			})
		}
	}
}

// What is committed by hand stays where it is while others' messages are skipped
// behind it.
func TestLitePullSkipsWhatIsNotWanted(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 1)
		for i := range 100 {
			tag := "other"
			if i == 40 {
				tag = "mine"
			}
			b.put("T", 0, fmt.Sprint(i), withProps("TAGS", tag))
		}
		l := newLite(t, b.client(), toT(selector.Tags("mine")), earliest, consumer.WithManualCommit())
		require.NoError(t, l.Ready(ctx))
		time.Sleep(6 * time.Second)
		require.EqualValues(t, 40, b.stored("T", 0))
		require.Equal(t, []string{"40"}, bodiesOf(pollAll(t, l)))
		time.Sleep(6 * time.Second)
		require.EqualValues(t, 40, b.stored("T", 0))
		require.NoError(t, l.Commit(ctx))
		require.EqualValues(t, 100, b.stored("T", 0))
	})
}
