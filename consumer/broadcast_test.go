package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// scriptedStore is an offset store that does as a test tells it.
type scriptedStore struct {
	mu      sync.Mutex // guards all below
	table   map[rocketmq.Queue]int64
	groups  map[string]bool
	saves   int
	loadErr error
	saveErr error
}

func (s *scriptedStore) Load(_ context.Context, group string, queues []rocketmq.Queue) (map[rocketmq.Queue]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(group)
	if s.loadErr != nil {
		return nil, s.loadErr
	}
	out := map[rocketmq.Queue]int64{}
	for _, q := range queues {
		if off, ok := s.table[q]; ok {
			out[q] = off
		}
	}
	return out, nil
}

func (s *scriptedStore) Save(_ context.Context, group string, offsets map[rocketmq.Queue]int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(group)
	s.saves++
	if s.saveErr != nil {
		return s.saveErr
	}
	if s.table == nil {
		s.table = map[rocketmq.Queue]int64{}
	}
	maps.Copy(s.table, offsets)
	return nil
}

func (s *scriptedStore) note(group string) {
	if s.groups == nil {
		s.groups = map[string]bool{}
	}
	s.groups[group] = true
}

func (s *scriptedStore) fail(load, save error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadErr, s.saveErr = load, save
}

// of is what is stored of a queue of topic T, -1 for nothing.
func (s *scriptedStore) of(id int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off, ok := s.table[queueOfT(id)]; ok {
		return off
	}
	return -1
}

func (s *scriptedStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves
}

func queueOfT(id int) rocketmq.Queue { return rocketmq.Queue{Topic: "T", Broker: "b", ID: id} }

func newBroadcast(t testing.TB, cl *rocketmq.Client, opts ...consumer.Option) *consumer.Push {
	t.Helper()
	return newPush(t, cl, append([]consumer.Option{consumer.WithModel(consumer.Broadcasting)}, opts...)...)
}

// Both members get everything, and nothing is asked of the broker, or told to it,
// that has to do with sharing.
func TestBroadcastEveryMemberGetsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 3)
		b.topic("%RETRY%G", 1)
		var shared atomic.Int32
		for _, code := range []int32{wire.ReqGetConsumerListByGroup, wire.ReqQueryConsumerOffset, wire.ReqUpdateConsumerOffset} {
			b.on(code, func(*remoting.Request) bool {
				shared.Add(1)
				return false
			})
		}
		want := map[string]int{}
		put := func(n int) {
			for i := range 30 {
				body := fmt.Sprint(n, " ", i)
				b.put("T", i%3, body)
				want[body] = 1
			}
		}
		put(1)
		var first, second received
		a := start(t, newBroadcast(t, b.client(), consumer.Subscribe("T", selector.All, first.handler()), consumer.StartFrom(rocketmq.Earliest())))
		c := start(t, newBroadcast(t, b.client(), consumer.Subscribe("T", selector.All, second.handler()), consumer.StartFrom(rocketmq.Earliest())))
		put(2)
		time.Sleep(45 * time.Second)
		synctest.Wait()
		put(3)
		synctest.Wait()
		require.Equal(t, want, first.bodies())
		require.Equal(t, want, second.bodies())
		require.Len(t, a.Health().Queues, 3)
		require.Len(t, c.Health().Queues, 3)
		require.NoError(t, a.stop())
		require.NoError(t, c.stop())
		require.Zero(t, shared.Load())
		require.NotEmpty(t, b.beats)
		for _, hb := range b.beats {
			for _, g := range hb.Consumers {
				require.Equal(t, wire.Broadcasting, g.Model)
				require.Len(t, g.Subscriptions, 1, "nothing is retried")
				require.Equal(t, "T", g.Subscriptions[0].Topic)
			}
		}
		for _, p := range b.pulls {
			require.Zero(t, p.SysFlag&wire.PullCommitOffset)
		}
	})
}

// TestP49_FailedMessageIsDropped: whatever a handler does, its message leaves the
// cache and the offset moves on. Nothing is sent back.
func TestP49_FailedMessageIsDropped(t *testing.T) {
	fail := errors.New("no")
	outcomes := map[string]func(msgs []*rocketmq.MessageView) error{
		"error":       func([]*rocketmq.MessageView) error { return fail },
		"retry after": func([]*rocketmq.MessageView) error { return consumer.RetryAfter(time.Second, fail) },
		"dead letter": func([]*rocketmq.MessageView) error { return consumer.DeadLetter(fail) },
		"panic":       func([]*rocketmq.MessageView) error { panic(fail) },
		"batch error": func(msgs []*rocketmq.MessageView) error {
			return consumer.BatchError(append(make([]error, len(msgs)-1), fail))
		},
	}
	for name, outcome := range outcomes {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				for i := range 40 {
					b.put("T", 0, fmt.Sprint(i))
				}
				store := &scriptedStore{}
				logs := &logRecords{}
				var calls received
				c := start(t, newBroadcast(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.WithOffsetStore(store), consumer.StartFrom(rocketmq.Earliest()),
					consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(_ context.Context, msgs []*rocketmq.MessageView) error {
						calls.add(msgs...)
						return outcome(msgs)
					}), consumer.Batch(4))))
				time.Sleep(6 * time.Second)
				synctest.Wait()
				require.Len(t, calls.bodies(), 40)
				require.Len(t, calls.msgs, 40, "once each")
				h := c.Health().Queues[0]
				require.EqualValues(t, 40, h.Committed)
				require.Zero(t, h.Cached+h.InFlight)
				require.EqualValues(t, 40, store.of(0))
				require.NotZero(t, logs.with("err")+logs.with("panic"))
				require.NoError(t, c.stop())
				require.Empty(t, b.sendBacks)
				require.Empty(t, b.sends)
			})
		})
	}
}

// What was not attempted is not dropped.
func TestBroadcastUntriedMessagesComeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 8 {
			b.put("T", 0, fmt.Sprint(i))
		}
		var got received
		c := start(t, newBroadcast(t, b.client(), consumer.StartFrom(rocketmq.Earliest()),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(_ context.Context, msgs []*rocketmq.MessageView) error {
				got.add(msgs[0])
				return consumer.Acked(0, errors.New("no"))
			}), consumer.Batch(4))))
		synctest.Wait()
		require.Len(t, got.bodies(), 8)
		require.Len(t, got.msgs, 8)
		require.EqualValues(t, 8, c.Health().Queues[0].Committed)
		require.NoError(t, c.stop())
	})
}

// A handler that is cut short by the end of the drain has not done its message: it
// comes again with the next run, and the offset has not passed it.
func TestBroadcastCloseKeepsWhatWasDone(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 10 {
			b.put("T", 0, fmt.Sprint(i))
		}
		store := consumer.MemoryOffsets()
		var got received
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.StartFrom(rocketmq.Earliest()), consumer.WithDrainTimeout(time.Second),
			consumer.Subscribe("T", selector.All, consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
				if string(m.Body) == "6" {
					<-ctx.Done()
					return ctx.Err()
				}
				got.add(m)
				return nil
			}))))
		synctest.Wait()
		require.Len(t, got.bodies(), 9)
		var de *consumer.DrainError
		require.ErrorAs(t, c.stop(), &de)
		require.Equal(t, []consumer.Unfinished{{Queue: queueOfT(0), Offsets: []int64{6}}}, de.Queues)
		b.put("T", 0, "10")
		var again received
		c = start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, again.handler())))
		synctest.Wait()
		require.Equal(t, map[string]int{"6": 1, "7": 1, "8": 1, "9": 1, "10": 1}, again.bodies())
		require.NoError(t, c.stop())
	})
}

// By default a new run begins at the start position.
func TestBroadcastWithoutAStoreStartsAnew(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for run := 1; run <= 2; run++ {
			b.put("T", 0, fmt.Sprint("before ", run))
			var got received
			c := start(t, newBroadcast(t, b.client(), consumer.Subscribe("T", selector.All, got.handler())))
			b.put("T", 0, fmt.Sprint("during ", run))
			synctest.Wait()
			require.Equal(t, map[string]int{fmt.Sprint("during ", run): 1}, got.bodies(), "Latest is the end, also of a young queue")
			require.NoError(t, c.stop())
		}
	})
}

// The start position is kept at once, or what comes until the first save would be
// passed over by the next run of a member that dies before it.
func TestBroadcastStartPositionIsKeptAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("NS%T", 2)
		b.put("NS%T", 1, "old")
		store := &scriptedStore{}
		var got received
		c := start(t, newBroadcast(t, b.client(rocketmq.WithNamespace("NS")), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, got.handler())))
		kept := maps.Clone(store.table)
		require.Equal(t, map[rocketmq.Queue]int64{queueOfT(0): 0, queueOfT(1): 1}, kept)
		require.Equal(t, map[string]bool{"NS%G": true}, store.groups)
		require.NoError(t, c.stop())

		b.put("NS%T", 0, "while it was dead")
		c = start(t, newBroadcast(t, b.client(rocketmq.WithNamespace("NS")), consumer.WithOffsetStore(&scriptedStore{table: kept}), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		require.Equal(t, map[string]int{"while it was dead": 1}, got.bodies())
		require.NoError(t, c.stop())
	})
}

// A store is written every 5 s at most, however quick the messages.
func TestBroadcastSavesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		store := &scriptedStore{}
		var got received
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, got.handler())))
		for i := range 1000 {
			b.put("T", 0, fmt.Sprint(i))
			time.Sleep(20 * time.Millisecond)
		}
		require.Len(t, got.bodies(), 1000)
		require.LessOrEqual(t, store.count(), 1+4)
		require.GreaterOrEqual(t, store.count(), 1+3)
		time.Sleep(6 * time.Second)
		n := store.count()
		time.Sleep(time.Minute)
		require.Equal(t, n, store.count(), "nothing new, nothing to save")
		b.put("T", 0, "last")
		synctest.Wait()
		require.NoError(t, c.stop())
		require.Equal(t, n+1, store.count())
		require.EqualValues(t, 1001, store.of(0))
	})
}

// TestP38_BroadcastQueueThatComesLater: a queue that is found while the member runs
// is read from the member's start on: not from its end, which would lose
// messages, and not from its beginning, which may be days ago.
func TestP38_BroadcastQueueThatComesLater(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		b.put("T", 1, "long ago")
		top := b.topics["T"]
		away := top.queues[1]
		top.queues = top.queues[:1]
		time.Sleep(time.Hour)
		var got received
		store := &scriptedStore{}
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, got.handler())))
		time.Sleep(time.Minute)
		require.Len(t, c.Health().Queues, 1)
		b.mu.Lock()
		top.queues = append(top.queues, away)
		b.mu.Unlock()
		b.put("T", 1, "before it was found")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, c.Health().Queues, 2)
		require.Equal(t, map[string]int{"before it was found": 1}, got.bodies())

		// It goes, and what was done is kept; it comes back, and goes on there.
		b.mu.Lock()
		away, top.queues = top.queues[1], top.queues[:1]
		b.mu.Unlock()
		time.Sleep(time.Minute)
		require.Len(t, c.Health().Queues, 1)
		require.EqualValues(t, 2, store.of(1))
		b.mu.Lock()
		top.queues = append(top.queues, away)
		b.mu.Unlock()
		b.put("T", 1, "while it was away")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]int{"before it was found": 1, "while it was away": 1}, got.bodies())
		require.NoError(t, c.stop())
		require.EqualValues(t, 3, store.of(1))
	})
}

// A handler that is at work when its queue goes may finish, and that counts.
func TestBroadcastQueueGoesWhileItIsHandled(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		store := &scriptedStore{}
		begun := make(chan struct{})
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store),
			consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(ctx context.Context, _ []*rocketmq.MessageView) error {
				close(begun)
				<-ctx.Done()
				return nil // in time, though late
			}))))
		b.put("T", 1, "m")
		<-begun
		b.mu.Lock()
		b.topics["T"].queues = b.topics["T"].queues[:1]
		b.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, c.Health().Queues, 1)
		require.EqualValues(t, 1, store.of(1))
		require.NoError(t, c.stop())
	})
}

// A store that cannot be asked is waited for. Nothing is skipped meanwhile, and
// nothing begins at a position that was made up.
func TestBroadcastStoreThatCannotBeAsked(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		for i := range 10 {
			b.put("T", 0, fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		store := &scriptedStore{table: map[rocketmq.Queue]int64{queueOfT(0): 7}}
		store.fail(errors.New("down"), nil)
		time.AfterFunc(2500*time.Millisecond, func() {
			b.put("T", 0, "10")
			b.put("T", 1, "meanwhile")
			store.fail(nil, nil)
		})
		began := time.Now()
		var got received
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, got.handler())))
		require.GreaterOrEqual(t, time.Since(began), 2500*time.Millisecond)
		synctest.Wait()
		require.Equal(t, map[string]int{"7": 1, "8": 1, "9": 1, "10": 1, "meanwhile": 1}, got.bodies())
		require.NoError(t, c.stop())
	})
}

// A store that cannot be written is reported once, and at the end; messages go on.
func TestBroadcastStoreThatCannotBeWritten(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		down := errors.New("down")
		store := &scriptedStore{saveErr: down}
		logs := &levels{}
		var got received
		c := start(t, newBroadcast(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, got.handler())))
		for i := range 30 {
			b.put("T", 0, fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		require.Len(t, got.bodies(), 30)
		require.Equal(t, 1, logs.count(slog.LevelWarn))
		store.fail(nil, nil)
		time.Sleep(6 * time.Second)
		require.EqualValues(t, 30, store.of(0))
		store.fail(nil, down)
		b.put("T", 0, "last")
		synctest.Wait()
		require.ErrorIs(t, c.stop(), down)
	})
}

// levels counts log records by level.
type levels struct {
	mu sync.Mutex
	n  map[slog.Level]int
}

func (l *levels) Enabled(context.Context, slog.Level) bool { return true }
func (l *levels) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *levels) WithGroup(string) slog.Handler            { return l }
func (l *levels) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == nil {
		l.n = map[slog.Level]int{}
	}
	l.n[r.Level]++
	return nil
}

func (l *levels) count(at slog.Level) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n[at]
}

// TestC42_BroadcastOffsetOutsideTheQueue: what was stored has been cleaned away, or
// lies beyond the end of a topic that was made anew. Both is corrected and kept.
func TestC42_BroadcastOffsetOutsideTheQueue(t *testing.T) {
	for stored, want := range map[int64]int64{0: 2020, 5000: 2030} {
		t.Run(fmt.Sprint(stored), func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				b.topics["T"].min[0] = 2020
				for range 10 {
					b.put("T", 0, "there")
				}
				store := &scriptedStore{table: map[rocketmq.Queue]int64{queueOfT(0): stored}}
				logs := &logRecords{}
				var block atomic.Bool
				block.Store(true)
				c := start(t, newBroadcast(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.WithOffsetStore(store),
					consumer.Subscribe("T", selector.All, consumer.HandlerFunc(func(ctx context.Context, _ []*rocketmq.MessageView) error {
						if block.Load() {
							<-ctx.Done()
						}
						return ctx.Err()
					})), consumer.WithDrainTimeout(time.Second)))
				time.Sleep(6 * time.Second)
				synctest.Wait()
				require.Equal(t, want, store.of(0))
				require.Equal(t, 1, logs.with("asked"), "one line of the log")
				require.LessOrEqual(t, len(b.pulls), 3, "no loop")
				block.Store(false)
				if want == 2020 {
					require.Error(t, c.stop(), "ten handlers hang")
					require.Equal(t, want, store.of(0))
					return
				}
				b.put("T", 0, "new")
				synctest.Wait()
				require.NoError(t, c.stop())
				require.Equal(t, want+1, store.of(0))
			})
		})
	}
}

// TestC44_BroadcastReset: an operator moves a running member, back and forth.
func TestC44_BroadcastReset(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		for i := range 10 {
			b.put("T", 0, fmt.Sprint(i))
		}
		store := &scriptedStore{}
		var got received
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		reset := func(off int64) {
			table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{{Topic: "T", Broker: "b"}: off}}
			require.NoError(t, b.member().CallOneway(&wire.Command{
				Code: wire.ReqResetConsumerClientOffset, Ext: &wire.ResetOffsetRequest{Topic: "T", Group: "G", Force: true}, Body: table.AppendJSON(nil),
			}))
			time.Sleep(6 * time.Second)
			synctest.Wait()
		}
		reset(7)
		require.Equal(t, 2, got.bodies()["7"])
		require.Equal(t, 1, got.bodies()["6"])
		require.EqualValues(t, 10, store.of(0))
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			r.Reply(wire.RespSystemError, "", nil, nil)
			return true
		})
		reset(3)
		require.EqualValues(t, 3, store.of(0), "kept before anything was pulled")
		require.NoError(t, c.stop())
		require.EqualValues(t, 3, store.of(0), "and not taken back when closing")
	})
}

func TestBroadcastOptions(t *testing.T) {
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers("127.0.0.1:1"))
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close(context.Background())) }()
	sub := consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop))
	broadcast := consumer.WithModel(consumer.Broadcasting)
	for want, opts := range map[string][]consumer.Option{
		"an offset store is for broadcasting":            {consumer.WithOffsetStore(consumer.MemoryOffsets())},
		"the offset store is nil":                        {broadcast, consumer.WithOffsetStore(nil)},
		"a maximum of attempts is for clustering":        {broadcast, consumer.WithMaxAttempts(3)},
		"unknown model 7":                                {consumer.WithModel(7)},
		"offsets of a clustering group are at the broke": {consumer.WithModel(consumer.Clustering), consumer.WithOffsetStore(consumer.FileOffsets("x"))},
	} {
		_, err := consumer.NewPush(cl, "G", append(opts, sub)...)
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		require.ErrorContains(t, err, want)
	}
	_, err = consumer.NewOrdered(cl, "G", sub, broadcast)
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	require.ErrorContains(t, err, "an ordered consumer cannot broadcast")
	require.Equal(t, "clustering", consumer.Clustering.String())
	require.Equal(t, "broadcasting", consumer.Broadcasting.String())
}
