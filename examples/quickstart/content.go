package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A body is
//
//	run       8  tells this run's messages from those of others in the topic
//	sequence  8  number of the message, from 0
//	filler       pseudo-random, grown from run and sequence
//	checksum  4  CRC-32 of all before
//
// so a receiver can make the body again and compare every byte.
const (
	bodyHead = 16
	bodyTail = 4
	minBody  = bodyHead + bodyTail
)

var (
	errForeign = errors.New("not of this run")
	errAltered = errors.New("altered on the way")
)

// appendBody appends message seq of a run, size bytes long, to dst.
func appendBody(dst []byte, run, seq uint64, size int) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, run)
	dst = binary.BigEndian.AppendUint64(dst, seq)
	x := run ^ (seq+1)*0x9E3779B97F4A7C15 | 1 // xorshift never leaves zero
	for len(dst)-at < size-bodyTail {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		dst = binary.LittleEndian.AppendUint64(dst, x)
	}
	dst = dst[:at+size-bodyTail]
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}

// checkBody returns which message of the run b is. scratch is memory for the
// comparison and is returned for the next call.
func checkBody(scratch, b []byte, run uint64, n, size int) (int, []byte, error) {
	if len(b) < bodyHead || binary.BigEndian.Uint64(b) != run {
		return 0, scratch, errForeign
	}
	seq := binary.BigEndian.Uint64(b[8:])
	if seq >= uint64(n) || len(b) != size {
		return 0, scratch, errAltered
	}
	scratch = appendBody(scratch[:0], run, seq, size)
	if !bytes.Equal(scratch, b) {
		return 0, scratch, errAltered
	}
	return int(seq), scratch, nil
}
