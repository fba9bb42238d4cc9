package store

import (
	"bytes"
	"slices"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// maxCandidates bounds how many records one Query looks at that turn out to be
// others. Hashes have 31 bits: only keys made for that can come near it.
const maxCandidates = 4096

// QueryRequest asks for records by key.
type QueryRequest struct {
	Topic []byte
	Key   []byte // one of the record's keys, or its unique id
	// Unique asks for the unique id alone.
	Unique bool
	// Begin and End bound the store time, both included, in ms.
	Begin, End int64
	// Max is how many records are wanted, at most [Config.MaxQuery]: the
	// newest ones.
	Max int32
	// MaxBytes bounds the records together; the newest is always given. 0: no
	// bound.
	MaxBytes int
}

// QueryResult goes with the records of a Query.
type QueryResult struct {
	Count int
	// IndexTime and IndexPhy are store time, in ms, and log position of the
	// newest record in the index; 0 if nothing was found, as Apache has it.
	IndexTime, IndexPhy int64
}

// Query appends the newest records with a key to dst, in the order of the log.
// Unlike Apache's it looks at each record: topic, key and store time are those
// asked for, and no record comes twice. It sees what is indexed, a moment
// after Put. It may block for the disk.
func (s *Store) Query(dst []byte, q QueryRequest) ([]byte, QueryResult) {
	var res QueryResult
	limit := int(min(q.Max, s.cfg.MaxQuery))
	if s.closed.Load() || limit <= 0 {
		return dst, res
	}
	x := s.indexer.index
	indexPhy, indexTime, _ := x.End()
	var (
		log   = logReader{log: s.log}
		begin = s.log.begin()
		rec   wire.Record
		units []cq.Unit // what was found, newest first
		total int
		tries int
	)
	defer log.release()
	for phy := range x.Query(q.Topic, q.Key, q.Begin, q.End) {
		if phy < begin || len(units) == limit || tries > maxCandidates {
			break
		}
		if !q.wants(&log, phy, &rec) {
			tries++
			continue
		}
		u := cq.Unit{Phy: phy, Size: rec.Size}
		if slices.Contains(units, u) {
			continue
		}
		if total += int(rec.Size); q.MaxBytes > 0 && total > q.MaxBytes && len(units) > 0 {
			break
		}
		units = append(units, u)
	}
	for _, u := range slices.Backward(units) {
		if b := log.record(u); b != nil { // else it was cleaned away just now
			dst = append(dst, b...)
			res.Count++
		}
	}
	if res.Count > 0 {
		res.IndexTime, res.IndexPhy = indexTime, indexPhy
	}
	return dst, res
}

// wants reports whether the record at phy is one that is asked for.
func (q *QueryRequest) wants(log *logReader, phy int64, r *wire.Record) bool {
	b := log.at(phy)
	if b == nil {
		return false
	}
	if what, _, _ := scan(b, phy, false, r); what != foundRecord {
		return false
	}
	if r.StoreTime < q.Begin || r.StoreTime > q.End || !bytes.Equal(r.Topic, q.Topic) {
		return false
	}
	if id, ok := r.Properties.Lookup(wire.PropUniqKey); ok && bytes.Equal(id, q.Key) {
		return true
	}
	keys, _ := r.Properties.Lookup(wire.PropKeys)
	return !q.Unique && len(q.Key) > 0 && hasKey(keys, q.Key)
}

// hasKey reports whether key is one of keys, which are separated by spaces.
func hasKey(keys, key []byte) bool {
	for k := range bytes.SplitSeq(keys, []byte(wire.KeySeparator)) {
		if bytes.Equal(k, key) {
			return true
		}
	}
	return false
}
