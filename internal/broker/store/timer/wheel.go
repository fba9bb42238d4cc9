package timer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// WheelSlots is how many slots the wheel has: twice those of seven days, with
// a precision of one second (TIMER_WHEEL_TTL_DAY of Apache's TimerMessageStore).
const WheelSlots = 2 * 7 * 24 * 3600

const slotSize = 32

// wheel is the file of the slots (Apache's TimerWheel). It is made with the
// first slot that is put.
type wheel struct {
	fs        mfile.FS
	path      string
	slots     int64
	precision int64
	file      *mfile.File // nil: there is none yet
	dirty     bool        // something was put since it was flushed
	made      bool        // the file was made since its name was made durable
}

// openWheel opens the file if there is one, and empties it.
func openWheel(fsys mfile.FS, path string, slots, precision int64) (*wheel, error) {
	w := &wheel{fs: fsys, path: path, slots: slots, precision: precision}
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	var empty *mfile.FormatError
	if errors.As(err, &empty) { // a crash has left a name without content
		return w, fsys.Remove(path)
	}
	if err != nil {
		return nil, err
	}
	if f.Size() != slots*slotSize {
		err := &mfile.FormatError{Path: path, Offset: min(f.Size(), slots*slotSize), Reason: fmt.Sprintf(
			"a wheel of %d bytes, want %d", f.Size(), slots*slotSize)}
		return nil, errors.Join(err, f.Close())
	}
	f.Clear(0, f.Size())
	w.file, w.dirty, w.made = f, true, true
	return w, nil
}

// create makes the file if there is none.
func (w *wheel) create() error {
	if w.file != nil {
		return nil
	}
	f, err := w.fs.Create(w.path, w.slots*slotSize, true)
	if err != nil {
		return &mfile.IOError{Op: "create", Path: w.path, Err: err}
	}
	w.file, w.made = f, true
	return nil
}

// put notes a slot. The file must have been created.
func (w *wheel) put(time int64, s slot) {
	n := time / w.precision
	b := w.file.Data()[n%w.slots*slotSize:][:slotSize]
	binary.BigEndian.PutUint64(b, uint64(n))
	binary.BigEndian.PutUint64(b[8:], uint64(s.first))
	binary.BigEndian.PutUint64(b[16:], uint64(s.last))
	binary.BigEndian.PutUint32(b[24:], uint32(s.num))
	binary.BigEndian.PutUint32(b[28:], 0)
	w.dirty = true
}
