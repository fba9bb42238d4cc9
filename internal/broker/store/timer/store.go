package timer

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// Config says where a timer store lives and how it behaves. All fields are
// needed.
type Config struct {
	FS          mfile.FS
	Dir         string // the root of the message store
	LogFileSize int64  // bytes (mappedFileSizeTimerLog)
	Precision   int64  // ms, the width of a slot (timerPrecisionMs)
	Slots       int64  // of the wheel: WheelSlots
	Now         int64  // ms
	// Clean tells that whoever had the store before has closed it.
	Clean bool
	// CommitEnd is the end of the commit log.
	CommitEnd int64
	// QueueMin and QueueMax are the first offset of the timer topic's queue and
	// the one behind the last.
	QueueMin, QueueMax int64
	// QueueOffset is the offset that a record has in that queue; false if the
	// commit log has no such record.
	QueueOffset func(phy int64, size int32) (int64, bool)
	Logger      *slog.Logger
}

// Store is the timer log, wheel and checkpoint of one store directory. Its
// methods are called by one goroutine, but Save, State, Taken, Checkpoint and
// Version by any.
type Store struct {
	cfg   Config
	log   *log
	wheel *wheel // nil: files in memory
	check *checkpoint
	start State // what had been delivered when the store was opened

	slots map[int64]slot // those that are not over, by time
	fresh timeHeap       // times of slots with units that have not been taken
	taken timeHeap       // times of the others
	ends  []fileEnd      // of log files, oldest first

	pending map[int32]int64 // see Pending
	units   atomic.Int64    // taken

	mu      sync.Mutex // guards all below and the wheel's file; no file is flushed under it
	state   State
	changed bool  // since plan was made
	plan    State // to be saved once the commit log is on disk up to plan.Phy
	planned bool
	saved   State // durable
}

// slot is what the units of one slot have in common.
type slot struct {
	first, last int64 // positions of units
	upTo        int64 // of the last unit that has been taken; -1: none
	num         int32 // units that deliver less those that take back
	over        bool  // its time has passed while it had units that were not taken
}

// fileEnd is when the last slot ends that a log file has units of.
type fileEnd struct {
	start int64 // of the file
	time  int64 // ms
}

// Open opens the files, or makes those that are missing, and cuts off what is
// not known to be true. [Store.State] says where to go on.
func Open(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, slots: map[int64]slot{}, pending: map[int32]int64{}}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("timers: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

func (s *Store) open() (err error) {
	cfg := &s.cfg
	if s.log, err = openLog(cfg.FS, filepath.Join(cfg.Dir, "timerlog"), cfg.LogFileSize); err != nil {
		return err
	}
	if !cfg.FS.InMemory() { // nobody but a broker of Apache reads it
		if s.wheel, err = openWheel(cfg.FS, filepath.Join(cfg.Dir, "timerwheel"), cfg.Slots, cfg.Precision); err != nil {
			return err
		}
	}
	var r recovered
	if s.check, r, err = openCheckpoint(cfg.FS, filepath.Join(cfg.Dir, "config", "timercheck"), cfg.Precision, cfg.CommitEnd); err != nil {
		return err
	}
	if err := s.recover(r); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	// The notes of a log that has lost its end must not count again when it has
	// grown.
	if err := s.check.begin(s.state, cfg.Now); err != nil {
		return err
	}
	s.note() // what had been read counts as read, as before
	s.note()
	s.saved = s.state
	return nil
}

// Close closes the files without flushing them.
func (s *Store) Close() error {
	var err error
	if s.log != nil {
		err = s.log.seq.Close()
	}
	if s.wheel != nil && s.wheel.file != nil {
		err = errors.Join(err, s.wheel.file.Close())
	}
	if s.check != nil {
		err = errors.Join(err, s.check.file.Close())
	}
	return err
}

// slotOf is the slot that has a time, in ms.
func (s *Store) slotOf(time int64) int64 { return time / s.cfg.Precision * s.cfg.Precision }

// SlotOf is the slot of a message that is due at a time, in ms: the last one
// before it.
func (s *Store) SlotOf(due int64) int64 { return s.slotOf(due - 1) }

// Add appends a unit to the chain of its slot; Prev is set here. It can fail
// for lack of disk space, and nothing is added then.
func (s *Store) Add(u Unit) error {
	t := s.slotOf(u.Time())
	x, ok := s.slots[t]
	u.Prev = -1
	if ok {
		u.Prev = x.last
	}
	if s.wheel != nil {
		if err := s.makeWheel(); err != nil {
			return err
		}
	}
	pos, err := s.log.append(&u)
	if err != nil {
		return err
	}
	s.put(t, s.link(t, pos, u.Magic))
	return nil
}

func (s *Store) makeWheel() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wheel.create()
}

// link makes a unit the last of its slot's chain.
func (s *Store) link(time, pos int64, magic int32) slot {
	x, ok := s.slots[time]
	if !ok {
		x = slot{first: pos, last: -1, upTo: -1}
	}
	if x.last == x.upTo {
		s.fresh.push(time)
	}
	x.last = pos
	if magic&MagicDelete != 0 {
		x.num--
	} else {
		x.num++
	}
	s.slots[time] = x
	s.fileHas(pos, time)
	return x
}

func (s *Store) fileHas(pos, time int64) {
	start := pos - pos%s.cfg.LogFileSize
	if n := len(s.ends); n == 0 || s.ends[n-1].start != start {
		s.ends = append(s.ends, fileEnd{start: start})
	}
	e := &s.ends[len(s.ends)-1]
	e.time = max(e.time, time+s.cfg.Precision)
}

// put shows a slot to brokers of Apache.
func (s *Store) put(time int64, x slot) {
	if s.wheel != nil {
		s.mu.Lock()
		s.wheel.put(time, x)
		s.mu.Unlock()
	}
}

// Pending is how many messages the log had when it was opened, less those
// that are taken back, by the hash of their topic.
func (s *Store) Pending() map[int32]int64 { return s.pending }

// Next is the time of the first slot that has units which have not been taken.
func (s *Store) Next() (time int64, ok bool) { return s.fresh.first() }

// Taken is how many units have been taken.
func (s *Store) Taken() int64 { return s.units.Load() }

// Take appends the units of a slot that have not been taken to dst, the newest
// first, and takes them.
func (s *Store) Take(dst []Unit) []Unit {
	time, ok := s.fresh.first()
	if !ok {
		return dst
	}
	s.fresh.pop()
	x := s.slots[time]
	for pos := x.last; pos > x.upTo; {
		var u Unit
		if !s.log.at(pos, &u) {
			s.cfg.Logger.Error("timer log has no unit where one should be: the messages before it in its slot are lost", "pos", pos, "slot", time)
			break
		}
		dst = append(dst, u)
		s.units.Add(1)
		if u.Prev >= pos {
			break // would go round
		}
		pos = u.Prev
	}
	if x.upTo < 0 || x.over {
		s.taken.push(time)
	}
	x.upTo, x.over = x.last, false
	s.slots[time] = x
	return dst
}

// forget drops slots that are over.
func (s *Store) forget(until int64) {
	for {
		time, ok := s.taken.first()
		if !ok || time+s.cfg.Precision > until {
			return
		}
		s.taken.pop()
		if x := s.slots[time]; x.last == x.upTo {
			delete(s.slots, time)
		} else {
			x.over = true // to be dropped when its newest units have been taken
			s.slots[time] = x
		}
	}
}
