package producer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

// BenchmarkSend sends 1 KiB over loopback to a server that answers at once, so
// that the client's part is what counts. The server shares the machine.
func BenchmarkSend(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			newRig(b).bench(b, b.N, func(r *rig, b *testing.B) error { return r.sync(b.N, n) })
		})
	}
}

// BenchmarkSendAsync has one goroutine send and 256 messages under way.
func BenchmarkSendAsync(b *testing.B) {
	newRig(b, producer.WithInflight(256, 64<<20)).bench(b, b.N, func(r *rig, b *testing.B) error { return r.async(b.N) })
}

// BenchmarkSendAsyncLinger is BenchmarkSendAsync with a linger that makes
// batches of at most 128 KiB, and more room for what is held back.
func BenchmarkSendAsyncLinger(b *testing.B) {
	newRig(b, producer.WithLinger(time.Millisecond, 128<<10)).bench(b, b.N, func(r *rig, b *testing.B) error { return r.async(b.N) })
}

// BenchmarkSendOneway has 16 goroutines send, and ends when all is written.
func BenchmarkSendOneway(b *testing.B) {
	newRig(b).bench(b, b.N, func(r *rig, b *testing.B) error { return r.oneway(b.N, 16) })
}

// BenchmarkSendBatch has four goroutines send 32 messages of 200 B at a time.
// What it prints per operation is per batch, but for msgs/s.
func BenchmarkSendBatch(b *testing.B) {
	newRig(b).bench(b, 32*b.N, func(r *rig, b *testing.B) error { return r.batch(b.N, 4, 32) })
}

// bench runs f and prints its rate and its write calls for each of n messages.
func (r *rig) bench(b *testing.B, n int, f func(r *rig, b *testing.B) error) {
	b.ReportAllocs()
	writes := r.writes.Load()
	b.ResetTimer()
	require.NoError(b, f(r, b))
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(float64(r.writes.Load()-writes)/float64(n), "writes/msg")
}

// rig is a producer and a broker that answers at once, over loopback.
type rig struct {
	p      *producer.Producer
	writes atomic.Int64 // write calls on the broker's connection
	m      *rocketmq.Message
	small  []*rocketmq.Message
}

// newRig returns a rig whose producer knows the route and has a connection.
func newRig(t testing.TB, opts ...producer.Option) *rig {
	c := newCluster(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c.topic("bench", 8, "b1="+ln.Addr().String())
	srv := remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: answerInstantly}})
	require.NoError(t, srv.Serve(ln))
	t.Cleanup(func() { _ = srv.Close(context.Background()) })
	r := &rig{m: &rocketmq.Message{Topic: "bench", Body: make([]byte, 1024), Tag: "t", Keys: []string{"k"}, Properties: map[string]string{"a": "b"}}}
	for range 32 {
		r.small = append(r.small, &rocketmq.Message{Topic: "bench", Body: make([]byte, 200)})
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "ns:9876" {
			return c.net.Dial(ctx, network, addr)
		}
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return countedConn{nc, &r.writes}, err
	}
	// Nothing may fail because a busy machine took a few seconds.
	opts = append([]producer.Option{producer.WithTimeout(time.Minute, time.Minute)}, opts...)
	r.p, err = producer.New(c.client(rocketmq.WithDialer(dial)), opts...)
	require.NoError(t, err)
	require.NoError(t, r.sync(1, 1))
	return r
}

// countedConn counts write calls.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// each has callers share n calls of f, and stops at an error.
func each(n, callers int, f func() error) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if errs[i] = f(); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *rig) sync(n, callers int) error {
	return each(n, callers, func() error {
		_, err := r.p.Send(context.Background(), r.m)
		return err
	})
}

func (r *rig) async(n int) error {
	var failed error
	acked := 0
	done := func(_ producer.Result, err error) { // one after another
		if acked++; err != nil {
			failed = err
		}
	}
	for range n {
		r.p.SendAsync(context.Background(), r.m, done)
	}
	if err := r.p.Flush(context.Background()); err != nil {
		return err
	}
	if failed == nil && acked != n {
		failed = fmt.Errorf("%d callbacks of %d sends", acked, n)
	}
	return failed
}

func (r *rig) oneway(n, callers int) error {
	err := each(n, callers, func() error { return r.p.SendOneway(context.Background(), r.m) })
	return errors.Join(err, r.p.Flush(context.Background()))
}

func (r *rig) batch(n, callers, size int) error {
	return each(n, callers, func() error {
		_, err := r.p.SendBatch(context.Background(), r.small[:size])
		return err
	})
}

// instant is the answer to a send of so many messages.
type instant int

// answerInstantly is the broker's handler.
func answerInstantly(q *remoting.Request) {
	n := instant(1)
	if f := q.Frame(); f.Code == wire.ReqSendBatchMessage {
		it := wire.Batch(f.Body)
		for n = 0; ; n++ {
			if _, ok, err := it.Next(); err != nil || !ok {
				break
			}
		}
	}
	q.ReplyAppend(n) // nothing, to a one-way request
}

// AppendResponse implements remoting.Responder.
func (n instant) AppendResponse(dst []byte, h wire.Head) []byte {
	const one = len("0A00000200002A9F0000000000000004,")
	h.Code = wire.RespSuccess
	e := wire.Begin(dst, h)
	a := wire.SendResponse{OffsetMsgID: offsetIDs[:max(0, int(n)*one-1)], QueueID: 1, QueueOffset: 42, TraceOn: true}
	a.EncodeExt(&e)
	return e.Finish(nil)
}

var offsetIDs = []byte(strings.Repeat("0A00000200002A9F0000000000000004,", 4096))
