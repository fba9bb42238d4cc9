package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// DefaultDelayLevels are the delays of a broker that is not told otherwise,
// level 1 first: 1 s to 2 h.
func DefaultDelayLevels() []time.Duration {
	const s, m, h = time.Second, time.Minute, time.Hour
	return []time.Duration{s, 5 * s, 10 * s, 30 * s, m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, h, 2 * h}
}

// ParseDelayLevels reads the value of messageDelayLevel: numbers with a unit of
// s, m, h or d, and blanks between.
func ParseDelayLevels(text string) ([]time.Duration, error) {
	var levels []time.Duration
	for w := range strings.FieldsSeq(text) {
		unit := unitOf(w[len(w)-1])
		n, err := strconv.ParseInt(w[:len(w)-1], 10, 32)
		if unit == 0 || err != nil || n < 0 || n > int64(maxDelay/unit) {
			return nil, fmt.Errorf("%q is no delay; write 10s, 5m, 2h or 1d", w)
		}
		levels = append(levels, time.Duration(n)*unit)
	}
	if levels == nil {
		return nil, errors.New("no delay given; write for example 1s 5s 10s 1m 2h")
	}
	return levels, nil
}

// maxDelay is more than anyone waits, and sums with times without overflow.
const maxDelay = 100 * 365 * 24 * time.Hour

func unitOf(c byte) time.Duration {
	switch c {
	case 's':
		return time.Second
	case 'm':
		return time.Minute
	case 'h':
		return time.Hour
	case 'd':
		return 24 * time.Hour
	}
	return 0
}

// FormatDelayLevels is what [ParseDelayLevels] reads.
func FormatDelayLevels(levels []time.Duration) string {
	var b []byte
	for i, d := range levels {
		if i > 0 {
			b = append(b, ' ')
		}
		unit := byte('s')
		for _, u := range [...]byte{'d', 'h', 'm'} {
			if d > 0 && d%unitOf(u) == 0 {
				unit = u
				break
			}
		}
		b = append(strconv.AppendInt(b, int64(d/unitOf(unit)), 10), unit)
	}
	return string(b)
}

// NextUnit finds the first unit of a queue at or after an offset, and its
// offset. Without one, ok is false and the offset is where the next unit will
// be: the queue's maximum, 0 when there is no such queue.
func (s *Store) NextUnit(topic string, queueID int32, offset int64) (at int64, u cq.Unit, ok bool) {
	q := s.queues.find(topic, queueID)
	if q == nil {
		return 0, cq.Unit{}, false
	}
	// The maximum first, as in Get.
	limit := q.cq.Max()
	for at = max(offset, q.cq.Min()); at < limit; at++ {
		v := q.cq.View(at)
		n := v.Len()
		for i := range n {
			if u = v.At(i); !u.IsFiller() {
				v.Release()
				return at + int64(i), u, true
			}
		}
		v.Release()
		at = (at/q.cq.FileUnits()+1)*q.cq.FileUnits() - 1 // the file is missing, or has nothing
	}
	return limit, cq.Unit{}, false
}

// Record calls f with the record that a unit points to; r is valid during the
// call only, and its place in the log is not given to others meanwhile. It is
// false, and f is not called, when the log does not have the record.
func (s *Store) Record(u cq.Unit, f func(r *wire.Record)) bool {
	if s.closed.Load() {
		return false
	}
	log := logReader{log: s.log}
	defer log.release()
	b := log.record(u)
	if b == nil {
		return false
	}
	var r wire.Record
	if _, err := wire.DecodeRecord(b, &r); err != nil {
		return false
	}
	f(&r)
	return true
}

// FlushedTo is the log position before which everything is on disk.
func (s *Store) FlushedTo() int64 { return s.flushed.Load() }

// LogFileSize is the size of a file of the commit log, in bytes.
func (s *Store) LogFileSize() int64 { return s.cfg.CommitLogFileSize }
