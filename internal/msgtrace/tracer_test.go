package msgtrace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/send"
)

func TestObserve(t *testing.T) {
	failure := errors.New("no")
	for _, tt := range []struct {
		name   string
		change func(o *send.Outcome)
		want   func(p *Pub) // nil: no trace
		keys   []string
	}{
		{"stored", func(*send.Outcome) {}, func(*Pub) {}, []string{"ID7", "k7"}},
		{"tag, no keys", func(o *send.Outcome) { o.Message.Tag, o.Message.Keys = "t", nil }, func(p *Pub) { p.Tags, p.Keys = "t", nil }, []string{"ID7"}},
		{"keys that repeat", func(o *send.Outcome) { o.Message.Keys = []string{"a", "ID7", "a", "b"} }, func(p *Pub) { p.Keys = []string{"a", "ID7", "a", "b"} }, []string{"ID7", "a", "b"}},
		{"by sharding key", func(o *send.Outcome) { o.Message.ShardingKey = "s" }, func(p *Pub) { p.Type = Normal }, []string{"ID7", "k7"}},
		{"delayed", func(o *send.Outcome) {
			o.Message.ShardingKey, o.Message.Delay = "s", rocketmq.DelayLevel(3)
		}, func(p *Pub) { p.Type = Delay }, []string{"ID7", "k7"}},
		{"one-way", func(o *send.Outcome) {
			o.Oneway, o.Result, o.Region = true, send.Result{}, ""
		}, func(p *Pub) { p.OffsetID, p.Region = "", "DefaultRegion" }, []string{"ID7", "k7"}},
		{"one-way, not handed over", func(o *send.Outcome) {
			o.Oneway, o.Result, o.Err = true, send.Result{}, failure
		}, func(p *Pub) { p.OffsetID, p.Success = "", false }, []string{"ID7", "k7"}},
		{"failed early", func(o *send.Outcome) {
			o.ID, o.Addr, o.Region, o.Result, o.Err = "", "", "", send.Result{}, failure
		}, func(p *Pub) {
			p.MessageID, p.StoreHost, p.Region, p.OffsetID, p.Success = "", "", "DefaultRegion", "", false
		}, []string{"k7"}},
		{"stored, not flushed in time", func(o *send.Outcome) {
			o.Result.Status, o.Err = send.StatusFlushTimeout, failure
		}, func(p *Pub) { p.Success = false }, []string{"ID7", "k7"}},
		{"the same and taken for good", func(o *send.Outcome) { o.Result.Status = send.StatusNoReplica }, func(p *Pub) { p.Success = false }, []string{"ID7", "k7"}},
		{"the broker wants none", func(o *send.Outcome) { o.NoTrace = true }, nil, nil},
		{"a message for the trace topic", func(o *send.Outcome) { o.Message.Topic = "traces" }, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakePipe{}
			tr, _ := testTracer(t, f)
			o := outcome(7)
			tt.change(o)
			tr.Observe(o)
			clear(o.Message.Body)
			clear(o.Message.Keys) // it is the caller's again
			tr.Close(t.Context())
			if tt.want == nil {
				require.Empty(t, f.got())
				return
			}
			want := Pub{
				Time: time.UnixMilli(1700000000123), Region: "r1", Group: "g", Topic: "orders", MessageID: "ID7", Keys: []string{"k7"},
				StoreHost: "10.0.0.2:10911", BodyLength: 5, Cost: 3 * time.Millisecond, OffsetID: "OFF", Success: true, ClientHost: tr.host,
			}
			tt.want(&want)
			require.Len(t, f.got(), 1)
			m := f.got()[0]
			require.NoError(t, m.Validate())
			require.Equal(t, "traces", m.Topic)
			require.Equal(t, tt.keys, m.Keys)
			require.Equal(t, string(want.Append(nil)), string(m.Body))
			require.NotEmpty(t, tr.host)
			require.NotContains(t, tr.host, "@")
		})
	}
}

// TestObserveAllocations is a gate: what the sender pays is one buffer, and
// nothing for what is not traced.
func TestObserveAllocations(t *testing.T) {
	tr, _ := testTracer(t, &fakePipe{})
	tr.start.Do(func() {}) // what the background pays is not the sender's
	o := outcome(1)
	tr.queue.list = make([]entry, 0, 2000)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { tr.Observe(o) }), 1.0)
	o.NoTrace = true
	require.Zero(t, testing.AllocsPerRun(100, func() { tr.Observe(o) }))
	tr.Close(t.Context())
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePipe{}
		tr, log := testTracer(t, f)
		began := time.Now()
		observe(tr, 9)
		time.Sleep(4999 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, f.got())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int{9}, f.sizes(), "after 5 s")
		observe(tr, 10)
		synctest.Wait()
		require.Equal(t, []int{9, 10}, f.sizes(), "at once")
		require.Equal(t, 5*time.Second, time.Since(began))

		time.Sleep(time.Hour)
		observe(tr, 25)
		time.Sleep(4 * time.Second)
		require.Equal(t, 25+19, sum(f.sizes())+5)
		observe(tr, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 19+26, sum(f.sizes()), "5 s after the first one that waits")
		observe(tr, 3)
		tr.Close(context.Background())
		require.Equal(t, 19+29, sum(f.sizes()))
		require.Zero(t, tr.Dropped())
		require.Zero(t, tr.queue.missing())
		require.Zero(t, log.count("level="))
	})
}

func sum(n []int) (s int) {
	for _, n := range n {
		s += n
	}
	return s
}

// However long keys are, all messages are such as brokers take, and every
// record arrives.
func TestMessagesKeepTheirBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePipe{}
		tr, _ := testTracer(t, f)
		ids := map[string]bool{}
		for i := range 40 {
			o := outcome(i)
			ids[o.ID] = true
			if i%3 > 0 {
				k := strings.Repeat(string(rune('a'+i%26)), 1000)
				o.Message.Keys = nil
				for range 16 * (i % 3) {
					o.Message.Keys = append(o.Message.Keys, k, o.ID)
				}
				for len(k) > 985 {
					k = k[1:]
					o.Message.Keys = append(o.Message.Keys, k)
				}
			}
			tr.Observe(o)
		}
		tr.Close(context.Background())
		records := 0
		for _, m := range f.got() {
			require.NoError(t, m.Validate())
			require.LessOrEqual(t, len(m.Body), 128_000)
			for r := range Records(string(m.Body)) {
				p, err := ParsePub(r)
				require.NoError(t, err)
				require.True(t, ids[p.MessageID])
				require.Contains(t, m.Keys, p.MessageID)
				records++
			}
			u := slices.Clone(m.Keys)
			slices.Sort(u)
			require.Len(t, slices.Compact(u), len(m.Keys), "each key once")
		}
		require.Equal(t, 40, records)
		require.Zero(t, tr.Dropped())
	})
}

func TestQueueDropsWhatItHasNoRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePipe{room: make(chan struct{}, 2), after: time.Minute}
		tr, log := testTracer(t, f)
		began := time.Now()
		observe(tr, 30)
		synctest.Wait() // two messages are under way, one stands before the window
		const more = 500
		observe(tr, maxWaiting+more)
		require.Equal(t, int64(more), tr.Dropped())
		require.Zero(t, time.Since(began), "nobody has waited")
		tr.queue.mu.Lock()
		require.Len(t, tr.queue.list[tr.queue.head:], maxWaiting)
		tr.queue.mu.Unlock()

		f.set(0, nil)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		require.Equal(t, maxWaiting+30, sum(f.sizes()))
		require.Equal(t, 1, log.count("faster than they can be sent"))
		observe(tr, 20)
		tr.Close(context.Background())
		require.Equal(t, maxWaiting+50, sum(f.sizes()))
		require.Equal(t, int64(more), tr.Dropped())
	})
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	var q queue
	q.init()
	e := entry{b: make([]byte, 30_000), body: 20_000}
	n := maxWaitingBytes / len(e.b)
	for range n + 5 {
		q.put(e)
	}
	require.Equal(t, int64(5), q.lost())
	q.put(entry{b: make([]byte, maxBody+1), body: maxBody + 1})
	require.Equal(t, int64(6), q.lost(), "it would fit into no message")
	taken := 0
	for !q.empty() {
		b := q.take(nil, true)
		require.Len(t, b, 3, "keys end the message")
		taken += len(b)
		if n-taken < 3 {
			break
		}
	}
	for range taken {
		q.put(e)
	}
	require.Equal(t, int64(6), q.lost(), "what was taken has made room")
	q.discard()
	require.True(t, q.empty())
	require.Equal(t, int64(6+n), q.lost())
}

// A trace topic that does not work costs two log lines, whatever is sent.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePipe{err: rocketmq.ErrTopicNotFound}
		tr, log := testTracer(t, f)
		const n = 2000
		for i := range n {
			tr.Observe(outcome(i))
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		require.Equal(t, 1, log.count("cannot be sent and are dropped"))
		require.Equal(t, 1, log.count("level="))
		require.Less(t, len(f.got()), 20, "attempts are rare")
		require.Greater(t, len(f.got()), 4)

		f.set(0, nil)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, log.count("sent again"))
		require.Equal(t, 2, log.count("level="))
		lost := tr.Dropped()
		require.Greater(t, lost, int64(4*10))
		require.Equal(t, lost, tr.told)
		observe(tr, 10)
		synctest.Wait()
		require.Equal(t, lost, tr.Dropped())
		require.Equal(t, n+10, sum(f.sizes()), "nothing but what failed is missing")

		// Another trouble, later, is told again and tried after 1 s.
		time.Sleep(10 * time.Minute)
		f.set(0, errors.New("other"))
		observe(tr, 20)
		synctest.Wait()
		f.set(0, nil)
		observe(tr, 10)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, log.count("sent again"))
		tr.Close(context.Background())
		require.Equal(t, 2, log.count("cannot be sent and are dropped"))
		require.Equal(t, 1, log.count("have ended"))
	})
}

func TestCloseIsBounded(t *testing.T) {
	never := 100 * time.Hour
	for _, tt := range []struct {
		name  string
		ctx   time.Duration
		after time.Duration // outcomes take
		err   error
		n     int
		most  time.Duration
		lost  int64
	}{
		{"nothing to do", time.Hour, never, nil, 0, 0, 0},
		{"in time", time.Hour, time.Second, nil, 100, time.Second, 0},
		{"no answers", time.Hour, never, nil, 1000, closeLimit, 1000},
		{"no answers, no time", time.Second, never, nil, 1000, time.Second, 1000},
		{"time is over already", 0, never, nil, 1000, 0, 1000},
		{"all fail", time.Hour, 3 * time.Second, errors.New("no"), maxWaiting, closeLimit, maxWaiting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakePipe{room: make(chan struct{}, 32), after: tt.after, err: tt.err}
				tr, log := testTracer(t, f)
				observe(tr, tt.n)
				ctx, cancel := context.WithTimeout(context.Background(), tt.ctx)
				defer cancel()
				began := time.Now()
				tr.Close(ctx)
				require.LessOrEqual(t, time.Since(began), tt.most)
				tr.Close(ctx) // once more does nothing
				require.LessOrEqual(t, time.Since(began), tt.most)
				require.Equal(t, 1, f.closed)
				synctest.Wait() // what had no time left is being counted
				before := tr.Dropped()
				require.Equal(t, tt.lost, tr.queue.missing())
				require.Equal(t, min(int(tt.lost), 1), log.count("have ended"))
				observe(tr, 5)
				require.Equal(t, before+5, tr.Dropped(), "too late")
				synctest.Wait()
				lines := log.count("level=")
				time.Sleep(2 * never)
				synctest.Wait()
				require.Equal(t, lines, log.count("level="), "a closed tracer is silent")
			})
		})
	}
}

// Whatever comes at the same time as Close is sent or counted.
func TestCloseAmongObservers(t *testing.T) {
	for range 50 {
		f := &fakePipe{}
		tr, _ := testTracer(t, f)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { observe(tr, 50) })
		}
		wg.Go(func() { tr.Close(context.Background()) })
		wg.Wait()
		require.Equal(t, 200, sum(f.sizes())+int(tr.Dropped()))
	}
}

func TestGroup(t *testing.T) {
	require.Equal(t, "_INNER_TRACE_PRODUCER-orders-PRODUCE-1", groupOf("orders", Produce))
	require.Equal(t, "_INNER_TRACE_PRODUCER-orders-CONSUME-1", groupOf("orders", Consume))
}
