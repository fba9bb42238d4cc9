package client

import (
	"context"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// introductions remembers which reply topics could not be found.
type introductions struct {
	mu     sync.Mutex           // guards failed
	failed map[string]time.Time // by cluster: when its reply topic was asked for last
}

// Introduce sees to it that replies to a request in this topic can come back:
// a reply goes to any broker of the cluster that has its reply topic, and that
// broker must know this client. It waits for heartbeats to the masters that do
// not know yet, all at once, and returns at once if there are none. There is no
// error: a broker that is not there will most likely get no reply either, and
// is told in the background when it comes back, without being waited for again.
func (r *Runtime) Introduce(ctx context.Context, topic string) { r.introduce(ctx, topic, true) }

// IntroduceToMasters is [Runtime.Introduce] for who expects requests from the
// brokers of the topic alone.
func (r *Runtime) IntroduceToMasters(ctx context.Context, topic string) {
	r.introduce(ctx, topic, false)
}

func (r *Runtime) introduce(ctx context.Context, topic string, replies bool) {
	rt, ok := r.CachedRoute(topic)
	if !ok {
		return
	}
	version := r.members.current()
	var strange map[string]struct{}
	look := func(rt *Route) {
		for _, b := range rt.Brokers {
			if a := b.Master(); a != "" && r.beats.strange(a, version) {
				if strange == nil {
					strange = make(map[string]struct{})
				}
				strange[a] = struct{}{}
			}
		}
	}
	look(rt)
	if replies {
		for _, b := range rt.Brokers {
			if x := r.replyRoute(ctx, b.Cluster); x != nil {
				look(x)
			}
		}
	}
	if strange == nil {
		return
	}
	err := forEach(ctx, strange, func(ctx context.Context, addr string, _ struct{}) error {
		err := r.beatOne(ctx, addr, false)
		switch {
		case err == nil:
		case ctx.Err() == nil:
			r.health.note(addr, false, err)
			r.beats.gaveUp(addr)
		case context.Cause(ctx) == context.DeadlineExceeded:
			r.beats.gaveUp(addr)
		}
		return err
	})
	if err != nil {
		r.cfg.Logger.Warn("not all brokers know of this client yet", "topic", topic, "err", err)
	}
}

// replyRoute is the route of a cluster's reply topic, nil if it is not known
// and was asked for in vain lately.
func (r *Runtime) replyRoute(ctx context.Context, cluster string) *Route {
	if cluster == "" {
		return nil
	}
	topic := wire.ReplyTopic(cluster)
	if rt, ok := r.CachedRoute(topic); ok {
		return rt
	}
	in := &r.introductions
	in.mu.Lock()
	failed, ok := in.failed[cluster]
	in.mu.Unlock()
	if ok && time.Since(failed) < r.cfg.RouteRefresh {
		return nil
	}
	rt, err := r.FetchRoute(ctx, topic)
	if err == nil {
		return rt
	}
	in.mu.Lock()
	if in.failed == nil {
		in.failed = make(map[string]time.Time)
	}
	in.failed[cluster] = time.Now()
	in.mu.Unlock()
	r.cfg.Logger.Debug("no route of the topic of replies", "topic", topic, "err", err)
	return nil
}

// strange reports whether the broker at addr does not know who is here and has
// not been asked in vain.
func (h *heartbeats) strange(addr string, version uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.brokers[addr]
	return l == nil || !l.sick && (l.conn == nil || l.told < version)
}

// gaveUp leaves a broker to the heartbeats in the background.
func (h *heartbeats) gaveUp(addr string) {
	l := h.link(addr)
	h.mu.Lock()
	l.sick = true
	h.mu.Unlock()
}
