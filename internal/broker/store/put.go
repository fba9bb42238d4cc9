package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	maxTopic      = wire.MaxTopicV1 // bytes of a topic's name
	maxRetryTopic = 255             // bytes of a retry topic's name, stored as V2

	// recordSlack is how much longer than a body may be a whole record.
	recordSlack = 64 << 10

	// keepBuffer bounds the encode buffers that are kept for reuse.
	keepBuffer = 256 << 10
)

// buffers are what records are built in, outside the append lock.
type buffers struct{ pool sync.Pool }

type buffer struct {
	b     []byte // encoded records
	props []byte
	rec   wire.Record
}

func (p *buffers) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		return b
	}
	return &buffer{b: make([]byte, 0, 4<<10)}
}

func (p *buffers) put(b *buffer) {
	if cap(b.b) <= keepBuffer && cap(b.props) <= keepBuffer {
		b.rec.Topic, b.rec.Body, b.rec.Properties = nil, nil, nil // the caller's
		p.pool.Put(b)
	}
}

func refuse(s Status, err error) PutResult { return PutResult{Status: s, Err: err} }

// Put appends one message to the log. With a true second result the answer is
// not there yet: w.Stored will get it, perhaps before Put returns. That is so
// with [Config.SyncFlush] unless w is nil or m.NoWait is set; then the answer
// does not tell whether the message is on disk. Put blocks for the append lock
// and, when the log needs a new file, for that; with SyncFlush also when
// 16 MiB of records wait for the disk, up to a second. It is safe for
// concurrent use; the order of the log is the order in which callers get the
// lock.
//
// A record can be read through its queue only once the dispatcher has seen
// it, a moment after Put returns, and with SyncFlush once it is on disk: see
// [Config.OnArrival].
func (s *Store) Put(m *Message, w Waiter) (PutResult, bool) {
	if st, err := s.check(m); err != nil {
		return refuse(st, err), false
	}
	if len(m.Body) > s.cfg.MaxMessageSize {
		return refuse(MessageIllegal, fmt.Errorf("store: body of %d bytes, the limit is %d", len(m.Body), s.cfg.MaxMessageSize)), false
	}
	buf := s.buffers.get()
	defer s.buffers.put(buf)
	rec := &buf.rec
	s.record(rec, m)
	rec.Body, rec.Properties = m.Body, m.Properties
	if n := len(m.Properties); n > 0 && m.Properties[n-1] != propertyEnd {
		buf.props = append(append(buf.props[:0], m.Properties...), propertyEnd)
		rec.Properties = buf.props
	}
	if len(rec.Properties) > wire.MaxProperties {
		return refuse(PropertiesSizeExceeded, tooManyProperties(len(rec.Properties))), false
	}
	buf.b = wire.AppendRecord(buf.b[:0], rec)
	if limit := s.cfg.MaxMessageSize + recordSlack; len(buf.b) > limit {
		return refuse(MessageIllegal, fmt.Errorf("store: record of %d bytes, the limit is %d", len(buf.b), limit)), false
	}
	return s.append(m, buf.b, 1, rec, nil, w)
}

// check refuses what must not get into the log, whatever it is.
func (s *Store) check(m *Message) (Status, error) {
	if err := s.writable(); err != nil {
		return ServiceNotAvailable, err
	}
	limit := maxTopic
	if len(m.Topic) > maxTopic && wire.IsRetryTopic(string(m.Topic)) {
		limit = maxRetryTopic
	}
	switch {
	case len(m.Topic) == 0 || len(m.Topic) > limit:
		return MessageIllegal, fmt.Errorf("store: topic of %d bytes, want 1 to %d", len(m.Topic), limit)
	case m.Body == nil:
		return MessageIllegal, errors.New("store: message without a body")
	}
	return PutOK, nil
}

// record sets what all records made of m have in common. Body, properties and
// what the append lock decides are left out.
func (s *Store) record(r *wire.Record, m *Message) {
	born := m.BornHost
	if !born.IsValid() {
		born = s.cfg.StoreHost
	}
	*r = wire.Record{
		QueueID:        m.QueueID,
		Flag:           m.Flag,
		SysFlag:        m.SysFlag,
		BornTime:       m.BornTime,
		BornHost:       unmap(born),
		StoreHost:      unmap(s.cfg.StoreHost),
		ReconsumeTimes: m.ReconsumeTimes,
		PreparedOffset: m.PreparedOffset,
		Topic:          m.Topic,
	}
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// append puts n encoded records of one message into the log, all or none, and
// gives them their places: offsets and store time are written into b. rec is
// the record if there is just one, else nil. If phy is not nil the records'
// positions are appended to it.
func (s *Store) append(m *Message, b []byte, n int64, rec *wire.Record, phy []int64, w Waiter) (PutResult, bool) {
	if int64(len(b))+wire.BlankSize > s.cfg.CommitLogFileSize {
		return refuse(MessageIllegal, fmt.Errorf("store: %d bytes of records do not fit into a commit log file of %d", len(b), s.cfg.CommitLogFileSize)), false
	}
	queued := inQueue(m.SysFlag)
	for {
		q := s.queues.obtain(m.Topic, m.QueueID)
		if q == nil {
			return refuse(MessageIllegal, fmt.Errorf("store: topic %q and queue %d cannot name a directory", m.Topic, m.QueueID)), false
		}
		if err := s.log.lock(int64(len(b))); err != nil {
			return refuse(s.log.statusOf(err), err), false
		}
		if q.dead {
			s.log.mu.Unlock()
			continue // the topic was deleted just now; begin it anew
		}
		now := s.cfg.Clock.Now()
		r := PutResult{PhyOffset: s.log.tail(), StoreTime: now.UnixMilli(), PhyOffsets: phy}
		if queued {
			r.QueueOffset = q.next
			q.next += n
		}
		for at, off := 0, r.QueueOffset; at < len(b); at, off = at+recordSize(b[at:]), off+1 {
			one := b[at:]
			wire.PatchQueueOffset(one, off)
			wire.PatchPhyOffset(one, r.PhyOffset+int64(at))
			wire.PatchStoreTime(one, r.StoreTime)
			if phy != nil {
				r.PhyOffsets = append(r.PhyOffsets, r.PhyOffset+int64(at))
			}
		}
		if s.sync != nil {
			waits := w != nil && !m.NoWait
			r.End = s.log.write(b, r.StoreTime)
			begun := s.log.group.begin()
			if waits {
				s.sync.waiters.add(waiting{end: r.End, since: now.Sub(s.opened) + 1, res: r, w: w})
			}
			s.log.mu.Unlock()
			if begun {
				s.sync.wake()
			}
			return r, waits
		}
		r.End = s.log.write(b, r.StoreTime)
		s.log.mu.Unlock()
		if invariants {
			s.checkAppended(&r, queued, n)
		}
		if rec != nil {
			complete(rec, b, &r)
		}
		s.dispatch.carry(r.End, rec, q)
		return r, false
	}
}

// complete makes rec what decoding b would give: followers get it instead.
func complete(rec *wire.Record, b []byte, r *PutResult) {
	const crc, flags = 8, 36
	rec.Size = int32(len(b))
	rec.BodyCRC = binary.BigEndian.Uint32(b[crc:])
	rec.SysFlag = int32(binary.BigEndian.Uint32(b[flags:]))
	rec.V2 = len(rec.Topic) > wire.MaxTopicV1
	rec.QueueOffset, rec.PhyOffset, rec.StoreTime = r.QueueOffset, r.PhyOffset, r.StoreTime
}

// checkAppended is for the build tag invariants. Records without a place in a
// queue have no offsets of their own.
func (s *Store) checkAppended(r *PutResult, queued bool, n int64) {
	if !queued {
		n = 0
	}
	s.checkRecords(r.PhyOffset, r.End, r.QueueOffset, n)
}

// recordSize reads the size of an encoded record.
func recordSize(b []byte) int { return int(binary.BigEndian.Uint32(b)) }

// PutBatch appends all messages of a client's batch with consecutive queue
// offsets and without anything in between, or none of them. m.Body is the
// batch as the client encoded it; topic, queue, hosts and times are those of
// m; m.Properties is appended to the properties of each item. The positions
// of the records are appended to phy and returned as PhyOffsets. Otherwise it
// is like [Store.Put].
func (s *Store) PutBatch(m *Message, phy []int64, w Waiter) (PutResult, bool) {
	if st, err := s.check(m); err != nil {
		return refuse(st, err), false
	}
	if m.SysFlag&wire.SysTranMask != 0 {
		return refuse(MessageIllegal, errors.New("store: a batch cannot be transactional")), false
	}
	if _, ok := wire.Properties(m.Properties).Lookup(wire.PropDelay); ok {
		return refuse(MessageIllegal, errors.New("store: a batch cannot be delayed")), false
	}
	buf := s.buffers.get()
	defer s.buffers.put(buf)
	buf.b = buf.b[:0]
	n := int64(0)
	rec := &buf.rec
	s.record(rec, m)
	for it := wire.Batch(m.Body); ; n++ {
		item, ok, err := it.Next()
		if err != nil {
			return refuse(MessageIllegal, fmt.Errorf("store: batch item %d: %w", n, err)), false
		}
		if !ok {
			break
		}
		buf.props = joinProperties(buf.props[:0], item.Properties, m.Properties)
		if len(buf.props) > wire.MaxProperties {
			return refuse(PropertiesSizeExceeded, fmt.Errorf("batch item %d: %w", n, tooManyProperties(len(buf.props)))), false
		}
		rec.Flag, rec.Body, rec.Properties = item.Flag, item.Body, buf.props
		buf.b = wire.AppendRecord(buf.b, rec)
		if len(buf.b) > s.cfg.MaxMessageSize {
			return refuse(MessageIllegal, fmt.Errorf("store: the records of the batch exceed the limit of %d bytes", s.cfg.MaxMessageSize)), false
		}
	}
	if n == 0 {
		return refuse(MessageIllegal, errors.New("store: empty batch")), false
	}
	if phy == nil {
		phy = make([]int64, 0, n)
	}
	return s.append(m, buf.b, n, nil, phy, w)
}

// propertyEnd ends each property. Stored properties always end with it, so
// that recovery can tell whether a record is whole.
const propertyEnd = 0x02

// joinProperties appends two encoded property strings, each with the end mark
// that it may lack.
func joinProperties(dst []byte, parts ...[]byte) []byte {
	for _, p := range parts {
		dst = append(dst, p...)
		if n := len(p); n > 0 && p[n-1] != propertyEnd {
			dst = append(dst, propertyEnd)
		}
	}
	return dst
}

func tooManyProperties(n int) error {
	return fmt.Errorf("store: properties of %d bytes, the limit is %d", n, wire.MaxProperties)
}
