package sql92

import (
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// convert is the string as a number of a type, false if it is none. Strings
// are read as Java's Integer, Long and Double read them: no blanks around
// integers, no integers with a point, NaN and Infinity.
func (v value) convert(to kind) (value, bool) {
	switch to {
	case integer:
		n, ok := parseInt(v.s, math.MaxInt32)
		return value{kind: integer, n: n}, ok
	case long:
		n, ok := parseInt(v.s, math.MaxInt64)
		return value{kind: long, n: n}, ok
	case double:
		f, ok := parseDouble(v.s)
		return value{kind: double, f: f}, ok
	default:
		return value{}, false
	}
}

// double is the number as a double, which loses low digits of large ones.
func (v value) double() float64 {
	if v.kind == double {
		return v.f
	}
	return float64(v.n)
}

// compareDoubles is Java's Double.compare: NaN is above all others and equal
// to itself, -0.0 below 0.0.
func compareDoubles(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b && a != 0:
		return 0
	}
	return rank(a) - rank(b)
}

// rank orders what < and > do not.
func rank(f float64) int {
	switch {
	case math.IsNaN(f):
		return 2
	case f == 0 && math.Signbit(f):
		return 0
	default:
		return 1
	}
}

// parseInt reads a signed number from -most-1 to most. Digits may be of any
// script, as in Java.
func parseInt(b []byte, most uint64) (int64, bool) {
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		if negative {
			most++
		}
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for len(b) > 0 {
		d, size := digit(b)
		if d > 9 {
			return 0, false
		}
		if n > (most-d)/10 {
			return 0, false
		}
		n = n*10 + d
		b = b[size:]
	}
	if negative {
		return -int64(n), true // right for the least number, too
	}
	return int64(n), true
}

// digit is the value of the first character, above 9 if it is no digit.
func digit(b []byte) (value uint64, size int) {
	if b[0] < utf8.RuneSelf {
		return uint64(b[0]) - '0', 1 // wraps around below '0'
	}
	r, size := utf8.DecodeRune(b)
	for _, x := range unicode.Nd.R16 { // Java looks at UTF-16 units: no digits beyond
		if rune(x.Lo) <= r && r <= rune(x.Hi) {
			return uint64(r-rune(x.Lo)) % 10, size
		}
	}
	return 10, size
}

// parseDouble reads what Java's Double.parseDouble does.
func parseDouble(b []byte) (float64, bool) {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	b, ok := doubleSyntax(b)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// doubleSyntax checks the form and cuts off the type suffix, which Go's parser
// does not know. Go's accepts more than Java's: inf, nan and underscores.
func doubleSyntax(b []byte) ([]byte, bool) {
	rest := b
	if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	switch string(rest) {
	case "NaN":
		return rest, true // Go takes no sign
	case "Infinity":
		return b, true
	}
	hex := len(rest) > 1 && rest[0] == '0' && rest[1]|0x20 == 'x'
	if hex {
		rest = rest[2:]
	}
	rest, whole := skipDigits(rest, hex)
	fraction := 0
	if len(rest) > 0 && rest[0] == '.' {
		rest, fraction = skipDigits(rest[1:], hex)
	}
	if whole+fraction == 0 {
		return nil, false
	}
	mark := byte('e')
	if hex {
		mark = 'p'
	}
	if len(rest) > 0 && rest[0]|0x20 == mark {
		rest = rest[1:]
		if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		var n int
		if rest, n = skipDigits(rest, false); n == 0 {
			return nil, false
		}
	} else if hex {
		return nil, false
	}
	if len(rest) == 1 && (rest[0]|0x20 == 'd' || rest[0]|0x20 == 'f') {
		return b[:len(b)-1], true
	}
	return b, len(rest) == 0
}

func skipDigits(b []byte, hex bool) (rest []byte, n int) {
	for n < len(b) && (isDigit(b[n]) || hex && b[n]|0x20-'a' < 6) {
		n++
	}
	return b[n:], n
}
