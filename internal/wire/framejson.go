package wire

import (
	"fmt"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// The JSON form of a header. It is read in one pass without allocation:
// strings are slices of the input, their escapes undone in place.

// maxDepth bounds the nesting of values that are skipped.
const maxDepth = 64

// languages as LanguageCode names them, in the order of their numbers.
var languages = [...]string{"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"}

// String is the name Apache gives the language, "OTHER" for an unknown number.
func (l Language) String() string {
	if int(l) < len(languages) {
		return languages[l]
	}
	return "OTHER"
}

type headerParser struct {
	b []byte
	i int
}

func (f *Frame) decodeJSON(h []byte) error {
	p := headerParser{b: h}
	if err := f.parseHeader(&p); err != nil {
		return fmt.Errorf("%w: JSON header, byte %d: %w", ErrFrame, p.i, err)
	}
	return nil
}

func (f *Frame) parseHeader(p *headerParser) error {
	more, err := p.open()
	for ; more && err == nil; more, err = p.next() {
		var key []byte
		if key, err = p.key(); err != nil {
			return err
		}
		switch string(key) {
		case "code":
			f.Code, err = p.int32()
		case "flag":
			f.Flag, err = p.int32()
		case "opaque":
			f.Opaque, err = p.int32()
		case "version":
			f.Version, err = p.int32()
		case "remark":
			f.Remark, _, err = p.scalar()
		case "language":
			f.Language, err = p.language()
		case "extFields":
			err = f.parseExt(p)
		default:
			err = p.skip(0)
		}
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	p.space()
	if p.i != len(p.b) {
		return fmt.Errorf("something follows the object")
	}
	return nil
}

func (f *Frame) parseExt(p *headerParser) error {
	if p.null() {
		return nil
	}
	more, err := p.open()
	for ; more && err == nil; more, err = p.next() {
		var x Field
		if x.Key, err = p.key(); err != nil {
			return err
		}
		var null bool
		if x.Value, null, err = p.scalar(); err != nil {
			return err
		}
		if !null {
			f.fields = append(f.fields, x)
		}
	}
	return err
}

func (p *headerParser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t' || p.b[p.i] == '\n' || p.b[p.i] == '\r') {
		p.i++
	}
}

func (p *headerParser) peek() byte {
	if p.i < len(p.b) && p.b[p.i] > ' ' { // as a rule
		return p.b[p.i]
	}
	p.space()
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

// open enters an object and tells whether it has a member.
func (p *headerParser) open() (bool, error) {
	if p.peek() != '{' {
		return false, fmt.Errorf("an object was expected")
	}
	p.i++
	if p.peek() == '}' {
		p.i++
		return false, nil
	}
	return true, nil
}

// next leaves a member and tells whether another one follows.
func (p *headerParser) next() (bool, error) {
	switch p.peek() {
	case ',':
		p.i++
		return true, nil
	case '}':
		p.i++
		return false, nil
	}
	return false, fmt.Errorf("a comma or the end of the object was expected")
}

func (p *headerParser) key() ([]byte, error) {
	k, err := p.str()
	if err != nil {
		return nil, err
	}
	if p.peek() != ':' {
		return nil, fmt.Errorf("a colon was expected")
	}
	p.i++
	return k, nil
}

func (p *headerParser) null() bool {
	p.space()
	if len(p.b)-p.i >= 4 && string(p.b[p.i:p.i+4]) == "null" {
		p.i += 4
		return true
	}
	return false
}

// scalar is the text of a string, number or boolean.
func (p *headerParser) scalar() (v []byte, null bool, err error) {
	switch c := p.peek(); {
	case c == '"':
		v, err = p.str()
		return v, false, err
	case p.null():
		return nil, true, nil
	case c == '{' || c == '[' || c == 0:
		return nil, false, fmt.Errorf("a string was expected")
	}
	return p.word(), false, nil
}

// word is a run of bytes up to the next separator.
func (p *headerParser) word() []byte {
	p.space()
	at := p.i
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ',', '}', ']', ':', ' ', '\t', '\n', '\r', '"', '{', '[':
			return p.b[at:p.i]
		}
		p.i++
	}
	return p.b[at:p.i]
}

func (p *headerParser) int32() (int32, error) {
	v, null, err := p.scalar()
	if err != nil || null {
		return 0, err
	}
	n, ok := ParseInt(v)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%q is not a 32-bit number", clip(v))
	}
	return int32(n), nil
}

// language reads a name or a number; Java reads an unknown one as null.
func (p *headerParser) language() (Language, error) {
	v, null, err := p.scalar()
	if err != nil || null {
		return LanguageOther, err
	}
	for i, name := range languages {
		if string(v) == name {
			return Language(i), nil
		}
	}
	if n, ok := ParseInt(v); ok && n >= 0 && n <= math.MaxUint8 {
		return Language(n), nil
	}
	return LanguageOther, nil
}

// skip passes over any value.
func (p *headerParser) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch p.peek() {
	case '"':
		_, err := p.str()
		return err
	case '{', '[':
		end := p.b[p.i] + 2 // '}' and ']' come two after '{' and '['
		p.i++
		for first := true; ; first = false {
			switch c := p.peek(); {
			case c == end:
				p.i++
				return nil
			case !first && (c == ',' || c == ':'):
				p.i++
			}
			if err := p.skip(depth + 1); err != nil {
				return err
			}
		}
	}
	if len(p.word()) == 0 {
		return fmt.Errorf("a value was expected")
	}
	return nil
}

// str reads a string and undoes its escapes in place.
func (p *headerParser) str() ([]byte, error) {
	if p.peek() != '"' {
		return nil, fmt.Errorf("a string was expected")
	}
	at := p.i + 1
	text := p.b[at:]
	for i, c := range text {
		if c == '"' {
			p.i = at + i + 1
			return text[:i:i], nil
		}
		if c == '\\' {
			p.i = at + i
			return p.escaped(at)
		}
	}
	p.i = len(p.b)
	return nil, fmt.Errorf("a string has no end")
}

// escaped goes on with a string that began at byte at and has its first escape
// at the present byte. The unescaped text is never longer than the escaped.
func (p *headerParser) escaped(at int) ([]byte, error) {
	w := p.i
	for p.i < len(p.b) {
		c := p.b[p.i]
		switch {
		case c == '"':
			p.i++
			return p.b[at:w:w], nil
		case c != '\\':
			p.b[w] = c
			w++
			p.i++
			continue
		}
		if p.i+1 >= len(p.b) {
			break
		}
		p.i += 2
		switch e := p.b[p.i-1]; e {
		case '"', '\\', '/', '\'':
			p.b[w] = e
			w++
		case 'b', 'f', 'n', 'r', 't', 'v', '0':
			p.b[w] = unescape(e)
			w++
		case 'u':
			r, ok := p.hex4()
			if !ok {
				return nil, fmt.Errorf("a bad \\u escape")
			}
			if utf16.IsSurrogate(r) {
				r = p.surrogate(r)
			}
			w += utf8.EncodeRune(p.b[w:w+4], r)
		default:
			return nil, fmt.Errorf("unknown escape \\%c", e)
		}
	}
	return nil, fmt.Errorf("a string has no end")
}

func unescape(e byte) byte {
	switch e {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	}
	return 0
}

// surrogate joins a high surrogate with the escape that follows it. A lone one
// becomes U+FFFD, as in encoding/json.
func (p *headerParser) surrogate(high rune) rune {
	if p.i+6 <= len(p.b) && p.b[p.i] == '\\' && p.b[p.i+1] == 'u' {
		at := p.i
		p.i += 2
		if low, ok := p.hex4(); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r
			}
		}
		p.i = at
	}
	return utf8.RuneError
}

func (p *headerParser) hex4() (rune, bool) {
	if p.i+4 > len(p.b) {
		return 0, false
	}
	var r rune
	for _, c := range p.b[p.i : p.i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	p.i += 4
	return r, true
}
