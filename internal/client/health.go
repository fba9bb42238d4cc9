package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// ServerHealth is what is known of one server.
type ServerHealth struct {
	Addr                     string
	NameServer               bool
	Connected                bool
	LastSuccess, LastFailure time.Time // of a request or dial in the background or for a route; zero: none
	LastError                error     // of LastFailure
}

// healthTable remembers the outcome of background requests.
type healthTable struct {
	mu sync.Mutex // guards m
	m  map[string]ServerHealth
}

func (h *healthTable) note(addr string, nameServer bool, err error) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil {
		h.m = make(map[string]ServerHealth)
	}
	s := h.m[addr]
	s.Addr, s.NameServer = addr, nameServer
	if err == nil {
		s.LastSuccess = now
	} else {
		s.LastFailure, s.LastError = now, err
	}
	h.m[addr] = s
}

func (h *healthTable) failedSince(addr string, t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.m[addr]
	return s.LastFailure.After(s.LastSuccess) && s.LastFailure.After(t)
}

// Health lists the name servers and all brokers of the known routes, sorted by
// address, name servers first.
func (r *Runtime) Health() []ServerHealth {
	known := make(map[string]ServerHealth)
	for _, a := range r.servers.list() {
		known[a] = ServerHealth{Addr: a, NameServer: true}
	}
	for a := range r.brokerAddrs(false) {
		known[a] = ServerHealth{Addr: a}
	}
	live := r.connected()
	out := make([]ServerHealth, 0, len(known))
	r.health.mu.Lock()
	for a, s := range known {
		if seen, ok := r.health.m[a]; ok {
			s = seen
		}
		s.Connected = live[a]
		out = append(out, s)
	}
	r.health.mu.Unlock()
	slices.SortFunc(out, func(a, b ServerHealth) int {
		if a.NameServer != b.NameServer {
			if a.NameServer {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Addr, b.Addr)
	})
	return out
}

// connected are the addresses with a live connection.
func (r *Runtime) connected() map[string]bool {
	live := make(map[string]bool)
	if r.began.Load() {
		for _, a := range r.pool.Addrs() {
			live[a] = true
		}
	}
	return live
}

// Ping asks a name server and all masters of the known routes for a sign of
// life.
func (r *Runtime) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RequestTimeout)
	defer cancel()
	if r.closed() {
		return ErrClosed
	}
	r.start()
	// Any answer will do, also that the code is not supported.
	f, asked := r.askNameServers(ctx, &wire.Command{Code: wire.ReqGetBrokerClusterInfo}, func(*wire.Frame) bool { return true })
	if f == nil {
		return &PingError{asked}
	}
	return forEach(ctx, r.brokerAddrs(true), func(ctx context.Context, addr string, _ struct{}) error {
		_, err := r.Exchange(ctx, addr, &wire.Command{Code: wire.ReqGetConsumerListByGroup, Ext: &wire.GroupRequest{Group: "ping"}})
		r.health.note(addr, false, err)
		return err
	})
}

// PingError says that no name server answered.
type PingError struct{ Asked []Answer }

// Error implements error.
func (e *PingError) Error() string {
	s := ErrNameServer.Error()
	for _, a := range e.Asked {
		s += fmt.Sprintf("; %s: %v", a.Addr, a.Err)
	}
	return s
}

// Unwrap returns ErrNameServer and the causes.
func (e *PingError) Unwrap() []error {
	errs := []error{ErrNameServer}
	for _, a := range e.Asked {
		errs = append(errs, a.Err)
	}
	return errs
}
