package store

import "sort"

// MaxOffset is the offset after the last readable record of a queue, 0 when
// there is no such queue.
func (s *Store) MaxOffset(topic string, queueID int32) int64 {
	if q := s.queues.find(topic, queueID); q != nil {
		return q.cq.Max()
	}
	return 0
}

// MinOffset is the offset of the first record of a queue that is still in the
// log; the maximum when all are gone, 0 when there is no such queue.
func (s *Store) MinOffset(topic string, queueID int32) int64 {
	if q := s.queues.find(topic, queueID); q != nil {
		return q.cq.Min()
	}
	return 0
}

// StoreTimeAt is when the record at an offset was stored, in ms; -1 when there
// is no such record.
func (s *Store) StoreTimeAt(topic string, queueID int32, offset int64) int64 {
	q := s.queues.find(topic, queueID)
	if q == nil || offset < q.cq.Min() {
		return -1
	}
	u, ok := q.cq.At(offset)
	if !ok {
		return -1
	}
	f, b := s.log.hold(u.Phy)
	if f == nil {
		return -1
	}
	defer f.Release()
	return recordStoreTime(b)
}

// EarliestStoreTime is when the first record of a queue was stored, in ms; -1
// when it has none.
func (s *Store) EarliestStoreTime(topic string, queueID int32) int64 {
	return s.StoreTimeAt(topic, queueID, s.MinOffset(topic, queueID))
}

// MessageInMemory reports whether the record at an offset exists and is so
// close to the log's end that it is likely in memory.
func (s *Store) MessageInMemory(topic string, queueID int32, offset int64) bool {
	q := s.queues.find(topic, queueID)
	if q == nil || offset < q.cq.Min() {
		return false
	}
	u, ok := q.cq.At(offset)
	return ok && s.log.end.Load()-u.Phy <= s.cfg.MemoryBytes
}

// OffsetByTime finds the first record stored at or after ms; with upper the
// last one stored at or before it. Like Apache's 5.x broker it looks for the
// consume queue file first, and returns the offset after the last record when
// all are older (with upper: the last one), 0 with upper when all in the file
// are younger. The result lies between minimum and maximum.
func (s *Store) OffsetByTime(topic string, queueID int32, ms int64, upper bool) int64 {
	q := s.queues.find(topic, queueID)
	if q == nil {
		return 0
	}
	t := timeSearch{log: s.log, q: q, begin: s.log.begin(), lo: q.cq.Min(), hi: q.cq.Max()}
	if t.lo >= t.hi {
		return t.hi
	}
	off := int64(0)
	if upper {
		off = t.upper(ms)
	} else {
		off = t.lower(ms)
	}
	return min(max(off, t.lo), t.hi)
}

// timeSearch looks for store times among the units lo to hi-1 of a queue.
type timeSearch struct {
	log    *commitLog
	q      *queue
	begin  int64 // of the log
	lo, hi int64
}

// at is a unit's store time; -1, before all times, for one whose record is
// gone.
func (t *timeSearch) at(off int64) int64 {
	u, ok := t.q.cq.At(off)
	if !ok || u.IsFiller() || u.Phy < t.begin {
		return -1
	}
	return t.log.storeTimeAt(u.Phy)
}

// file returns the first and the last unit of the i-th file.
func (t *timeSearch) file(i int64) (first, last int64) {
	n := t.q.cq.FileUnits()
	return max(i*n, t.lo), min((i+1)*n, t.hi) - 1
}

func (t *timeSearch) lower(ms int64) int64 {
	n := t.q.cq.FileUnits()
	i, newest := t.lo/n, (t.hi-1)/n
	for ; i < newest; i++ {
		if _, last := t.file(i); t.at(last) >= ms {
			break
		}
	}
	first, last := t.file(i)
	return first + int64(sort.Search(int(last-first)+1, func(k int) bool { return t.at(first+int64(k)) >= ms }))
}

func (t *timeSearch) upper(ms int64) int64 {
	n := t.q.cq.FileUnits()
	i, oldest := (t.hi-1)/n, t.lo/n
	for ; i > oldest; i-- {
		if first, _ := t.file(i); t.at(first) <= ms {
			break
		}
	}
	first, last := t.file(i)
	return first + int64(sort.Search(int(last-first)+1, func(k int) bool { return t.at(first+int64(k)) > ms })) - 1
}
