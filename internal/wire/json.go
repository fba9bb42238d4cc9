package wire

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// ErrBody is wrapped by every error about a JSON body that cannot be read.
var ErrBody = errors.New("malformed body")

// jsonReader reads the JSON that fastjson writes and accepts, which is not
// quite JSON: keys may be bare numbers or whole objects,
//
//	{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:5},"brokerAddrs":{0:"a:1"}}
//
// It is pulled: each method reads the next value. The first error sticks, all
// methods return zero values after it, so it is looked at once, in finish.
// Nesting is bounded, and since every value is at least a byte long, what is
// allocated is in proportion to the input. The input is never written to.
type jsonReader struct {
	b     []byte
	i     int
	depth int
	err   error
}

// jsonKey is the key of a member: of a string its text, of a number its digits,
// of an object its JSON.
type jsonKey struct {
	text   []byte
	object bool
}

func (r *jsonReader) fail(why string) {
	if r.err == nil {
		r.err = errors.New(why)
	}
}

// finish is the error of the whole body, which what names.
func (r *jsonReader) finish(what string) error {
	if r.err == nil && r.peek() != 0 {
		r.fail("something follows the value")
	}
	if r.err != nil {
		return fmt.Errorf("%w: %s, byte %d of %d: %w", ErrBody, what, r.i, len(r.b), r.err)
	}
	return nil
}

// peek skips space and is the next byte, 0 at the end and after an error.
func (r *jsonReader) peek() byte {
	for r.err == nil && r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case ' ', '\t', '\n', '\r':
			r.i++
		case 0:
			r.fail("a zero byte")
		default:
			return c
		}
	}
	return 0
}

// take skips space and passes over c if it is next.
func (r *jsonReader) take(c byte) bool {
	if r.peek() != c || c == 0 {
		return false
	}
	r.i++
	return true
}

// null passes over null if it is next.
func (r *jsonReader) null() bool {
	if r.peek() == 'n' && len(r.b)-r.i >= 4 && string(r.b[r.i:r.i+4]) == "null" {
		r.i += 4
		return true
	}
	return false
}

// object calls f for each member of the next object; f reads the value, or
// leaves it to be skipped. null is an object without members.
func (r *jsonReader) object(f func(k jsonKey)) {
	if r.null() || !r.enter('{', "an object was expected") {
		return
	}
	for first := true; r.err == nil; first = false {
		if r.take('}') {
			r.depth--
			return
		}
		if !first && !r.take(',') {
			r.fail("a comma or the end of the object was expected")
			return
		}
		if !first && r.take('}') { // fastjson allows a comma at the end
			r.depth--
			return
		}
		k := r.key()
		if !r.take(':') {
			r.fail("a colon was expected")
			return
		}
		r.peek()
		at := r.i
		f(k)
		if r.err == nil && r.i == at {
			r.skip()
		}
	}
}

// array calls f for each element of the next array; f reads it or leaves it to
// be skipped. null is an empty array.
func (r *jsonReader) array(f func()) {
	if r.null() || !r.enter('[', "an array was expected") {
		return
	}
	for first := true; r.err == nil; first = false {
		if r.take(']') {
			r.depth--
			return
		}
		if !first && !r.take(',') {
			r.fail("a comma or the end of the array was expected")
			return
		}
		if !first && r.take(']') {
			r.depth--
			return
		}
		at := r.i
		f()
		if r.err == nil && r.i == at {
			r.skip()
		}
	}
}

func (r *jsonReader) enter(c byte, otherwise string) bool {
	if !r.take(c) {
		r.fail(otherwise)
		return false
	}
	if r.depth++; r.depth > maxDepth {
		r.fail("nested too deep")
		return false
	}
	return true
}

// key reads a key of any kind.
func (r *jsonReader) key() jsonKey {
	switch c := r.peek(); c {
	case '"':
		return jsonKey{text: r.bytes()}
	case '{':
		at := r.i
		r.skip()
		if r.err != nil {
			return jsonKey{}
		}
		return jsonKey{text: r.b[at:r.i], object: true}
	}
	w := r.word()
	if len(w) == 0 {
		r.fail("a key was expected")
	}
	return jsonKey{text: w}
}

// word is a run of bytes up to the next separator: a number, true, a bare key.
func (r *jsonReader) word() []byte {
	if r.peek() == 0 {
		return nil
	}
	at := r.i
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ',', '}', ']', ':', ' ', '\t', '\n', '\r', '"', '{', '[', 0:
			return r.b[at:r.i]
		}
		r.i++
	}
	return r.b[at:r.i]
}

// bytes reads a string. It is a slice of the input unless it has escapes.
func (r *jsonReader) bytes() []byte {
	if r.peek() != '"' {
		r.fail("a string was expected")
		return nil
	}
	at := r.i
	escaped := false
	for r.i++; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '\\':
			escaped = true
			r.i++
		case '"':
			r.i++
			if !escaped {
				return r.b[at+1 : r.i-1]
			}
			p := headerParser{b: append([]byte(nil), r.b[at:r.i]...)}
			v, err := p.str()
			if err != nil {
				r.fail(err.Error())
			}
			return v
		}
	}
	r.i = len(r.b)
	r.fail("a string has no end")
	return nil
}

// scalar is the text of a string, number or boolean, nil for null.
func (r *jsonReader) scalar() []byte {
	switch r.peek() {
	case '"':
		return r.bytes()
	case '{', '[':
		r.fail("a plain value was expected")
		return nil
	}
	if r.null() {
		return nil
	}
	w := r.word()
	if len(w) == 0 {
		r.fail("a value was expected")
	}
	return w
}

// text reads a string; numbers and booleans are taken as they stand, null is "".
func (r *jsonReader) text() string { return string(r.scalar()) }

// int64 reads a number, or a string that is one. null and "" are 0.
func (r *jsonReader) int64() int64 {
	v := r.scalar()
	if len(v) == 0 {
		return 0
	}
	n, ok := ParseInt(v)
	if !ok {
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
			r.fail("a whole number was expected")
			return 0
		}
		n = int64(f)
	}
	return n
}

func (r *jsonReader) int32() int32 {
	n := r.int64()
	if n != int64(int32(n)) {
		r.fail("a number does not fit 32 bits")
		return 0
	}
	return int32(n)
}

func (r *jsonReader) float() float64 {
	v := r.scalar()
	if len(v) == 0 {
		return 0
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		r.fail("a number was expected")
		return 0
	}
	return f
}

// bool is true for true, "true" in any case, and 1.
func (r *jsonReader) bool() bool {
	v := r.scalar()
	return ParseBool(v) || len(v) == 1 && v[0] == '1'
}

// texts reads an array of strings, nil for an empty one.
func (r *jsonReader) texts() (list []string) {
	r.array(func() { list = append(list, r.text()) })
	return list
}

// textMap reads an object whose values are strings, nil for an empty one.
func (r *jsonReader) textMap() (m map[string]string) {
	r.object(func(k jsonKey) {
		if m == nil {
			m = map[string]string{}
		}
		s := string(k.text)
		m[s] = r.text()
	})
	return m
}

// skip passes over any value.
func (r *jsonReader) skip() {
	switch r.peek() {
	case '"':
		r.bytes()
	case '{':
		r.object(func(jsonKey) {})
	case '[':
		r.array(func() {})
	default:
		if len(r.word()) == 0 {
			r.fail("a value was expected")
		}
	}
}

// int64 is a key that is a number, bare or quoted.
func (k jsonKey) int64(r *jsonReader) int64 {
	n, ok := ParseInt(k.text)
	if !ok {
		r.fail("a key that is a number was expected")
	}
	return n
}

func (k jsonKey) int32(r *jsonReader) int32 {
	n := k.int64(r)
	if n != int64(int32(n)) {
		r.fail("a key does not fit 32 bits")
	}
	return int32(n)
}
