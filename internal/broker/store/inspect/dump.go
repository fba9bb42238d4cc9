package inspect

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Selection says which messages [Dir.Dump] shows.
type Selection struct {
	Topic string
	Queue int32 // -1: all
	From  int64 // first queue offset
	Max   int64 // so many at most; 0: all
}

// Dump gives show the messages of a topic, queue by queue in the order of
// their offsets, as the consume queues list them. The record is valid during
// the call. What stands in the way is given to report, and dumping goes on
// behind it. It fails for a topic or queue that is not there, and with ctx's
// error or show's.
func (d *Dir) Dump(ctx context.Context, sel Selection, show func(r *wire.Record) error, report func(Finding)) (shown int64, err error) {
	c, err := d.quick(ctx, report)
	if err != nil {
		return 0, err
	}
	topics := map[string]bool{}
	var keys []queueKey
	for _, k := range c.sortedQueues() {
		topics[k.topic] = true
		if k.topic == sel.Topic && (sel.Queue < 0 || k.id == sel.Queue) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return 0, c.notThere(sel, topics)
	}
	r := recordReader{c: c}
	defer r.close()
	for _, k := range keys {
		q := c.queues[k]
		q.bound(c.log.begin)
		for i := max(q.first, sel.From); i < q.end; i++ {
			if sel.Max > 0 && shown >= sel.Max {
				return shown, nil
			}
			if err := ctx.Err(); err != nil {
				return shown, err
			}
			rec, why := r.read(q, i)
			if why != "" {
				p, off := q.place(i)
				c.damage(p, off, "unit %d of queue %s: %s", i, q.name(), why)
				continue
			}
			shown++
			if err := show(rec); err != nil {
				return shown, err
			}
		}
	}
	return shown, nil
}

func (c *checker) notThere(sel Selection, topics map[string]bool) error {
	if topics[sel.Topic] {
		return fmt.Errorf("%s: topic %s has no queue %d", c.name, sel.Topic, sel.Queue)
	}
	names := make([]string, 0, len(topics))
	for t := range topics {
		names = append(names, t)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return fmt.Errorf("%s: no topic has messages", c.name)
	}
	const most = 20
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return fmt.Errorf("%s: no messages of topic %q; there are: %s", c.name, sel.Topic, strings.Join(names, " "))
}

// quick lists the files of a store without reading the log.
func (d *Dir) quick(ctx context.Context, report func(Finding)) (*checker, error) {
	dir := *d
	dir.stop = ctx.Err
	c := &checker{Dir: &dir, report: report, queues: map[queueKey]*queue{}, orphans: map[queueKey]*run{}, index: &indexes{}}
	c.aborted = d.exists("abort")
	c.checkpoint()
	if err := c.openQueues(); err != nil {
		return nil, err
	}
	return c, c.openLog()
}

// recordReader reads records that mostly stand one behind the other.
type recordReader struct {
	c   *checker
	f   *file
	w   *window
	rec wire.Record
}

// read returns the record that a unit points to, or why there is none.
func (r *recordReader) read(q *queue, i int64) (*wire.Record, string) {
	u, ok := q.unit(i)
	if !ok || !written(u) {
		return nil, "no unit"
	}
	f := r.c.log.seq.find(u.Phy)
	if f == nil {
		return nil, fmt.Sprintf("it points to %d, which the log does not have", u.Phy)
	}
	if f != r.f {
		r.close()
		w, err := r.c.open(f.path)
		if err != nil {
			return nil, err.Error()
		}
		r.f, r.w = f, w
	}
	pos := u.Phy - f.start
	what, _, why, err := r.c.log.judge(f, r.w, pos, &r.rec)
	switch {
	case err != nil:
		return nil, err.Error()
	case what == isZero:
		why = "nothing is written there"
	case what == isFiller:
		why = "the filler is there"
	case what == isRecord && (string(r.rec.Topic) != q.topic || r.rec.QueueID != q.id || r.rec.QueueOffset != i):
		why = fmt.Sprintf("message %d of %s/%d is there", r.rec.QueueOffset, r.rec.Topic, r.rec.QueueID)
	}
	if why != "" {
		return nil, fmt.Sprintf("byte %d of %s: %s", pos, path.Base(f.path), why)
	}
	return &r.rec, ""
}

func (r *recordReader) close() {
	if r.w != nil {
		r.w.close()
		r.f, r.w = nil, nil
	}
}
