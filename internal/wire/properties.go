package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Properties are the encoded properties of a message:
//
//	name 0x01 value 0x02 name 0x01 value 0x02 ...
//
// The last 0x02 may be missing (4.9 does not write it). Entries without a name
// or a value do not count, of equal names the last one does, and a name ends at
// its first 0x01.
type Properties []byte

const (
	propName = 0x01 // between name and value
	propEnd  = 0x02 // behind the value
)

// MaxProperties is the largest size of the encoded properties of a message.
const MaxProperties = 32767

// Lookup is the value of a property, and whether it is there. The value points
// into p.
func (p Properties) Lookup(key string) (value []byte, ok bool) {
	for len(p) > 0 {
		var e []byte
		if e, p = p.entry(); len(e) > len(key)+1 && e[len(key)] == propName && string(e[:len(key)]) == key {
			value, ok = e[len(key)+1:], true
		}
	}
	if ok && (key == "" || strings.IndexByte(key, propName) >= 0) { // not a name
		return nil, false
	}
	return value, ok
}

// Text is the value of a property as a string, "" if absent.
func (p Properties) Text(key string) string {
	v, _ := p.Lookup(key)
	return string(v)
}

// Each calls f for each property in order of their bytes until f returns false.
// Of equal names it shows all; the last one is the one that counts.
func (p Properties) Each(f func(key, value []byte) bool) {
	for len(p) > 0 {
		var e []byte
		e, p = p.entry()
		i := bytes.IndexByte(e, propName)
		if i > 0 && i+1 < len(e) && !f(e[:i:i], e[i+1:]) {
			return
		}
	}
}

// entry splits off the bytes up to the next end mark.
func (p Properties) entry() (e []byte, rest Properties) {
	if i := bytes.IndexByte(p, propEnd); i >= 0 {
		return p[:i:i], p[i+1:]
	}
	return p[:len(p):len(p)], nil
}

// Map is a copy of the properties.
func (p Properties) Map() map[string]string {
	m := map[string]string{}
	p.Each(func(k, v []byte) bool {
		m[string(k)] = string(v)
		return true
	})
	return m
}

// Without appends to dst all entries but those of the given names, each with
// its end mark.
func (p Properties) Without(dst []byte, names ...string) []byte {
	for len(p) > 0 {
		var e []byte
		if e, p = p.entry(); len(e) == 0 || hasName(e, names) {
			continue
		}
		dst = append(append(dst, e...), propEnd)
	}
	return dst
}

func hasName(e []byte, names []string) bool {
	for _, n := range names {
		if len(e) > len(n) && e[len(n)] == propName && string(e[:len(n)]) == n {
			return true
		}
	}
	return false
}

// AppendProperty appends one property to dst, which holds properties and
// nothing else: an end mark that it lacks is added first.
func AppendProperty[K, V string | []byte](dst []byte, key K, value V) []byte {
	if n := len(dst); n > 0 && dst[n-1] != propEnd {
		dst = append(dst, propEnd)
	}
	dst = append(dst, key...)
	dst = append(dst, propName)
	dst = append(dst, value...)
	return append(dst, propEnd)
}

// ErrProperty is wrapped by the errors of properties that cannot be sent.
var ErrProperty = errors.New("illegal property")

// ValidateProperty tells whether a property survives encoding: its name must
// not be empty and neither may contain the bytes 0x01 and 0x02 that separate
// properties. An empty value is refused too: readers drop it.
func ValidateProperty(key, value string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: the name is empty", ErrProperty)
	case strings.ContainsAny(key, "\x01\x02"):
		return fmt.Errorf("%w: the name %q contains a separator byte (0x01 or 0x02)", ErrProperty, key)
	case value == "":
		return fmt.Errorf("%w: the value of %q is empty, which readers take for absent", ErrProperty, key)
	case strings.ContainsAny(value, "\x01\x02"):
		return fmt.Errorf("%w: the value of %q contains a separator byte (0x01 or 0x02)", ErrProperty, key)
	}
	return nil
}

// CheckProperties refuses encoded properties that are larger than a message can
// hold.
func CheckProperties(p Properties) error {
	if len(p) > MaxProperties {
		return fmt.Errorf("%w: %d bytes in all exceed the limit of %d", ErrProperty, len(p), MaxProperties)
	}
	return nil
}

// KeySeparator stands between the keys in PropKeys.
const KeySeparator = " "

// JoinKeys is the value of PropKeys for the given keys.
func JoinKeys(keys ...string) string { return strings.Join(keys, KeySeparator) }
