package store

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
)

const (
	// overdueEvery is how often waiting answers are looked at.
	overdueEvery = 100 * time.Millisecond
	// busyAfter is how long a flush may take until appenders that would have
	// to wait for it are refused (osPageCacheBusyTimeOutMills).
	busyAfter = time.Second

	patience = 100 // turns given to others in vain until gather may end, some 20 us
	maxSkips = 63
)

// groupFlusher makes the log durable group by group: what has been appended
// while one group was on its way to the disk is the next one. With many
// producers a flush is shared by all that wait.
type groupFlusher struct {
	kick    chan struct{} // one slot: a group has been begun
	waiters waiters
	// since is when the present flush began, on the store's time scale; 0
	// while there is none.
	since atomic.Int64

	// of whoever flushes
	spare       *group
	took        time.Duration // of the last flush
	done        []waiting     // answered last
	skip, skips int           // flushes without gather: still to come, after each failure
}

func newGroupFlusher() *groupFlusher {
	return &groupFlusher{kick: make(chan struct{}, 1), spare: &group{}}
}

// wake tells the flusher that a group has been begun.
func (f *groupFlusher) wake() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// flushGroups is the flusher's goroutine.
func (s *Store) flushGroups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.sync.kick:
		}
		for ctx.Err() == nil && s.flushGroup() {
			s.gather()
		}
	}
}

// gather lets those append who are about to: producers whose answers have just
// been given would otherwise miss the next flush by a moment, and each flush
// would serve half of them. It ends when as many wait as were answered, or
// when nobody comes any more and a quarter of a flush has gone by; where they
// do not come, as they are far away, it is tried ever more rarely.
func (s *Store) gather() {
	f := s.sync
	if f.skip > 0 {
		f.skip--
		return
	}
	before := f.waiters.count()
	have, want := before, before+len(f.done)
	end := s.now() + f.took/4
	for idle := 0; have < want && (idle < patience || s.now() < end); idle++ {
		runtime.Gosched()
		if n := f.waiters.count(); n > have {
			have, idle = n, 0
		}
	}
	if have-before >= len(f.done)/2 {
		f.skips = 0
		return
	}
	f.skips = min(2*f.skips+1, maxSkips)
	f.skip = f.skips
}

// flushGroup writes what has been appended, makes it durable, and gives the
// answers that waited for it. It reports whether there was anything, and
// nothing went wrong. One goroutine at a time may call it.
func (s *Store) flushGroup() bool {
	f := s.sync
	g := s.log.take(f.spare)
	if g == nil {
		return false
	}
	begin := s.now()
	f.since.Store(int64(begin))
	err := g.write()
	f.since.Store(0)
	f.took = s.now() - begin
	if err != nil {
		s.flushFailed(err)
		g.reset()
		return false
	}
	s.flushes.Add(1)
	s.flushed.Store(g.end)
	s.flushedTime.Store(g.storeTime)
	before := s.log.end.Swap(g.end)
	if invariants {
		s.checkRecords(before, g.end, 0, 0)
	}
	s.dispatch.wake()
	f.done = f.waiters.take(f.done[:0], func(x *waiting) bool { return x.end <= g.end })
	answer(f.done, PutOK, nil)
	g.reset()
	f.spare = g
	return true
}

// watchFlush gives up on answers that wait too long, and on appenders that
// wait for a disk that has come to a standstill. The messages stay, and the
// flusher goes on.
func (s *Store) watchFlush(ctx context.Context, tick clock.Ticker) {
	defer tick.Stop()
	var late []waiting
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		now := s.now()
		late = s.sync.waiters.take(late[:0], func(x *waiting) bool { return now-x.since >= s.cfg.SyncFlushTimeout })
		answer(late, FlushDiskTimeout, nil)
		since := time.Duration(s.sync.since.Load())
		s.log.setBusy(since > 0 && now-since >= busyAfter)
	}
}

// now is the time on the store's own scale, which begins above 0.
func (s *Store) now() time.Duration { return s.cfg.Clock.Now().Sub(s.opened) + 1 }

// flushFailed makes the store take no more messages: after a flush that
// failed nobody knows what the disk has, and trying again would report
// success for data that the system has dropped.
func (s *Store) flushFailed(err error) {
	if !s.log.fail(err) {
		return
	}
	s.cfg.Logger.Error("the commit log cannot be flushed; no more messages are taken until the store is opened again", "err", err)
	s.giveUp(s.log.failure())
}

// giveUp answers everyone who waits that the message is not known to be
// stored. Nobody may begin to wait any more.
func (s *Store) giveUp(err error) {
	if s.sync == nil {
		return
	}
	all := s.sync.waiters.take(nil, func(*waiting) bool { return true })
	answer(all, ServiceNotAvailable, err)
}

var errBusy = errors.New("store: the disk does not keep up; send more slowly or try another broker")
