package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// minRecord is the size of the shortest record: IPv4 hosts, no body, a topic
// length of one byte, no topic and no properties.
const minRecord = 91

// found is what the bytes at a place in the log are.
type found uint8

const (
	foundEnd    found = iota // nothing valid: the log ends here
	foundRecord              // a record
	foundBlank               // the filler: the log goes on in the next file
)

// nothingWritten is the reason for the usual end of a log.
const nothingWritten = "nothing is written there"

// scan judges what is at the front of b, the rest of a commit log file from
// log position phy on. For a record it fills in r, whose slices alias b, and
// returns its length; b may be anything. A record counts only if it is whole
// and says itself that it belongs at phy: bytes left from before a truncation
// do not. reason tells why there is no record.
func scan(b []byte, phy int64, checkCRC bool, r *wire.Record) (what found, n int64, reason string) {
	if len(b) < wire.BlankSize {
		return foundEnd, 0, "no room for a record"
	}
	if binary.BigEndian.Uint64(b) == 0 {
		return foundEnd, 0, nothingWritten
	}
	size, err := wire.DecodeRecord(b, r)
	switch {
	case err == nil:
	case errors.Is(err, wire.ErrBlank) && size == len(b):
		return foundBlank, int64(len(b)), ""
	case errors.Is(err, wire.ErrBlank):
		return foundEnd, 0, fmt.Sprintf("filler of %d bytes where %d are left", size, len(b))
	default:
		return foundEnd, 0, err.Error()
	}
	if !fitsDirectory(r.Topic) {
		return foundEnd, 0, "the topic is no name" // the checksum does not cover it
	}
	if r.PhyOffset != phy {
		return foundEnd, 0, fmt.Sprintf("record says it belongs at %d", r.PhyOffset)
	}
	if checkCRC && !r.CheckBody() {
		return foundEnd, 0, "the body does not match its checksum"
	}
	return foundRecord, int64(size), ""
}

// torn reports whether the last record of a log has lost its end: the bytes
// of its properties are zeros, as in a page that never got to the disk. Put
// ends properties with their end mark; the checksum does not cover them.
func torn(r *wire.Record) bool {
	n := len(r.Properties)
	return n > 0 && r.Properties[n-1] == 0
}

// sectorSize is what a disk writes whole or not at all.
const sectorSize = 512

// holed reports whether a part of a record did not get to the disk although
// what is around it did. Everything else shows in lengths, the checksum of the
// body or the topic; the properties have nothing but their own bytes: sectors
// of zeros among them, or at their end, were never written. b is the record,
// at the place at of its file.
func holed(b []byte, at int64, r *wire.Record) bool {
	n := int64(len(b))
	for from := n - int64(len(r.Properties)); from < n; {
		to := min((at+from)&^(sectorSize-1)+sectorSize-at, n)
		// The first sector of them has other parts of the record.
		if from > n-int64(len(r.Properties)) && allZero(b[from:to]) {
			return true
		}
		from = to
	}
	return false
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// recordStoreTime reads the store time of the record at the front of b; 0 if
// there is none.
func recordStoreTime(b []byte) int64 {
	const bornHost, storeTime = 48, 56
	if len(b) < minRecord {
		return 0
	}
	at := storeTime
	if int32(binary.BigEndian.Uint32(b[36:]))&wire.SysBornV6 != 0 {
		at = bornHost + 20
	}
	return int64(binary.BigEndian.Uint64(b[at:]))
}
