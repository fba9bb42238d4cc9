package consumer_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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

func TestPullRequestAsJavaSendsIt(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 5
		for i := range 6 {
			b.put("T", 0, fmt.Sprint(i))
		}
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.Tags("none"), got.handler())))
		synctest.Wait()
		version := b.beats[0].Consumers[0].Subscriptions[0].Version
		want := wire.PullRequest{
			Group: []byte("G"), Topic: []byte("T"), Offset: 5, MaxMsgs: 32, SysFlag: wire.PullSuspend | wire.PullCommitOffset, CommitOffset: 5,
			SuspendMillis: 15000, SubVersion: version,
		}
		require.Equal(t, want, b.pulls[0])
		require.NoError(t, c.stop())
	})
}

func TestCacheLimitStopsPullingAndRoomStartsIt(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 500 {
			b.put("T", 0, fmt.Sprint(i))
		}
		gate := make(chan struct{})
		var n atomic.Int32
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error {
				<-gate
				n.Add(1)
				return nil
			}), consumer.Cache(100, 1<<20))))
		synctest.Wait()
		h := c.Health().Queues[0]
		require.Equal(t, 128, h.Cached, "four pulls of 32, the last of which crosses the limit")
		require.Equal(t, "cache full", h.State)
		require.EqualValues(t, 500, h.Lag)
		require.Equal(t, 20, h.InFlight)
		before := time.Now()
		close(gate)
		synctest.Wait()
		require.EqualValues(t, 500, n.Load())
		require.Zero(t, time.Since(before), "room is noticed at once, not after a pause")
		require.NoError(t, c.stop())
		require.EqualValues(t, 500, b.stored("T", 0))
	})
}

func TestCacheLimitInBytes(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for range 100 {
			b.put("T", 0, string(make([]byte, 1000)))
		}
		gate := make(chan struct{})
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error {
				<-gate
				return nil
			}), consumer.Cache(1000, 40_000))))
		synctest.Wait()
		require.Equal(t, 64, c.Health().Queues[0].Cached)
		close(gate)
		synctest.Wait()
		require.NoError(t, c.stop())
		require.EqualValues(t, 100, b.stored("T", 0))
	})
}

// One message that takes long holds the offset; the others go on, but not
// further than the span of 2000.
func TestSpanIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 5000 {
			b.put("T", 0, fmt.Sprint(i))
		}
		gate := make(chan struct{})
		var n atomic.Int32
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				if m.Offset == 3 {
					<-gate
				}
				n.Add(1)
				return nil
			}))))
		synctest.Wait()
		h := c.Health().Queues[0]
		require.EqualValues(t, 3, h.Committed)
		require.Equal(t, 1, h.Cached)
		require.InDelta(t, 2016, n.Load(), 32)
		close(gate)
		synctest.Wait()
		require.EqualValues(t, 5000, n.Load())
		require.NoError(t, c.stop())
		require.EqualValues(t, 5000, b.stored("T", 0))
	})
}

func TestPullErrorsBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var at []time.Duration
		began := time.Now()
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			at = append(at, time.Since(began).Round(time.Second/10))
			if len(at) > 5 {
				return false
			}
			r.Reply(wire.RespSystemError, "out of order", nil, nil)
			return true
		})
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler())))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		h := c.Health().Queues[0]
		require.Equal(t, "backing off", h.State)
		var be *rocketmq.BrokerError
		require.ErrorAs(t, h.LastError, &be)
		require.Equal(t, "out of order", be.Remark)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		s := time.Second
		require.Equal(t, []time.Duration{0, 1 * s, 3 * s, 7 * s, 12 * s, 17 * s}, at)
		b.put("T", 0, "m")
		synctest.Wait()
		require.Len(t, got.bodies(), 1)
		require.NoError(t, c.Health().Queues[0].LastError)
		require.NoError(t, c.stop())
	})
}

func TestUnknownSubscriptionIsAnsweredWithAHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var refused atomic.Bool
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			if refused.Swap(true) {
				return false
			}
			b.mu.Lock()
			b.beats = nil
			b.mu.Unlock()
			r.Reply(wire.RespSubscriptionNotExist, "", nil, nil)
			return true
		})
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.NotEmpty(t, b.beats)
		b.put("T", 0, "m")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, got.bodies(), 1)
		require.NoError(t, c.stop())
	})
}

// Retention has removed what the offset points at: go on where the broker says.
func TestOffsetTooSmallIsCorrected(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.topics["T"].min[0] = 50
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 7
		b.put("T", 0, "m")
		var got received
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Len(t, got.bodies(), 1)
		require.NoError(t, c.stop())
		require.EqualValues(t, 51, b.stored("T", 0))
	})
}

// An operator resets the offset at the broker while messages are cached: the
// next pull is answered with code 21. What is cached is dropped, and running
// handlers no longer count.
func TestOffsetMovedByTheBrokerDropsTheCache(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 64 {
			b.put("T", 0, fmt.Sprint(i))
		}
		gate := make(chan struct{})
		var reset atomic.Bool
		answer := make(chan remoting.Replier, 1)
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			var h wire.PullRequest
			_ = h.DecodeExt(r.Frame())
			if h.Offset != 32 || reset.Swap(true) {
				return false
			}
			answer <- r.Replier()
			return true
		})
		var late, revoked atomic.Int32
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
				if m.Offset >= 60 {
					late.Add(1)
					return nil
				}
				select {
				case <-gate:
				case <-ctx.Done():
					revoked.Add(1)
				}
				return context.Cause(ctx)
			}))))
		synctest.Wait() // twenty handlers have begun
		(<-answer).Reply(wire.RespPullOffsetMoved, "OFFSET_RESET", &wire.PullResponse{NextOffset: 60, MaxOffset: 64}, nil)
		synctest.Wait()
		require.EqualValues(t, 4, late.Load())
		require.EqualValues(t, 20, revoked.Load())
		require.EqualValues(t, 64, c.Health().Queues[0].Committed)
		require.NoError(t, c.stop())
		require.EqualValues(t, 64, b.stored("T", 0))
		require.Empty(t, b.sendBacks)
	})
}

func TestBrokerThatDoesNotHoldPullsIsNotHammered(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var n atomic.Int32
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			n.Add(1)
			r.Reply(wire.RespPullNotFound, "", &wire.PullResponse{}, nil)
			return true
		})
		c := start(t, newPush(t, b.client(), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Less(t, n.Load(), int32(20))
		require.NoError(t, c.stop())
	})
}

// Everything was filtered out by the broker: the offset moves all the same.
func TestFilteredQueueHasNoPhantomBacklog(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 40 {
			b.put("T", 0, fmt.Sprint(i))
		}
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			var h wire.PullRequest
			_ = h.DecodeExt(r.Frame())
			if h.Offset == 40 {
				return false
			}
			r.Reply(wire.RespPullRetryImmediately, "", &wire.PullResponse{NextOffset: h.Offset + 10, MaxOffset: 40}, nil)
			return true
		})
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.Tags("a"), consumer.HandlerFunc(nop))))
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 40, b.stored("T", 0))
		require.NoError(t, c.stop())
	})
}

// The connection dies under a long poll and under traffic: pulling resumes,
// nothing is lost.
func TestConnectionLossIsSurvived(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		for round := range 5 {
			for i := range 100 {
				b.put("T", i%2, fmt.Sprint(round, i))
			}
			b.mu.Lock()
			for conn := range b.members {
				go conn.Close(nil)
			}
			b.polls = nil
			b.mu.Unlock()
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		require.Len(t, got.bodies(), 500)
		require.NoError(t, c.stop())
		require.EqualValues(t, 250, b.stored("T", 0))
	})
}

// A pull is 30 s at most on its way; a broker that says nothing is asked again.
func TestPullTimesOut(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var dropped atomic.Int32
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			if dropped.Add(1) > 1 {
				return false
			}
			r.Drop()
			return true
		})
		b.put("T", 0, "m")
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		require.Empty(t, got.bodies())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, got.bodies(), 1)
		require.NoError(t, c.stop())
	})
}

func TestHandlerTimeoutEndsTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "m")
		began := time.Now()
		var took time.Duration
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.WithHandlerTimeout(3*time.Second),
			consumer.Subscribe("T", selector.All, consumer.Each(func(ctx context.Context, _ *rocketmq.MessageView) error {
				<-ctx.Done()
				took = time.Since(began)
				return context.Cause(ctx)
			}))))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, 3*time.Second, took)
		require.Len(t, b.sendBacks, 1, "a timeout is a failure")
		require.NoError(t, c.stop())
	})
}

func TestCompressedBodiesArriveInflated(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, err := w.Write([]byte("the content"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		flag := func(f int32) putOption { return func(r *wire.Record) { r.SysFlag |= f } }
		b.put("T", 0, z.String(), flag(wire.SysCompressed|wire.SysCompressionZLIB))
		b.put("T", 0, "not zlib", flag(wire.SysCompressed))
		b.put("T", 0, "plain")
		var got received
		logs := &logRecords{}
		c := start(t, newPush(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Equal(t, map[string]int{"the content": 1, "plain": 1}, got.bodies())
		require.Len(t, b.sendBacks, 1, "a body that cannot be read is a failed message, not a lost one")
		require.EqualValues(t, 1, b.sendBacks[0].Offset)
		require.Equal(t, 1, logs.with("message"))
		require.NoError(t, c.stop())
	})
}

// A pull whose bytes are damaged: what could be read is handled, the rest is
// pulled again, nothing is skipped.
func TestDamagedAnswerIsPulledAgain(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 10 {
			b.put("T", 0, fmt.Sprint(i))
		}
		var damaged atomic.Int32
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			if damaged.Add(1) > 2 {
				return false
			}
			var h wire.PullRequest
			_ = h.DecodeExt(r.Frame())
			b.mu.Lock()
			code, res, body := b.lookLocked(wire.MessageQueue{Topic: "T", Broker: "b"}, h.Offset)
			b.mu.Unlock()
			if damaged.Load() == 1 {
				body = body[:len(body)/2+7] // within the sixth
			} else {
				body = body[10:] // no beginning of a record
			}
			r.Reply(code, "", res, body)
			return true
		})
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Len(t, got.bodies(), 5)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for i := range 10 {
			require.Equal(t, 1, got.bodies()[fmt.Sprint(i)], "message %d of %v", i, got.bodies())
		}
		require.NoError(t, c.stop())
		require.EqualValues(t, 10, b.stored("T", 0))
	})
}

// An answer without the fields that every pull answer must have, and one that
// would lead back to where it came from.
func TestSenselessAnswersBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "m")
		var n atomic.Int32
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			switch n.Add(1) {
			case 1:
				r.Reply(wire.RespSuccess, "", nil, nil)
			case 2:
				r.Reply(wire.RespSuccess, "", &wire.PullResponse{}, nil)
			case 3:
				r.Reply(wire.RespPullOffsetMoved, "", &wire.PullResponse{}, nil)
			default:
				return false
			}
			return true
		})
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		time.Sleep(8 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 5, n.Load())
		require.Len(t, got.bodies(), 1)
		require.NoError(t, c.stop())
	})
}

// The broker is away for a while: pulls and send-backs wait, and go on.
func TestBrokerIsAwayForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var down atomic.Bool
		cl := b.client(rocketmq.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if down.Load() && addr == fakeBroker {
				return nil, errors.New("no route to host")
			}
			return b.net.Dial(ctx, network, addr)
		}))
		gate := make(chan struct{})
		var calls atomic.Int32
		c := start(t, newPush(t, cl, consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All,
			consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
				if calls.Add(1) == 1 {
					<-gate
					return errors.New("no")
				}
				return nil
			}))))
		b.put("T", 0, "m")
		synctest.Wait()
		down.Store(true)
		b.mu.Lock()
		b.polls = nil
		b.mu.Unlock()
		b.member().Close(nil)
		close(gate) // the message fails while its broker cannot be reached
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 2, calls.Load(), "it was handled again here after 5 s")
		require.Equal(t, 0, c.Health().Queues[0].Cached)
		require.Error(t, c.Health().Queues[0].LastError)
		down.Store(false)
		b.put("T", 0, "n")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 3, calls.Load())
		require.NoError(t, c.stop())
		require.EqualValues(t, 2, b.stored("T", 0))
	})
}

// The broker suggests its slave, and later itself again. From a slave no
// offset is committed by the way.
func TestPullFromTheSuggestedReplica(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		const slave = "10.0.0.9:10912" // the broker's own has a name, and so no port below
		ln, err := b.net.Listen(slave)
		require.NoError(t, err)
		require.NoError(t, b.srv.Serve(ln))
		b.topic("T", 1)
		b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool {
			var h wire.RouteRequest
			_ = h.DecodeExt(r.Frame())
			if h.Topic != "T" {
				return false
			}
			d := wire.RouteData{
				Queues:  []wire.QueueData{{BrokerName: "b", ReadQueues: 1, WriteQueues: 1, Perm: 6}},
				Brokers: []wire.BrokerData{{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: fakeBroker, 1: slave}}},
			}
			r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
			return true
		})
		type asked struct {
			port    uint16
			offset  int64
			commits bool
		}
		var mu sync.Mutex
		var pulls []asked
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			var h wire.PullRequest
			_ = h.DecodeExt(r.Frame())
			mu.Lock()
			defer mu.Unlock()
			pulls = append(pulls, asked{r.Conn().LocalAddr().Port(), h.Offset, h.SysFlag&wire.PullCommitOffset != 0})
			if h.Offset >= 30 {
				return false
			}
			res := &wire.PullResponse{NextOffset: h.Offset + 10, MaxOffset: 30}
			if h.Offset < 20 {
				res.SuggestBrokerID = 1
			}
			r.Reply(wire.RespPullRetryImmediately, "", res, nil)
			return true
		})
		for range 30 {
			b.put("T", 0, "x", withProps("TAGS", "other"))
		}
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.Tags("a"), consumer.HandlerFunc(nop))))
		synctest.Wait()
		mu.Lock()
		require.Equal(t, []asked{{0, 0, false}, {10912, 10, false}, {10912, 20, false}, {0, 30, true}}, pulls)
		mu.Unlock()
		require.NoError(t, c.stop())
	})
}

// A broker that is about to stop says so; the pull goes to a new connection.
func TestGoAwayIsFollowedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var said atomic.Bool
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			if said.Swap(true) {
				return false
			}
			r.Reply(wire.RespGoAway, "", nil, nil)
			return true
		})
		b.put("T", 0, "m")
		var got received
		c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Len(t, got.bodies(), 1)
		require.NoError(t, c.stop())
	})
}

func TestNoNameServerAtStart(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		cl := b.client(rocketmq.WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }))
		p := newPush(t, cl, consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)))
		err := p.Run(context.Background())
		require.ErrorIs(t, err, rocketmq.ErrNameServer)
		require.NotErrorIs(t, err, rocketmq.ErrTopicNotFound)
	})
}
