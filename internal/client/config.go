package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Defaults of [Config].
const (
	DefaultHeartbeat      = 30 * time.Second
	DefaultRouteRefresh   = 30 * time.Second
	DefaultRequestTimeout = 3 * time.Second
	// DefaultAttemptTimeout is how long one name server may take before the
	// next one is asked.
	DefaultAttemptTimeout = time.Second
	// ResolveEvery is how often a Resolve function is asked again.
	ResolveEvery = 2 * time.Minute
)

// Config is what a [Runtime] is made of. Functions are called without locks,
// concurrently.
type Config struct {
	NameServers []string                                                          // host:port; names are looked up at each dial
	Resolve     func(ctx context.Context) ([]string, error)                       // nil: NameServers are all there are
	Dial        func(ctx context.Context, network, addr string) (net.Conn, error) // nil: net.Dialer
	TLS         *tls.Config                                                       // nil: plain TCP
	Signer      wire.Signer                                                       // nil: requests are not signed
	// BeforeRequest is called before a connection is handed out, and so before
	// each request, on the goroutine that makes it. Nil: nothing.
	BeforeRequest func(ctx context.Context) error

	InstanceName string // "": a random one
	Namespace    string // "": none

	HeartbeatEvery, RouteRefresh, RequestTimeout, AttemptTimeout time.Duration // zero: the defaults above

	MaxFrame int           // zero: 16 MiB
	Encoding wire.Encoding // of request headers
	Logger   *slog.Logger  // nil: discard

	OnConnect    func(addr string, took time.Duration, err error)
	OnDisconnect func(addr string, err error)
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.HeartbeatEvery, DefaultHeartbeat)
	def(&c.RouteRefresh, DefaultRouteRefresh)
	def(&c.RequestTimeout, DefaultRequestTimeout)
	def(&c.AttemptTimeout, DefaultAttemptTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}
