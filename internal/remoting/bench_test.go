package remoting

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// countConn counts the write and read calls of a connection.
type countConn struct {
	net.Conn
	writes, reads *atomic.Int64
}

func (c countConn) Write(b []byte) (int, error) { c.writes.Add(1); return c.Conn.Write(b) }
func (c countConn) Read(b []byte) (int, error)  { c.reads.Add(1); return c.Conn.Read(b) }

type countListener struct {
	net.Listener
	writes, reads *atomic.Int64
}

func (l countListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countConn{c, l.writes, l.reads}, nil
}

// sendResponse looks like the answer to a send.
type sendResponse struct{}

func (sendResponse) AppendResponse(dst []byte, h wire.Head) []byte {
	e := wire.Begin(dst, h)
	e.Text("msgId", "7F00000100002A9F0000000000000A00")
	e.Int("queueId", 3)
	e.Int("queueOffset", 123456)
	return e.Finish(nil)
}

// sendExchange is a pooled call with the size of a send of 1 KiB.
type sendExchange struct {
	body   []byte
	enc    wire.Encoding
	done   chan struct{}
	offset int64
	err    error
}

func (x *sendExchange) AppendFrame(dst []byte, opaque int32) []byte {
	e := wire.Begin(dst, wire.Head{Code: codeEcho, Opaque: opaque, Encoding: x.enc})
	e.Text("a", "bench_producer_group")
	e.Text("b", "bench_topic")
	e.Text("c", "TBW102")
	e.Int("d", 4)
	e.Int("e", 3)
	e.Int("f", 0)
	e.Int("g", 1700000000000)
	e.Int("h", 0)
	e.Text("i", "UNIQ_KEY\x017F0000010A2B18B4AAC27F0000010000\x02")
	e.Int("j", 0)
	e.Bool("k", false)
	e.Bool("m", false)
	e.Text("n", "broker-a")
	return e.Finish(x.body)
}

func (x *sendExchange) Done(f *wire.Frame, err error) {
	if err == nil {
		x.offset, err = f.Int64("queueOffset")
	}
	x.err = err
	x.done <- struct{}{}
}

// BenchmarkCall measures calls of 1 KiB against an echo server over loopback,
// with client and server in this process. writes/op and reads/op are the
// client's system calls per call, swrites/op the server's.
func BenchmarkCall(b *testing.B) {
	for _, enc := range []wire.Encoding{wire.JSON, wire.Binary} {
		for _, callers := range []int{1, 16, 128} {
			name := fmt.Sprintf("enc=%s/callers=%d", []string{"json", "binary"}[enc], callers)
			b.Run(name, func(b *testing.B) { benchCall(b, enc, callers) })
		}
	}
}

func benchCall(b *testing.B, enc wire.Encoding, callers int) {
	var writes, reads, swrites, sreads atomic.Int64
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	s := NewServer(ServerConfig{Config: Config{Handler: func(r *Request) { r.ReplyAppend(sendResponse{}) }}})
	require.NoError(b, s.Serve(countListener{ln, &swrites, &sreads}))
	defer s.Close(context.Background())
	p := NewPool(PoolConfig{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return countConn{c, &writes, &reads}, err
	}})
	defer p.Close()
	c := get(b, p, ln.Addr().String())
	free := sync.Pool{New: func() any { return &sendExchange{done: make(chan struct{}, 1)} }}
	body := make([]byte, 1024)
	one := func() {
		x := free.Get().(*sendExchange)
		x.body, x.enc = body, enc
		if _, err := c.Start(x, time.Now().Add(3*time.Second), Inline); err != nil {
			b.Error(err)
			return
		}
		<-x.done
		if x.err != nil || x.offset != 123456 {
			b.Error(x.err, x.offset)
		}
		free.Put(x)
	}
	one()
	b.ReportAllocs()
	b.ResetTimer()
	writes.Store(0)
	reads.Store(0)
	swrites.Store(0)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				one()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	n := float64(b.N)
	b.ReportMetric(float64(writes.Load())/n, "writes/op")
	b.ReportMetric(float64(reads.Load())/n, "reads/op")
	b.ReportMetric(float64(swrites.Load())/n, "swrites/op")
}
