package store

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// recover brings log and consume queues to one state and leaves everything
// ready for appending: the log ends after its last whole record, no queue
// points beyond it, every record has its unit. aborted says that the store
// was not closed the last time.
func (s *Store) recover(aborted bool) error {
	covered := int64(0)
	queues := s.queues.all(nil)
	for _, q := range queues {
		if err := q.cq.Recover(); err != nil {
			return err
		}
		covered = max(covered, q.cq.Covered())
	}
	from := s.recoverFrom(aborted, covered)
	end, storeTime, reason := s.scanLog(from)
	if reason != "" && reason != nothingWritten {
		s.cfg.Logger.Warn("commit log has a torn tail; cutting it", "err", s.log.damage(end, reason), "phy", end)
	}
	if err := s.cutLog(from, end, aborted); err != nil {
		return err
	}
	for _, q := range queues {
		if aborted {
			q.cq.Distrust()
		}
		if err := q.cq.Truncate(end); err != nil {
			return err
		}
	}
	s.log.resume(end, storeTime)
	s.flushed.Store(end)
	if aborted {
		s.flushed.Store(from)
	}

	// After a clean stop all records up to the last covered one were
	// dispatched, in the order of the log. After a crash queues may have lost
	// what was not flushed: everything scanned comes again, and queues know
	// what they have.
	at := max(s.log.begin(), min(covered, end))
	if aborted && from < at {
		at = from
	}
	s.dispatch.pos.Store(at)
	if err := s.dispatch.advance(context.Background(), end, true); err != nil {
		return err
	}
	s.dispatch.storeTime.Store(storeTime)
	for _, q := range s.queues.all(nil) {
		q.cq.CorrectMin(s.log.begin())
		q.next = q.cq.Max()
	}
	return nil
}

// recoverFrom is the log position at which scanning begins: the start of a
// file.
func (s *Store) recoverFrom(aborted bool, covered int64) int64 {
	files := s.log.seq.Files()
	if len(files) == 0 {
		return 0
	}
	safe := s.checkpoint.safeTime()
	for i := len(files) - 1; i > 0; i-- {
		var r wire.Record
		if what, _, _ := scan(files[i].Data(), files[i].Start(), false, &r); what != foundRecord {
			continue
		}
		if aborted && r.StoreTime <= safe || !aborted && r.PhyOffset < covered {
			return files[i].Start()
		}
	}
	return files[0].Start()
}

// scanLog finds the end of the log, from a file's start on, and the store
// time of its last record, if there was one. reason is why it ends there, ""
// if all files are full.
func (s *Store) scanLog(from int64) (end, storeTime int64, reason string) {
	end = from
	var r, last wire.Record
	var before struct{ end, time int64 } // of the log, without the last record
	for _, f := range s.log.seq.Files() {
		if f.Start() < from {
			continue
		}
		for b := f.Data(); len(b) > 0; {
			what, n, why := scan(b, end, !s.cfg.SkipRecoverCRC, &r)
			switch {
			case what == foundEnd && torn(&last):
				return before.end, before.time, "the record has lost its end"
			case what == foundEnd:
				return end, storeTime, why
			case what == foundRecord:
				before.end, before.time = end, storeTime
				storeTime, last = r.StoreTime, r
			}
			b, end = b[n:], end+n
		}
	}
	return end, storeTime, ""
}

// cutLog ends the log at end. After a crash what follows in the file is
// cleared: old bytes beyond a later append could pass for records. And
// nothing that was scanned counts as flushed: the process may have died with
// pages that only the system's cache has.
func (s *Store) cutLog(from, end int64, aborted bool) error {
	if err := s.log.seq.Truncate(end); err != nil || !aborted {
		return err
	}
	for _, f := range s.log.seq.Files() {
		if f.Start() >= from {
			f.Clear(f.Wrote(), math.MaxInt)
			f.SetFlushed(0)
		}
	}
	return nil
}

// abortFile marks a store that is open, or was not closed.
const abortFile = "abort"

// wasAborted reports whether the last one to use the directory did not close
// it.
func wasAborted(fsys mfile.FS, dir string) (bool, error) {
	_, err := fsys.ReadFile(filepath.Join(dir, abortFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
