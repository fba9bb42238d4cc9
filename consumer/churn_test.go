package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"github.com/gorocketmq/rocketmq/testbroker"
)

// ledger knows who has handled what.
type ledger struct {
	mu      sync.Mutex
	done    map[string][]*churner // by body, once for each time it was done
	hands   map[string]*churner   // what is in a handler, and whose
	allowed map[string]bool       // may come twice: done by a member that died before it had committed
	both    int                   // calls that began for a message while another member was at it
}

func newLedger() *ledger {
	return &ledger{done: map[string][]*churner{}, hands: map[string]*churner{}, allowed: map[string]bool{}}
}

// churner is one member of a group without order.
type churner struct {
	*running
	l     *ledger
	cable *cable
	cl    *rocketmq.Client
	gone  atomic.Bool
	mine  map[string]rocketmq.MessageView // done by it; the ledger's lock guards it
}

func (c *churner) handle(ctx context.Context, m *rocketmq.MessageView) error {
	body := string(m.Body)
	c.l.mu.Lock()
	if c.l.hands[body] != nil {
		c.l.both++
	}
	c.l.hands[body] = c
	c.l.mu.Unlock()
	timer := time.NewTimer(3 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.hands[body] == c {
		delete(c.l.hands, body)
	}
	if c.gone.Load() {
		return errCrashed // nobody hears it
	}
	c.l.done[body] = append(c.l.done[body], c)
	c.mine[body] = *m
	return nil
}

// crash has the member's process die: nobody is told, and what it has not
// committed comes again.
func (c *churner) crash(b *fake) {
	c.l.mu.Lock()
	c.gone.Store(true)
	for body, owner := range c.l.hands {
		if owner == c {
			delete(c.l.hands, body)
		}
	}
	c.l.mu.Unlock()
	c.cable.Cut()
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	for body, m := range c.mine {
		if m.Offset >= b.stored("T", m.Queue.ID) {
			c.l.allowed[body] = true
		}
	}
}

// Members of a group come, leave and die 200 times while messages flow: nothing
// is lost, what comes twice is what one that died had done and not yet committed,
// and nothing is left behind.
func TestChurnWithCrashes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble(t, func(t *testing.T, b *fake) { churnWithCrashes(t, b, seed) })
}

func churnWithCrashes(t *testing.T, b *fake, seed uint64) {
	const queues, changes = 8, 200
	b.topic("T", queues)
	r := rand.New(rand.NewPCG(seed, 1))
	l := newLedger()
	join := func(i int) *churner {
		c := &churner{l: l, cable: &cable{dial: b.net.Dial}, mine: map[string]rocketmq.MessageView{}}
		c.cl = b.client(rocketmq.WithDialer(c.cable.Dial), rocketmq.WithInstanceName(fmt.Sprintf("%04d-%d", r.IntN(10000), i)))
		c.running = start(t, newPush(t, c.cl, consumer.StartFrom(rocketmq.Earliest()), each(c.handle, consumer.Concurrency(4))))
		return c
	}
	sent := 0
	stop, flowed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(flowed)
		r := rand.New(rand.NewPCG(seed, 2))
		for ; ; sent++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			b.put("T", r.IntN(queues), fmt.Sprint(sent))
		}
	}()
	steady := join(0)
	time.Sleep(5 * time.Second)
	synctest.Wait()
	count := goroutines(t)
	members := []*churner{steady}
	var dead []*churner
	for i := range changes {
		time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
		if len(members) < 2 || len(members) < 5 && r.IntN(2) == 0 {
			members = append(members, join(i+1))
			continue
		}
		k := 1 + r.IntN(len(members)-1)
		m := members[k]
		members = slices.Delete(members, k, k+1)
		if r.IntN(2) == 0 {
			m.crash(b)
			dead = append(dead, m)
			continue
		}
		require.NoError(t, m.stop())
		require.NoError(t, m.cl.Close(context.Background()))
	}
	close(stop)
	<-flowed
	for _, m := range members[1:] {
		require.NoError(t, m.stop())
		require.NoError(t, m.cl.Close(context.Background()))
	}
	for _, m := range dead { // the goroutines of the processes that died
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_ = m.Close(ctx)
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
	require.Len(t, l.done, sent, "nothing is lost")
	twice := 0
	for body, by := range l.done {
		twice += len(by) - 1
		if len(by) > 1 && !l.allowed[body] {
			t.Errorf("message %s was handled %d times although it was not at a member that died", body, len(by))
		}
	}
	total := int64(0)
	for q := range queues {
		total += b.stored("T", q)
	}
	require.EqualValues(t, sent, total)
	require.Zero(t, l.both, "no message is with two handlers at a time")
	t.Logf("%d messages, %d of %d changes were deaths, %d messages twice of %d that may", sent, len(dead), changes, twice, len(l.allowed))
}

// C40: one member stays, another comes and leaves 50 times, a second apart. On our
// own broker, in virtual time.
func TestC40_Churn(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		t.Run(map[bool]string{false: "push", true: "ordered"}[ordered], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { churnC40(t, ordered) })
		})
	}
}

func churnC40(t *testing.T, ordered bool) {
	const queues = 8
	b := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", queues))
	l := newLedger()
	join := func(name string) *churner {
		c := &churner{l: l, mine: map[string]rocketmq.MessageView{}, cl: b.Client(t, rocketmq.WithInstanceName(name))}
		if ordered {
			c.running = start(t, newOrdered(t, c.cl, each(c.handle, consumer.Concurrency(4))))
		} else {
			c.running = start(t, newPush(t, c.cl, consumer.StartFrom(rocketmq.Earliest()), each(c.handle, consumer.Concurrency(4))))
		}
		return c
	}
	p, err := producer.New(b.Client(t))
	require.NoError(t, err)
	stop, flowed := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				flowed <- n
				return
			case <-time.After(40 * time.Millisecond):
			}
			if _, err := p.Send(context.Background(), &rocketmq.Message{Topic: "T", Body: fmt.Append(nil, n)}); err != nil {
				t.Error(err)
			}
		}
	}()
	steady := join("steady")
	var counts []int
	for i := range 50 {
		other := join(fmt.Sprint("other", i)) // sorts before the steady one
		time.Sleep(time.Second)
		require.Equal(t, queues, assigned(steady.running)+assigned(other.running))
		require.Equal(t, queues/2, assigned(other.running))
		require.NoError(t, other.stop())
		require.NoError(t, other.cl.Close(context.Background()))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, queues, assigned(steady.running), "round %d", i)
		counts = append(counts, goroutines(t))
	}
	// Pools have fewer goroutines before their first burst, so the first rounds do
	// not count.
	require.InDelta(t, slices.Min(counts[10:20]), slices.Min(counts[40:]), 5, "%v", counts)
	close(stop)
	sent := <-flowed
	time.Sleep(10 * time.Second)
	synctest.Wait()
	require.NoError(t, steady.stop())
	require.NoError(t, p.Close(context.Background()))
	require.Len(t, l.done, sent, "nothing is lost")
	twice := 0
	for _, by := range l.done {
		twice += len(by) - 1
	}
	require.Zero(t, l.both, "no message is with both")
	require.Zero(t, twice, "handlers had the time to finish: nothing comes twice, of %d", sent)
	require.Zero(t, b.Lag("G", "T"))
}
