package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// region is a part of the log that is no whole records.
type region struct {
	span
	file     file
	size     int64  // bytes of the bad record as far as they are known, else to the region's end
	reason   string // "" for zeros
	reported bool   // or not worth it
	lost     bool   // bytes are zeros as in sectors that a crash took
	units    int64  // units that point into it
}

// logScan walks through the log once.
type logScan struct {
	c       *checker
	seq     *sequence
	begin   int64
	regions []region
	end     int64 // after the last whole record or filler
	records int64
	newest  int64 // store time of the last whole record
	tornEnd bool  // the last record's properties end with zeros
	lastAt  int64
}

// run visits every record in order; ok is false for one whose body does not
// match its checksum.
func (l *logScan) run(visit func(r *wire.Record, ok bool)) error {
	if len(l.seq.files) > 0 {
		l.begin = l.seq.files[0].start
		l.end = l.begin
	}
	for _, g := range l.seq.gaps {
		l.regions = append(l.regions, region{span: g, reported: true})
	}
	for i := range l.seq.files {
		f := &l.seq.files[i]
		w, err := l.c.open(f.path)
		if err != nil {
			l.unreadable(f, 0, err)
			continue
		}
		err = l.file(f, w, visit)
		w.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *logScan) unreadable(f *file, at int64, err error) {
	l.c.damage(f.path, at, "cannot be read: %v", err)
	l.regions = append(l.regions, region{span: span{f.start + at, f.start + l.seq.size}, file: *f, reported: true})
}

// file walks through one file. An error is the end of the check.
func (l *logScan) file(f *file, w *window, visit func(*wire.Record, bool)) error {
	var r wire.Record
	for pos := int64(0); pos < f.size; {
		if err := l.c.stop(); err != nil {
			return err
		}
		what, n, reason, err := l.judge(f, w, pos, &r)
		if err != nil {
			l.unreadable(f, pos, err)
			return nil
		}
		switch what {
		case isRecord, isBadBody:
			if what == isBadBody {
				l.bad(f, w, pos, n, n, reason)
			} else {
				l.records++
				l.end, l.newest = f.start+pos+n, r.StoreTime
				l.tornEnd = len(r.Properties) > 0 && r.Properties[len(r.Properties)-1] == 0
				l.lastAt = f.start + pos
			}
			visit(&r, what == isRecord)
			pos += n
		case isFiller:
			l.end = f.start + f.size
			l.tornEnd = false
			return nil
		default:
			next, err := l.resync(f, w, pos+1)
			if err != nil {
				l.unreadable(f, pos, err)
				return nil
			}
			// A broker that runs may have written here after this was read, and
			// before what is behind it was.
			if w.buf = nil; l.c.aborted {
				if again, _, _, err := l.judge(f, w, pos, &r); err == nil && again >= isFiller {
					continue
				}
			}
			l.bad(f, w, pos, min(max(n, 1), next-pos), next-pos, reason)
			pos = next
		}
	}
	return nil
}

// found is what stands at a place of the log.
type found uint8

const (
	isGarbage found = iota
	isZero
	isFiller
	isRecord
	isBadBody
)

// judge says what stands at pos. n is its length; for garbage as far as that
// can be told.
func (l *logScan) judge(f *file, w *window, pos int64, r *wire.Record) (what found, n int64, reason string, err error) {
	rest := f.size - pos
	b, err := w.peek(pos, min(rest, wire.BlankSize))
	switch {
	case err != nil:
		return 0, 0, "", err
	case int64(len(b)) < min(rest, wire.BlankSize):
		return 0, 0, "", errors.New("the file became shorter while it was read")
	case len(b) < wire.BlankSize:
		return isGarbage, rest, fmt.Sprintf("%d bytes are left after the last record, without filler", rest), nil
	}
	if binary.BigEndian.Uint64(b) == 0 {
		return isZero, wire.BlankSize, "", nil
	}
	size := int64(int32(binary.BigEndian.Uint32(b)))
	if magic := binary.BigEndian.Uint32(b[4:]); magic == wire.MagicV1 || magic == wire.MagicV2 {
		if size > rest {
			return isGarbage, rest, fmt.Sprintf("a record of %d bytes where %d are left in the file", size, rest), nil
		}
		if size > 0 {
			if b, err = w.peek(pos, size); err != nil {
				return 0, 0, "", err
			}
		}
	}
	m, err := wire.DecodeRecord(b, r)
	phy := f.start + pos
	switch {
	case errors.Is(err, wire.ErrBlank):
		if size != f.start+l.seq.size-phy && size != rest {
			return isGarbage, wire.BlankSize, fmt.Sprintf("filler of %d bytes where %d are left", size, rest), nil
		}
		return isFiller, size, "", nil
	case err != nil:
		return isGarbage, clampSize(size, rest), "not a record: " + err.Error(), nil
	case !isTopic(r.Topic):
		return isGarbage, int64(m), "the record's topic is no name", nil
	case r.PhyOffset != phy:
		return isGarbage, int64(m), fmt.Sprintf("the record says it belongs at %d of the log, it is at %d", r.PhyOffset, phy), nil
	case !r.CheckBody():
		return isBadBody, int64(m), "the body does not match its checksum", nil
	}
	return isRecord, int64(m), "", nil
}

func clampSize(size, rest int64) int64 {
	if size < 91 || size > rest {
		return 1
	}
	return size
}

// isTopic is for names that can be a directory.
func isTopic(b []byte) bool {
	for _, c := range b {
		if c == '/' || c == '\\' || c < ' ' {
			return false
		}
	}
	return len(b) > 0 && string(b) != "." && string(b) != ".."
}

// resync finds the next place at or after pos where the log goes on: a whole
// record that says it belongs there, or the filler. Without one it is the
// file's end.
func (l *logScan) resync(f *file, w *window, pos int64) (int64, error) {
	var r wire.Record
	for pos+wire.BlankSize <= f.size {
		if err := l.c.stop(); err != nil {
			return f.size, nil // the caller's loop finds it out
		}
		b, err := w.peek(pos, min(windowStep/2, f.size-pos))
		if err != nil {
			return 0, err
		}
		at := magicAt(b)
		if at < 0 {
			pos += max(1, int64(len(b))-wire.BlankSize+1)
			continue
		}
		pos += int64(at)
		what, _, _, err := l.judge(f, w, pos, &r)
		if err != nil {
			return 0, err
		}
		if what >= isFiller {
			return pos, nil
		}
		pos++
	}
	return f.size, nil
}

// magicAt is the first place in b where a record or filler could begin, -1 if
// there is none.
func magicAt(b []byte) int {
	for i := 0; i+8 <= len(b); i++ {
		switch b[i+4] {
		case 0xDA, 0xCB:
			m := binary.BigEndian.Uint32(b[i+4:])
			if m == wire.MagicV1 || m == wire.MagicV2 || m == wire.MagicBlank {
				return i
			}
		case 0:
			// The usual case, the zeros behind the end: skip fast.
			if i+12 <= len(b) && binary.BigEndian.Uint64(b[i+4:]) == 0 {
				i += 7
			}
		}
	}
	return -1
}

// bad notes a part of the log that is no whole record: n bytes long, of which
// the record at its front has size.
func (l *logScan) bad(f *file, w *window, pos, size, n int64, reason string) {
	g := region{span: span{f.start + pos, f.start + pos + n}, file: *f, size: size, reason: reason}
	g.lost = reason == "" || lostSectors(w, pos, size)
	// What a file that was cut does not have is known already.
	g.reported = f.known && pos+size >= f.size
	l.regions = append(l.regions, g)
}

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// lostSectors reports whether bytes look as if sectors of them had never come
// to the disk: from some place on to the end of a sector, or of the record,
// there are zeros only.
func lostSectors(w *window, pos, size int64) bool {
	b, err := w.peek(pos, min(size, 8<<20))
	if err != nil {
		return false
	}
	const enough = 16
	for len(b) > 0 {
		n := min(int64(len(b)), sector-pos%sector)
		zeros := int64(0)
		for zeros < n && b[n-1-zeros] == 0 {
			zeros++
		}
		if zeros >= enough || zeros == n && n > 4 {
			return true
		}
		b, pos = b[n:], pos+n
	}
	return false
}

// at returns the region that has a place of the log, nil if there is none.
func (l *logScan) at(phy int64) *region {
	for i := len(l.regions) - 1; i >= 0; i-- {
		if g := &l.regions[i]; phy >= g.from && phy < g.to {
			return g
		}
	}
	return nil
}
