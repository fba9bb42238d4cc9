package remoting

import (
	"context"
	"net"
	"sync"
	"testing"
)

// pipeNet is a network of in-memory connections, so that tests can run in
// virtual time (testing/synctest).
type pipeNet struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeNet() *pipeNet {
	return &pipeNet{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *pipeNet) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *pipeNet) Close() error { n.once.Do(func() { close(n.closed) }); return nil }

func (n *pipeNet) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// Dial is a PoolConfig.Dial.
func (n *pipeNet) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeEnds is a server and a pool joined by a pipeNet. Call end before a
// synctest bubble ends.
func pipeEnds(t *testing.T, sc ServerConfig, pc PoolConfig) (c *Conn, end func()) {
	t.Helper()
	n := newPipeNet()
	s := NewServer(sc)
	if err := s.Serve(n); err != nil {
		t.Fatal(err)
	}
	pc.Dial = n.Dial
	p := NewPool(pc)
	c, err := p.Get(t.Context(), "broker-a:10911")
	if err != nil {
		t.Fatal(err)
	}
	return c, func() {
		p.Close()
		_ = s.Close(context.Background())
	}
}
