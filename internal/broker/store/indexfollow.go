package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/index"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	retryIndex       = time.Second // between attempts to go on with the index
	indexGivesUp     = 3           // attempts until the store refuses new messages, as Apache's
	lastStretchBytes = 64 << 10    // what is indexed while nobody may dispatch
)

// indexer is the follower that builds the key index. It has two gears. Mostly
// a record is added as it is dispatched, which is quick. When that cannot be
// done at once (a file has to be made, the disk is full, after a start) the
// index falls behind: followers ignore it, and a goroutine of its own reads the
// log from where it stopped until it has caught up with the dispatcher. So
// nothing that befalls the index holds up appenders or consumers.
type indexer struct {
	index  *index.Index
	log    *commitLog
	d      *dispatcher
	clock  clock.Clock
	logger *slog.Logger
	build  bool // false: files are kept, queried and cleaned, but not written

	// behind says that the goroutine writes the index; else it is whoever
	// dispatches. It changes under the right to dispatch.
	behind atomic.Bool
	pos    atomic.Int64 // while behind: log position before which all is indexed
	fault  atomic.Pointer[error]
	kick   chan struct{}
	rec    wire.Record // the goroutine's

	mu     sync.Mutex // guards caught
	caught chan struct{}
}

// openIndex opens the index and changes nothing.
func (s *Store) openIndex() error {
	cfg := &s.cfg
	x, err := index.Open(index.Config{
		FS: cfg.FS, Dir: filepath.Join(cfg.Dir, "index"), Slots: cfg.IndexSlots, Entries: cfg.IndexEntries,
		Clock: cfg.Clock, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	s.indexer = &indexer{
		index: x, log: s.log, clock: cfg.Clock, logger: cfg.Logger, build: !cfg.NoIndex,
		kick: make(chan struct{}, 1), caught: make(chan struct{}),
	}
	s.indexer.behind.Store(s.indexer.build) // until recoverIndex knows better
	return nil
}

// recoverIndex brings the index in line with a log that is recovered and
// dispatched. What the log has beyond the index is added later, by the
// indexer's goroutine. From here on the checkpoint covers no file that may
// still change.
func (s *Store) recoverIndex(aborted bool) error {
	x := s.indexer
	begin, end := s.log.begin(), s.log.end.Load()
	err := x.index.Recover(aborted, s.checkpoint.get(cpIndex), func(phy int64) bool {
		if phy < begin {
			return true // cleaned
		}
		f, b := s.log.hold(phy)
		if f == nil {
			return false
		}
		defer f.Release()
		what, _, _ := scan(b, phy, false, &x.rec)
		return what == foundRecord
	})
	if err != nil {
		return err
	}
	at, newest, _ := x.index.End()
	covered := x.index.FlushedTime()
	if aborted { // all that is left was covered
		covered = min(max(0, newest), s.checkpoint.get(cpIndex))
	}
	if covered != s.checkpoint.get(cpIndex) {
		s.checkpoint.set(cpIndex, covered)
		if err := s.checkpoint.flush(); err != nil {
			return err
		}
	}
	x.pos.Store(min(max(begin, at), end))
	x.behind.Store(x.build && x.pos.Load() < s.dispatch.pos.Load())
	return nil
}

// follow implements follower.
func (x *indexer) follow(r *wire.Record) error {
	if x.behind.Load() || !x.build {
		return nil
	}
	if x.index.Put(r) != nil {
		x.pos.Store(r.PhyOffset)
		x.behind.Store(true)
		select {
		case x.kick <- struct{}{}:
		default:
		}
	}
	return nil
}

// clean implements cleaner.
func (x *indexer) clean(begin int64) error {
	n, err := x.index.Clean(begin)
	if n > 0 {
		x.logger.Info("removed index files", "files", n, "log_begin", begin)
	}
	return err
}

// run is the indexer's goroutine.
func (x *indexer) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		if err := x.catchUp(ctx); err != nil {
			failures++
			x.failed(ctx, err, failures)
			continue
		}
		if failures > 0 {
			failures = 0
			x.fault.Store(nil)
			x.logger.Info("the index follows the commit log again")
		}
		select {
		case <-ctx.Done():
		case <-x.kick:
		}
	}
}

// failed waits before the next attempt.
func (x *indexer) failed(ctx context.Context, err error, failures int) {
	if failures == 1 || failures%indexGivesUp == 0 {
		x.logger.Error("the index does not follow the commit log; trying again", "err", err, "attempt", failures, "phy", x.pos.Load())
	}
	if failures >= indexGivesUp {
		x.fault.Store(&err)
	}
	again := make(chan struct{})
	t := x.clock.AfterFunc(retryIndex, func() { close(again) })
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-again:
	}
}

// catchUp adds what the index lacks, up to where the dispatcher is, and gives
// the index back to the followers.
func (x *indexer) catchUp(ctx context.Context) error {
	for x.behind.Load() && ctx.Err() == nil {
		if err := x.advance(ctx, x.d.pos.Load(), true); err != nil {
			return err
		}
		x.d.borrow(func() {
			end := x.d.pos.Load()
			if end-x.pos.Load() <= lastStretchBytes {
				_ = x.advance(ctx, end, false) // what remains needs time
			}
			x.behind.Store(x.pos.Load() < end)
		})
	}
	if !x.behind.Load() {
		x.mu.Lock()
		close(x.caught)
		x.caught = make(chan struct{})
		x.mu.Unlock()
	}
	return nil
}

// advance adds the records from pos up to the log position end, a record's
// end. Without patient it stops where room would have to be made.
func (x *indexer) advance(ctx context.Context, end int64, patient bool) error {
	for {
		pos := x.pos.Load()
		if pos >= end || ctx.Err() != nil {
			return nil
		}
		if b := x.log.begin(); pos < b {
			x.pos.Store(b)
			continue
		}
		f, b := x.log.hold(pos)
		if f == nil {
			return nil // closed, or cleaned away just now
		}
		err := x.addAll(ctx, b[:min(int64(len(b)), end-pos)], pos, f.End(), patient)
		f.Release()
		if err != nil {
			return err
		}
	}
}

// addAll adds the records in b, which begins at log position pos in a file
// that ends at fileEnd, and moves pos behind each. What is no record is
// skipped as the dispatcher does.
func (x *indexer) addAll(ctx context.Context, b []byte, pos, fileEnd int64, patient bool) error {
	for len(b) > 0 && ctx.Err() == nil {
		what, n, reason := scan(b, pos, false, &x.rec)
		if what != foundRecord {
			if what == foundEnd {
				x.logger.Error("commit log is damaged; not indexing the rest of the file", "err", x.log.damage(pos, reason), "phy", pos)
				fileEnd = min(fileEnd, pos+int64(len(b)))
			}
			x.pos.Store(fileEnd)
			return nil
		}
		for {
			err := x.index.Put(&x.rec)
			if err == nil {
				break
			}
			if !patient || !errors.Is(err, index.ErrNotReady) {
				return err
			}
			if err := x.index.Prepare(); err != nil {
				return err
			}
		}
		b, pos = b[n:], pos+n
		x.pos.Store(pos)
	}
	return nil
}

// WaitIndexed blocks until everything that is in the log now can be found by
// its keys.
func (s *Store) WaitIndexed(ctx context.Context) error {
	if err := s.WaitDispatched(ctx); err != nil {
		return err
	}
	x := s.indexer
	for {
		x.mu.Lock()
		caught := x.caught
		x.mu.Unlock()
		if !x.behind.Load() {
			return nil
		}
		if err := s.await(ctx, caught); err != nil {
			return err
		}
	}
}

// flushIndex makes index files durable that do not change any more, and tells
// the checkpoint.
func (s *Store) flushIndex() error {
	if err := s.indexer.index.Flush(s.flushed.Load()); err != nil {
		return err
	}
	s.checkpoint.set(cpIndex, s.indexer.index.FlushedTime())
	return nil
}

// finishIndex brings the index of a store whose goroutines have ended to the
// end of the log and makes it durable.
func (s *Store) finishIndex() error {
	x := s.indexer
	if err := x.catchUp(context.Background()); err != nil {
		return err
	}
	if err := x.index.FlushAll(); err != nil {
		return err
	}
	_, t, _ := x.index.End()
	s.checkpoint.set(cpIndex, max(0, t))
	return nil
}

// unindexed is why the index keeps new messages away, nil if it does not.
func (x *indexer) unindexed() error {
	if err := x.fault.Load(); err != nil {
		return fmt.Errorf("store: the index cannot be written: %w", *err)
	}
	return nil
}
