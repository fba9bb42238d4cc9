package remoting

import (
	"context"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/run"
)

// tick is how often connections with something to watch are looked at: how
// late a deadline may be noticed.
const tick = 50 * time.Millisecond

// sweeper is the one goroutine of a server or pool that looks after time. It
// ticks only while a connection is being watched; otherwise it wakes a few
// times per idle timeout, and not at all without connections.
type sweeper struct {
	clock clock.Clock
	idle  time.Duration // how often all connections are looked at; 0: never
	wake  chan struct{}

	mu      sync.Mutex // guards all below
	all     map[*Conn]struct{}
	watched []*Conn
}

// sweepState is what the sweeper remembers of a connection; its goroutine's.
type sweepState struct {
	moved    uint64 // sent+received when last looked at
	movedAt  int64
	received uint64
	quiet    int64 // since when nothing was received while calls were pending
	waiting  bool  // quiet is meaningful
	write    progress
}

// newSweeper starts the sweeper on g.
func newSweeper(cfg *Config, g *run.Group) *sweeper {
	s := &sweeper{clock: cfg.Clock, wake: make(chan struct{}, 1), all: make(map[*Conn]struct{})}
	if cfg.IdleTimeout > 0 {
		s.idle = max(cfg.IdleTimeout/8, time.Millisecond)
	}
	g.Go(s.run)
	return s
}

func (s *sweeper) add(c *Conn) {
	s.mu.Lock()
	s.all[c] = struct{}{}
	first := len(s.all) == 1
	s.mu.Unlock()
	if first {
		s.poke()
	}
}

func (s *sweeper) remove(c *Conn) {
	s.mu.Lock()
	delete(s.all, c)
	s.mu.Unlock()
}

func (s *sweeper) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// watch has the sweeper look at the connection each tick until there is
// nothing left to see.
func (c *Conn) watch() {
	if c.watched.Load() || !c.watched.CompareAndSwap(false, true) {
		return
	}
	s := c.sweeper
	s.mu.Lock()
	s.watched = append(s.watched, c)
	first := len(s.watched) == 1
	s.mu.Unlock()
	if first {
		s.poke()
	}
}

func (s *sweeper) run(ctx context.Context) {
	fired := make(chan struct{}, 1)
	fire := func() {
		select {
		case fired <- struct{}{}:
		default:
		}
	}
	var timer clock.Timer
	var idleAt time.Time // when all connections are looked at next
	for {
		s.mu.Lock()
		conns, watched := len(s.all), len(s.watched)
		s.mu.Unlock()
		now := s.clock.Now()
		var d time.Duration = -1 // sleep until woken
		if conns > 0 && s.idle > 0 {
			if idleAt.IsZero() {
				idleAt = now.Add(s.idle)
			}
			d = max(idleAt.Sub(now), 0)
		} else {
			idleAt = time.Time{}
		}
		if watched > 0 && (d < 0 || d > tick) {
			d = tick
		}
		if d >= 0 {
			if timer == nil {
				timer = s.clock.AfterFunc(d, fire)
			} else {
				timer.Reset(d)
			}
		}
		select {
		case <-ctx.Done():
			if timer != nil {
				timer.Stop()
			}
			return
		case <-s.wake:
			if timer != nil {
				timer.Stop()
			}
			continue
		case <-fired:
		}
		s.look(s.takeWatched())
		if now := s.clock.Now(); !idleAt.IsZero() && !now.Before(idleAt) {
			idleAt = time.Time{}
			s.lookIdle()
		}
	}
}

func (s *sweeper) takeWatched() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched
	s.watched = nil
	return w
}

// look sweeps the watched connections and keeps those that still need it.
func (s *sweeper) look(conns []*Conn) {
	kept := conns[:0]
	for _, c := range conns {
		c.tick(int64(s.clock.Now().Sub(c.base)))
		if c.needsWatch() {
			kept = append(kept, c)
			continue
		}
		c.sweep.waiting = false
		c.watched.Store(false)
		// What was begun between the two lines above saw the connection still
		// watched, so look again.
		if c.needsWatch() && c.watched.CompareAndSwap(false, true) {
			kept = append(kept, c)
		}
	}
	clear(conns[len(kept):])
	s.mu.Lock()
	s.watched = append(s.watched, kept...)
	s.mu.Unlock()
}

func (c *Conn) needsWatch() bool {
	return c.Err() == nil && (c.pend.n.Load() > 0 || c.retired.Load() || c.out.unwritten())
}

// tick looks for overdue calls, a write without progress, a silent peer, and a
// retired connection that can go.
func (c *Conn) tick(now int64) {
	st := &c.sweep
	if r := c.received.Load(); r != st.received || !st.waiting || c.pend.n.Load() == 0 {
		st.received, st.quiet, st.waiting = r, now, true
	}
	late := c.pend.overdue(nil, now)
	for _, x := range late {
		x.Done(nil, ErrTimeout)
	}
	if len(late) > 0 && c.cfg.Silence > 0 && now-st.quiet >= int64(c.cfg.Silence-2*tick) {
		c.fail("read", ErrSilent)
		return
	}
	if c.out.stuck(&st.write, now, c.cfg.WriteStall, c.endWrite) {
		c.fail("write", ErrStalled)
		return
	}
	if c.retired.Load() && c.pend.n.Load() == 0 && !c.out.unwritten() {
		c.fail("close", ErrGoAway)
	}
}

// lookIdle closes the connections on which nothing has moved for too long.
func (s *sweeper) lookIdle() {
	s.mu.Lock()
	conns := make([]*Conn, 0, len(s.all))
	for c := range s.all {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.tickIdle(int64(s.clock.Now().Sub(c.base)))
	}
}

func (c *Conn) tickIdle(now int64) {
	st := &c.sweep
	if m := c.sent.Load() + c.received.Load(); m != st.moved || c.pend.n.Load() > 0 {
		st.moved, st.movedAt = m, now
		return
	}
	c.out.shrink()
	if now-st.movedAt >= int64(c.cfg.IdleTimeout) {
		c.fail("close", ErrIdle)
	}
}
