// Package cq is the consume queue: per (topic, queue) a sequence of units of
// 20 bytes that say where in the commit log each message is.
package cq

import (
	"encoding/binary"
	"math"
)

// UnitSize is the length of a unit in bytes; part of the format:
//
//	 0  physical offset  8
//	 8  record size      4
//	12  tags code        8
const UnitSize = 20

// Unit points to one record of the commit log.
type Unit struct {
	Phy  int64 // where the record starts
	Size int32 // of the record, in bytes
	Tags int64 // Java hash of its tags; 0 without
}

// filler stands for the units of a file before the queue's first one, when
// the queue does not begin at 0.
func filler() Unit { return Unit{Size: math.MaxInt32} }

// IsFiller reports whether u points to nothing.
func (u Unit) IsFiller() bool { return u.Phy == 0 && u.Size == math.MaxInt32 }

// valid is Apache's test for a unit that has been written.
func (u Unit) valid() bool { return u.Phy >= 0 && u.Size > 0 }

// end is the log position after the record, 0 for a filler.
func (u Unit) end() int64 {
	if u.IsFiller() {
		return 0
	}
	return u.Phy + int64(u.Size)
}

// Put writes the unit into the first UnitSize bytes of b. The size comes last:
// without it a unit does not count, should the process be killed in between.
func (u Unit) Put(b []byte) {
	_ = b[UnitSize-1]
	binary.BigEndian.PutUint64(b[12:], uint64(u.Tags))
	binary.BigEndian.PutUint64(b, uint64(u.Phy))
	binary.BigEndian.PutUint32(b[8:], uint32(u.Size))
}

// Get reads a unit from the first UnitSize bytes of b.
func Get(b []byte) Unit {
	_ = b[UnitSize-1]
	return Unit{
		Phy:  int64(binary.BigEndian.Uint64(b)),
		Size: int32(binary.BigEndian.Uint32(b[8:])),
		Tags: int64(binary.BigEndian.Uint64(b[12:])),
	}
}
