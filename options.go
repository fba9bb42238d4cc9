package rocketmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Option configures a [Client]. Options only record; [NewClient] judges them
// all.
type Option func(*config)

type config struct {
	servers     []string
	resolver    Resolver
	credentials CredentialsProvider
	tls         *tls.Config
	dial        func(ctx context.Context, network, addr string) (net.Conn, error)
	namespace   string
	instance    string
	logger      *slog.Logger
	hooks       []Hook
	heartbeat   time.Duration
	refresh     time.Duration
	timeout     time.Duration
	maxFrame    int
}

func defaultConfig() config {
	return config{
		logger:    slog.New(slog.DiscardHandler),
		heartbeat: 30 * time.Second,
		refresh:   30 * time.Second,
		timeout:   3 * time.Second,
		maxFrame:  wire.DefaultMaxFrame,
	}
}

// WithNameServers sets the name servers: "host:port", "10.0.0.1:9876",
// "[::1]:9876"; the port is 9876 if it is left out. One argument may list
// several, separated by semicolons or commas. They are tried in turn until one
// answers. Host names are looked up each time a connection is made.
func WithNameServers(addrs ...string) Option {
	return func(c *config) { c.servers = append(c.servers, addrs...) }
}

// WithResolver sets a source of name server addresses, in addition to or
// instead of [WithNameServers]; what it returns replaces what was known.
func WithResolver(r Resolver) Option { return func(c *config) { c.resolver = r } }

// WithCredentials signs all requests, as servers with access control ask for.
func WithCredentials(p CredentialsProvider) Option { return func(c *config) { c.credentials = p } }

// WithTLS encrypts all connections. Certificates are verified unless cfg says
// otherwise; without a ServerName in cfg against the host that is dialed.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithDialer replaces the net.Dialer that connections are made with, for
// proxies, address policies or networks inside a test. network is "tcp". It is
// called concurrently.
func WithDialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(c *config) { c.dial = f }
}

// WithNamespace keeps topics and groups apart from those of other namespaces
// of one cluster: names get the prefix "ns%" on the wire and nowhere else.
func WithNamespace(ns string) Option { return func(c *config) { c.namespace = ns } }

// WithInstanceName fixes the second half of the client id, which is random
// otherwise. No two clients of one cluster on one host may have the same: they
// would get each other's queues.
func WithInstanceName(name string) Option { return func(c *config) { c.instance = name } }

// WithLogger sets where the library logs to. By default it says nothing.
// Repeated self-healed faults are warnings, changes of state are info; bodies
// of messages are never logged.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }

// WithHooks adds observers. Each must implement at least one Hook interface.
func WithHooks(h ...Hook) Option { return func(c *config) { c.hooks = append(c.hooks, h...) } }

// WithHeartbeat sets how often brokers are told that the client lives: 30 s by
// default, at least 1 s, at most 60 s, as brokers forget a client after 120 s.
func WithHeartbeat(every time.Duration) Option { return func(c *config) { c.heartbeat = every } }

// WithRouteRefresh sets how often routes are fetched again: 30 s by default, at
// least 1 s. After a fault they are fetched at once anyway.
func WithRouteRefresh(every time.Duration) Option { return func(c *config) { c.refresh = every } }

// WithRequestTimeout bounds requests whose context has no deadline: 3 s by
// default. Sends have timeouts of their own.
func WithRequestTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithMaxFrame sets the largest frame in bytes: 16 MiB by default, at least 64
// KiB. A server that announces a larger one loses the connection before
// anything is allocated for it.
func WithMaxFrame(bytes int) Option { return func(c *config) { c.maxFrame = bytes } }

// validate checks all options, completes addresses and returns all faults.
func (c *config) validate() error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s: %s", ErrInvalidOption, option, fmt.Sprintf(format, args...)))
	}
	var servers []string
	for _, list := range c.servers {
		for _, a := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
			addr, err := serverAddr(a)
			if err != nil {
				bad("WithNameServers", "%q: %v", a, err)
			} else if !slices.Contains(servers, addr) {
				servers = append(servers, addr)
			}
		}
	}
	if len(servers) == 0 && c.resolver == nil && len(errs) == 0 {
		bad("WithNameServers", "at least one name server is needed, for example \"127.0.0.1:9876\"")
	}
	c.servers = servers
	if strings.ContainsAny(c.namespace, "% ;\x01\x02") {
		bad("WithNamespace", "%q must not contain %%, blanks, semicolons or control bytes", c.namespace)
	}
	if strings.ContainsAny(c.instance, "@ ;\x01\x02") {
		bad("WithInstanceName", "%q must not contain @, blanks, semicolons or control bytes", c.instance)
	}
	if c.logger == nil {
		bad("WithLogger", "the logger is nil")
	}
	for _, h := range c.hooks {
		if !isHook(h) {
			bad("WithHooks", "%T implements none of the Hook interfaces", h)
		}
	}
	if c.heartbeat < time.Second || c.heartbeat > time.Minute {
		bad("WithHeartbeat", "%s is outside of 1s to 1m", c.heartbeat)
	}
	if c.refresh < time.Second {
		bad("WithRouteRefresh", "%s is less than 1s", c.refresh)
	}
	if c.timeout <= 0 {
		bad("WithRequestTimeout", "%s is not positive", c.timeout)
	}
	if c.maxFrame < 64<<10 || c.maxFrame > 1<<30 {
		bad("WithMaxFrame", "%d bytes are outside of 64 KiB to 1 GiB", c.maxFrame)
	}
	return errors.Join(errs...)
}

// defaultPort is where name servers listen.
const defaultPort = "9876"

// serverAddr completes and checks an address. A leading http:// is what the
// official Go client needs before a host name; it is accepted and means
// nothing.
func serverAddr(a string) (string, error) {
	a = strings.TrimPrefix(a, "http://")
	if strings.Contains(a, "/") {
		return "", errors.New("this is a URL; host:port is wanted, or a Resolver that asks the URL")
	}
	bare := a
	if strings.HasPrefix(a, "[") && strings.HasSuffix(a, "]") {
		bare = a[1 : len(a)-1]
	}
	if ip := net.ParseIP(bare); ip != nil { // an IPv6 address without a port has colons, too
		return net.JoinHostPort(bare, defaultPort), nil
	}
	if !strings.Contains(a, ":") {
		a += ":" + defaultPort
	}
	host, port, err := net.SplitHostPort(a)
	switch {
	case err != nil:
		return "", errors.New("not host:port")
	case host == "":
		return "", errors.New("the host is missing")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

func isHook(h Hook) bool {
	switch h.(type) {
	case HookConnect, HookDisconnect, HookRoute, HookSend, HookConsume, HookRebalance, HookStuck:
		return true
	}
	return false
}
