package store

import (
	"context"
	"errors"
)

// flushLogs flushes the commit log at intervals, when enough pages are dirty
// or enough time has passed.
func (s *Store) flushLogs(ctx context.Context) {
	cfg := &s.cfg
	tick := cfg.Clock.NewTicker(cfg.FlushInterval)
	defer tick.Stop()
	for thorough := cfg.Clock.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		now := cfg.Clock.Now()
		all := now.Sub(thorough) >= cfg.FlushThorough
		if all {
			thorough = now
		}
		if !all && s.log.seq.DirtyPages() < int64(cfg.FlushLeastPages) {
			continue
		}
		if err := s.flushLog(); err != nil {
			s.flushFailed(err)
			return
		}
	}
}

// flushLog flushes everything that is in the log when it is called. With
// synchronous flush the flusher's goroutine must have ended.
func (s *Store) flushLog() error {
	if err := s.log.failure(); err != nil {
		return err
	}
	if s.sync != nil {
		for s.flushGroup() {
			continue
		}
		return s.log.failure()
	}
	// The time is stored after the record's bytes, so what is flushed has it.
	t := s.log.storeTime.Load()
	end, err := s.log.seq.Flush()
	if err != nil {
		return err
	}
	s.flushes.Add(1)
	s.flushed.Store(end)
	s.flushedTime.Store(t)
	return nil
}

// flushQueues flushes consume queues, the index and the checkpoint at intervals.
func (s *Store) flushQueues(ctx context.Context) {
	cfg := &s.cfg
	tick := cfg.Clock.NewTicker(cfg.QueueFlushInterval)
	defer tick.Stop()
	var queues []*queue
	var last [4]int64
	for thorough, reached := cfg.Clock.Now(), s.log.end.Load(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		// Recovery reads the log from the last thorough flush on, so under load
		// the log's growth brings one as well.
		now, end := cfg.Clock.Now(), s.log.end.Load()
		all := now.Sub(thorough) >= cfg.QueueFlushThorough || end-reached >= cfg.CommitLogFileSize
		if all {
			thorough, reached = now, end
		}
		queues = s.queues.all(queues[:0])
		err := errors.Join(s.flushUnits(queues, all), s.flushIndex())
		state := [4]int64{s.flushedTime.Load(), s.checkpoint.get(cpQueues), s.log.end.Load(), s.checkpoint.get(cpIndex)}
		if state != last {
			last = state
			s.checkpoint.set(cpLog, max(state[0], s.checkpoint.get(cpLog)))
			s.checkpoint.set(cpConfirm, state[2])
			err = errors.Join(err, s.checkpoint.flush())
		}
		if err != nil {
			cfg.Logger.Error("consume queues, index or checkpoint not flushed; if it stays so, the next start builds them from the log", "err", err)
		}
		clear(queues)
	}
}

// flushUnits flushes the queues that have enough dirty pages, or all of them;
// only then does the checkpoint learn about it.
func (s *Store) flushUnits(queues []*queue, all bool) error {
	t := s.dispatch.storeTime.Load()
	var err error
	for _, q := range queues {
		if all || q.cq.DirtyPages() >= int64(s.cfg.QueueFlushLeastPages) {
			err = errors.Join(err, q.cq.Flush())
		}
	}
	if all && err == nil && t > 0 {
		s.checkpoint.set(cpQueues, t)
	}
	return err
}

// flushAll makes a store durable whose goroutines have ended and whose
// consume queues reach to the end of the log.
func (s *Store) flushAll() error {
	if err := s.flushLog(); err != nil {
		return err
	}
	if err := s.flushUnits(s.queues.all(nil), true); err != nil {
		return err
	}
	if t := s.flushedTime.Load(); t > 0 {
		s.checkpoint.set(cpLog, t)
	}
	s.checkpoint.set(cpConfirm, 0)
	return s.checkpoint.flush()
}
