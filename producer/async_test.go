package producer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

// outcomes counts callbacks by send.
type outcomes struct {
	mu   sync.Mutex
	res  map[int]producer.Result
	errs map[int]error
	n    map[int]int
}

func newOutcomes() *outcomes {
	return &outcomes{res: map[int]producer.Result{}, errs: map[int]error{}, n: map[int]int{}}
}

func (o *outcomes) done(i int) func(producer.Result, error) {
	return func(r producer.Result, err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.res[i], o.errs[i] = r, err
		o.n[i]++
	}
}

// once checks that each of n callbacks came once, with a result or an error,
// and returns the errors.
func (o *outcomes) once(t *testing.T, n int) (errs []error) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Len(t, o.n, n)
	for i, k := range o.n {
		require.Equal(t, 1, k, "callback %d", i)
		if err := o.errs[i]; err != nil {
			errs = append(errs, err)
			require.NotEmpty(t, fmt.Sprintf("%v %+v %v", o.res[i], o.res[i], err))
		} else {
			require.NotEmpty(t, o.res[i].MessageID)
		}
	}
	return errs
}

func TestSendAsync(t *testing.T) {
	c := newCluster(t)
	c.topic("orders", 4, "b1=b1:0")
	b := c.broker("b1:0")
	p := c.producer()
	o := newOutcomes()
	here := make(chan struct{})
	p.SendAsync(t.Context(), message("orders"), func(r producer.Result, err error) {
		<-here // SendAsync has returned: it is not the caller's goroutine
		o.done(0)(r, err)
	})
	close(here)
	for i := 1; i < 1000; i++ {
		p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: fmt.Append(nil, i)}, o.done(i))
	}
	require.NoError(t, p.Flush(t.Context()))
	require.Empty(t, o.once(t, 1000))
	bodies := map[string]string{}
	for _, s := range b.got() {
		bodies[s.body] = s.id
	}
	for i := 1; i < 1000; i++ {
		require.Equal(t, o.res[i].MessageID, bodies[fmt.Sprint(i)])
	}
	require.NoError(t, p.Close(t.Context()))
	p.SendAsync(t.Context(), message("orders"), o.done(1000))
	require.Eventually(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.n[1000] == 1 }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, o.err(1000), rocketmq.ErrClosed)
}

// Asynchronous sends are tried again like synchronous ones.
func TestSendAsyncRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0", "b2=b2:0")
		b1, b2 := c.broker("b1:0"), c.broker("b2:0")
		p := c.producer()
		b1.answer(wire.RespSystemBusy, "busy")
		o := newOutcomes()
		for i := range 100 {
			p.SendAsync(t.Context(), message("orders"), o.done(i))
		}
		require.NoError(t, p.Flush(t.Context()))
		require.Empty(t, o.once(t, 100))
		require.Len(t, b2.got(), 100)
		require.NotEmpty(t, b1.got())
		ids := map[string]bool{}
		for _, s := range b2.got() {
			ids[s.id] = true
		}
		for _, s := range b1.got() {
			require.True(t, ids[s.id], "the id is that of the first attempt")
		}
		// All are down: the error lists the attempts.
		b2.answer(wire.RespSystemBusy, "busy too")
		p.SendAsync(t.Context(), message("orders"), o.done(100))
		require.NoError(t, p.Flush(t.Context()))
		var se *rocketmq.SendError
		require.ErrorAs(t, o.err(100), &se)
		require.Len(t, se.Attempts, 3)
		require.ErrorIs(t, o.err(100), rocketmq.ErrBusy)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestC16_ExactlyOneCallback(t *testing.T) {
	n := 10_000
	if testing.Short() || raceEnabled {
		n = 2_000
	}
	sendAll := func(t *testing.T, p *producer.Producer, ctx func(i int) context.Context) *outcomes {
		o := newOutcomes()
		for i := range n {
			p.SendAsync(ctx(i), message("orders"), o.done(i))
		}
		return o
	}
	plain := func(t *testing.T) func(int) context.Context {
		ctx := t.Context()
		return func(int) context.Context { return ctx }
	}
	setup := func(t *testing.T, opts ...producer.Option) (*server, *producer.Producer) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		return c.broker("b1:0"), c.producer(opts...)
	}
	t.Run("deadline races the answer", func(t *testing.T) {
		t.Parallel()
		b, p := setup(t, producer.WithTimeout(120*time.Millisecond, 60*time.Millisecond), producer.WithRetries(1))
		b.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
			if rand.IntN(100) == 0 {
				q.Drop()
				return
			}
			b.store(q, wire.RespSuccess, "")
		})
		o := sendAll(t, p, plain(t))
		require.NoError(t, p.Close(context.Background()))
		for _, err := range o.once(t, n) {
			require.ErrorIs(t, err, rocketmq.ErrTimeout)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		b, p := setup(t)
		b.answer(wire.RespMessageIllegal, "no")
		o := sendAll(t, p, plain(t))
		require.NoError(t, p.Close(context.Background()))
		errs := o.once(t, n)
		require.Len(t, errs, n)
		var be *rocketmq.BrokerError
		require.ErrorAs(t, errs[0], &be)
		require.Equal(t, rocketmq.CodeMessageIllegal, be.Code)
	})
	t.Run("cancelled context", func(t *testing.T) {
		t.Parallel()
		_, p := setup(t)
		_, err := p.Send(t.Context(), message("orders")) // route and connection are there
		require.NoError(t, err)
		why := errors.New("why")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		late, cancelLate := context.WithCancel(t.Context())
		o := sendAll(t, p, func(i int) context.Context {
			if i == n/2 {
				cancelLate()
			}
			if i%2 == 0 {
				return gone
			}
			return late
		})
		require.NoError(t, p.Close(context.Background()))
		for _, err := range o.once(t, n) {
			require.True(t, errors.Is(err, why) || errors.Is(err, context.Canceled), "%v", err)
		}
		require.ErrorIs(t, o.err(0), why)
		require.NoError(t, o.err(1))
	})
	t.Run("close during flight", func(t *testing.T) {
		t.Parallel()
		_, p := setup(t, producer.WithTimeout(time.Minute, time.Minute))
		o := newOutcomes()
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range n / 4 {
					p.SendAsync(t.Context(), message("orders"), o.done(g*n/4+i))
				}
			})
		}
		for o.seen() < n/10 {
			runtime.Gosched()
		}
		require.NoError(t, p.Close(t.Context()))
		wg.Wait()
		for o.seen() < n { // those that came after Close
			runtime.Gosched()
		}
		for _, err := range o.once(t, n) {
			require.ErrorIs(t, err, rocketmq.ErrClosed)
		}
	})
	t.Run("disconnect", func(t *testing.T) {
		t.Parallel()
		b, p := setup(t)
		var count atomic.Int32
		b.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
			if count.Add(1)%500 == 0 {
				q.Conn().Close(nil)
				return
			}
			b.store(q, wire.RespSuccess, "")
		})
		o := sendAll(t, p, plain(t))
		require.NoError(t, p.Close(context.Background()))
		for _, err := range o.once(t, n) {
			require.True(t, errors.Is(err, rocketmq.ErrConnection) || errors.Is(err, rocketmq.ErrTimeout), "%v", err)
		}
	})
}

// err is what callback i got.
func (o *outcomes) err(i int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs[i]
}

func (o *outcomes) seen() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.n)
}

// The window bounds what is under way, and whoever waits for room goes by the
// deadline and the context.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		b := c.broker("b1:0")
		p := c.producer(producer.WithInflight(3, 1<<20), producer.WithTimeout(time.Minute, 30*time.Second), producer.WithRetries(0))
		_, err := p.Send(t.Context(), message("orders")) // route and connection are there
		require.NoError(t, err)
		waiting := b.hold()
		o := newOutcomes()
		for i := range 3 {
			p.SendAsync(t.Context(), message("orders"), o.done(i))
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p.SendAsync(ctx, message("orders"), o.done(3))
		require.Equal(t, time.Second, time.Since(start), "the caller waits")
		synctest.Wait()
		require.ErrorIs(t, o.err(3), context.DeadlineExceeded)
		cause := errors.New("enough")
		gone, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(cause) })
		p.SendAsync(gone, message("orders"), o.done(4))
		synctest.Wait()
		require.ErrorIs(t, o.err(4), cause)
		go p.SendAsync(t.Context(), message("orders"), o.done(5))
		synctest.Wait()
		require.Equal(t, 2, o.seen(), "it waits")
		for range 4 {
			stored(<-waiting)
		}
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, o.once(t, 6), 2)
	})
}

// A body larger than the window goes when there is nothing else.
func TestWindowOfBytes(t *testing.T) {
	c := newCluster(t)
	c.topic("orders", 4, "b1=b1:0")
	c.broker("b1:0")
	p := c.producer(producer.WithInflight(100, 3000))
	o := newOutcomes()
	for i := range 50 {
		p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: make([]byte, 1+i%5*1000)}, o.done(i))
	}
	require.NoError(t, p.Close(t.Context()))
	require.Empty(t, o.once(t, 50))
}

// Neither goroutines nor memory grow with messages that wait for an answer.
func TestWindowBoundsMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	c := newCluster(t)
	c.topic("orders", 4, "b1=b1:0")
	b := c.broker("b1:0")
	const limit = 8 << 20
	p := c.producer(producer.WithInflight(1<<20, limit), producer.WithTimeout(30*time.Second, 20*time.Second), producer.WithCompression(producer.NoCompression, 0, 0))
	_, err := p.Send(t.Context(), message("orders"))
	require.NoError(t, err)
	// The broker reads everything and answers when it is told to.
	hold := make(chan struct{})
	answer := sync.OnceFunc(func() { close(hold) })
	defer answer()
	var late sync.WaitGroup
	defer late.Wait()
	waiting := b.hold() // has memory of its own
	before, goroutines := heap(), runtime.NumGoroutine()
	var returned, called atomic.Int32
	const n, inside = 6000, limit / (3500 + 512)
	late.Go(func() {
		for range n {
			p.SendAsync(context.Background(), &rocketmq.Message{Topic: "orders", Body: make([]byte, 3500)}, func(producer.Result, error) { called.Add(1) })
			returned.Add(1)
		}
	})
	require.Eventually(t, func() bool { return returned.Load() == inside && len(waiting) == inside }, 20*time.Second, time.Millisecond)
	grown := heap() - before
	t.Logf("%d KiB more", grown>>10)
	require.Less(t, grown, int64(2*limit+8<<20), "messages, and the list of those who wait")
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+4)
	late.Go(func() {
		<-hold
		for range n {
			stored(<-waiting)
		}
	})
	answer()
	late.Wait()
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, int32(n), called.Load())
}

// heap is what is in use. It may have become less: what earlier tests have left
// can go at any time.
func heap() int64 {
	var m runtime.MemStats
	for range 2 { // pools let go in the second
		runtime.GC() //revive:disable-line:call-to-gc what is garbage must not count
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

func TestCallbackPanics(t *testing.T) {
	var log bytes.Buffer
	c := newCluster(t)
	c.topic("orders", 4, "b1=b1:0")
	c.broker("b1:0")
	p, err := producer.New(c.client(rocketmq.WithLogger(textLogger(&log))))
	require.NoError(t, err)
	p.SendAsync(t.Context(), message("orders"), func(producer.Result, error) { panic("mine") })
	o := newOutcomes()
	p.SendAsync(t.Context(), message("orders"), o.done(0))
	require.NoError(t, p.Close(t.Context()))
	require.Empty(t, o.once(t, 1))
	require.Contains(t, log.String(), "mine")
}

// A message that waits for a route harms nobody else's.
func TestSendAsyncWithoutARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		c.topic("dead", 4, "b2=hole:0")
		c.broker("b1:0")
		p := c.producer()
		o := newOutcomes()
		for i := range 20 {
			p.SendAsync(t.Context(), message("missing"), o.done(i))
		}
		p.SendAsync(t.Context(), message("dead"), o.done(20))
		start := time.Now()
		p.SendAsync(t.Context(), message("orders"), o.done(21))
		synctest.Wait()
		require.NoError(t, o.err(21))
		require.Zero(t, time.Since(start))
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, o.once(t, 22), 21)
		require.ErrorIs(t, o.err(0), rocketmq.ErrTopicNotFound)
		require.ErrorIs(t, o.err(20), rocketmq.ErrConnection)
	})
}

func TestSendAsyncRefusals(t *testing.T) {
	c := newCluster(t)
	p := c.producer()
	for name, m := range map[string]*rocketmq.Message{
		"nil": nil, "topic": message("a b"), "reserved": message("SCHEDULE_TOPIC_XXXX"), "empty": {Topic: "orders"},
		"large":    {Topic: "orders", Body: make([]byte, rocketmq.MaxBody+1)},
		"control":  {Topic: "orders", Body: []byte("x"), Tag: "a\x01"},
		"property": {Topic: "orders", Body: []byte("x"), Properties: map[string]string{"UNIQ_KEY": "x"}},
	} {
		done := make(chan error, 1)
		p.SendAsync(t.Context(), m, func(_ producer.Result, err error) { done <- err })
		require.ErrorIs(t, <-done, rocketmq.ErrInvalidMessage, name)
		require.ErrorIs(t, p.SendOneway(t.Context(), m), rocketmq.ErrInvalidMessage, name)
		_, err := p.Send(t.Context(), m)
		require.ErrorIs(t, err, rocketmq.ErrInvalidMessage, name)
		_, err = p.SendBatch(t.Context(), []*rocketmq.Message{m})
		require.ErrorIs(t, err, rocketmq.ErrInvalidMessage, name)
	}
	require.Zero(t, c.ns.count(wire.ReqGetRouteInfoByTopic), "nothing was sent")
}

// Flush waits for what came before it and not for what comes after.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "b1=b1:0")
		b := c.broker("b1:0")
		p := c.producer(producer.WithTimeout(time.Minute, 30*time.Second))
		require.NoError(t, p.Flush(t.Context()))
		waiting := b.hold()
		o := newOutcomes()
		p.SendAsync(t.Context(), message("orders"), o.done(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Flush(ctx), context.DeadlineExceeded)
		flushed := make(chan error, 1)
		go func() { flushed <- p.Flush(t.Context()) }()
		synctest.Wait()
		p.SendAsync(t.Context(), message("orders"), o.done(1))
		require.Empty(t, flushed)
		stored(<-waiting)
		synctest.Wait()
		require.NoError(t, <-flushed)
		require.Equal(t, 1, o.seen())
		assert.NoError(t, o.err(0))
		stored(<-waiting)
		require.NoError(t, p.Close(t.Context()))
		require.Empty(t, o.once(t, 2))
	})
}
