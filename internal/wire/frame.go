package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// A frame is
//
//	total length  int32  bytes after this field
//	mark          int32  encoding << 24 | header length
//	header        header length bytes, JSON or binary
//	body          the rest

// DefaultMaxFrame is the largest frame, length field included, that Apache's
// programs accept by default.
const DefaultMaxFrame = 16 << 20

// FrameHead is how many bytes [FrameSize] needs.
const FrameHead = 8

// Encoding is the form of a frame's header.
type Encoding uint8

// The encodings of the protocol, as SerializeType numbers them.
const (
	JSON   Encoding = 0
	Binary Encoding = 1
)

// Flag bits of a header.
const (
	FlagResponse int32 = 1
	FlagOneway   int32 = 2
)

// Language is the sender's programming language, as LanguageCode numbers it.
type Language uint8

// The languages that matter here.
const (
	LanguageJava  Language = 0
	LanguageCPP   Language = 1
	LanguageOther Language = 7
	LanguageGo    Language = 9
)

// Version479 is what this module says of itself: MQVersion V5_3_3.
const Version479 int32 = 479

// ErrFrame is wrapped by every error about a frame that cannot be read.
var ErrFrame = errors.New("malformed frame")

// FrameSize is the size of the frame that begins with head, its length field
// included. It refuses a frame that is larger than limit bytes or that
// contradicts itself, before anything is allocated for it. head must have
// [FrameHead] bytes; limit of zero or less means [DefaultMaxFrame].
func FrameSize(head []byte, limit int) (int, error) {
	if limit <= 0 {
		limit = DefaultMaxFrame
	}
	n := int64(int32(binary.BigEndian.Uint32(head)))
	h := int64(binary.BigEndian.Uint32(head[4:]) & 0xFFFFFF)
	switch {
	case n < 4:
		return 0, fmt.Errorf("%w: length %d is less than the 4 bytes every frame has (is the peer speaking another protocol?)", ErrFrame, n)
	case n+4 > int64(limit):
		return 0, fmt.Errorf("%w: %d bytes exceed the limit of %d (a wrong protocol or a larger limit on the peer?)", ErrFrame, n+4, limit)
	case h > n-4:
		return 0, fmt.Errorf("%w: header of %d bytes in a frame of %d", ErrFrame, h, n+4)
	case head[4] > byte(Binary):
		return 0, fmt.Errorf("%w: unknown header encoding %d", ErrFrame, head[4])
	}
	return int(n) + 4, nil
}

// Field is one extension field of a header.
type Field struct{ Key, Value []byte }

// Frame is one decoded frame. All its slices point into the bytes given to
// [Frame.Decode]. The zero value is ready for use and a Frame can be decoded
// into again and again; it must not be copied (use [Frame.Clone]).
type Frame struct {
	Code     int32
	Version  int32
	Opaque   int32 // matches a response to its request
	Flag     int32
	Language Language
	Encoding Encoding
	Remark   []byte // error text of a response
	Body     []byte

	fields []Field
	room   [24]Field // the usual headers need no allocation
}

// IsResponse tells a response from a request. Each direction of a connection
// numbers its requests on its own, so this comes before any look at Opaque.
func (f *Frame) IsResponse() bool { return f.Flag&FlagResponse != 0 }

// IsOneway tells whether a request wants no response, not even an error.
func (f *Frame) IsOneway() bool { return f.Flag&FlagOneway != 0 }

// NumFields is the number of extension fields.
func (f *Frame) NumFields() int { return len(f.fields) }

// Field is the i-th extension field in order of arrival.
func (f *Frame) Field(i int) Field { return f.fields[i] }

// Lookup returns the value of an extension field, and whether it is there. Of
// equal names the last one counts. The bytes are only valid while the frame is.
func (f *Frame) Lookup(key string) ([]byte, bool) {
	for i := len(f.fields) - 1; i >= 0; i-- {
		if string(f.fields[i].Key) == key {
			return f.fields[i].Value, true
		}
	}
	return nil, false
}

// Text is the field as a string, "" if absent.
func (f *Frame) Text(key string) string {
	v, _ := f.Lookup(key)
	return string(v)
}

// Int64 is the field as a number. Absent and empty fields are 0 without an
// error: Java omits nulls, and its binary form cannot tell empty from null.
func (f *Frame) Int64(key string) (int64, error) {
	v, ok := f.Lookup(key)
	if !ok || len(v) == 0 {
		return 0, nil
	}
	n, ok := ParseInt(v)
	if !ok {
		return 0, badNumber(key, v)
	}
	return n, nil
}

// Int32 is [Frame.Int64] with a check of the range.
func (f *Frame) Int32(key string) (int32, error) {
	n, err := f.Int64(key)
	if err == nil && n != int64(int32(n)) {
		return 0, badNumber(key, strconv.AppendInt(nil, n, 10))
	}
	return int32(n), err
}

// Bool is true if the field reads "true" in any case, as Java's parseBoolean.
func (f *Frame) Bool(key string) bool {
	v, _ := f.Lookup(key)
	return ParseBool(v)
}

// Clone returns a frame with memory of its own.
func (f *Frame) Clone() *Frame {
	c := &Frame{
		Code: f.Code, Version: f.Version, Opaque: f.Opaque, Flag: f.Flag,
		Language: f.Language, Encoding: f.Encoding,
	}
	n := len(f.Remark) + len(f.Body)
	for _, x := range f.fields {
		n += len(x.Key) + len(x.Value)
	}
	mem := make([]byte, 0, n)
	keep := func(b []byte) []byte {
		mem = append(mem, b...)
		return mem[len(mem)-len(b) : len(mem) : len(mem)]
	}
	c.Remark, c.Body = keep(f.Remark), keep(f.Body)
	c.fields = c.room[:0]
	for _, x := range f.fields {
		c.fields = append(c.fields, Field{keep(x.Key), keep(x.Value)})
	}
	return c
}

// Decode reads one whole frame, its length field included. It checks every
// length; a frame that [FrameSize] accepted can still be refused here. The
// frame keeps slices into b and rewrites b where JSON strings have escapes.
func (f *Frame) Decode(b []byte) error {
	if len(b) < FrameHead {
		return fmt.Errorf("%w: %d bytes are too few", ErrFrame, len(b))
	}
	n, err := FrameSize(b, len(b))
	if err != nil {
		return err
	}
	if n != len(b) {
		return fmt.Errorf("%w: length says %d, there are %d bytes", ErrFrame, n, len(b))
	}
	h := int(binary.BigEndian.Uint32(b[4:]) & 0xFFFFFF)
	f.Code, f.Version, f.Opaque, f.Flag, f.Language = 0, 0, 0, 0, LanguageOther
	f.Encoding = Encoding(b[4])
	f.Remark, f.fields = nil, f.room[:0]
	f.Body = b[FrameHead+h:]
	if f.Encoding == Binary {
		return f.decodeBinary(b[FrameHead : FrameHead+h])
	}
	return f.decodeJSON(b[FrameHead : FrameHead+h])
}

// binaryHead is the fixed part of a binary header: code 2, language 1,
// version 2, opaque 4, flag 4, remark length 4, ext length 4.
const binaryHead = 21

func (f *Frame) decodeBinary(h []byte) error {
	if len(h) < binaryHead {
		return fmt.Errorf("%w: binary header of %d bytes, the fixed part alone has %d", ErrFrame, len(h), binaryHead)
	}
	f.Code = int32(int16(binary.BigEndian.Uint16(h)))
	f.Language = Language(h[2])
	f.Version = int32(int16(binary.BigEndian.Uint16(h[3:])))
	f.Opaque = int32(binary.BigEndian.Uint32(h[5:]))
	f.Flag = int32(binary.BigEndian.Uint32(h[9:]))
	rest := h[13:]
	var ok bool
	if f.Remark, rest, ok = cut32(rest); !ok {
		return fmt.Errorf("%w: remark is longer than the header", ErrFrame)
	}
	ext, rest, ok := cut32(rest)
	if !ok || len(rest) > 0 {
		return fmt.Errorf("%w: extension fields do not end with the header", ErrFrame)
	}
	for len(ext) > 0 {
		var x Field
		if x.Key, ext, ok = cut16(ext); !ok {
			return fmt.Errorf("%w: name of an extension field is cut off", ErrFrame)
		}
		if x.Value, ext, ok = cut32(ext); !ok {
			return fmt.Errorf("%w: value of extension field %q is cut off", ErrFrame, clip(x.Key))
		}
		f.fields = append(f.fields, x)
	}
	return nil
}

// cut32 splits off a run of bytes with a 32-bit length in front.
func cut32(b []byte) (v, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := int(int32(binary.BigEndian.Uint32(b)))
	if n < 0 || n > len(b)-4 {
		return nil, nil, false
	}
	return b[4 : 4+n : 4+n], b[4+n:], true
}

// cut16 splits off a run of bytes with a 16-bit length in front.
func cut16(b []byte) (v, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	if n < 0 || n > len(b)-2 {
		return nil, nil, false
	}
	return b[2 : 2+n : 2+n], b[2+n:], true
}

// ParseInt reads a decimal number, with no allocation. It is false for an
// empty or malformed one and for one beyond 64 bits.
func ParseInt(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	d := b
	if neg {
		d = b[1:]
	}
	if len(d) == 0 || len(d) > 18 {
		n, err := strconv.ParseInt(string(b), 10, 64)
		return n, err == nil
	}
	var n int64
	for _, c := range d {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

// ParseBool is true for "true" in any case, false for all else.
func ParseBool(b []byte) bool {
	return len(b) == 4 && b[0]|0x20 == 't' && b[1]|0x20 == 'r' && b[2]|0x20 == 'u' && b[3]|0x20 == 'e'
}

// clip keeps hostile input out of error texts.
func clip(b []byte) []byte {
	if len(b) > 64 {
		return b[:64]
	}
	return b
}
