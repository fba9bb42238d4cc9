package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Store is one open store directory. All methods are safe for concurrent use.
type Store struct {
	cfg        Config
	lock       io.Closer
	log        *commitLog
	queues     *queueTable
	graves     *graves
	checkpoint *checkpoint // of the queue flusher while it runs
	dispatch   *dispatcher
	indexer    *indexer
	cleaning   *cleaning
	buffers    buffers
	group      *run.Group

	opened  time.Time
	crashed bool          // whoever had the directory before has not closed it
	sync    *groupFlusher // nil with asynchronous flush

	flushes     atomic.Int64
	flushed     atomic.Int64 // log position that is durable
	flushedTime atomic.Int64 // store time of the newest durable record, ms

	closed atomic.Bool
	ending sync.Once
	endErr error
}

// Open opens the store in cfg.Dir, or makes one, and returns when it is ready
// for reading and writing: after recovery, which takes as long as scanning
// what may not have been flushed, at least the newest file. The directory is
// locked against other stores and against a Java broker ([mfile.ErrLocked]).
// Files that cannot belong to a store with these settings are a
// [*mfile.FormatError]; nothing is changed then.
func Open(cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := mfile.MakeDir(cfg.FS, cfg.Dir); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := cfg.FS.Lock(filepath.Join(cfg.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{cfg: cfg, lock: lock, opened: cfg.Clock.Now(), group: run.NewGroup(context.Background())}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("store: %w", errors.Join(err, s.release()))
	}
	s.start()
	return s, nil
}

// open loads and recovers.
func (s *Store) open() error {
	cfg := &s.cfg
	aborted, err := wasAborted(cfg.FS, cfg.Dir)
	if err != nil {
		return err
	}
	seq, err := mfile.OpenSequence(cfg.FS, filepath.Join(cfg.Dir, "commitlog"), cfg.CommitLogFileSize)
	if err != nil {
		return err
	}
	s.log = newCommitLog(seq)
	s.queues = newQueueTable(cfg.FS, filepath.Join(cfg.Dir, "consumequeue"), cfg.ConsumeQueueFileSize)
	if err := s.queues.load(); err != nil {
		return err
	}
	if s.graves, err = openGraves(cfg.FS, cfg.Dir); err != nil {
		return err
	}
	if err := s.openIndex(); err != nil {
		return err
	}
	if s.checkpoint, err = openCheckpoint(cfg.FS, cfg.Dir); err != nil {
		return err
	}
	s.crashed = aborted
	// From here on files change; a crash on the way must be seen as one, also
	// one of the machine.
	if err := cfg.FS.WriteFile(filepath.Join(cfg.Dir, abortFile), strconv.AppendInt(nil, int64(os.Getpid()), 10)); err != nil {
		return err
	}
	for _, dir := range []string{seq.Dir(), s.queues.dir} {
		if err := cfg.FS.MkdirAll(dir); err != nil {
			return err
		}
	}
	if err := cfg.FS.SyncDir(cfg.Dir); err != nil {
		return err
	}
	queues := &queueFollower{queues: s.queues, delays: cfg.DelayLevels, logger: cfg.Logger}
	s.dispatch = &dispatcher{
		log: s.log, clock: cfg.Clock, logger: cfg.Logger, confirm: s.confirmed, kick: make(chan struct{}, 1),
		followers: []follower{queues, s.indexer}, queues: queues,
	}
	s.indexer.d = s.dispatch
	s.cleaning = newCleaning(s)
	if err := s.recover(aborted); err != nil {
		return err
	}
	if err := s.recoverIndex(aborted); err != nil || !cfg.SyncFlush {
		return err
	}
	// Nobody may see what is not on disk, not even what was found there: it
	// may be the system's cache that has it.
	if err := s.flushLog(); err != nil {
		return err
	}
	s.sync = newGroupFlusher()
	s.log.collect()
	return nil
}

// start starts the goroutines of a recovered store.
func (s *Store) start() {
	if s.cfg.OnArrival != nil {
		s.dispatch.notice = s.arrived
	}
	s.cleaning.disks.look() // before the first message
	s.group.Go(s.log.prepare)
	s.group.Go(s.dispatch.run)
	if s.sync != nil {
		s.group.Go(s.flushGroups)
		tick := s.cfg.Clock.NewTicker(overdueEvery)
		s.group.Go(func(ctx context.Context) { s.watchFlush(ctx, tick) })
	} else {
		s.group.Go(s.flushLogs)
	}
	s.group.Go(s.flushQueues)
	s.group.Go(s.indexer.run)
	s.group.Go(s.cleaning.run)
}

// confirmed is how far the log may be shown to consumers: to its end, with
// synchronous flush to the end of what is durable.
func (s *Store) confirmed() int64 { return s.log.end.Load() }

// arrived announces a record that has become readable.
func (s *Store) arrived(r *wire.Record) {
	if !inQueue(r.SysFlag) {
		return
	}
	s.cfg.OnArrival(Arrival{
		Topic: r.Topic, QueueID: r.QueueID, Offset: r.QueueOffset,
		TagsCode: s.dispatch.queues.tags, StoreTime: r.StoreTime, Properties: r.Properties,
	})
}

// writable is why nothing can be stored now, nil if it can.
func (s *Store) writable() error {
	if s.closed.Load() {
		return errClosed
	}
	if err := s.log.failure(); err != nil {
		return err
	}
	if err := s.dispatch.fault.Load(); err != nil {
		return fmt.Errorf("store: consume queues cannot be written: %w", *err)
	}
	if err := s.indexer.unindexed(); err != nil {
		return err
	}
	if full := s.cleaning.disks.full.Load(); full != nil {
		return full
	}
	return nil
}

// Close ends the store cleanly: no new messages, everything flushed and every
// answer given, consume queues brought up to date, abort file removed. It
// blocks for the disk. With
// an error the abort file stays, and the next Open recovers as after a crash.
// Calls after the first one, or after Abandon, do nothing.
func (s *Store) Close() error { return s.CloseWith(nil) }

// CloseWith is [Store.Close] that calls last, if that is not nil, once
// everything is on the disk and before the directory is given back: whoever
// keeps notes of what the store has writes them there.
func (s *Store) CloseWith(last func()) error {
	s.ending.Do(func() { s.endErr = s.close(last) })
	return s.endErr
}

func (s *Store) close(last func()) error {
	s.stop()
	err := s.flushLog()
	s.giveUp(errors.Join(errClosed, err))
	// The dispatcher's goroutine is gone; its work falls to this one. Nobody
	// can be told of arrivals any more.
	s.dispatch.owner.Lock()
	s.dispatch.notice = nil
	end := s.log.end.Load()
	derr := s.dispatch.advance(context.Background(), end, true)
	s.dispatch.owner.Unlock()
	if at := s.dispatch.pos.Load(); derr == nil && at < end {
		derr = fmt.Errorf("dispatched to %d of %d", at, end)
	}
	if err = errors.Join(err, derr); err == nil {
		err = s.finishIndex()
	}
	if err == nil {
		err = s.flushAll()
	}
	if err == nil && last != nil {
		last()
	}
	err = errors.Join(err, s.log.dropNext(true))
	if err == nil {
		err = s.cfg.FS.Remove(filepath.Join(s.cfg.Dir, abortFile))
	}
	if err = errors.Join(err, s.release()); err != nil {
		return fmt.Errorf("store: close: %w", err)
	}
	return nil
}

// Abandon ends the store as a killed process does: nothing is flushed, the
// abort file stays, and answers that wait are refusals. What was written
// survives, as the system's page cache survives its processes. It is for
// tests.
func (s *Store) Abandon() {
	s.ending.Do(func() {
		s.stop()
		s.giveUp(errClosed)
		_ = s.log.dropNext(false)
		_ = s.release()
	})
}

// stop refuses new work and ends the goroutines.
func (s *Store) stop() {
	s.closed.Store(true)
	s.log.shut()
	s.group.Stop()
	s.dispatch.end()
}

// release closes all files, and then gives the directory back.
func (s *Store) release() error {
	var err error
	if s.log != nil {
		s.log.discard()
		err = errors.Join(err, s.log.seq.Close())
	}
	if s.queues != nil {
		err = errors.Join(err, s.queues.close())
	}
	if s.indexer != nil {
		err = errors.Join(err, s.indexer.index.Close())
	}
	if s.checkpoint != nil {
		err = errors.Join(err, s.checkpoint.close())
	}
	return errors.Join(err, s.lock.Close())
}

// Crashed tells whether whoever had the directory before has not closed it.
func (s *Store) Crashed() bool { return s.crashed }

// WaitDispatched blocks until everything that is in the log now can be read
// through consume queues.
func (s *Store) WaitDispatched(ctx context.Context) error {
	return s.await(ctx, s.dispatch.at(s.log.position(), nil))
}

// await waits for a barrier of the dispatcher.
func (s *Store) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.stuck():
		return s.log.failure()
	case <-s.group.Context().Done():
		return errClosed
	}
}

// stuck is closed when what is in the log will never be dispatched: it could
// not be flushed.
func (s *Store) stuck() <-chan struct{} {
	if s.sync == nil {
		return nil
	}
	return s.log.broken
}

// DeleteTopic removes a topic's queues and waits until their files are gone.
// The topic's records stay in the log but can no longer be found. A message
// for the topic that is put later, or beside the call, begins its queue at
// offset 0 again. The context bounds the waiting only.
func (s *Store) DeleteTopic(ctx context.Context, topic string) error {
	mark := func(end int64) error { return s.graves.add(topic, end, s.log.begin()) }
	_, err := s.dropQueues(ctx, topic, func(*queue) bool { return true }, mark)
	return err
}

// dropQueues removes those queues of a topic that which chooses, and returns
// how many. which is called under the append lock. mark, if there is one, is
// called before anything is removed, with the log's end: the records before it
// are those of the queues that go.
func (s *Store) dropQueues(ctx context.Context, topic string, which func(*queue) bool, mark func(end int64) error) (int, error) {
	var err error
	s.log.mu.Lock()
	end := s.log.tail()
	gone := s.queues.take(topic, end, which)
	// Before the lock is given back: the next record of the topic begins a new
	// queue, in the directory that the old one must have left by then.
	done := s.dispatch.plan(end, func() {
		if mark != nil {
			err = mark(end)
		}
		for _, q := range gone {
			err = errors.Join(err, q.cq.Destroy())
		}
		s.queues.took(topic, end)
		// Fails, as it should, when the topic has queues again.
		_ = s.cfg.FS.Remove(filepath.Join(s.queues.dir, topic))
	})
	s.log.mu.Unlock()
	s.dispatch.wake()
	if werr := s.await(ctx, done); werr != nil {
		return 0, werr
	}
	if err != nil {
		return 0, fmt.Errorf("store: delete topic %s: %w", topic, err)
	}
	return len(gone), nil
}
