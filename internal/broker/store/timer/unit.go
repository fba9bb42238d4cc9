package timer

import "encoding/binary"

// UnitSize is the length of a unit of the timer log.
const UnitSize = 52

// Bits of a unit's magic. All units have MagicDefault.
const (
	MagicDefault int32 = 1
	MagicRoll    int32 = 2 // at its time the message is parked again, because that is not when it is due
	MagicDelete  int32 = 4 // takes another message back
)

const (
	magicBits int32  = 0xF
	blankBits uint32 = 0xCBD43194
	blankSize        = 16 // the least that is left at a file's end
)

// Unit is one entry of the timer log.
type Unit struct {
	Prev        int64 // position of the unit before it in its slot; -1: none
	Magic       int32
	EnqueueTime int64 // ms, a multiple of the precision
	Delay       int32 // ms, from EnqueueTime to the slot's time
	Phy         int64 // of the record, in the commit log
	Size        int32 // of the record
	TopicHash   int32 // Java's, of the topic that the message goes to
}

// Time is the time of the unit's slot, in ms.
func (u *Unit) Time() int64 { return u.EnqueueTime + int64(u.Delay) }

// put writes the unit to b, its size and magic last, so that a process that
// dies on the way leaves nothing that looks whole.
func (u *Unit) put(b []byte) {
	_ = b[UnitSize-1]
	binary.BigEndian.PutUint64(b[16:], uint64(u.EnqueueTime))
	binary.BigEndian.PutUint32(b[24:], uint32(u.Delay))
	binary.BigEndian.PutUint64(b[28:], uint64(u.Phy))
	binary.BigEndian.PutUint32(b[36:], uint32(u.Size))
	binary.BigEndian.PutUint32(b[40:], uint32(u.TopicHash))
	binary.BigEndian.PutUint64(b[44:], 0)
	binary.BigEndian.PutUint64(b[4:], uint64(u.Prev))
	binary.BigEndian.PutUint32(b[12:], uint32(u.Magic))
	binary.BigEndian.PutUint32(b, UnitSize)
}

// found is what lies at a place of the log.
type found uint8

const (
	foundEnd found = iota // nothing that is known
	foundUnit
	foundBlank // the rest of the file is not used
)

// decode reads what b begins with. A unit that cannot be true is none.
func (u *Unit) decode(b []byte) found {
	if len(b) < blankSize {
		return foundEnd
	}
	size, bits := int32(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[12:])
	if bits == blankBits {
		return foundBlank
	}
	magic := int32(bits)
	if size != UnitSize || len(b) < UnitSize || magic&^magicBits != 0 || magic == 0 {
		return foundEnd
	}
	*u = Unit{
		Prev: int64(binary.BigEndian.Uint64(b[4:])), Magic: magic,
		EnqueueTime: int64(binary.BigEndian.Uint64(b[16:])), Delay: int32(binary.BigEndian.Uint32(b[24:])),
		Phy: int64(binary.BigEndian.Uint64(b[28:])), Size: int32(binary.BigEndian.Uint32(b[36:])),
		TopicHash: int32(binary.BigEndian.Uint32(b[40:])),
	}
	if u.Prev < -1 || u.EnqueueTime < 0 || u.EnqueueTime > maxTime || u.Time() < 0 || u.Phy < 0 || u.Size <= 0 || u.Phy > maxPhy {
		return foundEnd
	}
	return foundUnit
}

// Beyond these no sum overflows.
const (
	maxTime = 1 << 60
	maxPhy  = 1 << 62
)

// putBlank ends a file of which n bytes are left.
func putBlank(b []byte, n int64) {
	binary.BigEndian.PutUint64(b[4:], 0)
	binary.BigEndian.PutUint32(b[12:], blankBits)
	binary.BigEndian.PutUint32(b, uint32(n))
}
