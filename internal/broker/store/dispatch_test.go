package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Each arrival can be read at the moment of its notice, and comes once.
func TestArrivals(t *testing.T) {
	type arrival struct {
		topic string
		queue int32
		off   int64
		key   string
	}
	var got []arrival
	var s *store.Store
	r := newRig(t, false, func(c *store.Config) {
		c.OnArrival = func(a store.Arrival) {
			got = append(got, arrival{string(a.Topic), a.QueueID, a.Offset, a.Properties.Text(wire.PropKeys)})
			_, res := s.Get(nil, store.GetRequest{Topic: a.Topic, QueueID: a.QueueID, Offset: a.Offset, MaxMsgs: 1})
			require.Equal(t, store.Found, res.Status)
		}
	})
	s = r.Store
	var want []arrival
	for i := range 50 {
		topic, queue, key := fmt.Sprintf("T%d", i%2), int32(i%3), fmt.Sprint(i)
		res := r.put(topic, queue, "x", wire.PropKeys, key)
		want = append(want, arrival{topic, queue, res.QueueOffset, key})
	}
	r.settle()
	require.Equal(t, want, got)
	// Recovery announces nothing.
	r.Abandon()
	require.NoError(t, r.cfg.FS.RemoveAll("store/consumequeue"))
	r.open()
	require.Equal(t, want, got)
}

// Half messages and rolled back ones are in the log but in no queue.
func TestTransactionRecordsHaveNoPlace(t *testing.T) {
	arrivals := 0
	r := newRig(t, false, func(c *store.Config) { c.OnArrival = func(store.Arrival) { arrivals++ } })
	var phy []int64
	for _, flag := range []int32{0, wire.SysTranPrepared, wire.SysTranRollback, wire.SysTranCommit, wire.SysTranPrepared} {
		m := message("T", 0, fmt.Sprint(flag))
		m.SysFlag = flag
		res, _ := r.Put(m, nil)
		require.NoError(t, res.Err)
		if flag == wire.SysTranPrepared || flag == wire.SysTranRollback {
			require.Zero(t, res.QueueOffset)
		}
		phy = append(phy, res.PhyOffset)
	}
	for range 2 {
		r.settle()
		require.Equal(t, []string{"0", "8"}, r.bodies("T", 0, 0))
		require.Equal(t, int64(2), r.MaxOffset("T", 0))
		for _, at := range phy {
			_, ok := r.ViewMessage(nil, at)
			require.True(t, ok)
		}
		r.kill()
	}
	require.Equal(t, 2, arrivals)
	require.Equal(t, int64(2), r.put("T", 0, "x").QueueOffset)
}

// Many producers, several queues, small files: no gap, no duplicate, order
// per producer, while readers follow.
func TestConcurrentPuts(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk=%v", disk), func(t *testing.T) {
			const producers, each, queues = 8, 300, 3
			arrived := make(chan struct{}, producers*each)
			r := newRig(t, disk, func(c *store.Config) {
				c.OnArrival = func(store.Arrival) { arrived <- struct{}{} }
			})
			var wg sync.WaitGroup
			for p := range producers {
				wg.Go(func() {
					m := &store.Message{Topic: []byte("T")}
					for i := range each {
						m.QueueID = int32(p % queues)
						m.Body = []byte(fmt.Sprintf("%d %d", p, i))
						if i%10 == 9 {
							m.Body = batch(string(m.Body))
							if res, _ := r.PutBatch(m, nil, nil); res.Err != nil {
								t.Error(res.Err)
							}
							continue
						}
						if res, _ := r.Put(m, nil); res.Err != nil {
							t.Error(res.Err)
						}
					}
				})
			}
			wg.Go(func() { // a reader that follows
				next := [queues]int64{}
				for n := 0; n < producers*each; {
					<-arrived
					for q := range next {
						b, _ := r.Get(nil, store.GetRequest{Topic: []byte("T"), QueueID: int32(q), Offset: next[q], MaxMsgs: 32})
						it := wire.Records(b)
						var rec wire.Record
						for ok, err := it.Next(&rec); ok || err != nil; ok, err = it.Next(&rec) {
							if err != nil || rec.QueueOffset != next[q] || !rec.CheckBody() {
								t.Errorf("queue %d: record %d where %d is due: %v", q, rec.QueueOffset, next[q], err)
								return
							}
							next[q]++
							n++
						}
					}
				}
			})
			wg.Wait()
			check := func() {
				total, last := 0, map[int]int{}
				for q := range int32(queues) {
					for _, body := range r.bodies("T", q, 0) {
						var p, i int
						_, err := fmt.Sscanf(body, "%d %d", &p, &i)
						require.NoError(t, err)
						require.Equal(t, last[p], i, "producer %d", p)
						last[p]++
						total++
					}
				}
				require.Equal(t, producers*each, total)
			}
			r.settle()
			check()
			r.kill()
			check()
		})
	}
}

func TestDeleteTopic(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk=%v", disk), func(t *testing.T) {
			ctx := context.Background()
			r := newRig(t, disk)
			want := map[string][]string{}
			r.fill(60, want)
			require.NoError(t, r.DeleteTopic(ctx, "T1"))
			require.NoError(t, r.DeleteTopic(ctx, "never there"))
			for k := range want {
				if topic, _ := splitQueue(t, k); topic == "T1" {
					delete(want, k)
				}
			}
			r.has(want)
			require.Zero(t, r.MaxOffset("T1", 0))
			require.Zero(t, r.put("T1", 0, "again").QueueOffset)
			want["T1/0"] = []string{"again"}
			r.settle()
			r.has(want)
			r.reopen()
			r.has(want)
			require.Equal(t, int64(1), r.put("T1", 0, "and again").QueueOffset)
		})
	}
}

// A topic that is deleted and used at the same time is one topic or the
// other, never a mixture.
func TestDeleteTopicUnderLoad(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, false, func(c *store.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	t.Cleanup(func() { r.Abandon(); require.NotContains(t, log.String(), "trying again") })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 500 {
				if res, _ := r.Put(&store.Message{Topic: []byte("T"), Body: []byte("x")}, nil); res.Err != nil {
					t.Error(res.Err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 30 {
			if err := r.DeleteTopic(ctx, "T"); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	r.settle()
	have := r.MaxOffset("T", 0)
	require.Len(t, r.bodies("T", 0, 0), int(have)) // dense from 0
	require.Equal(t, have, r.put("T", 0, "next").QueueOffset)
	r.settle()
	require.Equal(t, have+1, r.MaxOffset("T", 0))
}

func TestWaitingEndsWithTheStore(t *testing.T) {
	fsys := &full{Memory: mfile.NewMemory()}
	r := newRig(t, false, func(c *store.Config) { c.FS = fsys })
	fsys.queues.Store(true)
	r.put("T", 0, "x") // cannot be dispatched
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	cancel(mine)
	require.ErrorIs(t, r.WaitDispatched(ctx), mine)
	done := make(chan error, 2)
	go func() { done <- r.WaitDispatched(context.Background()) }()
	go func() { done <- r.DeleteTopic(context.Background(), "T") }()
	r.Abandon()
	require.ErrorContains(t, <-done, "closed")
	require.ErrorContains(t, <-done, "closed")
	require.ErrorContains(t, r.WaitDispatched(context.Background()), "closed")
}

// inBubble opens a store on virtual time; it must be ended before f returns.
func inBubble(t *testing.T, fsys mfile.FS, f func(t *testing.T, s *store.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(store.Config{
			Dir: "store", FS: fsys, Clock: clock.Real(), CommitLogFileSize: 64 << 10, ConsumeQueueFileSize: 1 << 20 / 20 * 20,
		})
		require.NoError(t, err)
		defer s.Abandon()
		f(t, s)
	})
}

// When consume queues cannot be written the store keeps what it has, refuses
// more after 30 attempts, and heals by itself.
func TestDispatcherFaultHeals(t *testing.T) {
	fsys := &full{Memory: mfile.NewMemory()}
	fsys.queues.Store(true)
	inBubble(t, fsys, func(t *testing.T, s *store.Store) {
		put := func() store.PutResult {
			res, _ := s.Put(message("T", 0, "x"), nil)
			return res
		}
		require.NoError(t, put().Err)
		time.Sleep(20 * time.Second)
		require.NoError(t, put().Err)
		require.Positive(t, s.Stats().DispatchBehind)
		time.Sleep(15 * time.Second)
		res := put()
		require.Equal(t, store.ServiceNotAvailable, res.Status)
		require.ErrorIs(t, res.Err, errFull)
		fsys.queues.Store(false)
		time.Sleep(2 * time.Second)
		require.NoError(t, put().Err)
		synctest.Wait()
		require.Equal(t, int64(3), s.MaxOffset("T", 0))
		require.Zero(t, s.Stats().DispatchBehind)
	})
}

// A store that cannot write its queues is not closed clean.
func TestCloseWithBacklogLeavesTheAbortFile(t *testing.T) {
	fsys := &full{Memory: mfile.NewMemory()}
	r := newRig(t, false, func(c *store.Config) { c.FS = fsys })
	fsys.queues.Store(true)
	r.put("T", 0, "x")
	require.ErrorIs(t, r.Close(), errFull)
	_, err := fsys.ReadFile("store/abort")
	require.NoError(t, err)
	_, err = store.Open(r.cfg)
	require.ErrorIs(t, err, errFull)
	fsys.queues.Store(false)
	r.open()
	require.Equal(t, []string{"x"}, r.bodies("T", 0, 0))
}

func TestFlushIntervals(t *testing.T) {
	inBubble(t, mfile.NewMemory(), func(t *testing.T, s *store.Store) {
		put := func(n int) int64 {
			res, _ := s.Put(&store.Message{Topic: []byte("T"), Body: make([]byte, n)}, nil)
			require.NoError(t, res.Err)
			return res.End
		}
		small := put(10)
		time.Sleep(9900 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, s.Stats().Flushed, "one page waits for the thorough flush")
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, small, s.Stats().Flushed)
		big := put(4 * mfile.PageSize)
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, big, s.Stats().Flushed, "four pages do not wait")
	})
}
