package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// failedFor is how long a name server that gave no answer is asked last.
const failedFor = 30 * time.Second

// nameServers is the set of name servers. Any of them knows all routes, so one
// is asked as long as it answers.
type nameServers struct {
	mu       sync.Mutex // guards all below
	addrs    []string
	prefer   string    // answered last
	resolved time.Time // zero: the resolver must be asked
}

func (s *nameServers) init(addrs []string) {
	s.addrs = slices.Clone(addrs)
	if len(addrs) > 0 {
		s.prefer = addrs[rand.IntN(len(addrs))] // not every client the same one
	}
}

func (s *nameServers) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.addrs)
}

func (s *nameServers) answered(addr string) {
	s.mu.Lock()
	s.prefer = addr
	s.mu.Unlock()
}

// expire makes the resolver be asked again.
func (s *nameServers) expire() {
	s.mu.Lock()
	s.resolved = time.Time{}
	s.mu.Unlock()
}

// due says whether the resolver must be asked, once per period.
func (s *nameServers) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.addrs) > 0 && !s.resolved.IsZero() && now.Sub(s.resolved) < ResolveEvery {
		return false
	}
	s.resolved = now
	return true
}

func (s *nameServers) replace(addrs []string) {
	s.mu.Lock()
	s.addrs = slices.Clone(addrs)
	s.mu.Unlock()
}

// nameServerOrder is the order to ask in: the one that answered last, then
// those not known to be down, then the rest.
func (r *Runtime) nameServerOrder(ctx context.Context) []string {
	now := time.Now()
	if r.cfg.Resolve != nil && r.servers.due(now) {
		addrs, err := r.cfg.Resolve(ctx)
		switch {
		case err != nil:
			r.cfg.Logger.Warn("name server addresses could not be resolved, keeping those known", "err", err)
			r.servers.expire()
		case len(addrs) > 0:
			r.servers.replace(addrs)
		}
	}
	r.servers.mu.Lock()
	addrs, prefer := slices.Clone(r.servers.addrs), r.servers.prefer
	r.servers.mu.Unlock()
	rank := func(a string) int {
		switch {
		case r.health.failedSince(a, now.Add(-failedFor)):
			return 2
		case a == prefer:
			return 0
		}
		return 1
	}
	ranks := make(map[string]int, len(addrs))
	for _, a := range addrs {
		ranks[a] = rank(a)
	}
	slices.SortStableFunc(addrs, func(a, b string) int { return ranks[a] - ranks[b] })
	return addrs
}

// askNameServers sends one request to the name servers in turn until good
// accepts an answer. Each has the attempt timeout, so that one that is dead
// cannot eat the caller's time. It returns nil and what they said if none was
// good.
func (r *Runtime) askNameServers(ctx context.Context, req *wire.Command, good func(f *wire.Frame) bool) (*wire.Frame, []Answer) {
	var asked []Answer
	answered := false
	for _, addr := range r.nameServerOrder(ctx) {
		if answered && r.health.failedSince(addr, time.Now().Add(-failedFor)) {
			continue // not worth the wait: an answer is there, if not the hoped one
		}
		start := time.Now()
		f, err := r.askNameServer(ctx, addr, req)
		if ctx.Err() != nil && err != nil {
			asked = append(asked, Answer{Addr: addr, Took: time.Since(start), Err: err})
			return nil, asked
		}
		r.health.note(addr, true, err)
		if err != nil {
			r.cfg.Logger.Debug("name server gave no answer", "addr", addr, "err", err)
			asked = append(asked, Answer{Addr: addr, Took: time.Since(start), Err: err})
			continue
		}
		if !answered {
			answered = true
			r.servers.answered(addr)
		}
		if good(f) {
			return f, asked
		}
		asked = append(asked, Answer{Addr: addr, Code: f.Code, Remark: string(f.Remark), Took: time.Since(start)})
	}
	if !answered {
		r.servers.expire()
	}
	return nil, asked
}

func (r *Runtime) askNameServer(ctx context.Context, addr string, req *wire.Command) (*wire.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.AttemptTimeout)
	defer cancel()
	return r.Exchange(ctx, addr, req)
}
