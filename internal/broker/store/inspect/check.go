package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Sizes that are taken when neither the settings nor the files tell, Apache's.
const (
	defaultLogFile   = 1 << 30
	defaultQueueFile = 300_000 * cq.UnitSize
)

// checker is one check of a directory.
type checker struct {
	*Dir
	report func(Finding)
	sum    Summary

	aborted  bool // in use, or not stopped cleanly
	extended bool // consume queues have extensions
	stamps   [5]int64
	stamped  bool // stamps are from a checkpoint file

	queues  map[queueKey]*queue
	log     *logScan
	index   *indexes
	topics  map[string]bool // of config/topics.json; nil when it cannot be read
	orphans map[queueKey]*run
	pending int64 // records that the next start gives to queues
	done    bool  // the log has been read
	torn    bool  // the log has a torn tail
}

// Check reads all of the store and reports every finding as it comes. Its
// error is ctx's; whatever is wrong with the store is a finding. The time is
// that of reading the whole log.
func (d *Dir) Check(ctx context.Context, report func(Finding)) (Summary, error) {
	dir := *d
	dir.stop = ctx.Err
	c := &checker{Dir: &dir, report: report, queues: map[queueKey]*queue{}, orphans: map[queueKey]*run{}}
	c.aborted, c.extended = d.exists("abort"), d.exists("consumequeue_ext")
	if c.aborted {
		c.sum.Files++
		c.note("abort", whole, "a broker has the store open, or it was not stopped cleanly")
	}
	c.checkpoint()
	c.config()
	// Queues and index before the log: what a running broker adds meanwhile has
	// its record before its unit and its entries.
	if err := c.openQueues(); err != nil {
		return c.sum, err
	}
	begin := c.logBegin()
	for _, k := range c.sortedQueues() {
		if err := ctx.Err(); err != nil {
			return c.sum, err
		}
		q := c.queues[k]
		q.bound(begin)
		q.tail()
	}
	c.openIndex()
	if err := c.openLog(); err != nil {
		return c.sum, err
	}
	if err := c.log.run(c.visit); err != nil {
		return c.sum, err
	}
	c.done = true
	c.sum.Messages = c.log.records
	c.finish()
	return c.sum, ctx.Err()
}

func (c *checker) damage(p string, off int64, format string, args ...any) {
	c.sum.Problems++
	c.report(Finding{Path: c.show(p), Offset: off, Text: fmt.Sprintf(format, args...), Damage: true})
}

func (c *checker) note(p string, off int64, format string, args ...any) {
	c.sum.Notes++
	c.report(Finding{Path: c.show(p), Offset: off, Text: fmt.Sprintf(format, args...)})
}

// checkpoint reads the file that says how far flushing had come.
func (c *checker) checkpoint() {
	const size = 4096
	i, err := fs.Stat(c.fsys, "checkpoint")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if es, _ := c.list("commitlog"); len(es) > 0 {
			c.damage("checkpoint", whole, "missing, though there is a commit log; after a crash a start has to scan all of it")
		}
		return
	case err != nil:
		c.damage("checkpoint", whole, "cannot be read: %v", err)
		return
	}
	c.sum.Files++
	if i.Size() != size {
		c.damage("checkpoint", min(i.Size(), size), "the file has %d bytes, want %d", i.Size(), size)
	}
	b := make([]byte, 8*len(c.stamps))
	if i.Size() < int64(len(b)) {
		return
	}
	if err := c.readAt("checkpoint", b, 0); err != nil {
		c.damage("checkpoint", whole, "cannot be read: %v", err)
		return
	}
	c.stamped = true
	for k := range c.stamps {
		c.stamps[k] = int64(binary.BigEndian.Uint64(b[8*k:]))
		// In the fourth Apache keeps -1 while there is no master.
		if c.stamps[k] < 0 && k != 3 || c.stamps[k] < -1 {
			c.damage("checkpoint", int64(8*k), "%d is no time and no position", c.stamps[k])
			c.stamps[k] = 0
		}
	}
}

// Fields of the checkpoint, by number.
const (
	stampLog    = 0
	stampQueues = 1
	stampIndex  = 2
)

// openQueues lists all consume queues and their files.
func (c *checker) openQueues() error {
	topics, err := c.list("consumequeue")
	if err != nil {
		c.damage("consumequeue", whole, "cannot be read: %v", err)
		return nil
	}
	var keys []queueKey
	var lists [][]entry
	for _, t := range topics {
		if err := c.stop(); err != nil {
			return err
		}
		if !t.dir {
			if t.err != nil {
				c.damage(path.Join("consumequeue", t.name), whole, "cannot be read: %v", t.err)
			}
			continue // as the brokers do
		}
		ids, err := c.list(path.Join("consumequeue", t.name))
		if err != nil {
			c.damage(path.Join("consumequeue", t.name), whole, "cannot be read: %v", err)
			continue
		}
		for _, e := range ids {
			dir := path.Join("consumequeue", t.name, e.name)
			id, err := strconv.ParseInt(e.name, 10, 32)
			switch {
			case e.err != nil:
				c.damage(dir, whole, "cannot be read: %v", e.err)
				continue
			case err != nil || id < 0 || !e.dir:
				c.note(dir, whole, "not a queue; brokers ignore it")
				continue
			}
			es, err := c.list(dir)
			if err != nil {
				c.damage(dir, whole, "cannot be read: %v", err)
				continue
			}
			keys, lists = append(keys, queueKey{t.name, int32(id)}), append(lists, es)
		}
	}
	size := orGuess(c.sizes.ConsumeQueue, guessSize(lists, cq.UnitSize), defaultQueueFile)
	for i, k := range keys {
		dir := path.Join("consumequeue", k.topic, strconv.Itoa(int(k.id)))
		c.queues[k] = &queue{queueKey: k, c: c, seq: c.sequence(dir, lists[i], size)}
	}
	return nil
}

func orGuess(set, guess, def int64) int64 {
	switch {
	case set > 0:
		return set
	case guess > 0:
		return guess
	}
	return def
}

// logBegin is where the log's oldest file starts.
func (c *checker) logBegin() int64 {
	es, _ := c.list("commitlog") // openLog reports what is wrong with it
	for _, e := range es {
		if start, ok := mfile.ParseName(e.name); ok && !e.dir {
			return start
		}
	}
	return 0
}

// openLog lists the files of the commit log.
func (c *checker) openLog() error {
	es, err := c.list("commitlog")
	if err != nil {
		c.damage("commitlog", whole, "cannot be read: %v", err)
	} else if !c.exists("commitlog") && len(c.queues) > 0 {
		c.damage("commitlog", whole, "missing, though there are consume queues")
	}
	c.log = &logScan{c: c, seq: c.sequence("commitlog", es, orGuess(c.sizes.CommitLog, guessSize([][]entry{es}, 1), defaultLogFile))}
	if fs := c.log.seq.files; len(fs) > 0 {
		c.log.begin = fs[0].start
	}
	return c.stop()
}

// logPlace is the file of the log and the byte in it of a log position.
func (c *checker) logPlace(phy int64) (string, int64) { return c.log.seq.place(phy) }

// visit takes the next record of the log.
func (c *checker) visit(r *wire.Record, whole bool) {
	if whole {
		c.index.match(r)
	}
	if !inQueue(r.SysFlag) {
		return
	}
	q := c.queues[queueKey{string(r.Topic), r.QueueID}]
	if q == nil {
		k := queueKey{string(r.Topic), r.QueueID}
		o := c.orphans[k]
		if o == nil {
			o = &run{}
			c.orphans[k] = o
		}
		o.add(r.QueueOffset, r.PhyOffset)
		return
	}
	q.match(r)
	if !whole {
		if g := c.log.at(r.PhyOffset); g != nil && q.cur == r.QueueOffset+1 && q.pointsTo(r.QueueOffset, r.PhyOffset) {
			g.units++
		}
	}
}

// sortedQueues lists the queues in an order that does not change.
func (c *checker) sortedQueues() []queueKey {
	keys := make([]queueKey, 0, len(c.queues))
	for k := range c.queues {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}
