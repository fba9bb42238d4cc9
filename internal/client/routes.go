package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// refreshGap is the least time between two rounds of [Runtime.RefreshRoute]:
// when a broker dies, every send to it asks for one.
const refreshGap = 250 * time.Millisecond

// maxQueues is more queues than any broker has of a topic. It keeps a
// malformed route from taking all memory.
const maxQueues = 1 << 16

// routeCache holds the routes of all topics in use. A route is replaced, never
// removed: when name servers are down, restarted empty or wrong, the brokers
// most likely still are where they were.
type routeCache struct {
	known atomic.Pointer[map[string]*Route] // copied on write
	seq   atomic.Uint64

	mu        sync.Mutex // guards all below, and writes of known
	flights   map[string]*flight
	listeners []*routeListener
	stale     map[string]struct{}
	wake      chan struct{} // one slot: stale has something
}

// flight is a fetch that is under way, for all who want the topic.
type flight struct {
	done  chan struct{} // closed when route and err are set
	route *Route
	err   error
}

type routeListener struct {
	f func(topic string, before, after *Route)
}

func (c *routeCache) init() {
	c.known.Store(&map[string]*Route{})
	c.flights = make(map[string]*flight)
	c.stale = make(map[string]struct{})
	c.wake = make(chan struct{}, 1)
}

// CachedRoute is the route if it is known. It takes no lock and allocates
// nothing.
func (r *Runtime) CachedRoute(topic string) (*Route, bool) {
	rt, ok := (*r.routes.known.Load())[topic]
	return rt, ok
}

// Route is the cached route, or else what a name server says. One that is not
// known is a [*RouteError]. Concurrent callers share one query. Once asked for,
// a route is kept fresh.
func (r *Runtime) Route(ctx context.Context, topic string) (*Route, error) {
	if rt, ok := r.CachedRoute(topic); ok {
		return rt, nil
	}
	return r.FetchRoute(ctx, topic)
}

// FetchRoute asks a name server even if a route is cached. A failure leaves the
// cache as it is.
func (r *Runtime) FetchRoute(ctx context.Context, topic string) (*Route, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.start()
	c := &r.routes
	c.mu.Lock()
	f, running := c.flights[topic]
	if !running {
		f = &flight{done: make(chan struct{})}
		c.flights[topic] = f
	}
	c.mu.Unlock()
	if !running && !r.group.Go(func(ctx context.Context) { r.fly(ctx, topic, f) }) {
		c.land(topic, f, nil, ErrClosed)
	}
	select {
	case <-f.done:
		return f.route, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the route of topic %q: %w", topic, context.Cause(ctx))
	}
}

func (c *routeCache) land(topic string, f *flight, rt *Route, err error) {
	c.mu.Lock()
	delete(c.flights, topic)
	c.mu.Unlock()
	f.route, f.err = rt, err
	close(f.done)
}

// fly asks the name servers for one topic.
func (r *Runtime) fly(ctx context.Context, topic string, f *flight) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RequestTimeout)
	defer cancel()
	rt, err := r.queryRoute(ctx, topic)
	if r.closed() {
		err = ErrClosed
	}
	if err != nil {
		r.routes.land(topic, f, nil, err)
		return
	}
	rt = r.publish(rt)
	r.routes.land(topic, f, rt, nil)
}

func (r *Runtime) queryRoute(ctx context.Context, topic string) (*Route, error) {
	req := &wire.Command{
		Code: wire.ReqGetRouteInfoByTopic,
		Ext:  &wire.RouteRequest{Topic: topic, StandardJSONOnly: true},
	}
	// A name server that was restarted knows nothing for a while; another one
	// may know better.
	f, asked := r.askNameServers(ctx, req, func(f *wire.Frame) bool { return f.Code == wire.RespSuccess })
	if f == nil {
		return nil, &RouteError{topic, asked}
	}
	data, err := wire.DecodeRouteData(f.Body)
	if err != nil {
		return nil, fmt.Errorf("route of topic %q: %w", topic, err)
	}
	return makeRoute(topic, &data), nil
}

// publish makes a route the current one and tells whoever listens, if it
// changed. It returns the route that is current.
func (r *Runtime) publish(rt *Route) *Route {
	c := &r.routes
	c.mu.Lock()
	known := *c.known.Load()
	before := known[rt.Topic]
	if before != nil && rt.equal(before) {
		c.mu.Unlock()
		return before
	}
	rt.Version = c.seq.Add(1)
	next := maps.Clone(known)
	next[rt.Topic] = rt
	c.known.Store(&next)
	listeners := slices.Clone(c.listeners)
	c.mu.Unlock()

	r.cfg.Logger.Info("route changed", "topic", rt.Topic, "writable", len(rt.Publish), "readable", len(rt.Readable), "brokers", len(rt.Brokers))
	for _, l := range listeners {
		l.f(rt.Topic, before, rt)
	}
	if newAddrs(before, rt) {
		r.beats.kick()
	}
	return rt
}

func newAddrs(before, after *Route) bool {
	for name, b := range after.Brokers {
		for id, a := range b.Addrs {
			if before == nil || before.Brokers[name].Addrs[id] != a {
				return true
			}
		}
	}
	return false
}

// OnRouteChange calls f, on a goroutine of the runtime, after a route became
// known (before is nil) or changed. Calls for one topic come in order; f must
// not block. remove ends that; a call may still be under way when it returns.
func (r *Runtime) OnRouteChange(f func(topic string, before, after *Route)) (remove func()) {
	l := &routeListener{f}
	c := &r.routes
	c.mu.Lock()
	c.listeners = append(c.listeners, l)
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		c.listeners = slices.DeleteFunc(c.listeners, func(x *routeListener) bool { return x == l })
		c.mu.Unlock()
	}
}

// RefreshRoute has the route of a topic fetched soon, in the background. Calls
// are collected, so it can be called after every failure.
func (r *Runtime) RefreshRoute(topic string) {
	c := &r.routes
	c.mu.Lock()
	c.stale[topic] = struct{}{}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	r.start()
}

func (c *routeCache) takeStale() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	topics := slices.Sorted(maps.Keys(c.stale))
	clear(c.stale)
	return topics
}

// keepRoutes fetches all known routes each period, and those that are said to
// be stale at once.
func (r *Runtime) keepRoutes(ctx context.Context) {
	tick := time.NewTicker(r.cfg.RouteRefresh)
	defer tick.Stop()
	gap := time.NewTimer(0)
	defer gap.Stop()
	for {
		var topics []string
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			topics = slices.Sorted(maps.Keys(*r.routes.known.Load()))
		case <-r.routes.wake:
			topics = r.routes.takeStale()
		}
		r.refresh(ctx, topics)
		gap.Reset(refreshGap)
		select {
		case <-ctx.Done():
			return
		case <-gap.C:
		}
	}
}

func (r *Runtime) refresh(ctx context.Context, topics []string) {
	for _, t := range topics {
		_, err := r.FetchRoute(ctx, t)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrNameServer):
			r.cfg.Logger.Warn("routes cannot be refreshed, keeping those known", "topics", len(topics), "err", err)
			return
		case err != nil:
			r.cfg.Logger.Warn("route could not be refreshed, keeping what is known", "topic", t, "err", err)
		}
	}
}
