package consume

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// offsetIn is the offset that a frame commits, -1 if it commits none.
func offsetIn(t *testing.T, x remoting.Appender) int64 {
	t.Helper()
	b := x.AppendFrame(nil, 1)
	if len(b) == 0 {
		return -1
	}
	var f wire.Frame
	require.NoError(t, f.Decode(b))
	if f.Code == wire.ReqUpdateConsumerOffset {
		var h wire.UpdateOffsetRequest
		require.NoError(t, h.DecodeExt(&f))
		return h.Offset
	}
	var h wire.PullRequest
	require.NoError(t, h.DecodeExt(&f))
	if h.SysFlag&wire.PullCommitOffset == 0 {
		return -1
	}
	return h.CommitOffset
}

func finishAll(q *queue, ps ...*page) {
	for _, p := range ps {
		for i := range p.views {
			q.finish(p, i)
		}
	}
}

// A pull that was made ready before more was done must not take the offset
// back that a commit has told meanwhile.
func TestPullDoesNotTakeTheOffsetBack(t *testing.T) {
	q := newTestQueue()
	ps := cache(t, q, 3, 1)
	finishAll(q, ps[0])
	q.fillPullLocked()
	finishAll(q, ps[1])
	x := q.due(time.Now(), false)
	require.EqualValues(t, 2, offsetIn(t, x))
	require.EqualValues(t, -1, offsetIn(t, &q.pull), "it says nothing")
	q.fillPullLocked()
	require.EqualValues(t, 2, offsetIn(t, &q.pull))
	finishAll(q, ps[2])
	q.fillPullLocked()
	require.EqualValues(t, 3, offsetIn(t, &q.pull))
	q.gone.Store(true)
	require.EqualValues(t, -1, offsetIn(t, &q.pull), "given up")
}

// Two commits overtake each other: what is sent is what is done.
func TestCommitsAreSentInOrder(t *testing.T) {
	q := newTestQueue()
	ps := cache(t, q, 2, 1)
	finishAll(q, ps[0])
	early := q.due(time.Now(), false)
	finishAll(q, ps[1])
	late := q.due(time.Now(), false)
	require.EqualValues(t, 2, offsetIn(t, late))
	require.EqualValues(t, 2, offsetIn(t, early))
}

// Once the offset was moved, nothing of the queue as it was counts, unless
// somebody waits for the answer.
func TestMovedQueueCommitsNothing(t *testing.T) {
	q := newTestQueue()
	finishAll(q, cache(t, q, 1, 1)...)
	x := q.due(time.Now(), false)
	q.stale.Store(true)
	require.EqualValues(t, 1, offsetIn(t, x))
	x.flag = wire.FlagOneway
	require.EqualValues(t, -1, offsetIn(t, x))
}

func TestDue(t *testing.T) {
	now := time.Now()
	q := newTestQueue()
	q.next, q.began, q.committed, q.sentTime = 5, 5, 5, now
	require.Nil(t, q.due(now, false))
	require.Nil(t, q.due(now, true), "the broker knows it, from before we began")
	require.NotNil(t, q.due(now.Add(commitAgain), false))
	q.next = 7
	require.EqualValues(t, 7, q.due(now, false).offset)
	q.sentCommit(7)
	require.Nil(t, q.due(now, false))
	require.EqualValues(t, 7, q.due(now, true).offset, "sent, and perhaps lost")
	q.handover = true
	require.Nil(t, q.due(now.Add(time.Hour), false), "not ours to tell")
	require.Nil(t, q.due(now, true))
}

// newTestConsumer is a consumer without a network that has one queue with
// nothing to commit.
func newTestConsumer(t *testing.T) (*Consumer, *topic, *queue) {
	c := &Consumer{
		log: slog.New(slog.DiscardHandler), group: run.NewGroup(t.Context()), timers: newTimers(),
		rebalanceKick: make(chan struct{}, 1), commitKick: make(chan struct{}, 1),
		table: map[rocketmq.Queue]*queue{}, revoking: map[rocketmq.Queue]*queue{}, dialing: map[string][]*queue{},
	}
	c.handlers, c.cancelHandlers = context.WithCancelCause(t.Context())
	tp := &topic{c: c, name: "T", wireName: "T", d: newDispatcher(c, Subscription{Settings: Settings{Concurrency: 1, Batch: 1}})}
	tp.limits.set(Settings{CacheMessages: 1000, CacheBytes: 1 << 20, Span: 2000})
	tp.route.Store(&client.Route{Brokers: map[string]client.Broker{testQueue.Broker: {Addrs: map[int64]string{0: "master:1", 1: "replica:1"}}}})
	q := c.newQueue(tp, testQueue, 3)
	q.committed, q.sentTime, q.source = 3, time.Now(), client.MasterID
	c.table[testQueue] = q
	return c, tp, q
}

// What is not among a member's queues any more takes no further message: the
// next owner may be reading it.
func TestLostQueueIsStoppedBeforeItIsGone(t *testing.T) {
	c, tp, q := newTestConsumer(t)
	require.True(t, q.enter(), "a handler runs, so that it takes time to see it off")
	require.Empty(t, c.apply(tp, nil))
	require.Empty(t, c.queues())
	require.True(t, q.gone.Load())
	require.True(t, q.revoked.Load())
	c.mu.Lock()
	require.Same(t, q, c.revoking[testQueue])
	c.mu.Unlock()
	require.Empty(t, c.apply(tp, []rocketmq.Queue{testQueue}), "it comes back when that is over")
	q.leave()
	c.group.Wait()
	require.Equal(t, []rocketmq.Queue{testQueue}, c.apply(tp, []rocketmq.Queue{testQueue}))
}

// An offset that is moved while the queue is being lost does not keep it.
func TestLostQueueWhoseOffsetWasMoved(t *testing.T) {
	c, tp, q := newTestConsumer(t)
	next := c.newQueue(tp, testQueue, 1)
	next.committed, next.sentTime = 1, time.Now()
	c.table[testQueue] = next
	require.Same(t, next, c.giveUp(q))
	require.True(t, next.gone.Load())
	require.Empty(t, c.queues())
	require.Nil(t, c.giveUp(q))
	c.group.Wait()
}

// A broker that says less than it was asked for (it has lost messages) gets a
// new queue: within one, offsets only grow.
func TestOffsetMovedBackMakesANewQueue(t *testing.T) {
	c, _, q := newTestConsumer(t)
	c.group.Cancel(nil) // nobody is to connect
	q.phase, q.pull.h.Offset = phasePulling, 3
	require.True(t, q.tell(3))
	q.moved(&wire.PullResponse{NextOffset: 1, MaxOffset: 1})
	now := c.queues()[0]
	require.NotSame(t, q, now)
	require.True(t, q.stale.Load())
	require.EqualValues(t, 1, now.lowest())
	require.EqualValues(t, 1, offsetIn(t, now.due(time.Now(), false)))
}

// An operator resets the offsets while a queue goes to another member, and its
// handlers still run: what they get done does not undo that.
func TestC44_ResetOfAQueueThatIsBeingRevoked(t *testing.T) {
	for name, ordered := range map[string]bool{"concurrent": false, "in order": true} {
		t.Run(name, func(t *testing.T) {
			c, tp, q := newTestConsumer(t)
			c.cfg.Ordered, c.epoch = ordered, time.Now()
			q.lease.Store(int64(time.Hour))
			ps := cache(t, q, 3, 1)
			finishAll(q, ps[0])
			other := c.newQueue(tp, rocketmq.Queue{Topic: "T", Broker: testQueue.Broker, ID: 9}, 7)
			delete(c.table, testQueue)
			c.revoking[testQueue], c.revoking[other.key] = q, other
			other.lease.Store(int64(time.Hour))
			early := q.due(time.Now(), false)
			early.flag = wire.FlagOneway
			require.NotEqual(t, int64(-1), offsetIn(t, early))
			c.ResetOffsets(t.Context(), "other", map[wire.MessageQueue]int64{tp.queueOf(testQueue): 0})
			require.NotNil(t, q.due(time.Now(), false))
			c.ResetOffsets(t.Context(), "T", map[wire.MessageQueue]int64{tp.queueOf(testQueue): 0})
			finishAll(q, ps[1:]...)
			x := q.due(time.Now(), true)
			if ordered {
				require.EqualValues(t, 0, offsetIn(t, x), "its next owner reads this")
			} else {
				require.Nil(t, x, "its next owner has said it")
				require.EqualValues(t, -1, offsetIn(t, early))
			}
			require.EqualValues(t, 7, other.due(time.Now(), false).offset)
		})
	}
}

// What moves the offset, and whose word counts.
func TestMovedByWhom(t *testing.T) {
	for name, test := range map[string]struct {
		source  int64
		next    int64
		cached  int
		again   bool // the same answer as before
		anew    bool
		fails   bool
		replica bool
	}{
		"forwards":                       {next: 9},
		"back":                           {next: 1, anew: true},
		"forwards, something is cached":  {next: 9, cached: 1, anew: true},
		"to where we are, cached":        {next: 5, cached: 1, anew: true},
		"to where we are":                {next: 5},
		"to where we are, a second time": {next: 5, again: true, fails: true},
		"by a replica":                   {next: 1, source: 1, fails: true, replica: true},
		"by an unknown id, the master's": {next: 1, source: 7, anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, q := newTestConsumer(t)
			c.group.Cancel(nil) // nobody is to connect
			q.next, q.source, q.unmoved = 5, test.source, test.again
			if test.cached > 0 {
				q.next = 3
				cache(t, q, test.cached, 1)
				q.next = 5
			}
			q.phase, q.pull.h.Offset = phasePulling, 5
			q.moved(&wire.PullResponse{NextOffset: test.next, MaxOffset: 9})
			now := c.queues()[0]
			require.Equal(t, test.anew, now != q)
			require.Equal(t, test.anew, q.stale.Load())
			require.EqualValues(t, test.fails, now.lastErr != nil)
			if test.fails {
				require.ErrorContains(t, now.lastErr, "5")
				require.EqualValues(t, 5, now.next)
			} else {
				require.EqualValues(t, test.next, now.next)
				require.EqualValues(t, test.next, offsetIn(t, now.due(time.Now(), false)), "the broker is told at once, also backwards")
			}
			require.Equal(t, test.replica, now.noReplica.After(time.Now()))
			require.EqualValues(t, client.MasterID, now.source)
		})
	}
}

// Without a master a replica may say that something is gone, but not that
// something was never there.
func TestMovedByAReplicaAlone(t *testing.T) {
	for next, follows := range map[int64]bool{9: true, 1: false} {
		c, tp, q := newTestConsumer(t)
		c.group.Cancel(nil)
		tp.route.Store(&client.Route{Brokers: map[string]client.Broker{testQueue.Broker: {Addrs: map[int64]string{1: "replica:1"}}}})
		q.next, q.phase, q.pull.h.Offset = 5, phasePulling, 5
		q.moved(&wire.PullResponse{NextOffset: next, MaxOffset: 9})
		require.Equal(t, follows, q.next == next)
		require.Equal(t, follows, q.lastErr == nil)
	}
}
