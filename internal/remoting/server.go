package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/run"
)

// ServerConfig configures a [Server].
type ServerConfig struct {
	Config

	// TLS switches TLS on. Plain connections are accepted on the same port all
	// the same, as Apache's permissive mode does: a first byte of 0x16 begins a
	// handshake. Nil: plain only.
	TLS *tls.Config

	// TLSOnly refuses plain connections, as Apache's enforcing mode.
	TLSOnly bool

	// HandshakeTimeout bounds a TLS handshake. Zero means 10 s.
	HandshakeTimeout time.Duration
}

// Server accepts connections and serves their requests with Config.Handler.
type Server struct {
	cfg      *Config
	tls      *tls.Config
	tlsOnly  bool
	timeout  time.Duration
	g        *run.Group
	sweeper  *sweeper
	draining atomic.Bool
	idle     chan struct{} // a connection has no request in a handler any more

	mu        sync.Mutex // guards all below
	closed    bool
	listeners map[net.Listener]struct{}
	opening   map[net.Conn]struct{} // sockets before their TLS decision
	conns     map[*Conn]struct{}
}

// NewServer returns a server that listens nowhere yet, see [Server.Serve].
func NewServer(cfg ServerConfig) *Server {
	s := &Server{
		tls: cfg.TLS, tlsOnly: cfg.TLSOnly && cfg.TLS != nil,
		timeout:   orDefault(cfg.HandshakeTimeout, 10*time.Second),
		g:         run.NewGroup(context.Background()),
		idle:      make(chan struct{}, 1),
		listeners: make(map[net.Listener]struct{}),
		opening:   make(map[net.Conn]struct{}),
		conns:     make(map[*Conn]struct{}),
	}
	onClose := cfg.OnClose
	cfg.OnClose = func(c *Conn, err error) {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		if onClose != nil {
			onClose(c, err)
		}
	}
	s.cfg = cfg.Config.withDefaults()
	s.sweeper = newSweeper(s.cfg, s.g)
	return s
}

// Serve starts to accept on ln, which the server owns from now on, and returns
// at once. It may be called for several listeners. It returns [ErrClosed], with
// ln closed, if the server is closed.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if !s.closed {
		s.listeners[ln] = struct{}{}
	}
	closed := s.closed
	s.mu.Unlock()
	if closed || !s.g.Go(func(ctx context.Context) { s.accept(ctx, ln) }) {
		_ = ln.Close()
		return ErrClosed
	}
	return nil
}

// accept takes connections until the listener is closed. Errors such as too
// many open files are waited out.
func (s *Server) accept(ctx context.Context, ln net.Listener) {
	var pause time.Duration
	for {
		nc, err := ln.Accept()
		if err == nil {
			pause = 0
			s.accepted(nc)
			continue
		}
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.cfg.Logger.Warn("cannot accept connections", "addr", ln.Addr().String(), "err", err)
		again := make(chan struct{})
		t := s.cfg.Clock.AfterFunc(pause, func() { close(again) })
		select {
		case <-again:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// accepted runs the connection of a socket. With TLS it has to look at its
// first byte before, on a goroutine of its own.
func (s *Server) accepted(raw net.Conn) {
	if s.tls == nil {
		s.open(raw, raw, nil)
		return
	}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.opening[raw] = struct{}{}
	}
	s.mu.Unlock()
	if closed || !s.g.Go(func(ctx context.Context) { s.secure(ctx, raw) }) {
		_ = raw.Close()
	}
}

// secure decides between TLS and plain and opens the connection.
func (s *Server) secure(ctx context.Context, raw net.Conn) {
	nc, first, err := s.handshake(ctx, raw)
	s.mu.Lock()
	delete(s.opening, raw)
	s.mu.Unlock()
	if err != nil {
		_ = raw.Close()
		s.cfg.Logger.Debug("connection refused", "addr", raw.RemoteAddr().String(), "err", err)
		return
	}
	s.open(nc, raw, first)
}

// open runs a connection whose first bytes may have been read already.
func (s *Server) open(nc, raw net.Conn, first []byte) {
	c := newConn(nc, raw, s.cfg, s.sweeper)
	c.in.prime(first)
	c.draining, c.idle = &s.draining, s.poke
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		c.Close(nil)
		return
	}
	c.start(s.g)
}

// poke tells Close that a connection has no request in a handler any more.
func (s *Server) poke() {
	select {
	case s.idle <- struct{}{}:
	default:
	}
}

// Close stops accepting and drains: while requests are still in handlers their
// answers are awaited, and further requests of peers that understand it
// (version above 475) are answered GO_AWAY. Once no handler runs and all output
// is written, or when ctx ends, all connections are closed. Requests left to a
// [Replier] are not waited for: whoever parked them answers or drops them
// before. Close waits for all goroutines of the server; it must not be called
// from a handler. It returns the cause of ctx if that cut the draining short.
// Further calls only wait.
func (s *Server) Close(ctx context.Context) error {
	s.draining.Store(true)
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	var closers []interface{ Close() error }
	for ln := range s.listeners {
		closers = append(closers, ln)
	}
	for nc := range s.opening {
		closers = append(closers, nc)
	}
	clear(s.listeners)
	s.mu.Unlock()
	for _, c := range closers {
		_ = c.Close()
	}
	var err error
	if first {
		err = s.drain(ctx)
		s.g.Cancel(ErrClosed)
		for _, c := range s.list() {
			c.Close(nil)
		}
	}
	s.g.Wait()
	return err
}

// drain waits until no handler runs and all their answers are written.
func (s *Server) drain(ctx context.Context) error {
	for {
		conns := s.list()
		if !slices.ContainsFunc(conns, func(c *Conn) bool { return c.active.Load() > 0 }) {
			for _, c := range conns {
				if err := c.Flush(ctx); err != nil && c.Err() == nil {
					return err
				}
			}
			return nil
		}
		select {
		case <-s.idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Server) list() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}
