package inspect

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func compareKeys(a, b queueKey) int {
	return cmp.Or(strings.Compare(a.topic, b.topic), cmp.Compare(a.id, b.id))
}

// finish judges what can be judged only when all has been read.
func (c *checker) finish() {
	from := c.pendingFrom()
	for i := range c.log.regions {
		// Units that point into the log's bad parts, as long as nobody has met them.
		c.log.regions[i].units += c.unitsInto(&c.log.regions[i])
	}
	c.finishLog()
	for _, k := range c.sortedQueues() {
		c.queues[k].finish(from)
	}
	keys := make([]queueKey, 0, len(c.orphans))
	for k := range c.orphans {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	for _, k := range keys {
		c.orphan(k, c.orphans[k], from)
	}
	c.index.finish()
	if c.pending > 0 {
		c.note("consumequeue", whole, "%d messages have no unit yet; they are dispatched by the broker that runs, or by the next start", c.pending)
	}
}

// unitsInto counts the units not met yet that point into a bad part of the
// log. It looks at the next unit of each queue only: the first one decides.
func (c *checker) unitsInto(g *region) (n int64) {
	for _, q := range c.queues {
		if q.cur < q.end {
			if u, ok := q.unit(q.cur); ok && u.Phy >= g.from && u.Phy < g.to {
				n++
			}
		}
	}
	return n
}

// finishLog reports the parts of the log that are no records.
func (c *checker) finishLog() {
	start := c.recoverFrom()
	for i := range c.log.regions {
		g := &c.log.regions[i]
		if g.reported {
			continue
		}
		p, off := g.file.path, g.from-g.file.start
		tail := g.from >= c.log.end
		what := g.reason
		if what == "" {
			what = "nothing is written here"
		}
		switch {
		case tail && g.reason == "" && (g.units == 0 || g.from > c.log.end):
			// The usual end of the log, and files that were made ahead.
		case tail && g.reason == "":
			// The queues know more than the log: they report it.
		case tail && (g.lost || g.units == 0):
			c.torn = true
			c.note(p, off, "torn tail: %s; the next start cuts the log here", what)
		case tail:
			c.damage(p, off, "%s; nothing whole follows", what)
		case c.aborted && g.from >= start && g.lost:
			c.note(p, off, "%s, as after a crash of the machine; the next start cuts the log here, with whole records behind it", what)
		default:
			c.damage(p, off, "%s; the log goes on at %d", what, g.to)
		}
	}
	if c.log.tornEnd && !c.log.seq.broken {
		p, off := c.logPlace(c.log.lastAt)
		c.torn = true
		c.sum.Messages--
		c.note(p, off, "torn tail: the last record has lost the end of its properties; the next start cuts the log here")
	}
}

// recoverFrom is the log position from which a start after a crash scans: the
// newest file that begins with a record that was flushed for certain.
func (c *checker) recoverFrom() int64 {
	fs := c.log.seq.files
	if len(fs) == 0 {
		return 0
	}
	safe := int64(0)
	if c.stamped {
		safe = max(0, min(c.stamps[stampLog], c.stamps[stampQueues])-3000)
	}
	for i := len(fs) - 1; i > 0; i-- {
		w, err := c.open(fs[i].path)
		if err != nil {
			continue
		}
		var r wire.Record
		what, _, _, err := c.log.judge(&fs[i], w, 0, &r)
		w.close()
		if err == nil && what >= isRecord && r.StoreTime <= safe {
			return fs[i].start
		}
	}
	return fs[0].start
}

// pendingFrom is the log position from which records without a unit get one
// at the next start: what was scanned after a crash, else what is behind the
// last record that any queue has.
func (c *checker) pendingFrom() int64 {
	if c.aborted {
		return c.recoverFrom()
	}
	covered := int64(0)
	for _, q := range c.queues {
		covered = max(covered, q.covered)
	}
	return covered
}

// orphan judges records whose queue is not there.
func (c *checker) orphan(k queueKey, o *run, pendingFrom int64) {
	dir := path.Join("consumequeue", k.topic, strconv.Itoa(int(k.id)))
	switch {
	case o.phy >= pendingFrom:
		c.pending += o.n
	case c.topics[k.topic]:
		c.damage(dir, whole, "missing: the log has %d messages of this queue, the first at %d, and config/topics.json has the topic", o.n, o.phy)
	default:
		c.note(dir, whole, "the log has %d messages of this queue, which is not there; has the topic been deleted?", o.n)
	}
}
