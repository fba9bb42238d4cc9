package testbroker

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// tap sits between a server and its connections. It shows the frames that go
// over them to the cluster's rules and holds them back while the server is
// frozen. A cluster that uses neither only has the borders of frames counted.
type tap struct {
	faults *faults
	server string // the name that rules know it by

	mu    sync.Mutex // guards all below
	thaw  chan struct{}
	conns map[*tapConn]struct{}
}

func newTap(f *faults, server string) *tap {
	return &tap{faults: f, server: server, conns: map[*tapConn]struct{}{}}
}

// listener has the connections of a listener go through the tap.
func (t *tap) listener(l net.Listener) net.Listener { return tapListener{l, t} }

type tapListener struct {
	net.Listener
	t *tap
}

// Accept implements net.Listener.
func (l tapListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.t.conn(c, true), nil
}

// dialer has connections that the server makes itself go through the tap: to
// be frozen, not to be looked at, which the other end's tap does.
func (t *tap) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return t.conn(c, false), nil
	}
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func (t *tap) conn(nc net.Conn, accepted bool) *tapConn {
	c := &tapConn{Conn: nc, t: t, look: accepted, kick: make(chan struct{}, 1), closed: make(chan struct{}), calls: map[callID]*pendingCall{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[c] = struct{}{}
	return c
}

// freeze stops all traffic; it is an error if it is stopped already.
func (t *tap) freeze() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.thaw != nil {
		return errors.New(t.server + " is frozen already")
	}
	t.thaw = make(chan struct{})
	return nil
}

// release lets traffic go on and reports whether it was stopped.
func (t *tap) release() bool {
	t.mu.Lock()
	frozen := t.thaw != nil
	if frozen {
		close(t.thaw)
		t.thaw = nil
	}
	conns := slices.Collect(maps.Keys(t.conns))
	t.mu.Unlock()
	if frozen {
		for _, c := range conns {
			c.mu.Lock()
			c.wakeReader()
			c.mu.Unlock()
			c.wakeWriter()
		}
	}
	return frozen
}

// frozen is closed when traffic goes on, nil if nothing stops it.
func (t *tap) frozen() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.thaw
}

// The two ways over a connection, as the server sees them.
const (
	in = iota
	out
)

// tapConn is the server's end of a connection. Read and Write are called by
// one goroutine at a time each, as remoting.Conn does.
type tapConn struct {
	net.Conn
	t    *tap
	look bool // frames are shown to the rules

	once   sync.Once
	closed chan struct{}
	kick   chan struct{} // there is something for the writer

	mu      sync.Mutex // guards all below; not held during I/O
	ways    [2]way
	woken   bool // a read was cut short because something else is to be read
	direct  bool // a Write is under way that nobody looks at
	writing bool // the writer is at it
	writer  bool // it has been started
	calls   map[callID]*pendingCall
}

// way is one direction.
type way struct {
	stream stream // between calls of Read or Write it may be looked at under mu
	ready  []byte // to be read by the server, or written to the peer
	later  []byte // whole frames that wait for the end of one being passed on
	err    error  // what follows ready; of in only
}

// quiet tells whether bytes can be passed on as they are. mu is held.
func (c *tapConn) quiet(w *way) bool {
	return !(c.look && c.t.faults.watching()) && len(w.ready) == 0 && len(w.later) == 0 && len(w.stream.begun) == 0
}

// inbox is what a connection of a frozen server takes, as the system's buffers
// would, before its peer has to wait.
const inbox = 1 << 20

// Read implements net.Conn.
func (c *tapConn) Read(p []byte) (int, error) {
	w := &c.ways[in]
	for {
		c.mu.Lock()
		if c.woken {
			c.woken = false
			_ = c.Conn.SetReadDeadline(time.Time{})
		}
		// After woken was looked at: who lets traffic go on wakes the reader then.
		thaw := c.t.frozen()
		n, err := 0, w.err
		if thaw == nil {
			n = copy(p, w.ready)
			w.ready = w.ready[:copy(w.ready, w.ready[n:])]
		}
		full := len(w.ready) >= inbox
		c.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case thaw != nil && (err != nil || full):
			select {
			case <-thaw:
				continue
			case <-c.closed:
				return 0, net.ErrClosed
			}
		case err != nil:
			return 0, err
		}
		select {
		case <-c.closed:
			return 0, net.ErrClosed
		default:
		}
		n, err = c.Conn.Read(p)
		c.mu.Lock()
		if err != nil && c.woken && errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		if c.quiet(w) && c.t.frozen() == nil {
			w.stream.skip(p[:n])
			c.mu.Unlock()
			if n > 0 || err != nil {
				return n, err
			}
			continue
		}
		w.err = err
		c.mu.Unlock()
		c.take(in, p[:n])
	}
}

// Write implements net.Conn.
func (c *tapConn) Write(p []byte) (int, error) {
	w := &c.ways[out]
	c.mu.Lock()
	if c.quiet(w) && !c.writing && c.t.frozen() == nil {
		c.direct = true
		c.mu.Unlock()
		n, err := c.Conn.Write(p)
		c.mu.Lock()
		c.direct = false
		w.stream.skip(p[:n])
		c.settle(out)
		c.mu.Unlock()
		return n, err
	}
	c.mu.Unlock()
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.take(out, p)
	return len(p), nil
}

// take looks at bytes that came one way and makes those ready that go on. Only
// the goroutine of that way calls it.
func (c *tapConn) take(dir int, b []byte) {
	w := &c.ways[dir]
	c.mu.Lock()
	w.ready = append(w.ready, w.stream.add(b)...)
	c.mu.Unlock()
	for {
		c.mu.Lock()
		frame, ok := w.stream.next()
		c.mu.Unlock()
		if frame != nil && ok && c.look && c.t.faults.watching() {
			frame = c.t.faults.judge(c, dir, frame)
			ok = frame != nil // nil: somebody else cares for it
			if !ok {
				continue
			}
		}
		c.mu.Lock()
		if frame == nil {
			c.settle(dir)
			c.mu.Unlock()
			return
		}
		w.ready = append(w.ready, frame...)
		c.mu.Unlock()
	}
}

// settle has what is ready go on. mu is held.
func (c *tapConn) settle(dir int) {
	w := &c.ways[dir]
	if len(w.later) > 0 && !w.stream.mid() {
		w.ready = append(w.ready, w.later...)
		w.later = nil
	}
	if dir == out && len(w.ready) > 0 {
		c.wakeWriter()
		if !c.writer {
			c.writer = c.t.faults.g.Go(c.write)
		}
	}
}

func (c *tapConn) wakeWriter() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// inject has a whole frame go one way, between others.
func (c *tapConn) inject(dir int, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.ways[dir]
	w.later = append(w.later, frame...)
	if dir == out && c.direct {
		return // the Write under way settles it
	}
	c.settle(dir)
	if dir == in {
		c.wakeReader()
	}
}

// wakeReader has a Read look again. mu is held.
func (c *tapConn) wakeReader() {
	if !c.woken {
		c.woken = true
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// write is the writer: it writes what does not go straight through. Once the
// connection is closed it ends with what the server has written.
func (c *tapConn) write(ctx context.Context) {
	w := &c.ways[out]
	for {
		c.mu.Lock()
		var b []byte
		if !c.direct && c.t.frozen() == nil {
			b, w.ready = w.ready, nil
		}
		c.writing = len(b) > 0
		c.mu.Unlock()
		for len(b) > 0 {
			n, err := c.Conn.Write(b)
			b = b[n:]
			if err == nil {
				continue
			}
			select {
			case <-c.closed:
				err = net.ErrClosed
			default:
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				c.cut()
				return
			}
			_ = c.Conn.SetWriteDeadline(time.Time{}) // the server's, of a write that went straight through
		}
		if c.idle() {
			select {
			case <-c.kick:
			case <-c.closed:
				if c.idle() {
					c.cut()
					return
				}
			case <-ctx.Done():
				c.cut()
				return
			}
		}
	}
}

// idle tells whether the writer has nothing to write.
func (c *tapConn) idle() bool {
	frozen := c.t.frozen() != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	return len(c.ways[out].ready) == 0 || c.direct || frozen
}

// lastWords is how long a peer has to take what the server wrote before it closed
// the connection.
const lastWords = time.Second

// Close implements net.Conn. What the server has written is still sent, if
// the peer takes it soon.
func (c *tapConn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.closed)
		c.t.forget(c)
		c.mu.Lock()
		w := &c.ways[out]
		left := c.writer && (c.writing || len(w.ready) > 0)
		c.mu.Unlock()
		if left && c.t.frozen() == nil {
			err = nil
			_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
			_ = c.Conn.SetWriteDeadline(time.Now().Add(lastWords))
			return
		}
		err = c.Conn.Close()
	})
	return err
}

// cut ends the connection at once.
func (c *tapConn) cut() {
	c.once.Do(func() {
		close(c.closed)
		c.t.forget(c)
	})
	_ = c.Conn.Close()
}

// forget takes a connection out that has ended.
func (t *tap) forget(c *tapConn) {
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
	t.faults.gone(c)
}

// after calls f once d has passed, unless the connection ends before.
func (c *tapConn) after(d time.Duration, f func()) {
	c.t.faults.g.Go(func(ctx context.Context) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			f()
		case <-c.closed:
		case <-ctx.Done():
		}
	})
}
