package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// referee watches the calls of all members of a group and finds fault with what
// breaks the order: two calls for one queue, a message before the one before it
// was done, or one that comes again without a change of owner or a failure.
type referee struct {
	t  testing.TB
	mu sync.Mutex
	qs map[int]*refereed

	done, twice, changes int
}

type refereed struct {
	owner *witness // of the last call
	busy  bool
	last  int64 // offset of the last call
	next  int64 // the first that was never done
	again bool  // the last call failed: the same one must come again
}

// witness is one member. One that has crashed is not heard any more.
type witness struct {
	r    *referee
	name string
	gone atomic.Bool
}

var (
	errCrashed = errors.New("the process is dead")
	errRandom  = errors.New("at random")
)

func newReferee(t testing.TB) *referee { return &referee{t: t, qs: map[int]*refereed{}} }

func (r *referee) queue(id int) *refereed {
	q := r.qs[id]
	if q == nil {
		q = &refereed{last: -1}
		r.qs[id] = q
	}
	return q
}

// begin judges a call that begins.
func (w *witness) begin(m *rocketmq.MessageView) bool {
	if w.gone.Load() {
		return false
	}
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queue(m.Queue.ID)
	changed := q.owner != w
	switch {
	case q.busy:
		r.t.Errorf("queue %d: %s begins with %d while %s is at %d", m.Queue.ID, w.name, m.Offset, q.owner.name, q.last)
	case m.Offset > q.next:
		r.t.Errorf("queue %d: %s begins with %d, and %d was never done", m.Queue.ID, w.name, m.Offset, q.next)
	case changed:
	case q.again && m.Offset != q.last:
		r.t.Errorf("queue %d: %s begins with %d, after %d failed", m.Queue.ID, w.name, m.Offset, q.last)
	case !q.again && m.Offset != q.last+1:
		r.t.Errorf("queue %d: %s begins with %d after %d", m.Queue.ID, w.name, m.Offset, q.last)
	}
	if changed {
		r.changes++
	}
	q.owner, q.busy, q.last = w, true, m.Offset
	return true
}

// end notes how a call ended.
func (w *witness) end(m *rocketmq.MessageView, err error) {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queue(m.Queue.ID)
	if w.gone.Load() || q.owner != w {
		return
	}
	q.busy, q.again = false, err != nil
	if err != nil {
		return
	}
	if r.done++; m.Offset < q.next {
		r.twice++
	} else {
		q.next = m.Offset + 1
	}
}

// crash has a member's process die: what its handlers are at is not done.
func (w *witness) crash() {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.gone.Store(true)
	for _, q := range w.r.qs {
		if q.owner == w {
			q.busy = false
		}
	}
}

// handler takes its time and fails now and then.
func (w *witness) handler(seed uint64, takes time.Duration) consumer.Option {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, seed))
	return each(func(ctx context.Context, m *rocketmq.MessageView) error {
		if !w.begin(m) {
			return errCrashed
		}
		mu.Lock()
		fails, long := r.IntN(50) == 0, r.IntN(300) == 0
		mu.Unlock()
		err := error(nil)
		d := takes
		if long {
			d *= 500
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			if fails {
				err = consumer.RetryAfter(20*time.Millisecond, errRandom)
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		w.end(m, err)
		return err
	}, consumer.Concurrency(4))
}

// cable is a network that can be cut for one member.
type cable struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	mu   sync.Mutex
	cut  bool
	all  []net.Conn
}

func (c *cable) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || !c.cut {
		c.all = append(c.all, conn)
		return conn, err
	}
	_ = conn.Close()
	return nil, errors.New("the cable is cut")
}

func (c *cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.all {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

type ordering struct {
	*running
	w     *witness
	cable *cable
	cl    *rocketmq.Client
}

func (m *ordering) leave(t testing.TB) {
	require.NoError(t, m.stop())
	require.NoError(t, m.cl.Close(context.Background()))
}

// Members come, leave, die, and lose their network while messages flow: nothing
// is lost, nothing is out of order, no two handle one queue at a time, and what
// comes twice is what a member that died had not committed.
func TestOrderedChurn(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes int
		crashes bool
	}{{"members come and leave", 150, false}, {"members die, too", 50, true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			bubble(t, func(t *testing.T, b *fake) { orderedChurn(t, b, seed, tc.changes, tc.crashes) })
		})
	}
}

func orderedChurn(t *testing.T, b *fake, seed uint64, changes int, crashes bool) {
	const queues = 8
	b.topic("T", queues)
	between, gap := 1500, 25*time.Millisecond // ms
	if crashes {
		between, gap = 15000, 60*time.Millisecond // a lock runs out after 60 s
	}
	r := rand.New(rand.NewPCG(seed, 1))
	ref := newReferee(t)
	join := func(i int) *ordering {
		w := &witness{r: ref, name: fmt.Sprint("member ", i)}
		cab := &cable{dial: b.net.Dial}
		cl := b.client(rocketmq.WithDialer(cab.Dial), rocketmq.WithInstanceName(fmt.Sprintf("%04d-%d", r.IntN(10000), i)))
		return &ordering{start(t, newOrdered(t, cl, w.handler(r.Uint64(), 3*time.Millisecond))), w, cab, cl}
	}
	var sent [queues]int64
	stop, flowed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(flowed)
		r := rand.New(rand.NewPCG(seed, 2))
		for {
			select {
			case <-stop:
				return
			case <-time.After(gap):
			}
			q := r.IntN(queues)
			b.put("T", q, "m")
			sent[q]++
		}
	}()
	steady := join(0)
	time.Sleep(5 * time.Second)
	synctest.Wait()
	count := goroutines(t)
	members := []*ordering{steady}
	var dead []*ordering
	died := 0
	for i := range changes {
		time.Sleep(time.Duration(r.IntN(between)) * time.Millisecond)
		if len(members) < 2 || len(members) < 5 && r.IntN(2) == 0 {
			members = append(members, join(i+1))
			continue
		}
		k := 1 + r.IntN(len(members)-1)
		m := members[k]
		members = slices.Delete(members, k, k+1)
		switch kind := r.IntN(6); {
		case crashes && kind == 0:
			died++
			m.w.crash()
			m.cable.Cut()
			dead = append(dead, m)
		case crashes && kind == 1:
			died++
			m.cable.Cut() // it lives on, and handles what it has while its locks are good
			dead = append(dead, m)
		default:
			m.leave(t)
		}
	}
	close(stop)
	<-flowed
	for _, m := range members[1:] {
		m.leave(t)
	}
	time.Sleep(3 * time.Minute) // locks of the dead run out, and what they had is handled
	for _, m := range dead {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_ = m.Close(ctx) // cannot tell anybody
		cancel()
		<-m.result
		ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
		_ = m.cl.Close(ctx)
		cancel()
	}
	time.Sleep(30 * time.Second)
	synctest.Wait()
	require.InDelta(t, count, goroutines(t), 5)
	require.Equal(t, queues, assigned(steady.running))
	require.NoError(t, steady.stop())
	total := 0
	for q := range queues {
		require.Equal(t, sent[q], b.stored("T", q), "queue %d", q)
		require.Equal(t, sent[q], ref.qs[q].next, "nothing is lost")
		total += int(sent[q])
	}
	t.Logf("%d messages, %d changes of owners, %d of %d died, %d messages twice", total, ref.changes, died, changes, ref.twice)
	require.Greater(t, ref.changes, changes)
	// A member that dies has not committed the last 5 s, and what a slow handler held up.
	require.LessOrEqual(t, ref.twice, died*int(10*time.Second/gap))
}

// The same on our own broker, with one queue: the order is that of the whole
// topic.
func TestClusterOrderedChurnGlobalOrder(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, seed))
	for _, queues := range []int{1, 8} {
		t.Run(fmt.Sprint(queues), func(t *testing.T) {
			b := testbroker.New(t, testbroker.Topic("T", queues))
			ref := newReferee(t)
			join := func(i int) *running {
				w := &witness{r: ref, name: fmt.Sprint("member ", i)}
				return start(t, newOrdered(t, b.Client(t, rocketmq.WithInstanceName(fmt.Sprintf("%04d-%d", r.IntN(10000), i))),
					w.handler(r.Uint64(), 200*time.Microsecond)))
			}
			p, err := producer.New(b.Client(t), patient)
			require.NoError(t, err)
			sent := 0
			flow := func(n int) {
				for range n {
					_, err := p.Send(context.Background(), &rocketmq.Message{Topic: "T", Body: fmt.Append(nil, sent), ShardingKey: fmt.Sprint(sent % 50)})
					require.NoError(t, err)
					sent++
				}
			}
			members := []*running{join(0)}
			for i := range 12 {
				flow(20 + r.IntN(40))
				if len(members) < 2 || len(members) < 4 && r.IntN(2) == 0 {
					members = append(members, join(i+1))
					continue
				}
				k := r.IntN(len(members))
				require.NoError(t, members[k].stop())
				members = slices.Delete(members, k, k+1)
			}
			flow(50)
			require.Eventually(t, func() bool { ref.mu.Lock(); defer ref.mu.Unlock(); return ref.done-ref.twice == sent }, patience, time.Millisecond)
			for _, m := range members {
				require.NoError(t, m.stop())
			}
			require.Zero(t, b.Lag("G", "T"))
			require.Zero(t, ref.twice, "of %d", sent)
			require.NoError(t, p.Close(context.Background()))
		})
	}
}

// Messages of one key are handled in the order in which they were sent, those of
// different keys beside each other.
func TestClusterOrderedKeys(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("T", 4))
	p, err := producer.New(b.Client(t), patient)
	require.NoError(t, err)
	const keys, each = 20, 30
	for i := range each {
		for k := range keys {
			_, err := p.Send(context.Background(), &rocketmq.Message{Topic: "T", Body: fmt.Append(nil, i), ShardingKey: fmt.Sprint("key", k)})
			require.NoError(t, err)
		}
	}
	require.NoError(t, p.Close(context.Background()))
	var mu sync.Mutex
	got := map[string][]string{}
	n, full := 0, make(chan struct{})
	c := start(t, newOrdered(t, b.Client(t), consumer.Subscribe("T", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		mu.Lock()
		defer mu.Unlock()
		got[m.ShardingKey] = append(got[m.ShardingKey], string(m.Body))
		if n++; n == keys*each {
			close(full)
		}
		return nil
	}))))
	select {
	case <-full:
	case <-time.After(30 * time.Second):
		t.Fatalf("%d messages", n)
	}
	require.NoError(t, c.stop())
	require.Len(t, got, keys)
	var want []string
	for i := range each {
		want = append(want, fmt.Sprint(i))
	}
	for k, bodies := range got {
		require.Equal(t, want, bodies, k)
	}
}
