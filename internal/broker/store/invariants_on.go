//go:build invariants

package store

import (
	"fmt"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// invariants: with the build tag of that name the store checks itself after
// each append, each group that was flushed and each record that was
// dispatched, and panics at the first disagreement.
const invariants = true

func broken(format string, args ...any) {
	panic("store: invariant broken: " + fmt.Sprintf(format, args...))
}

// checkRecords looks whether the log has, from a position to another, whole
// records whose bodies match their checksums, and nothing else but fillers.
// With n > 0 they are n records of one message: their queue offsets are dense
// from first on.
func (s *Store) checkRecords(from, to, first, n int64) {
	var r wire.Record
	seen := int64(0)
	for at := from; at < to; {
		f, b := s.log.hold(at)
		if f == nil {
			return // cleaned away meanwhile
		}
		if rest := f.End() - at; int64(len(b)) > rest {
			b = b[:rest]
		}
		what, size, reason := scan(b, at, true, &r)
		switch {
		case what == foundEnd:
			broken("%s at %d, between %d and %d: %s", f.Path(), at-f.Start(), from, to, reason)
		case what == foundRecord && n > 0 && r.QueueOffset != first+seen:
			broken("record at %d has queue offset %d, want %d", at, r.QueueOffset, first+seen)
		case what == foundRecord:
			seen++
		}
		f.Release()
		at += size
	}
	if n > 0 && seen != n {
		broken("%d records between %d and %d, want %d", seen, from, to, n)
	}
}

// checkUnit looks whether a queue ends with the unit u of the record r.
func checkUnit(q *cq.Queue, u cq.Unit, r *wire.Record) {
	have, ok := q.At(r.QueueOffset)
	if !ok || have != u || q.Max() != r.QueueOffset+1 {
		broken("%s/%d: unit %d is %+v of %d, want %+v as the last", r.Topic, r.QueueID, r.QueueOffset, have, q.Max(), u)
	}
	if before, ok := q.At(r.QueueOffset - 1); ok && !before.IsFiller() && before.Phy+int64(before.Size) > u.Phy {
		broken("%s/%d: unit %d at %d overlaps the one before it at %d", r.Topic, r.QueueID, r.QueueOffset, u.Phy, before.Phy)
	}
}
