package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Magic numbers at the start of a record, and of the filler at the end of a
// commit log file.
const (
	MagicV1    uint32 = 0xDAA320A7
	MagicV2    uint32 = 0xDAA320AB // topic length of two bytes; 5.x
	MagicBlank uint32 = 0xCBD43194
)

// BlankSize is how many bytes a filler needs at least.
const BlankSize = 8

// Limits of a record.
const (
	MaxTopicV1 = 127 // bytes of a topic in a V1 record
	MaxTopicV2 = 32767
)

// Errors of [DecodeRecord].
var (
	ErrRecord = errors.New("malformed message record")
	// ErrBlank is not a fault: the rest of the file is filler.
	ErrBlank = errors.New("filler at the end of a commit log file")
)

// Record is one message as it is stored in the commit log and sent to
// consumers:
//
//	size 4, magic 4, body crc 4, queue id 4, flag 4, queue offset 8,
//	physical offset 8, sys flag 4, born time 8, born host 8|20,
//	store time 8, store host 8|20, reconsume times 4, prepared offset 8,
//	body length 4, body, topic length 1|2, topic, properties length 2, properties
//
// A host is its address and a 32-bit port. The zero address stands for 0.0.0.0.
type Record struct {
	Size           int32  // of the whole record; set by DecodeRecord only
	BodyCRC        uint32 // of the body as stored, see BodyCRC; set by DecodeRecord only
	QueueID        int32
	Flag           int32 // the user's
	QueueOffset    int64
	PhyOffset      int64 // in the commit log
	SysFlag        int32 // Sys... bits; those of the hosts follow the addresses
	BornTime       int64 // ms since 1970
	BornHost       netip.AddrPort
	StoreTime      int64 // ms since 1970
	StoreHost      netip.AddrPort
	ReconsumeTimes int32
	PreparedOffset int64
	V2             bool // a topic longer than MaxTopicV1 makes it so anyway
	Body           []byte
	Topic          []byte
	Properties     Properties
}

// Places within a record.
const (
	recMagic       = 4
	recCRC         = 8
	recQueueID     = 12
	recFlag        = 16
	recQueueOffset = 20
	recPhyOffset   = 28
	recSysFlag     = 36
	recBornTime    = 40
	recBornHost    = 48
	recMin         = 91 // all but body, topic, properties; V1, IPv4
)

// RecordSize is how many bytes [AppendRecord] will append.
func RecordSize(r *Record) int {
	n := recMin + len(r.Body) + len(r.Topic) + len(r.Properties)
	if r.isV2() {
		n++
	}
	if isV6(r.BornHost) {
		n += 12
	}
	if isV6(r.StoreHost) {
		n += 12
	}
	return n
}

func (r *Record) isV2() bool { return r.V2 || len(r.Topic) > MaxTopicV1 }

func isV6(a netip.AddrPort) bool { return a.Addr().BitLen() == 128 }

// Check tells whether the record can be written at all.
func (r *Record) Check() error {
	switch {
	case len(r.Topic) == 0 || len(r.Topic) > MaxTopicV2:
		return fmt.Errorf("%w: topic of %d bytes", ErrRecord, len(r.Topic))
	case len(r.Properties) > MaxProperties:
		return fmt.Errorf("%w: properties of %d bytes exceed %d", ErrRecord, len(r.Properties), MaxProperties)
	case int64(RecordSize(r)) > maxInt32:
		return fmt.Errorf("%w: body of %d bytes", ErrRecord, len(r.Body))
	}
	return nil
}

// AppendRecord appends the record, with the checksum of its body. The record
// must be one that [Record.Check] accepts.
func AppendRecord(dst []byte, r *Record) []byte {
	magic, flag := MagicV1, r.SysFlag&^(SysBornV6|SysStoreV6)
	if r.isV2() {
		magic = MagicV2
	}
	if isV6(r.BornHost) {
		flag |= SysBornV6
	}
	if isV6(r.StoreHost) {
		flag |= SysStoreV6
	}
	be := binary.BigEndian
	b := be.AppendUint32(dst, uint32(RecordSize(r)))
	b = be.AppendUint32(b, magic)
	b = be.AppendUint32(b, BodyCRC(r.Body))
	b = be.AppendUint32(b, uint32(r.QueueID))
	b = be.AppendUint32(b, uint32(r.Flag))
	b = be.AppendUint64(b, uint64(r.QueueOffset))
	b = be.AppendUint64(b, uint64(r.PhyOffset))
	b = be.AppendUint32(b, uint32(flag))
	b = be.AppendUint64(b, uint64(r.BornTime))
	b = appendHost(b, r.BornHost)
	b = be.AppendUint64(b, uint64(r.StoreTime))
	b = appendHost(b, r.StoreHost)
	b = be.AppendUint32(b, uint32(r.ReconsumeTimes))
	b = be.AppendUint64(b, uint64(r.PreparedOffset))
	b = be.AppendUint32(b, uint32(len(r.Body)))
	b = append(b, r.Body...)
	if magic == MagicV2 {
		b = be.AppendUint16(b, uint16(len(r.Topic)))
	} else {
		b = append(b, byte(len(r.Topic)))
	}
	b = append(b, r.Topic...)
	b = be.AppendUint16(b, uint16(len(r.Properties)))
	return append(b, r.Properties...)
}

func appendHost(b []byte, a netip.AddrPort) []byte {
	if isV6(a) {
		ip := a.Addr().As16()
		b = append(b, ip[:]...)
	} else if a.Addr().Is4() {
		ip := a.Addr().As4()
		b = append(b, ip[:]...)
	} else {
		b = append(b, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint32(b, uint32(a.Port()))
}

// AppendBlank appends the head of the filler for the rest bytes of a commit log
// file, at least [BlankSize]. What follows it is left as it is.
func AppendBlank(dst []byte, rest int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(rest))
	return binary.BigEndian.AppendUint32(dst, MagicBlank)
}

// DecodeRecord reads the record at the start of b and is its size. It allocates
// nothing; body, topic and properties point into b. The checksum of the body is
// not verified, see [Record.CheckBody]. Filler is reported as [ErrBlank] with
// the size it claims.
func DecodeRecord(b []byte, r *Record) (int, error) {
	be := binary.BigEndian
	if len(b) < BlankSize {
		return 0, short(len(b), BlankSize)
	}
	size := int(int32(be.Uint32(b)))
	magic := be.Uint32(b[recMagic:])
	switch {
	case magic == MagicBlank && size >= BlankSize:
		return size, ErrBlank
	case magic != MagicV1 && magic != MagicV2:
		return 0, fmt.Errorf("%w: unknown magic %08x", ErrRecord, magic)
	case size < recMin:
		return 0, fmt.Errorf("%w: size of %d is below the least of %d", ErrRecord, size, recMin)
	case size > len(b):
		return 0, short(len(b), size)
	}
	b = b[:size:size]
	*r = Record{
		Size:        int32(size),
		V2:          magic == MagicV2,
		BodyCRC:     be.Uint32(b[recCRC:]),
		QueueID:     int32(be.Uint32(b[recQueueID:])),
		Flag:        int32(be.Uint32(b[recFlag:])),
		QueueOffset: int64(be.Uint64(b[recQueueOffset:])),
		PhyOffset:   int64(be.Uint64(b[recPhyOffset:])),
		SysFlag:     int32(be.Uint32(b[recSysFlag:])),
		BornTime:    int64(be.Uint64(b[recBornTime:])),
	}
	var ok bool
	rest := b[recBornHost:]
	if r.BornHost, rest, ok = cutHost(rest, r.SysFlag&SysBornV6 != 0); !ok || len(rest) < 8 {
		return 0, cutOff("born host")
	}
	r.StoreTime = int64(be.Uint64(rest))
	if r.StoreHost, rest, ok = cutHost(rest[8:], r.SysFlag&SysStoreV6 != 0); !ok || len(rest) < 12 {
		return 0, cutOff("store host")
	}
	r.ReconsumeTimes = int32(be.Uint32(rest))
	r.PreparedOffset = int64(be.Uint64(rest[4:]))
	if r.Body, rest, ok = cut32(rest[12:]); !ok {
		return 0, cutOff("body")
	}
	if r.Topic, rest, ok = cutTopic(rest, r.V2); !ok {
		return 0, cutOff("topic")
	}
	if r.Properties, rest, ok = cut16(rest); !ok {
		return 0, cutOff("properties")
	}
	if len(rest) > 0 {
		return 0, fmt.Errorf("%w: %d bytes follow the properties", ErrRecord, len(rest))
	}
	return size, nil
}

func short(have, want int) error {
	return fmt.Errorf("%w: %d of %d bytes", ErrRecord, have, want)
}

func cutOff(field string) error {
	return fmt.Errorf("%w: %s does not fit", ErrRecord, field)
}

func cutTopic(b []byte, v2 bool) (topic, rest []byte, ok bool) {
	if v2 {
		return cut16(b)
	}
	if len(b) < 1 {
		return nil, nil, false
	}
	n := int(int8(b[0]))
	if n < 0 || n > len(b)-1 {
		return nil, nil, false
	}
	return b[1 : 1+n : 1+n], b[1+n:], true
}

// cutHost splits off an address and its port. A port beyond 16 bits is no port.
func cutHost(b []byte, v6 bool) (a netip.AddrPort, rest []byte, ok bool) {
	n := 4
	if v6 {
		n = 16
	}
	if len(b) < n+4 {
		return a, nil, false
	}
	port := binary.BigEndian.Uint32(b[n:])
	if port > 0xFFFF {
		return a, nil, false
	}
	ip := netip.AddrFrom4([4]byte(b))
	if v6 {
		ip = netip.AddrFrom16([16]byte(b))
	}
	return netip.AddrPortFrom(ip, uint16(port)), b[n+4:], true
}

// CheckBody tells whether the body is what its checksum says. The checksum of
// an empty body is not looked at, as in Apache's broker.
func (r *Record) CheckBody() bool { return len(r.Body) == 0 || BodyCRC(r.Body) == r.BodyCRC }

// PatchQueueOffset sets the queue offset of an encoded record.
func PatchQueueOffset(rec []byte, off int64) {
	binary.BigEndian.PutUint64(rec[recQueueOffset:], uint64(off))
}

// PatchPhyOffset sets the physical offset of an encoded record.
func PatchPhyOffset(rec []byte, off int64) {
	binary.BigEndian.PutUint64(rec[recPhyOffset:], uint64(off))
}

// PatchStoreTime sets the store time of an encoded record, in ms since 1970.
func PatchStoreTime(rec []byte, ms int64) {
	at := recBornHost + 8
	if int32(binary.BigEndian.Uint32(rec[recSysFlag:]))&SysBornV6 != 0 {
		at += 12
	}
	binary.BigEndian.PutUint64(rec[at:], uint64(ms))
}

// RecordIter goes through records that stand one behind the other, the body of
// a pull.
type RecordIter struct{ rest []byte }

// Records goes through the records of b.
func Records(b []byte) RecordIter { return RecordIter{b} }

// Next reads the next record into r; it is false at the end. After an error
// there is no next one.
func (it *RecordIter) Next(r *Record) (bool, error) {
	if len(it.rest) == 0 {
		return false, nil
	}
	n, err := DecodeRecord(it.rest, r)
	if err != nil {
		it.rest = nil
		return false, err
	}
	it.rest = it.rest[n:]
	return true, nil
}

// Rest is what has not been read.
func (it *RecordIter) Rest() []byte { return it.rest }
