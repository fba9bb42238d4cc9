package wire

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Signer signs requests, as AclClientRPCHook does.
type Signer interface {
	// Sign returns what is to be sent along: access key, security token (""
	// for none) and a function from the content to its signature.
	Sign() (accessKey, securityToken string, signature func(content []byte) string)
}

// Head is what a frame's header says besides its extension fields.
type Head struct {
	Code, Flag, Opaque int32
	Encoding           Encoding
	Remark             string
	Signer             Signer // nil: not signed
}

// ExtEncoder is a header that writes itself as extension fields.
type ExtEncoder interface{ EncodeExt(e *Encoder) }

// Command is a request or response in parts, for everything that is not worth
// a codec of its own.
type Command struct {
	Code   int32
	Remark string
	Ext    ExtEncoder // nil: none
	Body   []byte
}

// Append appends the command as one frame.
func (c *Command) Append(dst []byte, h Head) []byte {
	h.Code, h.Remark = c.Code, c.Remark
	e := Begin(dst, h)
	if c.Ext != nil {
		c.Ext.EncodeExt(&e)
	}
	return e.Finish(c.Body)
}

// Encoder appends one frame to a buffer: [Begin], then the extension fields,
// then [Encoder.Finish]. It allocates nothing but the buffer's growth.
type Encoder struct {
	b     []byte
	at    int // where the frame starts
	ext   int // binary: where the extension length is; JSON: 0 until the first field
	h     Head
	pairs []signedField
}

type signedField struct{ key, value string }

// Begin starts a frame at the end of dst.
func Begin(dst []byte, h Head) Encoder {
	e := Encoder{at: len(dst), h: h}
	b := append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	if h.Encoding == Binary {
		b = binary.BigEndian.AppendUint16(b, uint16(h.Code))
		b = append(b, byte(LanguageGo))
		b = binary.BigEndian.AppendUint16(b, uint16(Version479))
		b = binary.BigEndian.AppendUint32(b, uint32(h.Opaque))
		b = binary.BigEndian.AppendUint32(b, uint32(h.Flag))
		b = binary.BigEndian.AppendUint32(b, uint32(len(h.Remark)))
		b = append(b, h.Remark...)
		e.ext = len(b)
		b = append(b, 0, 0, 0, 0)
	} else {
		b = append(b, `{"code":`...)
		b = strconv.AppendInt(b, int64(h.Code), 10)
	}
	e.b = b
	return e
}

// Text adds a field.
func (e *Encoder) Text(key, value string) {
	e.sign(key, value)
	at := e.open(key)
	if e.h.Encoding == Binary {
		e.b = append(e.b, value...)
		e.close(at)
		return
	}
	e.b = append(appendEscaped(e.b, value), '"')
}

// Bytes adds a field.
func (e *Encoder) Bytes(key string, value []byte) {
	if e.h.Signer != nil {
		e.sign(key, string(value))
	}
	at := e.open(key)
	if e.h.Encoding == Binary {
		e.b = append(e.b, value...)
		e.close(at)
		return
	}
	e.b = append(appendEscaped(e.b, value), '"')
}

// Int adds a field.
func (e *Encoder) Int(key string, value int64) {
	if e.h.Signer != nil {
		e.sign(key, strconv.FormatInt(value, 10))
	}
	at := e.open(key)
	e.b = strconv.AppendInt(e.b, value, 10)
	e.close(at)
}

// Bool adds a field.
func (e *Encoder) Bool(key string, value bool) {
	if value {
		e.Text(key, "true")
	} else {
		e.Text(key, "false")
	}
}

func (e *Encoder) sign(key, value string) {
	if e.h.Signer != nil {
		e.pairs = append(e.pairs, signedField{key, value})
	}
}

// open writes a field's name and returns where its value starts. Names are
// plain ASCII and need no escapes.
func (e *Encoder) open(key string) int {
	if e.h.Encoding == Binary {
		e.b = binary.BigEndian.AppendUint16(e.b, uint16(len(key)))
		e.b = append(e.b, key...)
		e.b = append(e.b, 0, 0, 0, 0)
		return len(e.b)
	}
	if e.ext == 0 {
		e.b = append(e.b, `,"extFields":{"`...)
		e.ext = len(e.b)
	} else {
		e.b = append(e.b, ',', '"')
	}
	e.b = append(e.b, key...)
	e.b = append(e.b, '"', ':', '"')
	return len(e.b)
}

func (e *Encoder) close(at int) {
	if e.h.Encoding == Binary {
		binary.BigEndian.PutUint32(e.b[at-4:], uint32(len(e.b)-at))
		return
	}
	e.b = append(e.b, '"')
}

// Finish completes the frame with its body and returns the grown buffer.
func (e *Encoder) Finish(body []byte) []byte {
	return e.FinishFunc(len(body), func(b []byte) []byte { return append(b, body...) })
}

// FinishFunc is [Encoder.Finish] for a body that is appended by f. size is a
// hint; what f appended counts.
func (e *Encoder) FinishFunc(size int, f func(b []byte) []byte) []byte {
	if e.h.Signer != nil {
		return e.finishSigned(f(nil))
	}
	e.endHeader()
	e.b = f(slices.Grow(e.b, size))
	binary.BigEndian.PutUint32(e.b[e.at:], uint32(len(e.b)-e.at-4))
	return e.b
}

// finishSigned adds the signature's fields. What is signed are the values of
// all fields in the order of their names, then the body.
func (e *Encoder) finishSigned(body []byte) []byte {
	key, token, signature := e.h.Signer.Sign()
	e.Text("AccessKey", key)
	if token != "" {
		e.Text("SecurityToken", token)
	}
	slices.SortFunc(e.pairs, func(a, b signedField) int { return cmp.Compare(a.key, b.key) })
	var content []byte
	for _, p := range e.pairs {
		content = append(content, p.value...)
	}
	e.Text("Signature", signature(append(content, body...)))
	e.h.Signer = nil
	return e.Finish(body)
}

func (e *Encoder) endHeader() {
	if e.h.Encoding == Binary {
		binary.BigEndian.PutUint32(e.b[e.ext:], uint32(len(e.b)-e.ext-4))
		e.mark(int(Binary) << 24)
		return
	}
	b := e.b
	if e.ext != 0 {
		b = append(b, '}')
	}
	b = append(b, `,"flag":`...)
	b = strconv.AppendInt(b, int64(e.h.Flag), 10)
	b = append(b, `,"language":"GO","opaque":`...)
	b = strconv.AppendInt(b, int64(e.h.Opaque), 10)
	if e.h.Remark != "" {
		b = append(b, `,"remark":"`...)
		b = append(appendEscaped(b, e.h.Remark), '"')
	}
	b = append(b, `,"serializeTypeCurrentRPC":"JSON","version":`...)
	b = strconv.AppendInt(b, int64(Version479), 10)
	e.b = append(b, '}')
	e.mark(0)
}

func (e *Encoder) mark(encoding int) {
	binary.BigEndian.PutUint32(e.b[e.at+4:], uint32(encoding|(len(e.b)-e.at-FrameHead)))
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends s as the inside of a JSON string the way fastjson
// writes it: raw UTF-8, escapes for control characters and line ends only.
func appendEscaped[T string | []byte](b []byte, s T) []byte {
	at := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < 0x7F {
			continue
		}
		if c >= utf8.RuneSelf {
			switch {
			case c == 0xC2 && i+1 < len(s) && s[i+1]&^0x1F == 0x80: // U+0080 to U+009F are control characters too
				b = append(b, s[at:i]...)
				b = appendUnicode(b, rune(s[i+1]))
				i++
				at = i + 1
			case c == 0xE2 && i+2 < len(s) && s[i+1] == 0x80 && s[i+2]&^1 == 0xA8: // U+2028, U+2029 end lines in JavaScript
				b = append(b, s[at:i]...)
				b = appendUnicode(b, 0x2000|rune(s[i+2]&0x3F))
				i += 2
				at = i + 1
			}
			continue
		}
		b = append(b, s[at:i]...)
		at = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = appendUnicode(b, rune(c))
		}
	}
	return append(b, s[at:]...)
}
