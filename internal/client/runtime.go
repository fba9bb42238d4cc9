package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/retry"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Runtime is what the roles of one rocketmq.Client share. All methods are safe
// for concurrent use.
type Runtime struct {
	cfg   Config
	id    string
	ids   *wire.IDSource
	group *run.Group
	begin sync.Once
	pool  *remoting.Pool // nil until start, and for ever if closed before that
	began atomic.Bool    // pool is set

	servers       nameServers
	routes        routeCache
	members       members
	beats         heartbeats
	replies       replies
	introductions introductions
	health        healthTable
	closing       sync.Once
	closeErr      error
}

// New checks nothing and does no I/O: goroutines start with the first use.
func New(cfg Config) (*Runtime, error) {
	cfg = cfg.withDefaults()
	if len(cfg.NameServers) == 0 && cfg.Resolve == nil {
		return nil, errors.New("no name server")
	}
	ip, pid := localAddr(), os.Getpid()
	r := &Runtime{
		cfg:   cfg,
		id:    clientID(ip, pid, cfg.InstanceName),
		ids:   wire.NewIDSource(ip, pid, int32(rand.Uint32())),
		group: run.NewGroup(context.Background()),
	}
	r.servers.init(cfg.NameServers)
	r.routes.init()
	r.beats.init()
	return r, nil
}

// start makes the pool and runs the background goroutines, once.
func (r *Runtime) start() {
	r.begin.Do(func() {
		r.pool = remoting.NewPool(r.poolConfig())
		r.began.Store(true)
		r.group.Go(r.keepRoutes)
		r.group.Go(r.keepBeating)
	})
}

func (r *Runtime) poolConfig() remoting.PoolConfig {
	return remoting.PoolConfig{
		Config: remoting.Config{
			MaxFrame:    r.cfg.MaxFrame,
			CallTimeout: r.cfg.RequestTimeout,
			Encoding:    r.cfg.Encoding,
			Signer:      r.cfg.Signer,
			Handler:     r.serve,
			// A broker knows its clients by their connections: a new one has to
			// be told who is here.
			OnOpen:  func(*remoting.Conn) { r.beats.kick() },
			OnClose: r.disconnected,
			Logger:  r.cfg.Logger,
		},
		Dial:    r.dial,
		TLS:     r.cfg.TLS,
		Backoff: retry.Policy{Max: maxDialBackoff},
	}
}

// maxDialBackoff keeps a server that was restarted from being left alone for
// longer than a send may take.
const maxDialBackoff = 2 * time.Second

func (r *Runtime) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	start := time.Now()
	c, err := r.cfg.Dial(ctx, network, addr)
	if r.cfg.OnConnect != nil {
		r.cfg.OnConnect(addr, time.Since(start), err)
	}
	return c, err
}

func (r *Runtime) disconnected(c *remoting.Conn, err error) {
	if r.beats.dropped(c) && !r.closed() {
		r.beats.kick()
	}
	if r.cfg.OnDisconnect != nil {
		r.cfg.OnDisconnect(c.Remote(), err)
	}
}

// clientID is ip@instance, as ClientConfig.buildMQClientId makes it. The
// random instance name keeps members apart that share address and process id,
// as containers do.
func clientID(ip netip.Addr, pid int, instance string) string {
	if instance == "" {
		instance = strconv.Itoa(pid) + "#" + strconv.FormatUint(rand.Uint64(), 16)
	}
	return ip.String() + "@" + instance
}

// localAddr is an address of this machine for ids, 127.0.0.1 if there is no
// better one.
func localAddr() netip.Addr {
	best := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return best
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); !ok || !ip.IsGlobalUnicast() {
			continue
		}
		if ip.Is4() {
			return ip
		}
		if best.IsLoopback() {
			best = ip
		}
	}
	return best
}

// ClientID names this client to brokers, the same for all groups.
func (r *Runtime) ClientID() string { return r.id }

// AppendID appends a new unique message id, as MessageClientIDSetter makes
// them.
func (r *Runtime) AppendID(dst []byte, now time.Time) []byte { return r.ids.Append(dst, now) }

// RequestTimeout bounds calls whose context has no deadline.
func (r *Runtime) RequestTimeout() time.Duration { return r.cfg.RequestTimeout }

// Encoding is the encoding for headers of requests.
func (r *Runtime) Encoding() wire.Encoding { return r.cfg.Encoding }

// Signer signs requests; nil if they are not to be signed. Requests that write
// themselves pass it on in their wire.Head.
func (r *Runtime) Signer() wire.Signer { return r.cfg.Signer }

// Conn returns a live connection to addr, dialing if there is none. It neither
// locks nor allocates if there is one.
func (r *Runtime) Conn(ctx context.Context, addr string) (*remoting.Conn, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	c, err := r.pool.Get(ctx, addr)
	if err != nil && r.closed() {
		return nil, ErrClosed
	}
	return c, err
}

// ConnBy is [Runtime.Conn] for callers that keep a deadline without a context:
// one is made only if there is something to wait for.
func (r *Runtime) ConnBy(ctx context.Context, addr string, deadline time.Time) (*remoting.Conn, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	if c := r.pool.Lookup(addr); c != nil {
		return c, nil
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	c, err := r.pool.Get(ctx, addr)
	if err != nil && r.closed() {
		return nil, ErrClosed
	}
	return c, err
}

// Connected returns the live connection to addr, nil if there is none or if
// requests are not allowed just now. It waits for nothing but the credentials.
func (r *Runtime) Connected(ctx context.Context, addr string) *remoting.Conn {
	if r.ready(ctx) != nil {
		return nil
	}
	return r.pool.Lookup(addr)
}

// FlushOutput waits until all that was handed to the connections is written.
// Connections that break meanwhile do not count.
func (r *Runtime) FlushOutput(ctx context.Context) error {
	if r.pool == nil || r.closed() {
		return nil
	}
	return r.pool.Flush(ctx)
}

// ready is what every request does first.
func (r *Runtime) ready(ctx context.Context) error {
	r.start()
	if r.pool == nil || r.closed() {
		return ErrClosed
	}
	if r.cfg.BeforeRequest != nil {
		return r.cfg.BeforeRequest(ctx)
	}
	return nil
}

// Call sends one request to addr and returns the answer if its code is
// success, else a [*ResponseError]. The frame is the caller's. It connects if
// need be and bounds all by the request timeout if ctx has no deadline.
func (r *Runtime) Call(ctx context.Context, addr string, req *wire.Command) (*wire.Frame, error) {
	f, err := r.Exchange(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	if f.Code != wire.RespSuccess {
		return nil, &ResponseError{opName(req.Code), addr, f.Code, string(f.Remark)}
	}
	return f, nil
}

// Exchange is Call whatever the answer's code. A server that is about to stop
// (GO_AWAY) is asked again over a new connection.
func (r *Runtime) Exchange(ctx context.Context, addr string, req *wire.Command) (*wire.Frame, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.cfg.RequestTimeout)
		defer cancel()
	}
	for again := true; ; again = false {
		c, err := r.Conn(ctx, addr)
		if err != nil {
			return nil, err
		}
		f, err := c.Call(ctx, req)
		if again && errors.Is(err, remoting.ErrGoAway) {
			continue
		}
		return f, err
	}
}

func opName(code int32) string {
	if n := wire.RequestName(code); n != "" {
		return n
	}
	return "request " + strconv.Itoa(int(code))
}

// Close unregisters the groups that are left, ends all goroutines and closes
// the connections. ctx bounds the unregistering and the wait. Further calls
// return what the first one did.
func (r *Runtime) Close(ctx context.Context) error {
	r.closing.Do(func() {
		err := r.leaveAll(ctx)
		r.group.Cancel(ErrClosed)
		r.begin.Do(func() {}) // too late to start
		if r.pool != nil {
			r.pool.Close()
		}
		if e := r.group.WaitContext(ctx); e != nil {
			err = errors.Join(err, fmt.Errorf("rocketmq: close: background work still runs: %w", e))
		}
		r.closeErr = err
	})
	return r.closeErr
}

func (r *Runtime) closed() bool { return r.group.Context().Err() != nil }
