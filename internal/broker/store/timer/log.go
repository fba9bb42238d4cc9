package timer

import (
	"fmt"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// log is the timer log: a sequence of files of units (Apache's TimerLog). One
// goroutine appends and removes; flush may run beside it.
type log struct {
	seq *mfile.Sequence
	end int64 // where the next unit goes
}

// reserveStep is how much disk space is taken at a time.
const reserveStep = 64 << 10

func openLog(fsys mfile.FS, dir string, size int64) (*log, error) {
	if size < UnitSize+blankSize {
		return nil, fmt.Errorf("timer log files of %d bytes: at least %d are needed", size, UnitSize+blankSize)
	}
	seq, err := mfile.OpenSequence(fsys, dir, size)
	if err != nil {
		return nil, err
	}
	return &log{seq: seq}, nil
}

// scan calls f for all units in order until one is not good, or f is false, or
// limit is reached, and cuts the log there.
func (l *log) scan(limit int64, f func(pos int64, u *Unit) bool) error {
	l.end = 0
	if first := l.seq.First(); first != nil {
		l.end = first.Start()
	}
	for _, file := range l.seq.Files() {
		if file.Start() >= limit || l.end != file.Start() || !l.scanFile(file, limit, f) {
			break
		}
	}
	return l.cut()
}

// scanFile tells whether the next file is to be scanned.
func (l *log) scanFile(file *mfile.File, limit int64, f func(pos int64, u *Unit) bool) bool {
	var u Unit
	for b := file.Data(); l.end < limit; {
		switch u.decode(b[l.end-file.Start():]) {
		case foundBlank:
			l.end = file.End()
			return true
		case foundEnd:
			return false
		}
		if !f(l.end, &u) {
			return false
		}
		l.end += UnitSize
	}
	return false
}

// cut removes everything from end on, for good: units that come back with the
// next crash would be taken for newer ones.
func (l *log) cut() error {
	if err := l.seq.Truncate(l.end); err != nil {
		return err
	}
	if f := l.seq.Last(); f != nil {
		f.Clear(f.Wrote(), f.Size())
		f.Distrust()
	}
	l.seq.DistrustNames()
	return l.flush()
}

// append adds a unit and returns its position.
func (l *log) append(u *Unit) (pos int64, err error) {
	f := l.seq.Last()
	if f != nil && f.Size()-f.Wrote() < UnitSize+blankSize {
		if left := f.Size() - f.Wrote(); left > 0 {
			if err := f.Reserve(f.Wrote()+blankSize, reserveStep); err != nil {
				return 0, err
			}
			putBlank(f.Data()[f.Wrote():], left)
			f.SetWrote(f.Size())
			l.end = f.End()
		}
		f = nil
	}
	if f == nil {
		if f, err = l.seq.Create(l.end, false); err != nil {
			return 0, err
		}
		l.seq.Add(f)
	}
	at := f.Wrote()
	if err := f.Reserve(at+UnitSize, reserveStep); err != nil {
		return 0, err
	}
	u.put(f.Data()[at : at+UnitSize])
	f.SetWrote(at + UnitSize)
	pos = f.Start() + at
	l.end = pos + UnitSize
	return pos, nil
}

// at reads the unit at a position.
func (l *log) at(pos int64, u *Unit) bool {
	if pos < 0 || pos >= l.end {
		return false
	}
	f := l.seq.Find(pos)
	return f != nil && u.decode(f.Data()[pos-f.Start():]) == foundUnit
}

// flush makes all units durable.
func (l *log) flush() error {
	if err := l.seq.SyncNames(1); err != nil {
		return err
	}
	_, err := l.seq.Flush()
	return err
}
