// Package namesrv is a name server: the place where brokers say what topics
// they have and where clients ask for them. It stands in for the Java name
// server of Apache RocketMQ and serves its brokers, clients and tools.
//
// All tables are in memory and derived from the brokers' registrations; only
// the key-value configuration is kept in a file. Name servers do not know of
// each other: brokers register with all of them.
//
// Each request family has a file that begins with what is implemented and what
// differs: route.go, register.go, lists.go, topics.go, kv.go, settings.go.
package namesrv

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Defaults of [Config], those of Apache unless said otherwise.
const (
	DefaultAddr      = "127.0.0.1:9876" // Apache listens on all interfaces
	DefaultExpiry    = 120 * time.Second
	DefaultScanEvery = 10 * time.Second // 4.9; 5.x scans every 5 s
	DefaultFirstScan = 5 * time.Second
)

// Config says how a name server runs. The zero value is usable.
type Config struct {
	// Listener is where connections come from; the server closes it. If nil
	// the server listens on Addr, DefaultAddr if that is empty, too.
	Listener net.Listener
	Addr     string

	// ConfigPath is the file of the key-value configuration (kvConfig.json).
	// It is read at the start if it exists and written at each change. Empty
	// means memory only.
	ConfigPath string

	// Expiry is how long a broker may be silent that does not say so itself
	// (heartbeatTimeoutMillis). The scan for such brokers first runs after
	// FirstScan and then every ScanEvery. A broker whose connection ends is
	// taken out at once. Zero means the default.
	Expiry, ScanEvery, FirstScan time.Duration

	// OrderMessage adds orderTopicConf to routes (orderMessageEnable).
	OrderMessage bool

	// Remoting holds TLS and the limits of connections. The server sets
	// Handler, and Logger if that is nil. Its clock is the machine's unless set.
	Remoting remoting.ServerConfig

	// Clock is the time by which brokers expire, the machine's if nil.
	Clock clock.Clock

	// Logger gets brokers coming and going (Info) and what is wrong with them
	// (Warn, Error). Nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	for _, d := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"Expiry", &c.Expiry, DefaultExpiry},
		{"ScanEvery", &c.ScanEvery, DefaultScanEvery},
		{"FirstScan", &c.FirstScan, DefaultFirstScan},
	} {
		if *d.v < 0 {
			return c, fmt.Errorf("name server: %s is negative", d.name)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if c.Addr == "" {
		c.Addr = DefaultAddr
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Server is a running name server. Its methods are safe for concurrent use.
type Server struct {
	cfg    Config
	log    *slog.Logger
	tables *tables
	kv     *kvStore
	srv    *remoting.Server
	group  *run.Group // the writer of the key-value configuration
	addr   net.Addr

	setMu sync.Mutex // one change of settings at a time
	set   atomic.Pointer[settings]

	orderMu sync.Mutex // orders reading the order configuration and showing it

	scan scanner
}

// Start runs a name server until [Server.Close]. It listens when Start
// returns. ctx bounds only the start.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := cfg.Listener
	if l == nil {
		var lc net.ListenConfig
		if l, err = lc.Listen(ctx, "tcp", cfg.Addr); err != nil {
			return nil, fmt.Errorf("name server: %w", err)
		}
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, tables: newTables(), addr: l.Addr(),
		group: run.NewGroup(context.Background()),
	}
	s.set.Store(&settings{order: cfg.OrderMessage, returnOrder: true, scan: cfg.ScanEvery})
	if s.kv, err = openKV(s.group, cfg.ConfigPath); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("name server: %w", err)
	}
	s.applyOrder()
	if err := s.serve(l); err != nil {
		s.group.Stop()
		return nil, fmt.Errorf("name server: %w", err)
	}
	s.scan.start(cfg.Clock, cfg.FirstScan, s.scanOnce)
	s.log.Info("name server listens", "addr", s.addr.String())
	return s, nil
}

// serve accepts connections on l, which is closed on failure.
func (s *Server) serve(l net.Listener) error {
	rc := s.cfg.Remoting
	rc.Handler = s.mux().Serve
	if rc.Logger == nil {
		rc.Logger = s.log
	}
	onClose := rc.OnClose
	rc.OnClose = func(c *remoting.Conn, cause error) {
		s.connClosed(c, cause)
		if onClose != nil {
			onClose(c, cause)
		}
	}
	s.srv = remoting.NewServer(rc)
	return s.srv.Serve(l)
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.addr.String() }

func (s *Server) hostPort() (host, port string) {
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil { // a listener that is not TCP
		return s.Addr(), ""
	}
	return host, port
}

// WaitBroker blocks until a master of the given broker name is registered, or
// ctx ends.
func (s *Server) WaitBroker(ctx context.Context, name string) error {
	return s.tables.waitBroker(ctx, name)
}

// Close ends all connections and returns when nothing of the server runs any
// more, or when ctx ends. It may be called again.
func (s *Server) Close(ctx context.Context) error {
	s.scan.stop()
	err := s.srv.Close(ctx)
	s.group.Cancel(nil)
	if werr := s.group.WaitContext(ctx); err == nil {
		err = werr
	}
	return err
}

// applyOrder brings the order configuration into the routes.
func (s *Server) applyOrder() {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	if s.set.Load().order {
		s.tables.setOrder(s.kv.list(orderNamespace))
	} else {
		s.tables.setOrder(nil)
	}
}

// read decodes the request's header or answers that it is not as it must be.
func read(r *remoting.Request, h interface{ DecodeExt(*wire.Frame) error }) bool {
	if err := h.DecodeExt(r.Frame()); err != nil {
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return false
	}
	return true
}
