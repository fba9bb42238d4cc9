package timer

import (
	"errors"
	"math"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// State is how far the timers have come.
func (s *Store) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Done tells whether a message had been delivered when the store was opened:
// the one at an offset of the timer topic's queue, due at a time.
func (s *Store) Done(offset, due int64) bool { return s.start.Done(offset, due) }

// CaughtUp tells whether all messages have been read again that were read
// before the store was opened. Until then nothing may be delivered.
func (s *Store) CaughtUp() bool { return s.State().Queue >= s.start.Queue }

// Read notes that all messages before a queue offset have been added, or
// delivered. phy is the end of the last one's record, or of its copy.
func (s *Store) Read(offset, phy int64) {
	s.change(func(st *State) {
		st.Queue, st.Log, st.Phy = offset, s.log.end, max(st.Phy, phy)
	})
}

// Delivered notes that a message has been delivered, and all that were due
// before it. phy is the end of the copy.
func (s *Store) Delivered(offset, due, phy int64) {
	s.change(func(st *State) {
		st.Phy = max(st.Phy, phy)
		if due > st.Time || due == st.Time && offset > st.Last {
			st.Time, st.Last = due, offset
		}
	})
}

// Passed notes that all that is due by a time has been delivered.
func (s *Store) Passed(time int64) {
	st := s.State()
	if time < st.Time || time == st.Time && st.Last == math.MaxInt64 {
		return
	}
	s.change(func(st *State) { st.Time, st.Last = time, math.MaxInt64 })
	// What a crash of the machine may take back is not forgotten: should the
	// slot get units again, they are chained to those it has.
	s.mu.Lock()
	until := min(time, s.saved.Time)
	s.mu.Unlock()
	s.forget(until)
}

// Back notes that a message is due at a time that had passed: the clock was
// set back.
func (s *Store) Back(due int64) {
	s.change(func(st *State) { st.Time, st.Last = due-1, math.MaxInt64 })
}

func (s *Store) change(f func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
	s.changed = true
	s.note()
}

// note writes the state down. What was read before the store was opened counts
// as read: it is not delivered before it has been read again.
func (s *Store) note() {
	st := s.state
	st.Queue = max(st.Queue, s.start.Queue)
	s.check.note(st, s.state.Queue)
}

// Save makes the state of now durable, or that of an earlier call, if the
// commit log is on disk, up to flushed, with all that it counts. It blocks for
// the disk. waits tells that a state waits for the commit log.
func (s *Store) Save(flushed, now int64) (waits bool, err error) {
	s.mu.Lock()
	if s.changed && (!s.planned || s.state.Phy <= flushed) {
		s.plan, s.planned, s.changed = s.state, true, false
	}
	p := s.plan
	todo := s.planned && p.Phy <= flushed
	waits = s.planned && !todo
	s.mu.Unlock()
	if !todo {
		return waits, nil
	}
	if err := s.flush(); err != nil {
		return false, err
	}
	version, err := s.check.save(p, now)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved, s.check.version = p, version
	s.note() // Apache's fields have the new version
	s.planned = s.planned && s.plan != p
	return false, nil
}

// flush makes log and wheel durable.
func (s *Store) flush() error {
	err := s.log.flush()
	if s.wheel != nil {
		err = errors.Join(err, s.flushWheel())
	}
	return err
}

func (s *Store) flushWheel() error {
	s.mu.Lock()
	f, dirty, made := s.wheel.file, s.wheel.dirty, s.wheel.made
	s.wheel.dirty, s.wheel.made = false, false
	s.mu.Unlock()
	var err error
	if dirty {
		err = f.Sync()
	}
	if made && err == nil {
		err = s.cfg.FS.SyncDir(s.cfg.Dir)
	}
	if err != nil {
		s.mu.Lock()
		s.wheel.dirty, s.wheel.made = true, true
		s.mu.Unlock()
	}
	return err
}

// Clean removes log files, oldest first, all of whose slots are over.
func (s *Store) Clean() error {
	s.mu.Lock()
	until := s.saved.Time
	s.mu.Unlock()
	for {
		files := s.log.seq.Files()
		if len(files) < 2 || len(s.ends) > 0 && s.ends[0].start == files[0].Start() && s.ends[0].time > until {
			return nil
		}
		if len(s.ends) > 0 && s.ends[0].start == files[0].Start() {
			s.ends = s.ends[1:]
		}
		if err := errors.Join(s.log.seq.RemoveFirst(), s.log.seq.SyncDir()); err != nil {
			return err
		}
	}
}

// Checkpoint is the answer to GET_TIMER_CHECK_POINT (60): what Apache's
// checkpoint file begins with.
func (s *Store) Checkpoint() []byte {
	s.mu.Lock()
	st := s.state
	s.mu.Unlock()
	j := javaOf(&st, s.cfg.Precision, s.Version())
	j.version.StateVersion = 0
	b := make([]byte, javaSize)
	j.put(b)
	return b
}

// Version counts the states that have been saved.
func (s *Store) Version() wire.DataVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check.version
}
