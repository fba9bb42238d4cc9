package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// warnings counts the records from warnings on.
func (l *logRecords) warnings() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.recs {
		if r.Level >= slog.LevelWarn {
			n++
		}
	}
	return n
}

// C36: the lock of an idle queue does not run out, and the first message needs no
// round of anything.
func TestC36_IdleLock(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.put("T", 0, "first")
		logs := &logRecords{}
		handled := make(chan time.Time, 2)
		began := time.Now()
		c := start(t, newOrdered(t, b.client(rocketmq.WithLogger(slog.New(logs))), each(func(context.Context, *rocketmq.MessageView) error {
			handled <- time.Now()
			return nil
		})))
		require.Less(t, (<-handled).Sub(began), 100*time.Millisecond)
		time.Sleep(3*fakeLifetime + time.Second)
		sent := time.Now()
		b.put("T", 1, "second")
		require.Less(t, (<-handled).Sub(sent), 100*time.Millisecond)
		locks := b.calls(wire.ReqLockBatchMQ, "T", 1)
		require.Len(t, locks, 10, "taken, and renewed every 20 s")
		for i, l := range locks[1:] {
			require.InDelta(t, 20, l.at.Sub(locks[i].at).Seconds(), 0.1)
		}
		require.NoError(t, c.stop())
		require.Zero(t, logs.warnings())
	})
}

// holder handles messages of one queue and stays in one of them until it is
// told to go on, or its context ends.
type holder struct {
	order
	at     string
	gate   chan struct{}
	causes chan error
}

func newHolder(at string) *holder {
	return &holder{at: at, gate: make(chan struct{}), causes: make(chan error, 8)}
}

func (h *holder) handle(ctx context.Context, m *rocketmq.MessageView) error {
	h.see(m)
	if string(m.Body) != h.at {
		return nil
	}
	select {
	case <-h.gate:
		return nil
	case <-ctx.Done():
		h.causes <- context.Cause(ctx)
		return context.Cause(ctx)
	}
}

// A lock that another member turns out to have is given up at once: nothing is
// committed any more, and the queue goes on when the lock comes back.
func TestOrderedLockRefused(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 5)
		h := newHolder("2")
		c := start(t, newOrdered(t, b.client(), each(h.handle)))
		time.Sleep(15 * time.Second)
		require.EqualValues(t, 2, b.stored("T", 0))
		b.steal("T", 0, "thief")
		b.mu.Lock()
		commits := len(b.commits)
		b.mu.Unlock()
		require.ErrorIs(t, <-h.causes, rocketmq.ErrRevoked)
		synctest.Wait()
		require.Equal(t, "lock lost", health(t, c, 0).State)
		require.Contains(t, health(t, c, 0).String(), "lock lost")
		time.Sleep(30 * time.Second)
		require.Equal(t, "0 1 2", h.String())
		require.Equal(t, "lock lost", health(t, c, 0).State)
		b.mu.Lock()
		require.Len(t, b.commits, commits, "the offset is the thief's")
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 3 // he has done one
		b.mu.Unlock()
		b.steal("T", 0, "")
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, "0 1 2 3 4", h.String())
		require.Equal(t, "pulling", health(t, c, 0).State)
		require.NoError(t, c.stop())
		require.EqualValues(t, 5, b.stored("T", 0))
		require.Empty(t, b.owner("T", 0))
	})
}

// What was done before a lock was lost is not done again when it comes back,
// even if the broker was not told of it; and a handler that ignores the end of
// its context is waited for.
func TestOrderedLockComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 5)
		var o order
		gate := make(chan struct{})
		c := start(t, newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			if o.see(m); string(m.Body) == "2" {
				<-gate
			}
			return nil
		})))
		synctest.Wait()
		b.steal("T", 0, "thief")
		b.mu.Lock()
		b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 0
		b.mu.Unlock()
		b.on(wire.ReqUpdateConsumerOffset, func(*remoting.Request) bool { return true })
		time.Sleep(21 * time.Second)
		require.Equal(t, "lock lost", health(t, c, 0).State)
		b.on(wire.ReqUpdateConsumerOffset, nil)
		b.steal("T", 0, "")
		time.Sleep(5 * time.Second)
		require.Equal(t, "0 1 2", o.String())
		require.Equal(t, "waiting for handler", health(t, c, 0).State)
		close(gate)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, "0 1 2 3 4", o.String())
		require.NoError(t, c.stop())
		require.EqualValues(t, 5, b.stored("T", 0))
	})
}

// A lock that cannot be renewed counts as lost after 40 s by our own clock, a
// good while before the broker takes it for free.
func TestOrderedLockRunsOut(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.put("T", 0, "0")
		b.put("T", 1, "stay")
		b.put("T", 1, "next")
		h := newHolder("stay")
		began := time.Now()
		c := start(t, newOrdered(t, b.client(), each(h.handle)))
		synctest.Wait()
		var deaf atomic.Bool
		deaf.Store(true)
		b.on(wire.ReqLockBatchMQ, func(r *remoting.Request) bool {
			if deaf.Load() {
				r.Reply(wire.RespSystemError, "no", nil, nil)
			}
			return deaf.Load()
		})
		time.Sleep(35 * time.Second)
		b.put("T", 0, "1")
		synctest.Wait()
		require.Contains(t, h.String(), "1", "it is ours until it has run out")
		require.ErrorIs(t, <-h.causes, rocketmq.ErrRevoked)
		require.InDelta(t, 40, time.Since(began).Seconds(), 0.1)
		b.put("T", 0, "2")
		time.Sleep(20 * time.Second)
		require.NotContains(t, h.String(), "2")
		require.Equal(t, "lock lost", health(t, c, 0).State)
		deaf.Store(false)
		close(h.gate)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Contains(t, h.String(), "2")
		require.Contains(t, h.String(), "next")
		require.NoError(t, c.stop())
		require.EqualValues(t, 3, b.stored("T", 0))
		require.EqualValues(t, 2, b.stored("T", 1))
	})
}

// A call does not begin after the lock has run out, even if nothing else has
// noticed.
func TestOrderedSuspendedProcess(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 3)
		b.on(wire.ReqLockBatchMQ, func(r *remoting.Request) bool {
			body, _ := wire.DecodeLockBody(r.Frame().Body)
			if len(b.calls(wire.ReqLockBatchMQ, "T", 0)) == 0 || body.ClientID == "" {
				return false
			}
			r.Reply(wire.RespSystemError, "no", nil, nil)
			return true
		})
		var o order
		first := true
		c := start(t, newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			if o.see(m); first {
				first = false
				time.Sleep(40 * time.Second) // ends at the very moment
			}
			return nil
		})))
		time.Sleep(50 * time.Second)
		require.Equal(t, "0", o.String())
		require.NoError(t, c.stop())
	})
}

// A broker that was restarted has forgotten its locks. We ask for ours again as
// soon as the connection breaks, and not 20 s later.
func TestOrderedBrokerRestart(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		b.put("T", 0, "stay")
		h := newHolder("stay")
		c := start(t, newOrdered(t, b.client(), each(h.handle)))
		time.Sleep(5 * time.Second)
		b.steal("T", 0, "")
		b.member().Close(errors.New("restart"))
		time.Sleep(2 * time.Second)
		require.NotEmpty(t, b.owner("T", 0), "it is ours again")
		require.Empty(t, h.causes)
		b.steal("T", 0, "thief") // somebody was quicker
		b.member().Close(errors.New("restart"))
		cut := time.Now()
		require.ErrorIs(t, <-h.causes, rocketmq.ErrRevoked)
		require.Less(t, time.Since(cut), 2*time.Second)
		require.NoError(t, c.stop())
		require.Equal(t, "thief", b.owner("T", 0))
	})
}

// A queue changes hands when its handler has ended, however long that takes, and
// its offset is committed; until then the next owner waits.
func TestOrderedHandOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes   time.Duration // the handler, after the change
		obeys   bool          // it returns when its context ends
		waits   time.Duration // the next owner, about
		handled string
	}{
		"a quick handler":       {300 * time.Millisecond, true, 300 * time.Millisecond, "0 1 2 3 4"},
		"one that is cut short": {time.Hour, true, time.Second, "0 1 2 2 3 4"},
		"one that is not":       {200 * time.Second, false, 200 * time.Second, "0 1 2 3 4"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				putMany(b, 0, 0, 5)
				var o order
				var busy atomic.Int32
				var change time.Time
				handler := func(hold bool) consumer.Option {
					return each(func(ctx context.Context, m *rocketmq.MessageView) error {
						if busy.Add(1) != 1 {
							t.Error("two members at one queue")
						}
						defer busy.Add(-1)
						if o.see(m); !hold || string(m.Body) != "2" {
							return nil
						}
						if !tc.obeys {
							ctx = context.Background()
						}
						select {
						case <-time.After(time.Until(change.Add(tc.takes))):
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					})
				}
				change = time.Now().Add(time.Second)
				first := start(t, newOrdered(t, b.client(rocketmq.WithInstanceName("zzz")), handler(true)))
				time.Sleep(time.Second)
				// Sorts before, so it gets the one queue.
				second := start(t, newOrdered(t, b.client(rocketmq.WithInstanceName("aaa")), handler(false)))
				synctest.Wait()
				require.Zero(t, assigned(first))
				require.Equal(t, "waiting for lock", health(t, second, 0).State)
				for o.String() != tc.handled {
					time.Sleep(10 * time.Millisecond)
					require.Less(t, time.Since(change), tc.waits+2*time.Second, o.String())
				}
				require.GreaterOrEqual(t, time.Since(change), tc.waits)
				require.NoError(t, second.stop())
				require.NoError(t, first.stop())
				require.EqualValues(t, 5, b.stored("T", 0))
			})
		})
	}
}

// Closing unlocks what has ended and is committed, before it leaves the group.
func TestOrderedCloseUnlocksLast(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 2)
		var busy atomic.Bool
		b.on(wire.ReqUnlockBatchMQ, func(*remoting.Request) bool {
			if busy.Load() {
				t.Error("unlocked under its handler")
			}
			if off := b.stored("T", 0); off != 1 {
				t.Errorf("unlocked at offset %d", off)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.left) != 0 {
				t.Error("it has left before")
			}
			return false
		})
		c := start(t, newOrdered(t, b.client(), each(func(context.Context, *rocketmq.MessageView) error {
			busy.Store(true)
			time.Sleep(3 * time.Second)
			busy.Store(false)
			return nil
		})))
		time.Sleep(time.Second)
		require.NoError(t, c.stop())
		require.Empty(t, b.owner("T", 0))
		require.Equal(t, []string{"G"}, b.left)
	})
}

// A handler that does not end when the consumer does keeps its lock until that
// runs out: somebody else would break the order.
func TestOrderedDrainTimeoutKeepsTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.put("T", 0, "stuck")
		b.put("T", 1, "quick")
		release := make(chan struct{})
		c := start(t, newOrdered(t, b.client(), consumer.WithDrainTimeout(3*time.Second), each(func(_ context.Context, m *rocketmq.MessageView) error {
			if string(m.Body) == "stuck" {
				<-release
			}
			return nil
		})))
		synctest.Wait()
		var de *consumer.DrainError
		require.ErrorAs(t, c.stop(), &de)
		require.Equal(t, []int64{0}, de.Queues[0].Offsets)
		require.NotEmpty(t, b.owner("T", 0))
		require.Empty(t, b.owner("T", 1))
		require.EqualValues(t, 1, b.stored("T", 1))
		close(release)
	})
}

// A member is ready though another one still has a lock, of somebody who died
// for instance, and begins when it has run out.
func TestOrderedLockOfADeadMember(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		putMany(b, 0, 0, 2)
		putMany(b, 1, 0, 2)
		b.steal("T", 1, "dead")
		var o order
		c := start(t, newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			o.see(m)
			return nil
		})))
		synctest.Wait()
		require.Equal(t, "0 1", o.String())
		require.Equal(t, "waiting for lock", health(t, c, 1).State)
		time.Sleep(59 * time.Second)
		require.Equal(t, "0 1", o.String())
		time.Sleep(2100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, "0 1 0 1", o.String())
		require.NoError(t, c.stop())
	})
}

// A queue whose lock is there and whose offset is not is let go again, and is
// not taken for ready.
func TestOrderedOffsetUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 2)
		began := time.Now()
		b.on(wire.ReqQueryConsumerOffset, func(r *remoting.Request) bool {
			bad := time.Since(began) < 4500*time.Millisecond
			if bad {
				r.Reply(wire.RespSystemError, "starting", nil, nil)
			}
			return bad
		})
		var o order
		c := start(t, newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			o.see(m)
			return nil
		})))
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.5)
		synctest.Wait()
		require.Equal(t, "0 1", o.String())
		require.NoError(t, c.stop())
	})
}

// The lock is asked for at the master alone; without one a queue is not read,
// though a replica would give its messages.
func TestOrderedNeedsTheMaster(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		putMany(b, 0, 0, 2)
		var orphan atomic.Bool
		orphan.Store(true)
		b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool {
			var h wire.RouteRequest
			_ = h.DecodeExt(r.Frame())
			if h.Topic != "T" || !orphan.Load() {
				return false
			}
			d := wire.RouteData{
				Queues:  []wire.QueueData{{BrokerName: "b", ReadQueues: 1, WriteQueues: 1, Perm: wire.PermRead | wire.PermWrite}},
				Brokers: []wire.BrokerData{{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{1: fakeBroker}}},
			}
			r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
			return true
		})
		var o order
		p := newOrdered(t, b.client(), each(func(_ context.Context, m *rocketmq.MessageView) error {
			o.see(m)
			return nil
		}))
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- p.Run(ctx) }()
		time.Sleep(10 * time.Second)
		require.Empty(t, o.String())
		orphan.Store(false)
		<-p.Ready()
		synctest.Wait()
		require.Equal(t, "0 1", o.String())
		cancel()
		require.NoError(t, <-result)
	})
}

// What the broker's tools are told of an ordered consumer.
func TestOrderedRunningInfo(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.steal("T", 1, "other")
		c := start(t, newOrdered(t, b.client(), each(func(context.Context, *rocketmq.MessageView) error { return nil })))
		f, err := b.member().Call(context.Background(), &wire.Command{Code: wire.ReqGetConsumerRunningInfo, Ext: &wire.RunningInfoRequest{Group: "G"}})
		require.NoError(t, err)
		info, err := wire.DecodeRunningInfo(f.Body)
		require.NoError(t, err)
		require.Equal(t, "true", info.Properties[wire.InfoOrderly])
		mine, other := info.Queues[wire.MessageQueue{Topic: "T", Broker: "b"}], info.Queues[wire.MessageQueue{Topic: "T", Broker: "b", QueueID: 1}]
		require.True(t, mine.Locked)
		require.Equal(t, time.Now().UnixMilli(), mine.LastLockTime)
		require.False(t, other.Locked)
		require.NoError(t, c.stop())
		require.Equal(t, "other", b.owner("T", 1))
	})
}
