package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/admin"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// resetRig is a cluster with topic T of two queues, and a group whose handler
// says what it has done. Members can be replaced.
type resetRig struct {
	t       *testing.T
	b       *testbroker.Cluster
	admin   *admin.Client
	ordered bool
	p       *producer.Producer

	at chan struct{} // a handler waits for the gate

	mu   sync.Mutex // guards what follows but more
	gate chan struct{}
	done map[int]map[int64]int // by queue and offset
	more chan struct{}
}

func newResetRig(t *testing.T, ordered bool) *resetRig {
	b := testbroker.New(t, testbroker.Topic("T", 2), testbroker.ManualClock(clusterStart))
	p, err := producer.New(b.Client(t), patient)
	require.NoError(t, err)
	return &resetRig{
		t: t, b: b, admin: admin.New(b.Client(t)), ordered: ordered, p: p,
		at: make(chan struct{}, 1000), done: map[int]map[int64]int{0: {}, 1: {}}, more: make(chan struct{}, 1),
	}
}

// send puts n messages into each queue.
func (r *resetRig) send(n int) {
	r.t.Helper()
	var batch []*rocketmq.Message
	for id := range 2 {
		batch = batch[:0]
		for i := range n {
			batch = append(batch, &rocketmq.Message{Topic: "T", Body: fmt.Append(nil, i)})
		}
		_, err := r.p.SendBatch(context.Background(), batch, producer.To(rocketmq.Queue{Topic: "T", Broker: "broker-a", ID: id}))
		require.NoError(r.t, err)
	}
}

func (r *resetRig) handle(ctx context.Context, m *rocketmq.MessageView) error {
	r.mu.Lock()
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		r.at <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	r.mu.Lock()
	r.done[m.Queue.ID][m.Offset]++
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
	return nil
}

// hold has handlers wait until the returned function is called, or their context
// ends.
func (r *resetRig) hold() (release func()) {
	gate := make(chan struct{})
	set := func(c chan struct{}) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gate = c
	}
	set(gate)
	return func() { set(nil); close(gate) }
}

func (r *resetRig) member() *running {
	r.t.Helper()
	opts := []consumer.Option{consumer.StartFrom(rocketmq.Earliest()), each(r.handle)}
	if r.ordered {
		return start(r.t, newOrdered(r.t, r.b.Client(r.t), opts...))
	}
	return start(r.t, newPush(r.t, r.b.Client(r.t), opts...))
}

// expect waits until both queues have been handled as want says for each offset
// up to end, and not otherwise.
func (r *resetRig) expect(end int64, want func(off int64) int) {
	r.t.Helper()
	complete := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for off := range end {
			if r.done[0][off] < want(off) || r.done[1][off] < want(off) {
				return false
			}
		}
		return true
	}
	limit := time.After(15 * time.Second)
	for !complete() {
		select {
		case <-r.more:
		case <-limit:
			r.check(end, want)
		}
	}
	r.check(end, want)
}

func (r *resetRig) check(end int64, want func(off int64) int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range 2 {
		for off := range end {
			require.Equal(r.t, want(off), r.done[id][off], "queue %d, offset %d", id, off)
		}
	}
}

// reset moves the group and checks that both queues are there.
func (r *resetRig) reset(to rocketmq.Position, want int64) {
	r.t.Helper()
	got, err := r.admin.ResetOffset(context.Background(), "G", "T", to)
	require.NoError(r.t, err)
	for id := range 2 {
		require.True(r.t, slices.Contains(got, admin.QueueOffset{Queue: rocketmq.Queue{Topic: "T", Broker: "broker-a", ID: id}, Offset: want}), "%v", got)
	}
}

func (r *resetRig) stored(want int64) {
	r.t.Helper()
	for id := range 2 {
		off, ok := r.b.Offset("G", rocketmq.Queue{Topic: "T", Broker: "broker-a", ID: id})
		require.True(r.t, ok)
		require.Equal(r.t, want, off, "queue %d", id)
	}
}

// C44 on our broker: a running group back by 100 and forward by 100, then a
// stopped one, by offset and by time. Nothing that the group does while it is
// told undoes that.
func TestC44_ResetOnOurBroker(t *testing.T) {
	for name, ordered := range map[string]bool{"concurrent": false, "in order": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newResetRig(t, ordered)
			r.send(100)
			r.b.Advance(time.Hour)
			r.send(100)
			c := r.member()
			r.expect(200, func(int64) int { return 1 })

			// Online, back: exactly the last 100.
			r.reset(rocketmq.AtTime(clusterStart.Add(30*time.Minute)), 100)
			r.expect(200, func(off int64) int { return 1 + int(off/100) })

			// Online, forward by 100: handlers are at messages from 200 on, 300
			// to 399 are wanted.
			release := r.hold()
			r.send(200)
			for range 2 {
				<-r.at // each queue has begun, at least in order
			}
			r.reset(rocketmq.AtOffset(300), 300)
			require.Eventually(t, func() bool { return health(t, c, 0).Committed >= 300 && health(t, c, 1).Committed >= 300 }, patience, time.Millisecond)
			r.stored(300)
			release()
			r.expect(400, func(off int64) int {
				return [...]int{1, 2, 0, 1}[off/100]
			})
			require.NoError(t, c.stop())
			r.stored(400)

			// Stopped: it counts at once and at the next start, also to where
			// the group is.
			r.reset(rocketmq.AtOffset(350), 350)
			r.stored(350)
			c = r.member()
			r.expect(400, func(off int64) int {
				return [...]int{1, 2, 0, 1}[off/100] + int(off/350)
			})
			r.send(1)
			r.expect(401, func(off int64) int {
				return [...]int{1, 2, 0, 1, 1}[off/100] + int(off/350) - int(off/400)
			})
			require.NoError(t, c.stop())
			r.stored(401)

			// Stopped, all of it again; and a reset that is overtaken by another.
			r.reset(rocketmq.StrictLatest(), 401)
			r.reset(rocketmq.Earliest(), 0)
			c = r.member()
			r.expect(401, func(off int64) int {
				return [...]int{1, 2, 0, 1, 1}[off/100] + int(off/350) - int(off/400) + 1
			})
			require.NoError(t, c.stop())
		})
	}
}

// A backlog is skipped while its messages are cached: where the broker wants the
// group to be is where it pulls already.
func TestC44_SkipTheBacklog(t *testing.T) {
	t.Parallel()
	r := newResetRig(t, false)
	release := r.hold()
	r.send(50)
	c := r.member()
	require.Eventually(t, func() bool {
		cached := 0
		for _, q := range c.Health().Queues {
			if q.Queue.Topic == "T" && q.State == "pulling" {
				cached += q.Cached
			}
		}
		return cached == 100
	}, patience, time.Millisecond)
	r.reset(rocketmq.StrictLatest(), 50)
	require.Eventually(t, func() bool {
		for _, q := range c.Health().Queues {
			if q.Cached > 0 {
				return false
			}
		}
		return true
	}, patience, time.Millisecond)
	release()
	r.send(1)
	r.expect(51, func(off int64) int { return int(off / 50) })
	require.NoError(t, c.stop())
	r.stored(51)
}
