// Package vnet is a network inside the process. It knows no sockets, so that
// what runs over it can run under testing/synctest, where time passes only
// when everybody waits.
package vnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Network connects those who dial an address with those who listen there.
// Addresses are any host:port; nothing is looked up. The zero value is ready
// for use. All methods are safe for concurrent use.
type Network struct {
	mu        sync.Mutex // guards all below
	listeners map[string]*listener
	clients   int
}

// Addr is an address of a [Network].
type Addr string

// Network implements net.Addr.
func (Addr) Network() string { return "vnet" }

// String implements net.Addr.
func (a Addr) String() string { return string(a) }

// Listen begins to accept connections to addr.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "vnet", Addr: Addr(addr), Err: syscall.EADDRINUSE}
	}
	if n.listeners == nil {
		n.listeners = make(map[string]*listener)
	}
	l := &listener{network: n, addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to addr; it has the signature of net.Dialer.DialContext. If
// nobody listens there the connection is refused. It waits, as long as ctx
// allows, until the connection is accepted.
func (n *Network) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.clients++
	local := Addr(fmt.Sprintf("10.255.%d.%d:%d", n.clients>>8&255, n.clients&255, 1024+n.clients%60000))
	n.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "vnet", Addr: Addr(addr), Err: err}
	}
	if l == nil {
		return fail(syscall.ECONNREFUSED)
	}
	near, far := net.Pipe()
	select {
	case l.conns <- &conn{far, Addr(addr), local}:
		return &conn{near, local, Addr(addr)}, nil
	case <-l.closed:
		return fail(syscall.ECONNREFUSED)
	case <-ctx.Done():
		return fail(context.Cause(ctx))
	}
}

// conn is one end of a connection. What one end writes, the other one has read
// when Write returns.
type conn struct {
	net.Conn
	local, remote Addr
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

type listener struct {
	network *Network
	addr    string
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "vnet", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close implements net.Listener. Connections that were accepted stay open.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, l.addr)
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return Addr(l.addr) }
