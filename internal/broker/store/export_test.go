package store

import (
	"context"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// FlushNow flushes log, consume queues and checkpoint as the flushers do when
// their thorough interval has passed.
func (s *Store) FlushNow() error {
	if s.sync == nil { // else the flusher does
		if err := s.flushLog(); err != nil {
			return err
		}
	}
	return s.flushUnits(s.queues.all(nil), true)
}

// FlushIndexNow flushes index files that are full, and the checkpoint.
func (s *Store) FlushIndexNow() error {
	if err := s.flushIndex(); err != nil {
		return err
	}
	return s.checkpoint.flush()
}

// CleanIndexNow removes the index files that point to what the log has not.
func (s *Store) CleanIndexNow() error { return s.indexer.clean(s.log.begin()) }

// DropFirstLogFile removes the oldest commit log file.
func (s *Store) DropFirstLogFile() error {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.seq.RemoveFirst()
}

// FlushLog flushes the commit log alone.
func (s *Store) FlushLog() error { return s.flushLog() }

// CleanNow runs the cleaner and waits for its end.
func (s *Store) CleanNow(ctx context.Context) error { return s.ask(ctx, s.cleaning.rounds) }

// HoldLogFile holds the commit log file that has the byte at phy.
func (s *Store) HoldLogFile(phy int64) *mfile.File { return s.log.seq.Hold(phy) }

// QueueFiles is how many files a consume queue has.
func (s *Store) QueueFiles(topic string, queueID int32) int {
	return len(s.queues.find(topic, queueID).cq.Files())
}

// Scan is scan for the fuzzer: the length of the record or filler at the
// front of b, 0 if there is neither.
func Scan(b []byte, phy int64, r *wire.Record) (n int64, record bool) {
	what, n, _ := scan(b, phy, true, r)
	return n, what == foundRecord
}

// Watch calls f with each record that is dispatched from now on.
func (s *Store) Watch(f func(*wire.Record)) {
	s.dispatch.borrow(func() { s.dispatch.followers = append(s.dispatch.followers, watcher(f)) })
}

type watcher func(*wire.Record)

func (w watcher) follow(r *wire.Record) error {
	w(r)
	return nil
}
