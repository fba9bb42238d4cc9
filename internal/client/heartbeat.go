package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// heartbeats remembers over which connection each broker was last told who is
// here. A broker forgets a client together with its connection.
type heartbeats struct {
	mu    sync.Mutex // guards conns
	conns map[string]*remoting.Conn

	all  atomic.Bool   // the next round is for all brokers
	wake chan struct{} // one slot
}

func (h *heartbeats) init() {
	h.conns = make(map[string]*remoting.Conn)
	h.wake = make(chan struct{}, 1)
}

// kick has heartbeats sent soon: to all brokers, or only to those that have
// not had one over their present connection.
func (h *heartbeats) kick(all bool) {
	if all {
		h.all.Store(true)
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *heartbeats) told(addr string) *remoting.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns[addr]
}

func (h *heartbeats) tell(addr string, c *remoting.Conn) {
	h.mu.Lock()
	h.conns[addr] = c
	h.mu.Unlock()
}

// dropped forgets a connection and reports whether a broker was told over it.
func (h *heartbeats) dropped(c *remoting.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for addr, x := range h.conns {
		if x == c {
			delete(h.conns, addr)
			return true
		}
	}
	return false
}

// each runs f for all brokers that were told, concurrently.
func (h *heartbeats) each(ctx context.Context, f func(ctx context.Context, addr string, c *remoting.Conn) error) error {
	h.mu.Lock()
	conns := make(map[string]*remoting.Conn, len(h.conns))
	for a, c := range h.conns {
		conns[a] = c
	}
	h.mu.Unlock()
	return forEach(ctx, conns, f)
}

// forEach calls f for all entries at once and joins the errors: one server
// that is dead must not delay the others.
func forEach[V any](ctx context.Context, m map[string]V, f func(ctx context.Context, key string, v V) error) error {
	var mu sync.Mutex // guards errs
	var errs []error
	g := run.NewGroup(ctx)
	for k, v := range m {
		g.Go(func(ctx context.Context) {
			if err := f(ctx, k, v); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	g.Wait()
	g.Cancel(nil)
	return errors.Join(errs...)
}

// keepBeating sends heartbeats each period, and when there is news.
func (r *Runtime) keepBeating(ctx context.Context) {
	tick := time.NewTicker(r.cfg.HeartbeatEvery)
	defer tick.Stop()
	for {
		all := true
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.beats.wake:
			all = r.beats.all.Swap(false)
		}
		if err := r.beat(ctx, all); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("heartbeat", "err", err)
		}
	}
}

// HeartbeatNow tells every broker of all known routes who is here and waits
// for the answers. Without a registered group it does nothing. The error joins
// those of all brokers that did not answer.
func (r *Runtime) HeartbeatNow(ctx context.Context) error {
	if r.closed() {
		return ErrClosed
	}
	r.start()
	return r.beat(ctx, true)
}

func (r *Runtime) beat(ctx context.Context, all bool) error {
	producers, consumers := r.members.snapshot()
	if len(producers) == 0 && len(consumers) == 0 {
		return nil
	}
	hb := wire.Heartbeat{ClientID: r.id, Producers: producers}
	for _, c := range consumers {
		hb.Consumers = append(hb.Consumers, c.HeartbeatData())
	}
	body := hb.AppendJSON(nil)
	// Replicas only serve consumers.
	return forEach(ctx, r.brokerAddrs(len(consumers) == 0), func(ctx context.Context, addr string, _ struct{}) error {
		err := r.beatOne(ctx, addr, body, all)
		if err != nil && ctx.Err() == nil {
			r.health.note(addr, false, err)
		}
		return err
	})
}

func (r *Runtime) beatOne(ctx context.Context, addr string, body []byte, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RequestTimeout)
	defer cancel()
	c, err := r.Conn(ctx, addr)
	if err != nil {
		return fmt.Errorf("heartbeat to %s: %w", addr, err)
	}
	if !all && r.beats.told(addr) == c {
		return nil
	}
	// Noted before the answer: should the connection die meanwhile, its end is
	// the sign to try again.
	r.beats.tell(addr, c)
	f, err := c.Call(ctx, &wire.Command{Code: wire.ReqHeartBeat, Body: body})
	if err != nil {
		r.beats.dropped(c)
		return fmt.Errorf("heartbeat to %s: %w", addr, err)
	}
	if f.Code != wire.RespSuccess {
		return &ResponseError{opName(wire.ReqHeartBeat), addr, f.Code, string(f.Remark)}
	}
	r.health.note(addr, false, nil)
	return nil
}

// brokerAddrs are the addresses in all known routes.
func (r *Runtime) brokerAddrs(mastersOnly bool) map[string]struct{} {
	addrs := make(map[string]struct{})
	for _, rt := range *r.routes.known.Load() {
		for _, b := range rt.Brokers {
			for id, a := range b.Addrs {
				if id == MasterID || !mastersOnly {
					addrs[a] = struct{}{}
				}
			}
		}
	}
	return addrs
}
