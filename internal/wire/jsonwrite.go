package wire

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// jsonWriter appends JSON the way fastjson writes it: no space, members in the
// order of their names (the callers see to it), nothing for null. Maps, whose
// order is arbitrary in Java, are written in the order of their keys. With
// strict set, keys that are numbers are quoted and all is ASCII, which
// fastjson calls browser compatible.
type jsonWriter struct {
	b      []byte
	strict bool
}

// sep writes a comma unless something was just opened or a key was written.
func (w *jsonWriter) sep() {
	switch w.b[len(w.b)-1] {
	case '{', '[', ':':
		return
	}
	w.b = append(w.b, ',')
}

// open begins an object or array that is a member's value or the whole.
func (w *jsonWriter) open(c byte) { w.b = append(w.b, c) }

// item begins an object or array within an array.
func (w *jsonWriter) item(c byte) {
	w.sep()
	w.b = append(w.b, c)
}

func (w *jsonWriter) close(c byte) { w.b = append(w.b, c) }

// key writes the name of a member; it must need no escapes.
func (w *jsonWriter) key(name string) {
	w.sep()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

// textKey writes any text as a key.
func (w *jsonWriter) textKey(s string) {
	w.sep()
	w.quote(s)
	w.b = append(w.b, ':')
}

// intKey writes a number as a key.
func (w *jsonWriter) intKey(n int64) {
	w.sep()
	if w.strict {
		w.b = append(w.b, '"')
	}
	w.b = strconv.AppendInt(w.b, n, 10)
	if w.strict {
		w.b = append(w.b, '"')
	}
	w.b = append(w.b, ':')
}

func (w *jsonWriter) quote(s string) {
	w.b = append(w.b, '"')
	if w.strict {
		w.b = appendASCII(w.b, s)
	} else {
		w.b = appendEscaped(w.b, s)
	}
	w.b = append(w.b, '"')
}

func (w *jsonWriter) text(name, v string) {
	w.key(name)
	w.quote(v)
}

// optText is a text that is null in Java when it is empty here.
func (w *jsonWriter) optText(name, v string) {
	if v != "" {
		w.text(name, v)
	}
}

func (w *jsonWriter) int(name string, v int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *jsonWriter) bool(name string, v bool) {
	w.key(name)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *jsonWriter) float(name string, v float64) {
	w.key(name)
	w.b = appendDouble(w.b, v)
}

func (w *jsonWriter) texts(name string, list []string) {
	w.key(name)
	w.open('[')
	for _, s := range list {
		w.sep()
		w.quote(s)
	}
	w.close(']')
}

func (w *jsonWriter) textMap(name string, m map[string]string) {
	w.key(name)
	w.open('{')
	for _, k := range sortedKeys(m) {
		w.textKey(k)
		w.quote(m[k])
	}
	w.close('}')
}

// empty writes a member that is always an empty object.
func (w *jsonWriter) empty(name string) {
	w.key(name)
	w.b = append(w.b, '{', '}')
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// appendDouble appends v as Java's Double.toString does: at least one digit
// after the point, an exponent below 10^-3 and from 10^7 on. fastjson writes
// null for what JSON cannot say.
func appendDouble(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	if a := math.Abs(v); a == 0 || a >= 1e-3 && a < 1e7 {
		at := len(b)
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
		if !strings.ContainsRune(string(b[at:]), '.') {
			b = append(b, '.', '0')
		}
		return b
	}
	text := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	b = append(b, mantissa...)
	if !strings.Contains(mantissa, ".") {
		b = append(b, '.', '0')
	}
	n, _ := strconv.Atoi(exponent)
	b = append(b, 'E')
	return strconv.AppendInt(b, int64(n), 10)
}

// appendASCII appends s as the inside of a JSON string of ASCII alone.
func appendASCII(b []byte, s string) []byte {
	for _, c := range s {
		switch {
		case c >= 0x10000:
			c -= 0x10000
			b = appendUnicode(b, 0xD800+c>>10)
			b = appendUnicode(b, 0xDC00+c&0x3FF)
		case c >= 0x7F:
			b = appendUnicode(b, c)
		default:
			b = appendEscaped(b, string(c))
		}
	}
	return b
}

func appendUnicode(b []byte, c rune) []byte {
	return append(b, '\\', 'u', upperHex[c>>12&15], upperHex[c>>8&15], upperHex[c>>4&15], upperHex[c&15])
}

// number writes a number within an array; the separator is the caller's.
func (w *jsonWriter) number(n int64) { w.b = strconv.AppendInt(w.b, n, 10) }
