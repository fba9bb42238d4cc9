package inspect

import (
	"math"
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// inQueue reports whether records with these flags have a unit: half messages
// and rolled back ones have none.
func inQueue(sysFlag int32) bool {
	t := sysFlag & wire.SysTranMask
	return t != wire.SysTranPrepared && t != wire.SysTranRollback
}

// match compares the next record of the queue with its unit. Records come in
// the order of the log.
func (q *queue) match(r *wire.Record) {
	i := r.QueueOffset
	if r.PhyOffset < q.birth && (i < q.first || i >= q.end || !q.pointsTo(i, r.PhyOffset)) {
		// Of a deleted topic of the same name, or from before files were lost.
		q.before.add(i, r.PhyOffset)
		return
	}
	switch {
	case i >= q.cur && i < q.end && q.pointsTo(i, r.PhyOffset):
	case q.cur < q.end && q.pointsTo(q.cur, r.PhyOffset):
		p, off := q.c.logPlace(r.PhyOffset)
		q.c.damage(p, off, "the record says it has offset %d of queue %s, its unit is number %d", i, q.name(), q.cur)
		i = q.cur
	case i >= q.end:
		q.missing.add(i, r.PhyOffset)
		return
	case i < q.cur:
		p, off := q.c.logPlace(r.PhyOffset)
		q.c.damage(p, off, "the record says it has offset %d of queue %s, which another message has", i, q.name())
		return
	default:
		q.skipTo(i)
		q.wrong(i, r)
		q.cur = i + 1
		return
	}
	q.skipTo(i)
	q.cur = i + 1
	u, _ := q.unit(i)
	p, off := q.place(i)
	if u.Size != r.Size {
		q.c.damage(p, off, "unit %d of queue %s says %d bytes, its record has %d", i, q.name(), u.Size, r.Size)
	}
	want, exact := q.c.tagsCode(r)
	// A broker with extended queues keeps the place of the extension there.
	if extended := q.c.extended && u.Tags < math.MinInt32-1; !extended && (exact && u.Tags != want || !exact && !dueSoon(u.Tags, r.StoreTime)) {
		q.c.damage(p, off, "unit %d of queue %s has tags code %d, its record has %d", i, q.name(), u.Tags, want)
	}
}

// pointsTo reports whether unit i points to phy.
func (q *queue) pointsTo(i, phy int64) bool {
	u, ok := q.unit(i)
	return ok && u.Phy == phy && u.Size > 0
}

// wrong reports a unit that is not that of the record with its offset.
func (q *queue) wrong(i int64, r *wire.Record) {
	u, ok := q.unit(i)
	switch {
	case !ok: // reported where it was read
	case !written(u):
		q.empty(i)
	default:
		p, off := q.place(i)
		q.c.damage(p, off, "unit %d of queue %s points to %d of the log, its record is at %d", i, q.name(), u.Phy, r.PhyOffset)
	}
}

// skipTo judges the units before i that no record came for.
func (q *queue) skipTo(i int64) {
	for ; q.cur < i; q.cur++ {
		u, ok := q.unit(q.cur)
		switch {
		case !ok:
		case !written(u):
			q.empty(q.cur)
		default:
			q.stray(q.cur, u)
		}
	}
}

func (q *queue) empty(i int64) {
	if !q.hole.follows(i) {
		q.flushHole()
	}
	q.hole.add(i, 0)
}

func (q *queue) flushHole() {
	if q.hole.n > 0 {
		p, off := q.place(q.hole.from)
		q.c.damage(p, off, "%s of queue %s empty, though others follow", units(q.hole), q.name())
		q.hole = run{}
	}
}

// stray notes a unit without a record.
func (q *queue) stray(i int64, u cq.Unit) {
	if g := q.c.log.at(u.Phy); g != nil {
		if g.units++; g.reported || g.reason != "" || u.Phy < q.c.log.end {
			return // the log's damage is reported
		}
	}
	if u.Phy < q.c.log.begin && !u.IsFiller() {
		return // expired with its record
	}
	if u.Phy >= q.c.log.end && q.c.done {
		q.beyond(i, u)
		return
	}
	if !q.astray.follows(i) {
		q.flushStray()
	}
	q.astray.add(i, u.Phy)
}

func (q *queue) flushStray() {
	if q.astray.n > 0 {
		p, off := q.place(q.astray.from)
		what := "points to %d of the log, where no message of this queue is"
		if q.astray.n > 1 {
			what = "point to places of the log, the first to %d, where no message of this queue is"
		}
		q.c.damage(p, off, "%s of queue %s "+what, units(q.astray), q.name(), q.astray.phy)
		q.astray = run{}
	}
}

// beyond judges a unit that points behind the log's end.
func (q *queue) beyond(i int64, u cq.Unit) {
	p, off := q.place(i)
	n := q.end - i
	if q.c.aborted || q.c.torn {
		q.c.note(p, off, "queue %s: %d units point behind the log's end at %d; the next start cuts them off", q.name(), n, q.c.log.end)
	} else {
		q.c.damage(p, off, "queue %s: unit %d points to %d of the log, which ends at %d; %d messages of the queue are lost",
			q.name(), i, u.Phy, q.c.log.end, n)
	}
	q.cur = q.end - 1 // skipTo goes on behind it
}

func units(r run) string {
	if r.n == 1 {
		return "unit " + strconv.FormatInt(r.from, 10)
	}
	return "units " + strconv.FormatInt(r.from, 10) + " to " + strconv.FormatInt(r.to-1, 10)
}

// finish judges what is left of the queue when the log has been read.
// pendingFrom is the log position from which a start dispatches again.
func (q *queue) finish(pendingFrom int64) {
	q.skipTo(q.end)
	q.flushHole()
	q.flushStray()
	q.judgeTail(q.c.aborted && (q.missing.n == 0 || q.missing.phy >= pendingFrom))
	if b := q.before; b.n > 0 {
		p, off := q.place(b.from)
		switch {
		case q.seq.broken:
		case b.to == q.first && q.first > 0:
			q.c.damage(p, off, "%d units of queue %s are missing: the log has their messages, the first at %d", b.n, q.name(), b.phy)
		default:
			q.c.note(p, whole, "queue %s: the log has %d messages of an earlier topic of this name", q.name(), b.n)
		}
	}
	if m := q.missing; m.n > 0 {
		p, off := q.place(m.from)
		switch {
		case m.phy >= pendingFrom:
			q.c.pending += m.n
		case q.seq.broken:
		default:
			q.c.damage(p, off, "%d units of queue %s are missing: the log has their messages, the first at %d", m.n, q.name(), m.phy)
		}
	}
}

// tagsCode is what the third field of a record's unit must be. It is not
// exact for a delayed message of a store whose delay levels are not known.
func (c *checker) tagsCode(r *wire.Record) (code int64, exact bool) {
	if string(r.Topic) == wire.TopicSchedule {
		if v, ok := r.Properties.Lookup(wire.PropDelay); ok {
			if level, err := strconv.Atoi(string(v)); err == nil && level > 0 {
				d := c.sizes.Delays
				if len(d) == 0 {
					return r.StoreTime, false
				}
				return r.StoreTime + d[min(level, len(d))-1].Milliseconds(), true
			}
		}
	}
	tags, ok := r.Properties.Lookup(wire.PropTags)
	if !ok {
		return 0, true
	}
	return wire.TagsCode(tags), true
}

// dueSoon reports whether a time can be that at which a message is due that
// was stored at another.
func dueSoon(due, stored int64) bool {
	return due >= stored && due-stored <= (400*24*time.Hour).Milliseconds()
}
