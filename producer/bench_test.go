package producer_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

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
			p := benchProducer(b)
			m := &rocketmq.Message{Topic: "bench", Body: make([]byte, 1024)}
			_, err := p.Send(context.Background(), m)
			require.NoError(b, err)
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					for range b.N/n + (b.N%n+n-1-i)/n {
						if _, err := p.Send(context.Background(), m); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// instant answers each send with the same words.
type instant struct{ code int32 }

// AppendResponse implements remoting.Responder.
func (r *instant) AppendResponse(dst []byte, h wire.Head) []byte {
	h.Code = r.code
	e := wire.Begin(dst, h)
	instantAnswer.EncodeExt(&e)
	return e.Finish(nil)
}

var instantAnswer = wire.SendResponse{OffsetMsgID: []byte("0A00000200002A9F0000000000000004"), QueueID: 1, QueueOffset: 42, TraceOn: true}

func benchProducer(b testing.TB) *producer.Producer {
	c := newCluster(b)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	addr := ln.Addr().String()
	c.topic("bench", 8, "b1="+addr)
	r := &instant{}
	srv := remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: func(q *remoting.Request) { q.ReplyAppend(r) }}})
	require.NoError(b, srv.Serve(ln))
	b.Cleanup(func() { _ = srv.Close(context.Background()) })
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "ns:9876" {
			return c.net.Dial(ctx, network, addr)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	p, err := producer.New(c.client(rocketmq.WithDialer(dial)))
	require.NoError(b, err)
	return p
}

// TestSendAllocations is a gate: what a send costs in garbage, server
// included.
func TestSendAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget on purpose under the race detector")
	}
	p := benchProducer(t)
	m := &rocketmq.Message{Topic: "bench", Body: make([]byte, 1024), Tag: "t", Keys: []string{"k"}, Properties: map[string]string{"a": "b"}}
	send := func() {
		if _, err := p.Send(context.Background(), m); err != nil {
			t.Error(err)
		}
	}
	send()
	require.LessOrEqual(t, testing.AllocsPerRun(2000, send), 2.0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	require.LessOrEqual(t, testing.AllocsPerRun(2000, func() {
		if _, err := p.Send(ctx, m); err != nil {
			t.Error(err)
		}
	}), 2.0, "with a context that can end")
}
