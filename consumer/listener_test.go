package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
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

// diary notes what happens, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// listener notes what happens to the queues of T.
func (d *diary) listener(who string) consumer.Option {
	return consumer.OnRebalance(func(_ context.Context, r consumer.Rebalance) {
		if r.Topic != "T" {
			return
		}
		var ids []string
		for _, q := range r.Queues {
			ids = append(ids, fmt.Sprint(q.ID))
		}
		d.note("%s %s %s", who, r.Kind, strings.Join(ids, ","))
	})
}

// offsets notes when the broker hears of an offset of a queue that has moved, and
// when it is unlocked.
func (d *diary) offsets(b *fake, queue int32) {
	last := int64(0)
	b.on(wire.ReqUpdateConsumerOffset, func(r *remoting.Request) bool {
		var h wire.UpdateOffsetRequest
		if h.DecodeExt(r.Frame()) == nil && h.Topic == "T" && h.QueueID == queue && h.Offset != last {
			last = h.Offset
			d.note("commit %d", h.Offset)
		}
		return false
	})
	b.on(wire.ReqUnlockBatchMQ, func(r *remoting.Request) bool {
		body, err := wire.DecodeLockBody(r.Frame().Body)
		if err == nil && slices.Contains(body.Queues, wire.MessageQueue{Topic: "T", Broker: "b", QueueID: queue}) {
			d.note("unlock")
		}
		return false
	})
}

// The order of revoking, in order: stop, wait for the handler, tell, commit, unlock;
// and then the next owner begins.
func TestOrderedRevokeTellsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		putMany(b, 1, 0, 2)
		d := &diary{}
		d.offsets(b, 1)
		handler := func(who string, takes time.Duration) consumer.Option {
			return each(func(_ context.Context, m *rocketmq.MessageView) error {
				d.note("%s begins %s", who, m.Body)
				time.Sleep(takes)
				d.note("%s ends %s", who, m.Body)
				return nil
			})
		}
		first := start(t, newOrdered(t, b.client(rocketmq.WithInstanceName("a")), d.listener("a"), handler("a", 700*time.Millisecond)))
		synctest.Wait()
		second := start(t, newOrdered(t, b.client(rocketmq.WithInstanceName("b")), d.listener("b"), handler("b", 0)))
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{
			"a assigned 0,1", "a begins 0", "a ends 0", "a revoked 1", "commit 1", "unlock",
			"b assigned 1", "b begins 1", "b ends 1", "commit 2",
		}, d.all())
		require.NoError(t, first.stop())
		time.Sleep(3 * time.Second)
		require.NoError(t, second.stop())
		require.Equal(t, []string{"a revoked 0", "b assigned 0", "b revoked 0,1", "unlock"}, d.all()[10:])
	})
}

// Without order what is done is committed at once, since the next owner asks for
// it; the rest when the listener knows.
func TestRevokeTellsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 2)
		putMany(b, 1, 0, 2)
		d := &diary{}
		d.offsets(b, 1)
		first := start(t, newPush(t, b.client(rocketmq.WithInstanceName("a")), consumer.StartFrom(rocketmq.Earliest()), d.listener("a"),
			each(func(_ context.Context, m *rocketmq.MessageView) error {
				time.Sleep(700 * time.Millisecond)
				d.note("a ends %s", m.Body)
				return nil
			}, consumer.Concurrency(1))))
		time.Sleep(800 * time.Millisecond)
		second := start(t, newPush(t, b.client(rocketmq.WithInstanceName("b")), d.listener("b"), each(func(_ context.Context, m *rocketmq.MessageView) error {
			d.note("b ends %s", m.Body)
			return nil
		})))
		time.Sleep(3 * time.Second)
		lines := d.all()
		require.Equal(t, []string{"a assigned 0,1", "a ends 0"}, lines[:2])
		require.Contains(t, lines, "b assigned 1")
		at := func(line string) int { return slices.Index(lines, line) }
		require.Positive(t, at("commit 1"))
		require.Less(t, at("commit 1"), at("a ends 1"))
		require.Less(t, at("a ends 1"), at("a revoked 1"))
		require.NoError(t, first.stop())
		require.NoError(t, second.stop())
	})
}

// Queues are not pulled before the listener has returned, and each that was
// assigned is revoked once, also by Close.
func TestListenerGoesFirst(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 4)
		for q := range 4 {
			putMany(b, q, 0, 3)
		}
		gate := make(chan struct{})
		var got received
		var mu sync.Mutex
		var events []consumer.Rebalance
		p := join(consumer.Subscribe("T", selector.All, got.handler()), consumer.OnRebalance(func(_ context.Context, r consumer.Rebalance) {
			if r.Kind == consumer.Assigned {
				<-gate
			}
			mu.Lock()
			defer mu.Unlock()
			events = append(events, r)
		}))
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- p.Run(ctx) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Empty(t, b.pulls)
		select {
		case <-p.Ready():
			t.Fatal("ready before the listener has returned")
		default:
		}
		close(gate)
		<-p.Ready()
		synctest.Wait()
		require.Len(t, got.bodies(), 3)
		cancel()
		require.NoError(t, <-result)
		require.Len(t, events, 2)
		require.Equal(t, consumer.Assigned, events[0].Kind)
		require.Equal(t, consumer.Revoked, events[1].Kind)
		require.Equal(t, events[0].Queues, events[1].Queues)
		require.Len(t, events[0].Queues, 4)
		require.True(t, slices.IsSortedFunc(events[0].Queues, rocketmq.Queue.Compare))
	})
}

// A handler that is left behind, and a lock that is lost.
func TestListenerIsToldOfLosses(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 2)
		putMany(b, 0, 0, 1)
		d := &diary{}
		gate := make(chan struct{})
		c := start(t, join(d.listener("a"), consumer.WithDrainTimeout(time.Second), each(func(context.Context, *rocketmq.MessageView) error {
			<-gate
			return nil
		})))
		synctest.Wait()
		require.Error(t, c.stop())
		require.Equal(t, []string{"a assigned 0,1", "a revoked 1", "a lost 0"}, d.all())
		close(gate)
	})
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		d := &diary{}
		c := start(t, newOrdered(t, b.client(), d.listener("a"), each(func(context.Context, *rocketmq.MessageView) error { return nil })))
		b.steal("T", 0, "thief")
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"a assigned 0", "a lost 0"}, d.all())
		b.steal("T", 0, "")
		time.Sleep(2 * time.Second)
		require.NoError(t, c.stop())
		require.Equal(t, []string{"a assigned 0", "a lost 0", "a assigned 0", "a revoked 0"}, d.all())
	})
}

// A reset is no event, and afterwards the queue is known all the same.
func TestListenerAndReset(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, join func(opts ...consumer.Option) role) {
		b.topic("T", 1)
		putMany(b, 0, 0, 5)
		d := &diary{}
		var got received
		c := start(t, join(d.listener("a"), consumer.Subscribe("T", selector.All, got.handler())))
		synctest.Wait()
		table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{{Topic: "T", Broker: "b"}: 2}}
		require.NoError(t, b.member().CallOneway(&wire.Command{
			Code: wire.ReqResetConsumerClientOffset, Ext: &wire.ResetOffsetRequest{Topic: "T", Group: "G", Force: true}, Body: table.AppendJSON(nil),
		}))
		time.Sleep(2 * time.Second)
		require.Equal(t, 2, got.bodies()["4"])
		require.NoError(t, c.stop())
		require.Equal(t, []string{"a assigned 0", "a revoked 0"}, d.all())
	})
}

// A listener that takes its time holds up neither heartbeats nor messages of other
// queues nor, beyond its limit, the close; one that panics is logged.
func TestListenerThatIsSlowOrPanics(t *testing.T) {
	bothKinds(t, func(t *testing.T, b *fake, _ func(opts ...consumer.Option) role) {
		b.topic("T", 4)
		logs := &logRecords{}
		cl := b.client(rocketmq.WithLogger(slog.New(logs)), rocketmq.WithInstanceName("a"))
		var got received
		opts := []consumer.Option{
			consumer.WithDrainTimeout(2 * time.Second), consumer.Subscribe("T", selector.All, got.handler()),
			consumer.OnRebalance(func(ctx context.Context, r consumer.Rebalance) {
				if r.Kind == consumer.Assigned {
					panic("at the disco")
				}
				<-ctx.Done()
			}),
		}
		other := b.client(rocketmq.WithInstanceName("b"))
		var c, second *running
		if strings.HasSuffix(t.Name(), "push") {
			c = start(t, newPush(t, cl, opts...))
			second = start(t, newPush(t, other, consumer.Subscribe("T", selector.All, got.handler())))
		} else {
			c = start(t, newOrdered(t, cl, opts...))
			second = start(t, newOrdered(t, other, consumer.Subscribe("T", selector.All, got.handler())))
		}
		require.Equal(t, 1, logs.with("stack"))
		time.Sleep(time.Minute)
		b.put("T", 0, "m")
		b.put("T", 1, "n")
		synctest.Wait()
		require.Len(t, got.bodies(), 2)
		began := time.Now()
		require.NoError(t, second.stop())
		_ = c.stop() // says that background work still runs, or nothing
		require.Less(t, time.Since(began), 6*time.Second)
	})
}
