package testbroker

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/vnet"
)

// network is what servers listen on and how they are reached.
type network interface {
	// listen listens on an address, on any that is free if it is empty.
	listen(ctx context.Context, addr string) (net.Listener, error)
	dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// loopback is the machine's own network.
type loopback struct{}

func (loopback) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// A port of an earlier start may be taken for a moment by an outgoing
// connection of this machine.
const (
	listenTries = 100
	listenPause = 20 * time.Millisecond
)

func (loopback) listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	if addr == "" {
		return lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	for try := 1; ; try++ {
		l, err := lc.Listen(ctx, "tcp", addr)
		if err == nil || try == listenTries {
			return l, err
		}
		select {
		case <-time.After(listenPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// inside is the network of [Virtual]. Each listener has a host of its own.
type inside struct {
	vnet.Network

	mu    sync.Mutex // guards hosts
	hosts int
}

func (n *inside) listen(_ context.Context, addr string) (net.Listener, error) {
	if addr == "" {
		n.mu.Lock()
		n.hosts++
		addr = net.JoinHostPort("10.0.0."+strconv.Itoa(n.hosts), "10911")
		n.mu.Unlock()
	}
	return n.Listen(addr)
}

func (n *inside) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return n.Dial(ctx, network, addr)
}
