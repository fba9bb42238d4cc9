package inspect

import (
	"context"
	"path"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Stats is what is in a store. Times are ms since 1970, 0 if unknown.
type Stats struct {
	Aborted bool // in use, or not stopped cleanly

	LogFiles    int
	LogFileSize int64 // bytes
	LogBegin    int64 // positions of the log
	LogEnd      int64
	FirstStored int64 // store times of the first and the last record
	LastStored  int64

	QueueFileSize int64
	Queues        []QueueStats // in order of topic and queue

	IndexFiles   int
	IndexEntries int64

	// Checkpoint has the times up to which log, queues and index were flushed;
	// zeros without a checkpoint.
	Checkpoint [3]int64
}

// QueueStats is one consume queue.
type QueueStats struct {
	Topic    string
	ID       int32
	Files    int
	Min, Max int64 // offsets: of the first message that the log still has, and after the last
}

// Stats counts what is there. It reads the queues and the newest file of the
// log with something in it, not the whole log, and looks for damage only
// where it would make the figures wrong; that is given to report.
func (d *Dir) Stats(ctx context.Context, report func(Finding)) (s Stats, err error) {
	c, err := d.quick(ctx, report)
	if err != nil {
		return s, err
	}
	s.Aborted = c.aborted
	copy(s.Checkpoint[:], c.stamps[:])
	if err := c.logStats(&s); err != nil {
		return s, err
	}
	for _, k := range c.sortedQueues() {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		q := c.queues[k]
		q.bound(c.log.begin)
		s.QueueFileSize = q.seq.size
		s.Queues = append(s.Queues, QueueStats{Topic: k.topic, ID: k.id, Files: len(q.seq.files), Min: q.first, Max: q.end})
	}
	return s, c.indexStats(&s)
}

func (c *checker) logStats(s *Stats) error {
	l := c.log
	s.LogFiles, s.LogFileSize, s.LogBegin = len(l.seq.files), l.seq.size, l.begin
	s.LogEnd = s.LogBegin
	for i := len(l.seq.files) - 1; i >= 0 && s.LastStored == 0; i-- {
		part := &logScan{c: c, seq: &sequence{dir: l.seq.dir, size: l.seq.size, files: l.seq.files[i : i+1]}}
		if err := part.run(func(*wire.Record, bool) {}); err != nil {
			return err
		}
		if part.records > 0 {
			s.LogEnd, s.LastStored = part.end, part.newest
		}
	}
	if len(l.seq.files) > 0 {
		f := &l.seq.files[0]
		w, err := c.open(f.path)
		if err != nil {
			return err
		}
		defer w.close()
		var r wire.Record
		if what, _, _, err := l.judge(f, w, 0, &r); err == nil && what >= isRecord {
			s.FirstStored = r.StoreTime
		}
	}
	return nil
}

func (c *checker) indexStats(s *Stats) error {
	es, err := c.list("index")
	if err != nil {
		return err
	}
	for _, e := range es {
		var count [4]byte
		if e.dir || e.size < indexHeader {
			continue
		}
		if err := c.readAt(path.Join("index", e.name), count[:], indexHeader-4); err != nil {
			return err
		}
		s.IndexFiles++
		n := int64(int32(uint32(count[0])<<24 | uint32(count[1])<<16 | uint32(count[2])<<8 | uint32(count[3])))
		s.IndexEntries += max(0, n-1)
	}
	return nil
}
