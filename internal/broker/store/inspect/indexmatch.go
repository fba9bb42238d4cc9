package inspect

import (
	"bytes"
	"math"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// indexes is the key index while the log is walked through: its entries come
// in the order of the log.
type indexes struct {
	c     *checker
	files []*indexFile
	cur   int   // the file the next entry is in
	next  int64 // its number; 0: not begun

	key  []byte
	want []wanted

	unindexed, unindexedFrom int64 // messages with keys that no file has
}

// wanted is a key that a record must have in the index.
type wanted struct {
	hash int32
	seen bool
}

// entry returns the next entry and its file; nil at the end.
func (x *indexes) entry() (*indexFile, indexed) {
	for ; x.cur < len(x.files); x.cur, x.next = x.cur+1, 0 {
		f := x.files[x.cur]
		x.next = max(x.next, 1)
		if x.next < f.count {
			if e, ok := f.read(x.c, x.next); ok {
				return f, e
			}
		}
		f.close()
	}
	return nil, indexed{}
}

// keys collects what of a record is in the index.
func (x *indexes) keys(r *wire.Record) {
	x.want = x.want[:0]
	if r.SysFlag&wire.SysTranMask == wire.SysTranRollback {
		return
	}
	if id, ok := r.Properties.Lookup(wire.PropUniqKey); ok && len(id) > 0 {
		x.add(r.Topic, id)
	}
	keys, _ := r.Properties.Lookup(wire.PropKeys)
	for k := range bytes.SplitSeq(keys, []byte(wire.KeySeparator)) {
		if len(k) > 0 {
			x.add(r.Topic, k)
		}
	}
}

func (x *indexes) add(topic, key []byte) {
	x.key = append(append(append(x.key[:0], topic...), '#'), key...)
	x.want = append(x.want, wanted{hash: wire.IndexHash(x.key)})
}

// match compares the next record of the log with the index.
func (x *indexes) match(r *wire.Record) {
	if len(x.files) == 0 {
		return
	}
	x.keys(r)
	n := 0
	for f, e := x.entry(); f != nil; f, e = x.entry() {
		if e.phy > r.PhyOffset && !x.outOfOrder(f, e.phy) {
			break
		}
		switch at := f.entryAt(x.next); {
		case e.phy == r.PhyOffset:
			n++
			x.compare(f, at, e, r)
		case e.phy > r.PhyOffset:
			f.problem(x.c, at, "entry %d points to %d of the log, the next one to a place before that", x.next, e.phy)
			x.see(e.hash) // its place is wrong, not missing
		default:
			x.stray(f, at, e)
			x.see(e.hash)
		}
		x.next++
	}
	if len(x.want) > 0 {
		x.complete(r, n)
	}
}

// outOfOrder reports whether the entry after the present one, which points to
// phy, points to a place before that.
func (x *indexes) outOfOrder(f *indexFile, phy int64) bool {
	if x.next+1 >= f.count {
		return false
	}
	after, ok := f.read(x.c, x.next+1)
	return ok && after.phy < phy
}

// see notes that a hash was there and reports whether the record has it.
func (x *indexes) see(hash int32) (known bool) {
	for i := range x.want {
		if x.want[i].hash == hash {
			x.want[i].seen, known = true, true
		}
	}
	return known
}

func (x *indexes) compare(f *indexFile, at int64, e indexed, r *wire.Record) {
	if !x.see(e.hash) {
		f.problem(x.c, at, "entry %d has hash %d, which is none of the keys of the record at %d", x.next, e.hash, e.phy)
	}
	// The first entry was made when the file had no begin of its own.
	sec := int64(0)
	if f.begin > 0 {
		sec = min(max(0, r.StoreTime-f.begin)/1000, math.MaxInt32)
	}
	if x.next > 1 && e.seconds != sec {
		f.problem(x.c, at+12, "entry %d says its record was stored %d s after the file's begin, it was %d s", x.next, e.seconds, sec)
	}
}

// complete looks whether all keys of a record were there; n entries were.
func (x *indexes) complete(r *wire.Record, n int) {
	for _, w := range x.want {
		if w.seen {
			continue
		}
		f := x.covering(r.PhyOffset)
		// A process dies between two keys of a message, too.
		if last := x.cur >= len(x.files); f == nil || f.soft || n == 0 && f.skip || n > 0 && last && x.c.aborted {
			if x.unindexed == 0 {
				x.unindexedFrom = r.PhyOffset
			}
			x.unindexed++
			return
		}
		p, off := x.c.logPlace(r.PhyOffset)
		x.c.damage(p, off, "a key of this record is not in the index, though %s goes from %d to %d", f.path, f.beginPhy, f.endPhy)
		return
	}
}

// covering returns the file whose range has a log position.
func (x *indexes) covering(phy int64) *indexFile {
	for _, f := range x.files {
		if f.count > 1 && phy >= f.beginPhy && phy <= f.endPhy {
			return f
		}
	}
	return nil
}

// stray judges an entry that no record came for.
func (x *indexes) stray(f *indexFile, at int64, e indexed) {
	switch g := x.c.log.at(e.phy); {
	case g != nil && (g.reported || g.reason != "" || e.phy < x.c.log.end):
	case e.phy >= 0 && e.phy < x.c.log.begin: // expired with its record
	case e.phy >= x.c.log.end && x.c.done && (x.c.aborted || x.c.torn):
		x.c.note(f.path, at, "entry %d and later ones point behind the log's end at %d", x.next, x.c.log.end)
		x.cur = len(x.files)
	default:
		f.problem(x.c, at, "entry %d points to %d of the log, where no message is", x.next, e.phy)
	}
}

// finish judges what is left when the log has been read.
func (x *indexes) finish() {
	for f, e := x.entry(); f != nil; f, e = x.entry() {
		x.stray(f, f.entryAt(x.next), e)
		x.next++
	}
	for _, f := range x.files {
		f.close()
	}
	if x.unindexed > 0 {
		x.c.note("index", whole, "%d messages with keys, the first at %d of the log, are not in the index and cannot be found by key",
			x.unindexed, x.unindexedFrom)
	}
}
