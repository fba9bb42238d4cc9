package inspect

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
)

// queueKey names a consume queue.
type queueKey struct {
	topic string
	id    int32
}

// queue is one consume queue while the log is walked through. Units are
// numbered by their queue offset.
type queue struct {
	queueKey
	c   *checker
	seq *sequence

	begin, end int64 // units that count
	first      int64 // the first of them that is no filler and points into the log; end if none
	birth      int64 // log position of the queue's first records: older ones belonged to a deleted topic
	covered    int64 // log position up to which there are units

	behind int64 // the byte of the queue behind its end that is not zero; -1: none
	half   bool  // the unit at the end is not all zeros

	cur   int64 // the next unit to be met
	buf   []byte
	bufAt int64 // unit number of buf

	before  run // records older than the queue
	missing run // records behind the last unit
	astray  run // units that no record belongs to
	hole    run // units that are empty though others follow
}

// run is a series of neighbours that is reported as one.
type run struct {
	from, to int64 // queue offsets
	phy      int64 // log position of the first
	n        int64
}

// add counts one more and reports whether it continues the series.
func (r *run) add(offset, phy int64) {
	if r.n == 0 {
		r.from, r.phy = offset, phy
	}
	r.to = offset + 1
	r.n++
}

// follows reports whether offset is the next one of the series.
func (r *run) follows(offset int64) bool { return r.n > 0 && r.to == offset }

// unit reads one unit; false when it cannot be read.
func (q *queue) unit(i int64) (cq.Unit, bool) {
	const n = 200
	at := i * cq.UnitSize
	if q.buf == nil || i < q.bufAt || i*cq.UnitSize >= q.bufAt*cq.UnitSize+int64(len(q.buf)) {
		f := q.seq.find(at)
		if f == nil {
			return cq.Unit{}, false
		}
		if cap(q.buf) == 0 {
			q.buf = make([]byte, n*cq.UnitSize)
		}
		q.bufAt, q.buf = i, q.buf[:min(n*cq.UnitSize, (f.end()-at)/cq.UnitSize*cq.UnitSize)]
		if len(q.buf) == 0 {
			return cq.Unit{}, false
		}
		if err := q.c.readAt(f.path, q.buf, at-f.start); err != nil {
			clear(q.buf)
			if !f.known {
				f.known, q.seq.broken = true, true
				q.c.damage(f.path, at-f.start, "cannot be read: %v", err)
			}
			return cq.Unit{}, false
		}
	}
	return cq.Get(q.buf[(i-q.bufAt)*cq.UnitSize:]), true
}

func written(u cq.Unit) bool { return u.Phy >= 0 && u.Size > 0 }

// bound finds where the queue ends, as a broker does: before the first unit
// that was never written, searched from the third newest file on; and where
// it begins.
func (q *queue) bound(logBegin int64) {
	fs := q.seq.files
	q.birth = never
	if len(fs) == 0 {
		return
	}
	q.begin = fs[0].start / cq.UnitSize
	for i := max(0, len(fs)-3); ; i-- {
		q.end = q.scan(fs[i].start/cq.UnitSize, fs[len(fs)-1].end()/cq.UnitSize)
		if q.end > fs[i].start/cq.UnitSize || i == 0 {
			break
		}
	}
	q.first = q.begin
	for ; q.first < q.end; q.first++ {
		if u, ok := q.unit(q.first); ok && written(u) && !u.IsFiller() && u.Phy >= logBegin {
			break
		}
	}
	for i := q.first; i < min(q.first+3, q.end); i++ {
		if u, ok := q.unit(i); ok && written(u) {
			q.birth = min(q.birth, u.Phy)
		}
	}
	q.cur = q.first
}

// scan returns the first unit from i on that was never written, at most end.
func (q *queue) scan(i, end int64) int64 {
	for ; i < end; i++ {
		u, ok := q.unit(i)
		if !ok || !written(u) {
			break
		}
		if !u.IsFiller() {
			q.covered = max(q.covered, u.Phy+int64(u.Size))
		}
	}
	return i
}

// name is the queue in messages.
func (q *queueKey) name() string { return q.topic + "/" + strconv.Itoa(int(q.id)) }

// place is where a unit is.
func (q *queue) place(i int64) (string, int64) { return q.seq.place(i * cq.UnitSize) }

// tail looks behind the queue's end, where there must be nothing.
func (q *queue) tail() {
	q.behind = -1
	for _, f := range q.seq.files {
		from := max(q.end*cq.UnitSize, f.start)
		if from >= f.end() {
			continue
		}
		w, err := q.c.open(f.path)
		if err != nil {
			if !f.known {
				q.seq.broken = true
				q.c.damage(f.path, whole, "cannot be read: %v", err)
			}
			continue
		}
		at, err := nonZero(w, from-f.start, f.size)
		if err == nil && at >= 0 && f.start+at < (q.end+1)*cq.UnitSize {
			// The unit itself: a process that dies leaves one half written.
			q.half = true
			if at, err = nonZero(w, (q.end+1)*cq.UnitSize-f.start, f.size); at < 0 {
				q.behind = q.end * cq.UnitSize
			}
		}
		w.close()
		if err == nil && at >= 0 {
			q.behind = f.start + at
		}
		if q.behind >= 0 {
			// A broker that runs has perhaps gone on since.
			if q.buf = nil; q.c.aborted {
				if u, ok := q.unit(q.end); ok && written(u) {
					q.behind = -1
				}
			}
			return
		}
	}
}

// judgeTail reports what tail has found. again says that a start dispatches
// the records behind the queue's end again.
func (q *queue) judgeTail(again bool) {
	if q.behind < 0 || q.seq.broken {
		return
	}
	hole := q.end * cq.UnitSize
	// A crash of the machine takes whole sectors.
	sectorOf := func(at int64) int64 { return at % q.seq.size / sector }
	lost := q.behind == hole || !q.half && (sectorOf(q.behind) != sectorOf(hole) || q.behind/q.seq.size != hole/q.seq.size)
	p, off := q.place(q.end)
	q.seq.broken = true
	switch {
	case again && lost:
		q.c.note(p, off, "queue %s: unit %d did not get to the disk, what is behind it did; the next start fills the queue again from here",
			q.name(), q.end)
	case q.behind == hole:
		q.c.damage(p, off, "queue %s: unit %d is half written", q.name(), q.end)
	default:
		q.c.damage(p, off, "queue %s: unit %d is no unit, but there are bytes behind it, at %d of the queue", q.name(), q.end, q.behind)
	}
}

// nonZero is the first byte in [from, size) of a file that is not zero, -1 if
// there is none.
func nonZero(w *window, from, size int64) (int64, error) {
	for from < size {
		b, err := w.peek(from, min(windowStep, size-from))
		if err != nil || len(b) == 0 {
			return -1, err
		}
		for i, x := range b {
			if x != 0 {
				return from + int64(i), nil
			}
		}
		from += int64(len(b))
	}
	return -1, nil
}
