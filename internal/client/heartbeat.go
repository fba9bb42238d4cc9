package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// heartbeats knows of each broker what it was told of this client, and over
// which connection: a broker forgets a client together with its connection.
type heartbeats struct {
	mu      sync.Mutex // guards the map and all fields of links but turn
	brokers map[string]*link

	wake chan struct{} // one slot
}

// link is one broker. Heartbeats to it and unregistering take turns, each until
// the answer: otherwise a heartbeat that is under way could bring a group back
// that has just left.
type link struct {
	turn chan struct{}  // one slot, filled by whose turn it is
	conn *remoting.Conn // over which it was told of us last; nil: it has forgotten us
	told uint64         // the version of the members it has confirmed; 0: none
	sick bool           // it did not answer when it was first told for a request
}

func (h *heartbeats) init() {
	h.brokers = make(map[string]*link)
	h.wake = make(chan struct{}, 1)
}

// kick has heartbeats sent soon, to the brokers that do not know over their
// present connection who is here by now.
func (h *heartbeats) kick() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// link is the broker at addr. There are never more than addresses of brokers.
func (h *heartbeats) link(addr string) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.brokers[addr]
	if l == nil {
		l = &link{turn: make(chan struct{}, 1)}
		h.brokers[addr] = l
	}
	return l
}

// takeTurn waits until nobody else talks to the broker of who is here.
func (l *link) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		if err := context.Cause(ctx); err != context.DeadlineExceeded {
			return err
		}
		return ErrTimeout
	}
}

func (l *link) endTurn() { <-l.turn }

// knows reports whether the broker has confirmed that version of the members,
// or a later one, over c.
func (h *heartbeats) knows(l *link, c *remoting.Conn, version uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return l.conn == c && l.told >= version
}

// tell notes that the broker is about to hear of us over c.
func (h *heartbeats) tell(l *link, c *remoting.Conn) {
	h.mu.Lock()
	l.conn, l.told = c, 0
	h.mu.Unlock()
}

// confirm notes what the broker has heard, unless the connection has gone
// meanwhile.
func (h *heartbeats) confirm(l *link, c *remoting.Conn, version uint64) {
	h.mu.Lock()
	if l.conn == c {
		l.told, l.sick = version, false
	}
	h.mu.Unlock()
}

// last is the connection over which the broker was told, nil if it knows
// nothing, and whether it has confirmed that.
func (h *heartbeats) last(l *link) (c *remoting.Conn, confirmed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return l.conn, l.told > 0
}

// dropped forgets a connection and reports whether a broker was told over it.
func (h *heartbeats) dropped(c *remoting.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.brokers {
		if l.conn == c {
			l.conn, l.told = nil, 0
			return true
		}
	}
	return false
}

// each runs f for all brokers that were told, concurrently.
func (h *heartbeats) each(ctx context.Context, f func(ctx context.Context, addr string, l *link) error) error {
	h.mu.Lock()
	links := make(map[string]*link, len(h.brokers))
	for a, l := range h.brokers {
		if l.conn != nil {
			links[a] = l
		}
	}
	h.mu.Unlock()
	return forEach(ctx, links, f)
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
			all = false
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

// beat tells all brokers, or only those that do not know it yet.
func (r *Runtime) beat(ctx context.Context, all bool) error {
	now := r.members.snapshot()
	if now.empty() {
		return nil
	}
	// Replicas only serve consumers.
	return forEach(ctx, r.brokerAddrs(len(now.consumers) == 0), func(ctx context.Context, addr string, _ struct{}) error {
		err := r.beatOne(ctx, addr, all)
		if err != nil && ctx.Err() == nil {
			r.health.note(addr, false, err)
		}
		return err
	})
}

func (r *Runtime) beatOne(ctx context.Context, addr string, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RequestTimeout)
	defer cancel()
	c, err := r.Conn(ctx, addr)
	if err != nil {
		return fmt.Errorf("heartbeat to %s: %w", addr, err)
	}
	l := r.beats.link(addr)
	if err := l.takeTurn(ctx); err != nil {
		return fmt.Errorf("heartbeat to %s, behind another: %w", addr, err)
	}
	defer l.endTurn()
	if !all && r.beats.knows(l, c, r.members.current()) {
		return nil
	}
	// Noted before the answer: should the connection die meanwhile, its end is
	// the sign to try again. Noted before the members are looked at: whoever
	// leaves after that sees that this broker has to be told.
	r.beats.tell(l, c)
	now := r.members.snapshot()
	if now.empty() {
		return nil // the last one has left meanwhile
	}
	f, err := c.Call(ctx, &wire.Command{Code: wire.ReqHeartBeat, Body: r.heartbeat(now)})
	if err != nil {
		// Whether we are first to notice the end of the connection or
		// disconnected is, one of us has the broker told anew.
		if errors.Is(err, ErrConnection) && r.beats.dropped(c) && !r.closed() {
			r.beats.kick()
		}
		return fmt.Errorf("heartbeat to %s: %w", addr, err)
	}
	if f.Code != wire.RespSuccess {
		return &ResponseError{opName(wire.ReqHeartBeat), addr, f.Code, string(f.Remark)}
	}
	r.beats.confirm(l, c, now.version)
	r.health.note(addr, false, nil)
	return nil
}

func (r *Runtime) heartbeat(now membership) []byte {
	hb := wire.Heartbeat{ClientID: r.id, Producers: now.producers}
	for _, c := range now.consumers {
		hb.Consumers = append(hb.Consumers, c.HeartbeatData())
	}
	return hb.AppendJSON(nil)
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
