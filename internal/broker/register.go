package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/rounds"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/retry"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Registration: sends REGISTER_BROKER (103) to every name server, each from a
// goroutine of its own with a connection and a time limit of its own, at the
// start, every 30 s, and when topics change; UNREGISTER_BROKER (104) at a clean
// end.
//
// The first registration with a name server, the periodic ones, and the first
// after a failure or over a new connection carry the whole table: a name
// server of 5.x refuses a broker it does not know that brings exactly one
// topic, and one that was restarted has forgotten everything. Others carry the
// topics that changed. A failure is repeated after 1 s, doubling up to the
// interval. 322 is not asked first (forceRegister=true, Apache's default).

// registrar keeps the name servers informed.
type registrar struct {
	b       *Broker
	pool    *remoting.Pool
	servers []*nameServer
	g       *run.Group // a goroutine for each of them
}

// nameServer is one of them. Its goroutine alone talks to it.
type nameServer struct {
	r    *registrar
	addr string
	work *rounds.Work

	mu      sync.Mutex // guards all below; nothing is called under it
	changed map[string]struct{}
	whole   bool // the next registration carries the whole table
	down    bool // the last registration failed

	conn *remoting.Conn // the goroutine's: what the last registration went over
}

func newRegistrar(b *Broker) *registrar {
	r := &registrar{b: b, g: run.NewGroup(context.Background()), pool: remoting.NewPool(remoting.PoolConfig{
		Config: remoting.Config{Logger: b.log},
		Dial:   b.cfg.Dial,
		// what paces the attempts is nameServer.run
		Backoff: retry.Policy{Min: time.Millisecond, Max: time.Millisecond},
	})}
	for _, addr := range b.cfg.NameServers {
		r.servers = append(r.servers, &nameServer{r: r, addr: addr, work: rounds.New(), whole: true, changed: map[string]struct{}{}})
	}
	return r
}

// start registers with all name servers and returns when each has answered,
// failed, or let the time limit pass.
func (r *registrar) start(ctx context.Context) {
	seqs := make([]uint64, len(r.servers))
	for i, s := range r.servers {
		seqs[i] = s.work.Ask()
		r.g.Go(s.run)
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for i, s := range r.servers {
		_ = s.work.Wait(ctx, seqs[i])
	}
}

// change has topics registered soon.
func (r *registrar) change(names ...string) {
	for _, s := range r.servers {
		s.mu.Lock()
		for _, name := range names {
			s.changed[name] = struct{}{}
		}
		s.mu.Unlock()
		s.work.Ask()
	}
}

// wait blocks until all name servers that are in reach have been told of all
// changes so far.
func (r *registrar) wait(ctx context.Context) {
	for _, s := range r.servers {
		s.mu.Lock()
		down := s.down
		s.mu.Unlock()
		if !down {
			_ = s.work.Wait(ctx, s.work.Begin())
		}
	}
}

// run is the goroutine of a name server.
func (s *nameServer) run(ctx context.Context) {
	defer s.work.Close()
	b := s.r.b
	due := make(chan struct{}, 1)
	timer := b.cfg.Liveness.AfterFunc(b.cfg.RegisterEvery, func() {
		select {
		case due <- struct{}{}:
		default:
		}
	})
	defer timer.Stop()
	pause := time.Duration(0)
	for {
		var lost <-chan struct{} // the connection's end: the name server may be back already
		if s.conn != nil {
			lost = s.conn.Done()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.work.Wake():
		case <-due:
			s.all()
		case <-lost:
			s.conn = nil
			s.all()
		}
		seq := s.work.Begin()
		err := s.register(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause = b.cfg.RegisterEvery
		default:
			b.log.Warn("not registered with a name server, will try again", "addr", s.addr, "err", err)
			if s.failed() {
				pause = min(2*pause, b.cfg.RegisterEvery)
			} else {
				pause = time.Second
			}
		}
		timer.Reset(pause)
		s.work.End(seq)
	}
}

// all makes the next registration carry the whole table.
func (s *nameServer) all() {
	s.mu.Lock()
	s.whole = true
	s.mu.Unlock()
}

// failed notes a failure and tells whether the name server was down before.
func (s *nameServer) failed() (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.down
	s.down, s.whole = true, true
	return before
}

// register sends one registration.
func (s *nameServer) register(ctx context.Context) error {
	b := s.r.b
	ctx, cancel := context.WithTimeout(ctx, b.cfg.RegisterTimeout)
	defer cancel()
	conn, err := s.r.pool.Get(ctx, s.addr)
	if err != nil {
		return err
	}
	s.mu.Lock()
	whole := s.whole || s.down || conn != s.conn
	changed := s.changed
	s.changed = map[string]struct{}{}
	s.whole = false
	s.mu.Unlock()

	s.conn = conn
	f, err := conn.Call(ctx, s.r.request(whole, changed))
	if err == nil && f.Code != wire.RespSuccess {
		err = fmt.Errorf("name server answers code %d: %s", f.Code, f.Remark)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.down = false
	s.mu.Unlock()
	if len(f.Body) > 0 {
		return b.orderTopics(f.Body)
	}
	return nil
}

// request is the registration of all topics or of those that changed.
func (r *registrar) request(whole bool, changed map[string]struct{}) *wire.Command {
	b := r.b
	t := b.topics.Snapshot()
	body := wire.RegisterBrokerBody{Version: t.Version, MappingVersion: wire.DataVersion{Timestamp: b.started.UnixMilli()}, Topics: t.Topics}
	if !whole {
		body.Topics = make(map[string]wire.TopicConfig, len(changed))
		for name := range changed {
			if cfg, ok := t.Topics[name]; ok {
				body.Topics[name] = cfg
			}
		}
	}
	if p := b.cfg.Permission; p != wire.PermRead|wire.PermWrite {
		for name, cfg := range body.Topics {
			cfg.Perm &= p
			body.Topics[name] = cfg
		}
	}
	doc := body.AppendJSON(nil)
	acting := false
	return &wire.Command{Code: wire.ReqRegisterBroker, Body: doc, Ext: &wire.RegisterBrokerRequest{
		BrokerName: b.cfg.Name, BrokerAddr: b.addr, ClusterName: b.cfg.Cluster, HAServerAddr: b.haAddr, BrokerID: b.cfg.ID,
		EnableActingMaster: &acting, BodyCRC32: int32(wire.BodyCRC(doc)),
	}}
}

// orderTopics takes over which topics are ordered, from the name server's
// table: those are, all others are not.
func (b *Broker) orderTopics(body []byte) error {
	table, err := wire.DecodeKVTable(body)
	if err != nil {
		return err
	}
	var changed []string
	for name, cfg := range b.topics.Snapshot().Topics {
		if _, order := table.Table[name]; order != cfg.Order {
			cfg.Order = order
			b.topics.Put(cfg)
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		b.topicChanged(changed...)
	}
	return nil
}

// unregister tells all name servers that the broker ends. Nothing is
// registered any more after it.
func (r *registrar) unregister(ctx context.Context) error {
	r.g.Stop()
	b := r.b
	g := run.NewGroup(ctx)
	errs := make([]error, len(r.servers))
	for i, s := range r.servers {
		if r.pool.Lookup(s.addr) == nil {
			continue // it has noticed already
		}
		g.Go(func(ctx context.Context) {
			_, err := r.pool.Call(ctx, s.addr, &wire.Command{Code: wire.ReqUnregisterBroker, Ext: &wire.UnregisterBrokerRequest{
				BrokerName: b.cfg.Name, BrokerAddr: b.addr, ClusterName: b.cfg.Cluster, BrokerID: b.cfg.ID,
			}})
			if err != nil {
				errs[i] = fmt.Errorf("unregistering from name server %s: %w", s.addr, err)
			}
		})
	}
	g.Wait()
	g.Stop()
	return errors.Join(errs...)
}

// close ends all connections.
func (r *registrar) close() {
	r.g.Stop()
	r.pool.Close()
}

// nameServerList splits addresses as namesrvAddr has them.
func nameServerList(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })...)
	}
	return out
}
