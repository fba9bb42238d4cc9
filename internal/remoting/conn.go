package remoting

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Mode says who writes a frame out, and whether the sender waits for room.
type Mode uint8

const (
	// Inline lets the caller write if nobody else does, after it has yielded
	// once so that others can add their frames. The fastest for a caller that
	// waits for the answer anyway. Over TLS it is the same as Later.
	Inline Mode = iota
	// Later leaves the writing to the connection's flusher goroutine: for
	// callers that have something else to do, as asynchronous sends.
	Later
	// Try is Later that never waits: a full output buffer is [ErrBusy]. For
	// use inside [Exchange.Done] and handlers, which must not block the
	// reader.
	Try
)

// Appender is a frame that writes itself. AppendFrame is called once, under
// the output buffer's lock: it appends one frame with the given opaque to dst
// and returns the grown slice; it must not block or use the connection. A
// one-way frame may turn out to be needless: then dst is returned as it is.
type Appender interface {
	AppendFrame(dst []byte, opaque int32) []byte
}

// Exchange is one call. Done is called exactly once, with no lock held, with
// the answer or an error: [ErrTimeout], [ErrGoAway] or a [*ConnError]. The
// frame and all it points to are valid during the call only. Done runs on the
// connection's reader or the sweeper and must not block; a call it starts in
// turn must use the mode [Try].
type Exchange interface {
	Appender
	Done(f *wire.Frame, err error)
}

// Token names a started call for [Conn.Cancel]. The zero Token names none.
type Token struct{ opaque int32 }

// Conn is one connection, of either end. All methods are safe for concurrent
// use.
type Conn struct {
	cfg       *Config
	nc        net.Conn // what frames are read from and written to
	raw       net.Conn // the socket below, the same without TLS
	resumable bool     // a write ended by a deadline can be continued
	local     netip.AddrPort
	remote    netip.AddrPort
	peer      string
	base      time.Time // times are kept as nanoseconds after it
	sweeper   *sweeper
	value     atomic.Pointer[any]

	pend pending
	out  output
	kick chan struct{} // hands the right to write to the flusher

	// Reader's.
	in     input
	frame  wire.Frame
	req    Request
	unsent int // replies made on the reader and not written

	received atomic.Uint64 // reads that brought bytes
	sent     atomic.Uint64 // writes that moved bytes
	active   atomic.Int32  // requests in handlers
	retired  atomic.Bool   // the peer said GO_AWAY
	draining *atomic.Bool  // the server's: answer GO_AWAY
	idle     func()        // called when active falls to zero while draining

	watched atomic.Bool // the sweeper looks at it each tick
	sweep   sweepState

	closing atomic.Bool
	done    chan struct{}
	err     error         // written before done is closed
	ended   chan struct{} // closed after done, when all pending calls have failed
}

// newConn wraps a connected socket. raw is nc or the socket below its TLS.
func newConn(nc, raw net.Conn, cfg *Config, sw *sweeper) *Conn {
	c := &Conn{
		cfg: cfg, nc: nc, raw: raw, sweeper: sw,
		base: cfg.Clock.Now(),
		kick: make(chan struct{}, 1),
		done: make(chan struct{}), ended: make(chan struct{}),
		peer: nc.RemoteAddr().String(),
	}
	c.local, c.remote = addrPort(nc.LocalAddr()), addrPort(nc.RemoteAddr())
	// TLS breaks when a write ends half way, and so may anything that cannot
	// take a deadline.
	_, secure := nc.(interface{ VerifyHostname(string) error })
	c.resumable = partialWrites && !secure && nc.SetWriteDeadline(time.Time{}) == nil
	c.in.max = cfg.ReadBuffer
	c.req.c, c.req.f = c, &c.frame
	return c
}

// start runs the connection on g. It is false if g has ended; the connection
// is then closed.
func (c *Conn) start(g *run.Group) bool {
	c.sweeper.add(c)
	if g.Go(func(context.Context) { c.flush() }) && g.Go(func(context.Context) { c.read() }) {
		return true
	}
	c.sweeper.remove(c)
	c.Close(nil)
	return false
}

func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.TCPAddr:
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	case nil:
		return netip.AddrPort{}
	}
	p, _ := netip.ParseAddrPort(a.String())
	return p
}

// Start sends x and returns at once; the answer or a failure comes through
// [Exchange.Done], which may have been called before Start returns. If Start
// returns an error nothing was sent and Done will not be called. A deadline of
// zero is none. Start only waits while more than Config.HighWater bytes are
// queued, until there is room or the deadline has passed (ErrTimeout), and in
// mode [Inline] while it writes: not beyond the deadline by more than about
// 100 ms, even if the peer does not read.
func (c *Conn) Start(x Exchange, deadline time.Time, m Mode) (Token, error) {
	if err := c.waitRoom(deadline, m); err != nil {
		return Token{}, err
	}
	opaque, ok := c.pend.add(x, nanos(c.base, deadline))
	if !ok {
		return Token{}, c.Err()
	}
	writer, err := c.request(x, opaque)
	if err != nil {
		if c.pend.take(opaque) == nil {
			return Token{opaque}, nil // failed already: Done has been called
		}
		if err == ErrClosed {
			err = c.Err()
		}
		return Token{}, err
	}
	c.watch()
	if writer {
		c.launch(m, c.pend.n.Load() > 1)
	}
	return Token{opaque}, nil
}

// request appends a frame; if its encoder panics the call is forgotten.
func (c *Conn) request(a Appender, opaque int32) (writer bool, err error) {
	ok := false
	defer func() {
		if !ok {
			c.pend.take(opaque)
		}
	}()
	writer, err = c.out.request(c.cfg.MaxFrame, a, opaque)
	ok = true
	return writer, err
}

// launch has the output written, by the caller who has the right to.
func (c *Conn) launch(m Mode, yield bool) {
	if m == Inline && c.resumable {
		c.write(true, yield)
		return
	}
	c.watch()
	c.kick <- struct{}{}
}

// waitRoom blocks while the output buffer is full.
func (c *Conn) waitRoom(deadline time.Time, m Mode) error {
	room := c.out.full(c.cfg.HighWater)
	if room == nil {
		return nil
	}
	if m == Try {
		return ErrBusy
	}
	return c.waitRoomSlow(room, deadline)
}

func (c *Conn) waitRoomSlow(room <-chan struct{}, deadline time.Time) error {
	late := make(chan struct{})
	if !deadline.IsZero() {
		t := c.cfg.Clock.AfterFunc(deadline.Sub(c.cfg.Clock.Now()), func() { close(late) })
		defer t.Stop()
	}
	for ; room != nil; room = c.out.full(c.cfg.HighWater) {
		select {
		case <-room:
		case <-c.done:
			return c.err
		case <-late:
			return ErrTimeout
		}
	}
	return nil
}

// Cancel withdraws a call. If it returns true, Done has not been and will not
// be called; the request may have been sent all the same.
func (c *Conn) Cancel(t Token) bool { return c.pend.take(t.opaque) != nil }

// Oneway sends a request that has no answer. An error means that it was not
// sent; nil that it was handed to the connection, not that it arrived. It
// waits as [Conn.Start] does.
func (c *Conn) Oneway(a Appender, deadline time.Time, m Mode) error {
	if err := c.waitRoom(deadline, m); err != nil {
		return err
	}
	writer, err := c.out.request(c.cfg.MaxFrame, a, c.pend.next())
	if err != nil {
		if err == ErrClosed {
			err = c.Err()
		}
		return err
	}
	if writer {
		c.launch(m, true)
	}
	return nil
}

// Flush waits until everything queued so far has been written. It returns the
// context's cause, or the connection's error if that died first.
func (c *Conn) Flush(ctx context.Context) error {
	for {
		select {
		case <-c.done:
			return c.err
		default:
		}
		busy := c.out.busy()
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-c.done:
			return c.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close closes the connection at once: what is queued is dropped and pending
// calls fail. cause is what they and [Conn.Err] report; nil means [ErrClosed].
// It does not wait for handlers; only the first call has an effect.
func (c *Conn) Close(cause error) {
	if cause == nil {
		cause = ErrClosed
	}
	c.fail("close", cause)
}

// fail ends the connection with an error of its own making.
func (c *Conn) fail(op string, err error) {
	if !c.closing.CompareAndSwap(false, true) {
		return
	}
	c.err = &ConnError{Addr: c.peer, Op: op, Err: err}
	close(c.done)
	_ = c.raw.Close()
	c.out.close()
	for _, x := range c.pend.close() {
		x.Done(nil, c.err)
	}
	close(c.ended)
}

// Done is closed when the connection is.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection was closed, a [*ConnError], or nil while it lives.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// usable reports whether new calls should go to this connection.
func (c *Conn) usable() bool {
	select {
	case <-c.done:
		return false
	default:
		return !c.retired.Load()
	}
}

// RemoteAddr is the peer's address; zero if the connection is not over IP.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// LocalAddr is this end's address; zero if the connection is not over IP.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// Remote is the peer's address as text.
func (c *Conn) Remote() string { return c.peer }

// Pending is how many calls wait for an answer.
func (c *Conn) Pending() int { return int(c.pend.n.Load()) }

// SetValue attaches whatever the owner of the connection wants to find again
// with [Conn.Value]. There is one value per connection.
func (c *Conn) SetValue(v any) { c.value.Store(&v) }

// Value is what [Conn.SetValue] attached, nil if nothing.
func (c *Conn) Value() any {
	if p := c.value.Load(); p != nil {
		return *p
	}
	return nil
}
