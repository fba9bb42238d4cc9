package store

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// recover brings log and consume queues to one state and leaves everything
// ready for appending: the log ends after its last whole record, no queue
// points beyond it, every record has its unit. aborted says that the store
// was not closed the last time.
func (s *Store) recover(aborted bool) error {
	if err := s.bury(); err != nil {
		return err
	}
	var found logEnd
	if !aborted {
		var err error
		if found, err = s.recoverClean(); errors.Is(err, errNotClean) {
			s.cfg.Logger.Warn("the store was closed, but does not look like it; recovering as after a crash", "err", err)
			aborted = true
		} else if err != nil {
			return err
		}
	}
	if aborted {
		var err error
		if found, err = s.recoverCrash(); err != nil {
			return err
		}
	}
	s.queues.buried()
	if err := s.graves.cut(found.phy); err != nil {
		return err
	}
	s.log.resume(found.phy, found.storeTime)
	s.flushed.Store(found.phy)
	s.flushedTime.Store(found.storeTime)
	s.dispatch.storeTime.Store(found.storeTime)
	for _, q := range s.queues.all(nil) {
		q.cq.CorrectMin(s.log.begin())
		q.next = q.cq.Max()
		q.since = min(q.since, found.phy) // the log may have lost its end
	}
	return nil
}

// errNotClean is the reason for not believing that a store was closed.
var errNotClean = errors.New("log or consume queues end in the middle of something")

// recoverClean recovers a store that was closed: everything is on the disk,
// and what is dispatched again, if anything, is what an Apache broker had not
// got to.
func (s *Store) recoverClean() (logEnd, error) {
	covered := int64(0)
	for _, q := range s.queues.all(nil) {
		if err := q.cq.Recover(); err != nil {
			return logEnd{}, err
		}
		covered = max(covered, q.cq.Covered())
	}
	from := s.newestFile(func(r *wire.Record) bool { return r.PhyOffset < covered })
	found := s.scanLog(from)
	if found.torn() {
		return found, errors.Join(errNotClean, s.log.damage(found.phy, found.reason))
	}
	if covered > found.phy {
		return found, errNotClean
	}
	if err := s.truncateLog(found.phy); err != nil {
		return found, err
	}
	s.log.end.Store(found.phy)
	s.dispatch.pos.Store(max(s.log.begin(), covered))
	return found, s.dispatch.advance(context.Background(), found.phy, true)
}

// recoverCrash recovers a store that nobody closed, on a machine that may
// have lost its power: of what was written since the last flush any page may
// be missing or torn, in the log and in every queue. The checkpoint tells up to
// where log and queues were flushed; whatever is behind is looked at in the
// log, and built anew in the queues.
func (s *Store) recoverCrash() (logEnd, error) {
	safe := s.checkpoint.safeTime()
	from := s.newestFile(func(r *wire.Record) bool { return r.StoreTime <= safe })
	found := s.scanLog(from)
	if found.torn() {
		s.cfg.Logger.Warn("commit log has a torn tail; cutting it", "err", s.log.damage(found.phy, found.reason), "phy", found.phy)
	}
	if err := s.cutLog(from, found.phy); err != nil {
		return found, err
	}
	s.log.end.Store(found.phy)
	err := s.rebuildQueues(from, found.phy, true)
	if errors.Is(err, errUnitsMissing) {
		// Someone has removed a queue's files, or they are from a backup.
		s.cfg.Logger.Warn("consume queues lack units; building them from the whole commit log", "err", err)
		// Until they are flushed again the disk has less than was flushed.
		s.checkpoint.set(cpQueues, 0)
		if err := s.checkpoint.flush(); err != nil {
			return found, err
		}
		err = s.rebuildQueues(s.log.begin(), found.phy, false)
	}
	return found, err
}

// rebuildQueues builds the part of the consume queues that belongs to the log
// between from and end. With strict it fails when units before that are
// missing.
func (s *Store) rebuildQueues(from, end int64, strict bool) error {
	for _, q := range s.queues.all(nil) {
		q.built = false
		if err := q.cq.Rebuild(from); err != nil {
			return err
		}
	}
	s.queues.building, s.queues.strict = true, strict && from > s.log.begin()
	defer func() { s.queues.building, s.queues.strict = false, false }()
	s.dispatch.pos.Store(from)
	return s.dispatch.advance(context.Background(), end, true)
}

// newestFile is where the newest log file starts whose first record is as ok
// says; the oldest file, if there is none.
func (s *Store) newestFile(ok func(*wire.Record) bool) int64 {
	files := s.log.seq.Files()
	if len(files) == 0 {
		return 0
	}
	for i := len(files) - 1; i > 0; i-- {
		var r wire.Record
		what, _, _ := scan(files[i].Data(), files[i].Start(), false, &r)
		if what == foundRecord && ok(&r) {
			return files[i].Start()
		}
	}
	return files[0].Start()
}

// logEnd is where the log ends.
type logEnd struct {
	phy       int64
	storeTime int64  // of the last record, 0 if none was seen
	reason    string // why it ends there; "" if all files are full
}

// torn reports whether something is there that is no record.
func (e *logEnd) torn() bool { return e.reason != "" && e.reason != nothingWritten }

// scanLog finds the end of the log, from a file's start on.
func (s *Store) scanLog(from int64) logEnd {
	const lost = "the record has lost a part"
	found := logEnd{phy: from}
	var r, last wire.Record
	var before logEnd // the end without the last record
	for _, f := range s.log.seq.Files() {
		if f.Start() < from {
			continue
		}
		for b := f.Data(); len(b) > 0; {
			what, n, why := scan(b, found.phy, !s.cfg.SkipRecoverCRC, &r)
			switch {
			case what == foundEnd && torn(&last):
				before.reason = lost
				return before
			case what == foundEnd:
				found.reason = why
				return found
			case what == foundRecord && holed(b[:n], found.phy-f.Start(), &r):
				found.reason = lost
				return found
			case what == foundRecord:
				before = found
				found.storeTime, last = r.StoreTime, r
			}
			b, found.phy = b[n:], found.phy+n
		}
	}
	return found
}

// cutLog ends the log at end. What follows is cleared: old bytes beyond a
// later append could pass for records. It is cleared on the disk, too, and
// before anything is appended: with the next crash it could come back. And
// nothing that was scanned counts as flushed before: the process may have died
// with pages that only the system's cache has.
func (s *Store) cutLog(from, end int64) error {
	seq := s.log.seq
	if err := s.truncateLog(end); err != nil {
		return err
	}
	for _, f := range seq.Files() {
		if f.Start() >= from {
			f.Clear(f.Wrote(), f.Size())
			f.Distrust()
		}
	}
	if _, err := seq.Flush(); err != nil {
		return err
	}
	return seq.SyncDir()
}

// truncateLog cuts the log's files at end. The oldest one stays, even if there
// is nothing in it any more: its name says where the log goes on.
func (s *Store) truncateLog(end int64) error {
	seq := s.log.seq
	if f := seq.First(); f != nil && f.Start() == end {
		err := seq.Truncate(end + 1)
		f.SetWrote(0)
		return err
	}
	return seq.Truncate(end)
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
