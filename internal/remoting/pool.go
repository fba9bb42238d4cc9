package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/retry"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// PoolConfig configures a [Pool].
type PoolConfig struct {
	// Config is for each connection. Its Silence defaults to 3 s here. The
	// Handler serves what servers ask of this client.
	Config

	// Dial opens a connection; network is "tcp", addr is host:port. Nil means a
	// net.Dialer. It runs on a goroutine of the pool, bounded by ConnectTimeout.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// TLS, if not nil, encrypts every connection. Without a ServerName the
	// certificate is checked against the host of the address.
	TLS *tls.Config

	// ConnectTimeout bounds one dial with its TLS handshake. Zero means 3 s.
	ConnectTimeout time.Duration

	// Backoff is how long an address is left alone after a failed dial; zero
	// values mean 100 ms, doubling up to 10 s.
	Backoff retry.Policy
}

// Pool keeps one connection per address. All methods are safe for concurrent
// use.
type Pool struct {
	cfg     *Config
	dialer  func(ctx context.Context, network, addr string) (net.Conn, error)
	tls     *tls.Config
	timeout time.Duration
	backoff retry.Policy
	g       *run.Group
	sweeper *sweeper

	table atomic.Pointer[map[string]*entry] // replaced, never changed

	mu     sync.Mutex // guards the replacing of table and all below
	closed bool
	conns  map[*Conn]struct{} // all, retired ones too
}

// entry is one address.
type entry struct {
	addr string
	conn atomic.Pointer[Conn]

	mu      sync.Mutex // guards all below
	dropped bool
	dial    *dial // under way; nil: none
	backoff *retry.Backoff
	err     error     // the last dial's
	until   time.Time // no dial before this
}

// dial is one attempt that any number of callers wait for.
type dial struct {
	done chan struct{}
	conn *Conn
	err  error
}

// NewPool returns an empty pool. Close it to end its goroutines.
func NewPool(cfg PoolConfig) *Pool {
	p := &Pool{
		dialer: cfg.Dial, tls: cfg.TLS, backoff: cfg.Backoff,
		timeout: orDefault(cfg.ConnectTimeout, 3*time.Second),
		g:       run.NewGroup(context.Background()),
		conns:   make(map[*Conn]struct{}),
	}
	if p.dialer == nil {
		p.dialer = new(net.Dialer).DialContext
	}
	p.table.Store(&map[string]*entry{})
	cfg.Silence = orDefault(cfg.Silence, DefaultSilence)
	if cfg.Silence == 0 {
		cfg.Silence = -1
	}
	onClose := cfg.OnClose
	cfg.OnClose = func(c *Conn, err error) {
		p.forget(c)
		if onClose != nil {
			onClose(c, err)
		}
	}
	p.cfg = cfg.Config.withDefaults()
	p.sweeper = newSweeper(p.cfg, p.g)
	return p
}

// Get returns the live connection to addr (host:port) and dials one if there
// is none. Concurrent callers share one dial; each waits no longer than its
// ctx, and the dial goes on for the others. After a failed dial the address is
// left alone for a while: until then Get returns the last error at once. Errors
// are a [*ConnError] that names the address; one for an ended ctx wraps
// [ErrTimeout] or the cause.
func (p *Pool) Get(ctx context.Context, addr string) (*Conn, error) {
	if c := p.Lookup(addr); c != nil {
		return c, nil
	}
	d, err := p.join(addr)
	if err != nil {
		return nil, &ConnError{Addr: addr, Op: "dial", Err: err}
	}
	select {
	case <-d.done:
		err = d.err
	case <-ctx.Done():
		err = ctxError(ctx)
	}
	if err != nil {
		return nil, &ConnError{Addr: addr, Op: "dial", Err: err}
	}
	return d.conn, nil
}

// Lookup returns the live connection to addr, nil if there is none. It never
// dials or waits.
func (p *Pool) Lookup(addr string) *Conn {
	if e := (*p.table.Load())[addr]; e != nil {
		if c := e.conn.Load(); c != nil && c.usable() {
			return c
		}
	}
	return nil
}

// Flush is [Conn.Flush] of all connections; those that break do not count.
func (p *Pool) Flush(ctx context.Context) error {
	p.mu.Lock()
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	for _, c := range conns {
		if err := c.Flush(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// Call is [Conn.Call] on the connection to addr. If the peer answers GO_AWAY
// the call is repeated once on a new connection.
func (p *Pool) Call(ctx context.Context, addr string, req *wire.Command) (*wire.Frame, error) {
	for again := true; ; again = false {
		c, err := p.Get(ctx, addr)
		if err != nil {
			return nil, err
		}
		f, err := c.Call(ctx, req)
		if err == ErrGoAway && again {
			continue
		}
		return f, err
	}
}

// Drop closes the connection to addr, if there is one, and forgets what is
// known of the address.
func (p *Pool) Drop(addr string) {
	p.mu.Lock()
	e := (*p.table.Load())[addr]
	if e != nil {
		m := maps.Clone(*p.table.Load())
		delete(m, addr)
		p.table.Store(&m)
	}
	p.mu.Unlock()
	if e == nil {
		return
	}
	e.mu.Lock()
	e.dropped = true
	e.mu.Unlock()
	if c := e.conn.Load(); c != nil {
		c.Close(nil)
	}
}

// Addrs lists the addresses with a live connection, in no order.
func (p *Pool) Addrs() []string {
	var addrs []string
	for addr := range *p.table.Load() {
		if p.Lookup(addr) != nil {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// Close closes all connections at once and waits for the pool's goroutines. It
// must not be called from a handler or a Done. To have queued output written,
// [Conn.Flush] before.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	p.g.Cancel(ErrClosed)
	for _, c := range conns {
		c.Close(nil)
	}
	p.g.Wait()
}

// entry finds or makes the entry of addr.
func (p *Pool) entry(addr string) *entry {
	if e := (*p.table.Load())[addr]; e != nil {
		return e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.table.Load()
	if e := old[addr]; e != nil {
		return e
	}
	e := &entry{addr: addr, backoff: p.backoff.New()}
	m := maps.Clone(old)
	m[addr] = e
	p.table.Store(&m)
	return e
}

// join returns the dial under way to addr, or begins one.
func (p *Pool) join(addr string) (*dial, error) {
	e := p.entry(addr)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dial != nil {
		return e.dial, nil
	}
	if c := e.conn.Load(); c != nil && c.usable() { // made since we looked
		d := &dial{done: make(chan struct{}), conn: c}
		close(d.done)
		return d, nil
	}
	if wait := e.until.Sub(p.cfg.Clock.Now()); wait > 0 {
		return nil, fmt.Errorf("%w (next attempt in %v)", e.err, wait.Round(time.Millisecond))
	}
	d := &dial{done: make(chan struct{})}
	if !p.g.Go(func(ctx context.Context) { p.run(ctx, e, d) }) {
		return nil, ErrClosed
	}
	e.dial = d
	return d, nil
}

// run is the goroutine of one dial.
func (p *Pool) run(ctx context.Context, e *entry, d *dial) {
	c, err := p.connect(ctx, e)
	e.mu.Lock()
	e.dial = nil
	if err != nil {
		e.err = err
		e.until = p.cfg.Clock.Now().Add(e.backoff.Next())
	} else {
		e.err, e.until = nil, time.Time{}
		e.backoff.Reset()
		e.conn.Store(c)
	}
	dropped := e.dropped
	e.mu.Unlock()
	if dropped && c != nil {
		c.Close(nil)
	}
	d.conn, d.err = c, err
	close(d.done)
}

// connect dials and starts a connection.
func (p *Pool) connect(ctx context.Context, e *entry) (*Conn, error) {
	dctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	raw, err := p.dialer(dctx, "tcp", e.addr)
	if err != nil {
		return nil, p.dialError(ctx, dctx, err)
	}
	nc := raw
	if p.tls != nil {
		t := tls.Client(raw, clientTLS(p.tls, e.addr))
		if err := t.HandshakeContext(dctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("tls handshake: %w", p.dialError(ctx, dctx, err))
		}
		nc = t
	}
	c := newConn(nc, raw, p.cfg, p.sweeper)
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.conns[c] = struct{}{}
	}
	p.mu.Unlock()
	if closed || !c.start(p.g) {
		c.Close(nil)
		return nil, ErrClosed
	}
	return c, nil
}

// dialError names the reason when it was one of our contexts.
func (p *Pool) dialError(ctx, dctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ErrClosed
	case dctx.Err() != nil:
		return fmt.Errorf("no connection within %v: %w", p.timeout, errors.Join(ErrTimeout, err))
	}
	return err
}

// forget drops a dead connection from the pool.
func (p *Pool) forget(c *Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	for _, e := range *p.table.Load() {
		e.conn.CompareAndSwap(c, nil)
	}
}
