package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Client is the handle of one cluster: it owns connections, routes and
// heartbeats. Producers, consumers and the other roles are built on it and may
// share one. All methods are safe for concurrent use.
type Client struct {
	rt     *client.Runtime
	handle *bridge.Handle

	mu     sync.Mutex // guards all below
	closed bool
	roles  []*role // in order of creation

	closing  sync.Once
	closeErr error
}

// role is a producer or consumer that is still open.
type role struct {
	close func(ctx context.Context) error
}

// NewClient checks the options and returns a client. It does no I/O; the first
// call that needs a server connects. Bad options are all reported at once, as
// [ErrInvalidOption].
func NewClient(opts ...Option) (*Client, error) {
	cfg := defaultConfig()
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Client{}
	rt, err := client.New(cfg.runtime())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	c.rt = rt
	c.handle = &bridge.Handle{Runtime: rt, Logger: cfg.logger, Adopt: c.adopt}
	for _, h := range cfg.hooks {
		c.handle.Hooks = append(c.handle.Hooks, h)
	}
	for _, h := range cfg.hooks {
		if h, ok := h.(HookRoute); ok {
			rt.OnRouteChange(func(topic string, before, after *client.Route) {
				name := rt.Unwrap(topic)
				h.OnRoute(name, publicRoute(name, before), publicRoute(name, after))
			})
		}
	}
	return c, nil
}

// runtime translates the options for what lies below this package.
func (c *config) runtime() client.Config {
	cc := client.Config{
		NameServers:    c.servers,
		Dial:           c.dial,
		TLS:            c.tls,
		InstanceName:   c.instance,
		Namespace:      c.namespace,
		HeartbeatEvery: c.heartbeat,
		RouteRefresh:   c.refresh,
		RequestTimeout: c.timeout,
		MaxFrame:       c.maxFrame,
		Logger:         c.logger,
	}
	if c.resolver != nil {
		cc.Resolve = resolveWith(c.resolver)
	}
	if c.credentials != nil {
		s := &signer{provider: c.credentials}
		cc.Signer, cc.BeforeRequest = s, s.refresh
	}
	var connect []HookConnect
	var disconnect []HookDisconnect
	for _, h := range c.hooks {
		if h, ok := h.(HookConnect); ok {
			connect = append(connect, h)
		}
		if h, ok := h.(HookDisconnect); ok {
			disconnect = append(disconnect, h)
		}
	}
	if connect != nil {
		cc.OnConnect = func(addr string, took time.Duration, err error) {
			for _, h := range connect {
				h.OnConnect(addr, took, publicError(err))
			}
		}
	}
	if disconnect != nil {
		cc.OnDisconnect = func(addr string, err error) {
			for _, h := range disconnect {
				h.OnDisconnect(addr, publicError(err))
			}
		}
	}
	return cc
}

// resolveWith checks what the user's resolver returns.
func resolveWith(r Resolver) func(ctx context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		found, err := r.Resolve(ctx)
		if err != nil {
			return nil, err
		}
		addrs := make([]string, 0, len(found))
		for _, a := range found {
			addr, err := serverAddr(a)
			if err != nil {
				return nil, fmt.Errorf("address %q of the resolver: %w", a, err)
			}
			addrs = append(addrs, addr)
		}
		return addrs, nil
	}
}

// ID is the client id: what brokers know all roles of this client by, also in
// the lists of admin tools.
func (c *Client) ID() string { return c.rt.ClientID() }

// Ping checks that a name server answers and, if topics are in use, that the
// masters of their brokers do. Without a deadline in ctx each server has the
// request timeout. The error joins those of all servers that failed.
func (c *Client) Ping(ctx context.Context) error { return publicError(c.rt.Ping(ctx)) }

// Health is a snapshot of what is known of the servers. It does no I/O.
func (c *Client) Health() Health {
	var h Health
	for _, s := range c.rt.Health() {
		sh := ServerHealth{Addr: s.Addr, Connected: s.Connected, LastSuccess: s.LastSuccess, LastFailure: s.LastFailure, LastError: publicError(s.LastError)}
		if s.NameServer {
			h.NameServers = append(h.NameServers, sh)
		} else {
			h.Brokers = append(h.Brokers, sh)
		}
	}
	return h
}

// Health is the state of a client's servers.
type Health struct {
	NameServers []ServerHealth // all
	Brokers     []ServerHealth // those of the topics in use, replicas included
}

// ServerHealth is the state of one server. Times are of requests in the
// background and for routes, not of single sends and pulls; zero is never.
type ServerHealth struct {
	Addr                     string
	Connected                bool
	LastSuccess, LastFailure time.Time
	LastError                error // of LastFailure
}

// OK reports whether the server's last answer is newer than its last failure.
func (s ServerHealth) OK() bool {
	return !s.LastSuccess.IsZero() && s.LastSuccess.After(s.LastFailure)
}

// Close closes the roles that are still open, last created first, then tells
// the brokers, closes all connections and waits for all goroutines. ctx bounds
// the waiting. It may be called more than once and concurrently; all calls
// return the first one's errors.
func (c *Client) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.closed = true
		roles := slices.Clone(c.roles)
		c.mu.Unlock()
		var errs []error
		for _, r := range slices.Backward(roles) {
			errs = append(errs, r.close(ctx))
		}
		errs = append(errs, publicError(c.rt.Close(ctx)))
		c.closeErr = errors.Join(errs...)
	})
	return c.closeErr
}

func (c *Client) adopt(closeRole func(ctx context.Context) error) (release func(), err error) {
	r := &role{closeRole}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("the client was closed: %w", ErrClosed)
	}
	c.roles = append(c.roles, r)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.roles = slices.DeleteFunc(c.roles, func(x *role) bool { return x == r })
	}, nil
}

func publicRoute(name string, rt *client.Route) Route {
	r := Route{Topic: name}
	if rt == nil {
		return r
	}
	r.Publish, r.Readable = publicQueues(name, rt.Publish), publicQueues(name, rt.Readable)
	for _, b := range rt.BrokerNames() {
		r.Brokers = append(r.Brokers, RouteBroker(rt.Brokers[b]))
	}
	return r
}

func publicQueues(name string, qs []client.Queue) []Queue {
	out := make([]Queue, len(qs))
	for i, q := range qs {
		out[i] = Queue{name, q.Broker, int(q.ID)}
	}
	return out
}

// publicError turns errors of the layers below into this package's types. The
// chain above such an error is kept as its text.
func publicError(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		if _, typed := err.(*client.RouteError); !typed {
			return publicJoin(err, joined.Unwrap())
		}
	}
	var re *client.RouteError
	if errors.As(err, &re) {
		pub := &RouteError{Topic: re.Topic}
		for _, a := range re.Asked {
			pub.Asked = append(pub.Asked, NameServerAnswer{Addr: a.Addr, Code: Code(a.Code), Remark: a.Remark, Took: a.Took, Err: a.Err})
		}
		return pub
	}
	var ae *client.ResponseError
	if errors.As(err, &ae) {
		return &BrokerError{ae.Op, ae.Addr, Code(ae.Code), ae.Remark}
	}
	return err
}

// publicJoin translates what was joined, unless nothing needs to be.
func publicJoin(err error, parts []error) error {
	changed := false
	out := make([]error, len(parts))
	for i, e := range parts {
		out[i] = publicError(e)
		changed = changed || out[i] != e
	}
	if !changed {
		return err
	}
	return errors.Join(out...)
}

// The other packages of this module reach inside a Client through the bridge.
var _ = bridge.Register(inside, publicError)

func inside(c any) *bridge.Handle {
	if c, ok := c.(*Client); ok && c != nil {
		return c.handle
	}
	return nil
}

var _ wire.Signer = (*signer)(nil)
