package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"
)

// ErrID is wrapped by every error about a message id that cannot be read.
var ErrID = errors.New("malformed message id")

// appendHex appends b as upper-case hex digits.
func appendHex(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, upperHex[c>>4], upperHex[c&15])
	}
	return dst
}

// AppendOffsetMsgID appends the id that a broker gives a message: store host and
// place in the commit log, 32 hex digits, 56 for an IPv6 host.
func AppendOffsetMsgID(dst []byte, host netip.AddrPort, phy int64) []byte {
	var mem [28]byte
	b := appendHost(mem[:0], host)
	b = binary.BigEndian.AppendUint64(b, uint64(phy))
	return appendHex(dst, b)
}

// ParseOffsetMsgID takes such an id apart. It says nothing on whether it is not
// rather a client's id: these look the same.
func ParseOffsetMsgID[T string | []byte](id T) (netip.AddrPort, int64, error) {
	var mem [28]byte
	b, err := parseHex(mem[:], id)
	if err != nil {
		return netip.AddrPort{}, 0, err
	}
	host, rest, ok := cutHost(b, len(b) == 28)
	if !ok {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %q has no port", ErrID, id)
	}
	return host, int64(binary.BigEndian.Uint64(rest)), nil
}

func parseHex[T string | []byte](mem []byte, id T) ([]byte, error) {
	if len(id) != 32 && len(id) != 56 {
		return nil, fmt.Errorf("%w: %q has %d characters, not 32 or 56", ErrID, clip([]byte(id)), len(id))
	}
	n, err := hex.Decode(mem, []byte(id))
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrID, id, err)
	}
	return mem[:n], nil
}

// IDSource makes the ids that a client gives its messages:
//
//	IP address 4|16, process id 2, loader 4, ms since the month began 4, counter 2
//
// as 32 hex digits (56 with IPv6). An id of one source never comes twice
// within a month: time and counter are one number that only grows, so that
// neither a clock set back nor more than 65,536 ids within a millisecond make
// it repeat; the time in the id then runs ahead of the clock. It is safe for
// concurrent use and allocates nothing.
type IDSource struct {
	head  [22]byte
	size  int           // of the head
	last  atomic.Uint64 // ms since 1970 << 16 | counter
	month atomic.Pointer[month]
}

type month struct {
	begin, end int64 // ms since 1970
	zone       *time.Location
}

// NewIDSource makes a source for a process. Of pid the low 16 bits count; loader
// is any number that tells sources of one process from each other (Java takes
// the class loader's hash, a random one will do).
func NewIDSource(ip netip.Addr, pid int, loader int32) *IDSource {
	s := &IDSource{}
	b := appendHost(s.head[:0], netip.AddrPortFrom(ip, 0))
	b = b[:len(b)-4]
	b = binary.BigEndian.AppendUint16(b, uint16(pid))
	b = binary.BigEndian.AppendUint32(b, uint32(loader))
	s.size = len(b)
	return s
}

// Append appends the next id. The month is that of now's zone.
func (s *IDSource) Append(dst []byte, now time.Time) []byte {
	at := s.next(uint64(now.UnixMilli()) << 16)
	ms := int64(at >> 16)
	m := s.monthOf(ms, now)
	var mem [28]byte
	b := append(mem[:0], s.head[:s.size]...)
	b = binary.BigEndian.AppendUint32(b, uint32(ms-m.begin))
	b = binary.BigEndian.AppendUint16(b, uint16(at))
	return appendHex(dst, b)
}

// next is a number larger than all before, and at least from.
func (s *IDSource) next(from uint64) uint64 {
	for {
		last := s.last.Load()
		at := max(from, last+1)
		if s.last.CompareAndSwap(last, at) {
			return at
		}
	}
}

func (s *IDSource) monthOf(ms int64, now time.Time) *month {
	m := s.month.Load()
	if m != nil && ms >= m.begin && ms < m.end && m.zone == now.Location() {
		return m
	}
	t := time.UnixMilli(ms).In(now.Location())
	m = &month{begin: monthStart(t, 0).UnixMilli(), end: monthStart(t, 1).UnixMilli(), zone: now.Location()}
	s.month.Store(m)
	return m
}

func monthStart(t time.Time, more int) time.Time {
	return time.Date(t.Year(), t.Month()+time.Month(more), 1, 0, 0, 0, 0, t.Location())
}

// UniqID is a client's message id, taken apart.
type UniqID struct {
	IP      netip.Addr
	PID     uint16
	Loader  int32
	Millis  uint32 // since the month began in the client's zone
	Counter uint16
}

// ParseUniqID takes a client's message id apart.
func ParseUniqID[T string | []byte](id T) (UniqID, error) {
	var mem [28]byte
	b, err := parseHex(mem[:], id)
	if err != nil {
		return UniqID{}, err
	}
	u := UniqID{}
	if len(b) == 28 {
		u.IP, b = netip.AddrFrom16([16]byte(b)), b[16:]
	} else {
		u.IP, b = netip.AddrFrom4([4]byte(b)), b[4:]
	}
	u.PID = binary.BigEndian.Uint16(b)
	u.Loader = int32(binary.BigEndian.Uint32(b[2:]))
	u.Millis = binary.BigEndian.Uint32(b[6:])
	u.Counter = binary.BigEndian.Uint16(b[10:])
	return u, nil
}

// Time is when the id was made, if that was less than a month before now and
// in now's zone. A minute ahead of now is still taken for this month: clocks
// differ.
func (u UniqID) Time(now time.Time) time.Time {
	since := time.Duration(u.Millis) * time.Millisecond
	t := monthStart(now, 0).Add(since)
	if t.After(now.Add(time.Minute)) {
		t = monthStart(now, -1).Add(since)
	}
	return t
}
