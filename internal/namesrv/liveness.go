package namesrv

import (
	"errors"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
)

// errExpired is why the connection of a silent broker is closed.
var errExpired = errors.New("broker expired: no registration or heartbeat in time")

// scanOnce takes out the silent brokers and says when to look again.
func (s *Server) scanOnce() time.Duration {
	for _, g := range s.tables.expire(s.cfg.Clock.Now()) {
		s.log.Warn("broker expired", "broker", g.name, "addr", g.addr)
		g.conn.Close(errExpired)
	}
	return s.set.Load().scan
}

// connClosed takes out the brokers that were registered over a connection.
func (s *Server) connClosed(c *remoting.Conn, cause error) {
	for _, g := range s.tables.disconnected(c) {
		s.log.Warn("broker disconnected", "broker", g.name, "addr", g.addr, "cause", cause)
	}
}

// scanner calls a function again and again. The function says how long to
// wait. With a manual clock it runs inside Advance, so that a test sees its
// effect when Advance returns.
type scanner struct {
	mu      sync.Mutex // guards all below; not held while f runs
	timer   clock.Timer
	stopped bool
	running sync.WaitGroup
}

func (s *scanner) start(c clock.Clock, first time.Duration, f func() time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = c.AfterFunc(first, func() {
		if !s.enter() {
			return
		}
		defer s.running.Done()
		again := f()
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.stopped {
			s.timer.Reset(again)
		}
	})
}

func (s *scanner) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.running.Add(1)
	return true
}

// stop returns when f does not run and will not again.
func (s *scanner) stop() {
	s.mu.Lock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}
