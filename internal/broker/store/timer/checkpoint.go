package timer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// State is how far the timers have come. A message of which Queue is beyond the
// offset, and that was due at Time or before, has been delivered.
type State struct {
	Queue int64 // offset in the timer topic's queue before which all is in the timer log, or delivered
	Time  int64 // ms
	Last  int64 // of those that are due at Time itself, the offset of the last one that has been delivered
	Log   int64 // end of the timer log
	Phy   int64 // end of the commit log when it had all that this state counts
}

// Done tells whether a message has been delivered: the one at an offset of the
// timer topic's queue, that was due at a time.
func (s *State) Done(offset, due int64) bool {
	return offset < s.Queue && (due < s.Time || due == s.Time && offset <= s.Last)
}

// after tells whether s is a later state than o of the same run.
func (s *State) after(o *State) bool {
	switch {
	case s.Queue != o.Queue:
		return s.Queue > o.Queue
	case s.Time != o.Time:
		return s.Time > o.Time
	}
	return s.Last > o.Last
}

// javaState is what Apache's TimerCheckpoint has: the first 56 bytes. They are
// kept for a broker of Apache that takes the directory over. Ours are told from
// theirs by the state version, which is 0 there.
type javaState struct {
	read, log, queue, master int64
	version                  wire.DataVersion
}

func (j *javaState) fields() [7]int64 {
	return [7]int64{j.read, j.log, j.queue, j.master, j.version.StateVersion, j.version.Timestamp, j.version.Counter}
}

func (j *javaState) put(b []byte) {
	for i, v := range j.fields() {
		binary.BigEndian.PutUint64(b[8*i:], uint64(v))
	}
}

func (j *javaState) get(b []byte) {
	var v [7]int64
	for i := range v {
		v[i] = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	*j = javaState{read: v[0], log: v[1], queue: v[2], master: v[3],
		version: wire.DataVersion{StateVersion: v[4], Timestamp: v[5], Counter: v[6]}}
}

const ourVersion = 0x474F524D51 // "GORMQ"

func javaOf(s *State, precision int64, v wire.DataVersion) javaState {
	v.StateVersion = ourVersion
	return javaState{read: s.Time / precision * precision, log: s.Log, queue: s.Queue, master: s.Queue, version: v}
}

// The checkpoint file. Behind Apache's fields, in sectors of their own, there
// are four notes, which Apache leaves alone: two that were saved, of which the
// older one holds as long as the newer one is being written, and two that are
// written all the time, with Apache's fields, and not flushed. Those may get to
// the disk before what they speak of; they count only if the commit log has all
// of it.
const (
	checkpointSize = 4096
	javaSize       = 56
	sector         = 512
	noteSize       = 8 + 8 + 5*8 + 4
	noteMagic      = "GORMQTC1"
)

// note is one of our notes.
type note struct {
	seq   int64
	state State
}

func (n *note) put(b []byte) {
	b = b[:noteSize]
	copy(b, noteMagic)
	s := &n.state
	for i, v := range [...]int64{n.seq, s.Queue, s.Time, s.Last, s.Log, s.Phy} {
		binary.BigEndian.PutUint64(b[8+8*i:], uint64(v))
	}
	binary.BigEndian.PutUint32(b[noteSize-4:], crc32.Checksum(b[:noteSize-4], castagnoli()))
}

// get is false if b is no note.
func (n *note) get(b []byte) bool {
	if len(b) < noteSize || string(b[:8]) != noteMagic ||
		binary.BigEndian.Uint32(b[noteSize-4:]) != crc32.Checksum(b[:noteSize-4], castagnoli()) {
		return false
	}
	var v [6]int64
	for i := range v {
		v[i] = int64(binary.BigEndian.Uint64(b[8+8*i:]))
	}
	n.seq, n.state = v[0], State{Queue: v[1], Time: v[2], Last: v[3], Log: v[4], Phy: v[5]}
	return true
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// checkpoint is the open file.
type checkpoint struct {
	file  *mfile.File
	noted int64 // of the last note that was written, which says where the next one goes
	saved int64 // likewise of those that are saved

	precision int64            // ms
	version   wire.DataVersion // counts what is saved
}

// recovered is what a checkpoint says when it is opened.
type recovered struct {
	missing bool      // nobody has saved anything
	ours    bool      // we were the last to write it
	java    javaState // what Apache's fields say
	saved   State     // ours: what was saved
	noted   *State    // ours: what is known beyond that; nil: nothing
}

// openCheckpoint opens the file, or makes it. precision is the width of a slot
// in ms, phy the end of the commit log.
func openCheckpoint(fsys mfile.FS, path string, precision, phy int64) (*checkpoint, recovered, error) {
	f, err := openOrCreate(fsys, path)
	if err != nil {
		return nil, recovered{}, err
	}
	c := &checkpoint{file: f, precision: precision}
	return c, c.recover(phy), nil
}

func openOrCreate(fsys mfile.FS, path string) (*mfile.File, error) {
	f, err := fsys.Open(path)
	var empty *mfile.FormatError
	switch {
	case errors.As(err, &empty): // a crash has left a name without content
		if err = fsys.Remove(path); err != nil {
			return nil, err
		}
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case f.Size() != checkpointSize:
		err := &mfile.FormatError{Path: path, Offset: min(f.Size(), checkpointSize), Reason: fmt.Sprintf(
			"a timer checkpoint of %d bytes, want %d", f.Size(), checkpointSize)}
		return nil, errors.Join(err, f.Close())
	default:
		return f, nil
	}
	dir := filepath.Dir(path)
	if err := mfile.MakeDir(fsys, dir); err != nil {
		return nil, err
	}
	if f, err = fsys.Create(path, checkpointSize, true); err != nil {
		return nil, err
	}
	if err := errors.Join(f.Sync(), fsys.SyncDir(dir)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (c *checkpoint) recover(phy int64) (r recovered) {
	data := c.file.Data()
	r.java.get(data)
	var saved, noted [2]note
	var have [2]bool
	for i := range saved {
		have[i] = saved[i].get(data[(1+i)*sector:])
		if noted[i].get(data[(3+i)*sector:]) {
			c.noted = max(c.noted, noted[i].seq)
			if s := &noted[i].state; s.Phy <= phy && (r.noted == nil || s.after(r.noted)) {
				r.noted = s
			}
		}
	}
	newest := 0
	if have[1] && (!have[0] || saved[1].seq > saved[0].seq) {
		newest = 1
	}
	c.saved, c.version = saved[newest].seq, r.java.version
	if r.ours = have[newest] && r.java.version.StateVersion == ourVersion; !r.ours {
		r.noted = nil
		r.missing = r.java == javaState{}
		return r
	}
	r.saved = saved[newest].state
	if r.noted != nil && !r.noted.after(&r.saved) {
		r.noted = nil
	}
	return r
}

// note writes a state down without flushing it. saved must have been called.
// reread is where messages are read again, which s counts as read.
func (c *checkpoint) note(s State, reread int64) {
	c.noted++
	n := note{seq: c.noted, state: s}
	n.put(c.file.Data()[(3+c.noted%2)*sector:])
	s.Queue = reread
	j := javaOf(&s, c.precision, c.version)
	j.put(c.file.Data())
}

// begin takes the file over: what the notes say is over. All that s speaks of
// must be durable.
func (c *checkpoint) begin(s State, now int64) error {
	clear(c.file.Data()[3*sector : 5*sector])
	v, err := c.save(s, now)
	if err != nil {
		return err
	}
	c.version = v
	c.note(s, s.Queue)
	c.note(s, s.Queue)
	return c.file.Sync()
}

// save makes a state durable, and returns the version of that. All that it
// speaks of must be durable. now is the time in ms.
func (c *checkpoint) save(s State, now int64) (wire.DataVersion, error) {
	c.saved++
	n := note{seq: c.saved, state: s}
	n.put(c.file.Data()[(1+c.saved%2)*sector:])
	return c.version.Next(now), c.file.Sync()
}

// unknown is the time before which everything counts as delivered when there
// is nothing that says so: Apache's wheel knows no more than seven days.
func unknown(now, precision int64) State {
	const blank = 60
	return State{Time: now/precision*precision - (WheelSlots/2-blank)*precision, Last: math.MaxInt64, Queue: math.MaxInt64}
}
