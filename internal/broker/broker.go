// Package broker is a RocketMQ broker: it takes, keeps and hands out messages
// and speaks the wire protocol of Apache RocketMQ 5.3 with clients, tools and
// name servers.
//
// Each file serves one family of requests and opens with what it reads and
// answers; mux.go lists them all. Sends, pulls and offsets run on the reader of
// the connection they came in on and never wait; what waits (a held pull, a
// flush) is finished by whoever ends the wait. Delayed and retried messages are
// delivered by one goroutine (delay.go), those that are due at a time by another
// one (timers.go).
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/clients"
	"github.com/gorocketmq/rocketmq/internal/broker/groups"
	"github.com/gorocketmq/rocketmq/internal/broker/locks"
	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/persist"
	"github.com/gorocketmq/rocketmq/internal/broker/pop"
	"github.com/gorocketmq/rocketmq/internal/broker/rounds"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/broker/trans"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/filter/sql92"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// errExpired is why a silent client's connection was closed.
var errExpired = errors.New("no heartbeat for too long")

// Sizes of the pools.
const (
	workers     = 4
	workerQueue = 10000
	pollRunners = 2
)

// Broker is one running broker. All methods are safe for concurrent use.
type Broker struct {
	cfg     Config
	clock   clock.Clock
	log     *slog.Logger
	started time.Time
	addr    string         // host:port that clients are told
	haAddr  string         // where replicas would connect
	host    netip.AddrPort // store host of the records
	region  []byte
	tail    []byte // properties that every message gets
	ids     *wire.IDSource

	store     *store.Store
	topics    *topics.Table
	groups    *groups.Table
	offsets   *offsets.Table
	clients   *clients.Manager
	locks     *locks.Table
	polls     *polls
	delays    *delays
	pop       *pop.Service
	trans     *trans.Service
	modes     pop.Modes
	timers    *timers
	saver     *saver
	registrar *registrar
	stats     stats
	replies   atomic.Int32  // under way to their clients
	asked     atomic.Uint32 // checks of transactions, to take producers in turn

	sends       sync.Pool // *sendOp
	pulls       sync.Pool // *pullOp
	expressions sql92.Cache
	workers     *remoting.Workers
	server      *remoting.Server
	bg          *run.Group // periodic work, runners of held pulls, the saver

	ending sync.Once
	ended  chan struct{}
	endErr error // written before ended is closed
}

// Start opens the store, listens, and registers with the name servers. The
// broker is ready when it returns: every name server that could be reached
// lists it. One that cannot be reached is no error, the broker goes on trying.
// ctx bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	cfg.NameServers = nameServerList(cfg.NameServers)
	cfg, err := cfg.withDefaults()
	if err != nil {
		if cfg.Listener != nil {
			_ = cfg.Listener.Close()
		}
		return nil, fmt.Errorf("broker configuration: %w", err)
	}
	ln := cfg.Listener
	if ln == nil {
		if ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
			return nil, fmt.Errorf("broker %s: %w", cfg.Name, err)
		}
	}
	b := &Broker{cfg: cfg, clock: cfg.Clock, log: cfg.Logger.With("broker", cfg.Name), started: cfg.Clock.Now(), ended: make(chan struct{})}
	if err := b.open(ln); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("broker %s: %w", cfg.Name, err)
	}
	b.registrar.start(ctx)
	if ctx.Err() != nil {
		b.Kill()
		return nil, fmt.Errorf("broker %s: starting was cut short: %w", cfg.Name, context.Cause(ctx))
	}
	return b, nil
}

// open brings everything up but the registration.
func (b *Broker) open(ln net.Listener) error {
	if err := b.identify(ln.Addr()); err != nil {
		return err
	}
	cfg := &b.cfg
	b.topics = topics.New(b.clock)
	b.groups = groups.New(b.clock, cfg.AutoCreateGroup)
	b.offsets = offsets.New(b.clock)
	b.clients = clients.New(cfg.Liveness)
	b.locks = locks.New(b.clock)
	b.polls = newPolls(b.clock, pollRunners)
	b.delays = newDelays(b.clock, b.log, cfg.Store.DelayLevels)
	b.delays.put = b.putDelayed
	b.timers = newTimers(b.clock, b.log, cfg)
	b.timers.put = b.putDelayed
	b.pop = b.newPop()
	b.trans = b.newTrans()
	b.sends.New = func() any { return &sendOp{b: b} }
	b.pulls.New = func() any { return &pullOp{b: b} }

	b.saver = &saver{
		files: persist.In(cfg.Store.FS, filepath.Join(cfg.Store.Dir, "config")), log: b.log,
		topics: rounds.New(), groups: rounds.New(), offsets: rounds.New(), delays: rounds.New(), modes: rounds.New(), timers: rounds.New(),
		topicTable: b.topics, groupTable: b.groups, offsetTable: b.offsets, delayTable: b.delays.progress,
		modeTable: &b.modes, pop: b.pop, timerTable: b.timers,
	}
	sc := cfg.Store
	sc.Clock, sc.Logger, sc.StoreHost, sc.OnArrival = b.clock, b.log, b.host, b.arrived
	st, err := store.Open(sc)
	if err != nil {
		return err
	}
	b.store, b.polls.store, b.delays.store, b.timers.store, b.saver.flushed = st, st, st, st, st.FlushedTo
	err = b.saver.load()
	if err == nil {
		err = b.timers.open()
	}
	if err != nil {
		return errors.Join(err, st.Close())
	}
	b.topics.AddBuiltin(topics.Builtin{
		Cluster: cfg.Cluster, Broker: cfg.Name, AutoCreate: cfg.AutoCreateTopic, DefaultQueues: cfg.DefaultTopicQueues,
		TraceTopic: cfg.TraceTopic, ClusterTopic: cfg.ClusterTopic, BrokerTopic: cfg.BrokerTopic,
	})
	if err := b.trans.Start(context.Background(), st); err != nil {
		return errors.Join(err, st.Close())
	}
	b.bg = run.NewGroup(context.Background())
	b.registrar = newRegistrar(b)
	b.bg.Go(b.saver.run)
	b.saver.topics.Ask()
	for range pollRunners {
		b.bg.Go(b.polls.run)
	}
	b.bg.Go(b.periodic)
	b.delays.start()
	b.timers.start()
	b.pop.Start(st)
	b.workers = remoting.NewWorkers(workers, workerQueue)
	b.server = remoting.NewServer(remoting.ServerConfig{TLS: cfg.TLS, TLSOnly: cfg.TLSOnly, Config: remoting.Config{
		MaxFrame: cfg.MaxFrame, IdleTimeout: cfg.IdleTimeout, Handler: b.mux().Serve, OnClose: b.disconnected, Logger: b.log,
	}})
	return b.server.Serve(ln)
}

// identify works out the addresses.
func (b *Broker) identify(at net.Addr) error {
	listen, _ := netip.ParseAddrPort(at.String()) // the zero value if it is not over IP
	b.addr = b.cfg.AdvertiseAddr
	if b.addr == "" {
		b.addr = at.String()
		if listen.IsValid() && listen.Addr().IsUnspecified() {
			listen = netip.AddrPortFrom(localAddr(), listen.Port())
			b.addr = listen.String()
		}
	}
	host, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		return fmt.Errorf("advertised address %q: %w (host:port is needed)", b.addr, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("advertised address %q: %w", b.addr, err)
	}
	b.haAddr = net.JoinHostPort(host, strconv.FormatUint(n+1, 10))
	ip, err := netip.ParseAddr(host)
	if err != nil {
		if ip = listen.Addr(); !ip.IsValid() {
			ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
	}
	b.host = netip.AddrPortFrom(ip.Unmap().WithZone(""), uint16(n))
	b.region = []byte(b.cfg.Region)
	b.tail = wire.AppendProperty(b.tail, wire.PropMsgRegion, b.cfg.Region)
	b.tail = wire.AppendProperty(b.tail, wire.PropCluster, b.cfg.Cluster)
	b.tail = wire.AppendProperty(b.tail, wire.PropTraceOn, strconv.FormatBool(b.cfg.TraceOn))
	b.ids = wire.NewIDSource(b.host.Addr(), os.Getpid(), rand.Int32())
	return nil
}

// localAddr is an address of this machine, for a listener on all of them.
func localAddr() netip.Addr {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return loopback
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if ip := p.Addr(); err == nil && ip.Is4() && ip.IsGlobalUnicast() {
			return ip
		}
	}
	return loopback
}

// bornHost is the peer's address as records have it.
func (b *Broker) bornHost(c *remoting.Conn) netip.AddrPort {
	if a := c.RemoteAddr(); a.IsValid() {
		return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port())
	}
	return netip.AddrPortFrom(b.host.Addr(), 0) // not over IP
}

// periodic is the broker's housekeeping.
func (b *Broker) periodic(ctx context.Context) {
	tick := b.clock.NewTicker(time.Second)
	defer tick.Stop()
	now := b.clock.Now()
	recheckEvery := 5 * time.Second
	if !b.cfg.LongPolling {
		recheckEvery = time.Second
	}
	recheck, save, expire, delays, timers := now, now, now, now, now
	for {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
		now = b.clock.Now()
		b.stats.tick(now)
		b.trans.Tick()
		if now.Sub(recheck) >= recheckEvery {
			recheck = now
			b.polls.recheck()
		}
		if now.Sub(save) >= b.cfg.OffsetFlushEvery || b.saver.waits.Load() {
			save = now
			b.saver.offsets.Ask()
		}
		if now.Sub(delays) >= b.cfg.DelayFlushEvery || b.delays.progress.waits() {
			delays = now
			b.saver.delays.Ask()
		}
		if now.Sub(timers) >= b.cfg.TimerFlushEvery {
			timers = now
			b.saver.timers.Ask()
		}
		if now.Sub(expire) >= 10*time.Second {
			expire = now
			b.expireClients()
		}
	}
}

// arrived is the store's notice of a record that can be read.
func (b *Broker) arrived(a store.Arrival) {
	b.polls.arrived(a)
	b.pop.Arrived(a)
	switch string(a.Topic) {
	case wire.TopicSchedule:
		b.delays.arrived(a.QueueID)
	case wire.TopicHalf:
		b.trans.Arrived()
	case wire.TopicTimer:
		b.timers.arrived()
	}
}

// Addr is the host:port that clients are told.
func (b *Broker) Addr() string { return b.addr }

// Name is the broker's name.
func (b *Broker) Name() string { return b.cfg.Name }

// Store is where the messages are, for those who look at them without a
// client. It must not be used after the broker's end.
func (b *Broker) Store() *store.Store { return b.store }

// Topic returns a topic's configuration.
func (b *Broker) Topic(name string) (wire.TopicConfig, bool) {
	if t := b.topics.Lookup(name); t != nil {
		return t.TopicConfig, true
	}
	return wire.TopicConfig{}, false
}

// Topics are the names of all topics, the broker's own included, sorted.
func (b *Broker) Topics() []string { return b.topics.Names() }

// SystemTopics are the names of the broker's own topics, sorted.
func (b *Broker) SystemTopics() []string { return b.topics.SystemNames() }

// Group returns a consumer group's configuration.
func (b *Broker) Group(name string) (wire.SubscriptionGroup, bool) {
	if g := b.groups.Lookup(name); g != nil {
		return *g, true
	}
	return wire.SubscriptionGroup{}, false
}

// PutGroup creates or replaces a consumer group. It returns when that is saved.
func (b *Broker) PutGroup(g wire.SubscriptionGroup) error {
	if err := wire.ValidateGroup(g.Name); err != nil {
		return err
	}
	b.groups.Put(g)
	b.saveGroupsNow()
	return nil
}

// Offset is a group's committed offset of a queue.
func (b *Broker) Offset(group, topic string, queueID int32) (int64, bool) {
	return b.offsets.Offset([]byte(group), []byte(topic), queueID)
}

// Members are the clients of a consumer group that are online, sorted by id.
func (b *Broker) Members(group string) []clients.Client {
	g, _ := b.clients.Group(group)
	return g.Members
}

// Held is how many pulls and POPs wait for messages.
func (b *Broker) Held() int { return int(b.polls.n.Load()) + b.pop.Waiting() }
