package testbroker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// Cluster is a set of name servers and brokers in this process. Its methods
// are safe for concurrent use; those that start or stop a server take turns.
//
// Methods without an error fail the test that [New] was given when they are
// misused or the machine fails, and must then be called from the test's own
// goroutine; a cluster of [Start] panics.
type Cluster struct {
	cfg         config
	tb          TB            // nil: made by Start
	nameServers []*nameServer // fixed by start
	brokers     []*node       // fixed by start
	net         network
	faults      *faults

	turn   chan struct{} // capacity 1: whoever starts or stops servers holds the token
	closed bool          // guarded by turn
}

var errClosed = errors.New("the cluster is closed")

// closeLimit is how long the clean-up of a test may take.
const closeLimit = 30 * time.Second

// New starts a cluster for a test and closes it when the test ends. It is
// ready when New returns: the topics of the options can be sent to and
// consumed. A cluster that cannot be started fails the test.
func New(tb TB, opts ...Option) *Cluster {
	tb.Helper()
	logger, log := newTestLogger(tb)
	tb.Cleanup(log.close)
	c, err := open(tb.Context(), tb, append([]Option{Logger(logger)}, opts...))
	if err != nil {
		tb.Fatalf("testbroker: %v", err)
		return nil // a TB whose Fatalf returns must not get a broken cluster
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			tb.Errorf("testbroker: %v", err)
		}
	})
	return c
}

// Start starts a cluster outside of tests. It is ready when Start returns; the
// caller closes it. ctx bounds only the start. Bad options are all reported at
// once, as [ErrInvalidOption].
func Start(ctx context.Context, opts ...Option) (*Cluster, error) {
	return open(ctx, nil, opts)
}

func open(ctx context.Context, tb TB, opts []Option) (*Cluster, error) {
	cfg := defaultConfig()
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, tb: tb, turn: make(chan struct{}, 1), net: loopback{}}
	if cfg.virtual {
		c.net = &inside{}
	}
	var s *strict
	if cfg.strict {
		s = newStrict(cfg.autoCreate)
	}
	c.faults = newFaults(s)
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	for i := range c.cfg.nameServers {
		ns := newNameServer(i, c.cfg, c.net, c.faults)
		if err := ns.start(ctx); err != nil {
			return err
		}
		c.nameServers = append(c.nameServers, ns)
	}
	for i := range c.cfg.brokers {
		c.brokers = append(c.brokers, newNode(i, c.cfg, c.NameServers(), c.net, c.faults))
	}
	if err := each(c.brokers, func(n *node) error { return n.start(ctx) }); err != nil {
		return err
	}
	return c.createTopics(ctx, c.cfg.topics)
}

// createTopics creates topics on all brokers that are up.
func (c *Cluster) createTopics(ctx context.Context, topics []topic) error {
	return each(c.brokers, func(n *node) error { return n.createTopics(ctx, topics) })
}

// CreateTopic creates a topic with so many queues on each broker that is up,
// or changes its number of queues. It can be sent to when CreateTopic returns.
func (c *Cluster) CreateTopic(name string, queues int) {
	c.helper()
	t := topic{name, queues}
	if err := t.validate(); err != nil {
		c.must(fmt.Errorf("CreateTopic(%q, %d): %w", name, queues, err))
		return
	}
	c.must(c.inTurn(func(ctx context.Context) error { return c.createTopics(ctx, []topic{t}) }))
}

// NameServers returns the addresses of all name servers, host:port. They stay
// the same for the life of the cluster.
func (c *Cluster) NameServers() []string {
	var addrs []string
	for _, ns := range c.nameServers {
		addrs = append(addrs, ns.addr)
	}
	return addrs
}

// Brokers returns the names of all brokers.
func (c *Cluster) Brokers() []string {
	var names []string
	for _, n := range c.brokers {
		names = append(names, n.name)
	}
	return names
}

// ClientOptions returns what a client needs to use the cluster: the addresses,
// and intervals that suit tests (heartbeats and route refresh each second).
//
// With [Virtual] the dialer is among them.
func (c *Cluster) ClientOptions() []rocketmq.Option {
	opts := []rocketmq.Option{
		rocketmq.WithNameServers(c.NameServers()...),
		rocketmq.WithHeartbeat(time.Second),
		rocketmq.WithRouteRefresh(time.Second),
	}
	if c.cfg.virtual {
		opts = append(opts, rocketmq.WithDialer(c.net.dial))
	}
	return opts
}

// Client returns a client of the cluster that is closed when the test ends;
// what is still open on it is closed, too, which [Strict] does not forgive. opts
// come after [Cluster.ClientOptions].
func (c *Cluster) Client(tb TB, opts ...rocketmq.Option) *rocketmq.Client {
	tb.Helper()
	cl, err := rocketmq.NewClient(slices.Concat(c.ClientOptions(), opts)...)
	if err != nil {
		tb.Fatalf("testbroker: client: %v", err)
		return nil
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		if s := c.faults.strict; s != nil {
			s.clientEnds(cl.ID())
		}
		if err := cl.Close(ctx); err != nil {
			tb.Errorf("testbroker: close of a client: %v", err)
		}
	})
	return cl
}

// Close stops all servers, brokers first, and waits for them. Data in memory
// is gone afterwards. What the test did wrong, rules that no request has used
// ([Cluster.On]) and what [Strict] has found, is an error of the first Close. It
// may be called again.
func (c *Cluster) Close(ctx context.Context) error {
	release, err := c.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	var errs []error
	if !c.closed {
		errs = append(errs, c.judge())
	}
	c.closed = true
	errs = append(errs,
		each(c.brokers, func(n *node) error { return n.stop(ctx) }),
		each(c.nameServers, func(ns *nameServer) error { return ns.stop(ctx) }),
	)
	c.faults.g.Stop()
	return errors.Join(errs...)
}

// judge is what the test did wrong.
func (c *Cluster) judge() error {
	var errs []error
	found := c.faults.unused()
	if s := c.faults.strict; s != nil {
		found = append(found, s.verdict()...)
	}
	for _, what := range found {
		errs = append(errs, errors.New(what))
	}
	return errors.Join(errs...)
}

// takeTurn waits until nobody else starts or stops servers.
func (c *Cluster) takeTurn(ctx context.Context) (release func(), err error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("testbroker: waiting for another call: %w", context.Cause(ctx))
	}
}

// must ends the test over an error.
func (c *Cluster) must(err error) {
	if err == nil {
		return
	}
	if c.tb == nil {
		panic("testbroker: " + err.Error())
	}
	c.tb.Helper()
	c.tb.Fatalf("testbroker: %v", err)
}

func (c *Cluster) helper() {
	if c.tb != nil {
		c.tb.Helper()
	}
}
