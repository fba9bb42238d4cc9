package remoting

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

const codeEcho = wire.ReqSendMessageV2

// echo answers with the body it got.
func echo(r *Request) { r.Reply(0, "", nil, r.Frame().Body) }

// serveTCP starts a server on a loopback port and returns its address.
func serveTCP(t testing.TB, cfg ServerConfig) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := NewServer(cfg)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	require.NoError(t, s.Serve(ln))
	return s, ln.Addr().String()
}

func newPool(t testing.TB, cfg PoolConfig) *Pool {
	t.Helper()
	p := NewPool(cfg)
	t.Cleanup(p.Close)
	return p
}

func get(t testing.TB, p *Pool, addr string) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := p.Get(ctx, addr)
	require.NoError(t, err)
	return c
}

// within fails the test if ch delivers nothing for 10 s.
func within[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "timed out waiting for "+what)
	}
	return v
}
