package store

import (
	"math"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// maxGetBytes bounds one Get whatever else allows.
const maxGetBytes = 128 << 20

// Get appends whole records of a queue to dst and returns it, with what there
// is to say about them. It reads what the dispatcher has seen, never blocks
// for new messages, and does not allocate but for dst and a filter. Limits
// and offsets are those of Apache's DefaultMessageStore.
func (s *Store) Get(dst []byte, req GetRequest) ([]byte, GetResult) {
	if s.closed.Load() {
		return dst, GetResult{Status: Unavailable, NextOffset: req.Offset}
	}
	q := s.queues.findBytes(req.Topic, req.QueueID)
	if q == nil {
		return dst, GetResult{Status: NoMessageInQueue} // Apache makes the queue by looking for it
	}
	// In this order: a queue that gets its first unit, which need not have
	// offset 0, has its minimum before its maximum.
	res := GetResult{MaxOffset: q.cq.Max()}
	res.MinOffset = q.cq.Min()
	off := req.Offset
	switch {
	case res.MaxOffset == 0:
		res.Status = NoMessageInQueue
	case off < res.MinOffset:
		res.Status, res.NextOffset = OffsetTooSmall, res.MinOffset
	case off == res.MaxOffset:
		res.Status, res.NextOffset = OffsetOverflowOne, off
	case off > res.MaxOffset:
		res.Status, res.NextOffset = OffsetOverflowBadly, res.MaxOffset
	default:
		v := q.cq.View(off)
		defer v.Release()
		if v.Len() == 0 {
			res.Status, res.NextOffset = OffsetFoundNull, (off/q.cq.FileUnits()+1)*q.cq.FileUnits()
			break
		}
		return s.collect(dst, &req, v, res)
	}
	return dst, res
}

// collect takes records of one consume queue file. v begins at the unit asked
// for.
func (s *Store) collect(dst []byte, req *GetRequest, v cq.View, res GetResult) ([]byte, GetResult) {
	var (
		log     = logReader{log: s.log}
		end     = s.log.end.Load()
		begin   = len(dst)
		skipTo  = int64(math.MinInt64) // log position; units before it are gone
		examine = max(s.cfg.FilterBytes/cq.UnitSize, int(req.MaxMsgs))
		last    int64 // log position of the last unit looked at
		rec     *wire.Record
	)
	defer log.release()
	res.Status, res.NextOffset = NoMatchedMessage, req.Offset
	for i := 0; i < v.Len() && i < examine; i++ {
		u := v.At(i)
		if s.full(&res, req, u, len(dst)-begin, end) {
			break
		}
		last = u.Phy
		res.NextOffset = req.Offset + int64(i) + 1
		if u.Phy < skipTo {
			continue
		}
		if req.Filter != nil && !req.Filter.MatchCode(u.Tags) {
			if res.Count == 0 {
				res.Status = NoMatchedMessage
			}
			continue
		}
		b := log.record(u)
		if b == nil {
			if res.Count == 0 {
				res.Status = MessageWasRemoving
			}
			skipTo = u.Phy - u.Phy%s.cfg.CommitLogFileSize + s.cfg.CommitLogFileSize
			continue
		}
		skipTo = math.MinInt64
		if req.Filter != nil {
			if rec == nil {
				rec = new(wire.Record)
			}
			if _, err := wire.DecodeRecord(b, rec); err != nil || !req.Filter.MatchRecord(rec) {
				if res.Count == 0 {
					res.Status = NoMatchedMessage
				}
				continue
			}
		}
		dst = append(dst, b...)
		res.Status = Found
		res.Count++
	}
	res.SuggestSlave = end-last > s.cfg.MemoryBytes
	return dst, res
}

// full reports whether a Get that has n bytes ends before unit u.
func (s *Store) full(res *GetResult, req *GetRequest, u cq.Unit, n int, end int64) bool {
	if res.Count == 0 {
		return false
	}
	bytes, count := s.cfg.MemoryTransferBytes, s.cfg.MemoryTransferCount
	if end-u.Phy > s.cfg.MemoryBytes {
		bytes, count = s.cfg.DiskTransferBytes, s.cfg.DiskTransferCount
	}
	n += int(u.Size)
	return res.Count >= req.MaxMsgs || int(res.Count) >= count || n > bytes || n > maxGetBytes
}

// logReader reads records that mostly lie in one file, and holds that file.
type logReader struct {
	log *commitLog
	f   *mfile.File
	b   []byte // what is written of f
}

// record returns the record a unit points to, valid until the next call or
// release; nil when the log does not have it.
func (r *logReader) record(u cq.Unit) []byte {
	b := r.at(u.Phy)
	if u.Size < minRecord || int64(u.Size) > int64(len(b)) || recordSize(b) != int(u.Size) {
		return nil
	}
	return b[:u.Size]
}

// at returns what is written of a file from log position phy on, valid until
// the next call or release; nil when the log does not have it.
func (r *logReader) at(phy int64) []byte {
	if r.f == nil || phy < r.f.Start() || phy >= r.f.Start()+int64(len(r.b)) {
		r.release()
		end := r.log.end.Load()
		if phy < 0 || phy >= end {
			return nil
		}
		if r.f = r.log.seq.Hold(phy); r.f == nil {
			return nil
		}
		r.b = r.f.Data()[:min(end, r.f.End())-r.f.Start()]
	}
	return r.b[phy-r.f.Start():]
}

func (r *logReader) release() {
	if r.f != nil {
		r.f.Release()
		r.f, r.b = nil, nil
	}
}

// ViewMessage appends the record at a log position to dst; false when there
// is no record.
func (s *Store) ViewMessage(dst []byte, phy int64) ([]byte, bool) {
	f, b := s.log.hold(phy)
	if f == nil {
		return dst, false
	}
	defer f.Release()
	var r wire.Record
	what, n, _ := scan(b, phy, false, &r)
	if what != foundRecord {
		return dst, false
	}
	return append(dst, b[:n]...), true
}
