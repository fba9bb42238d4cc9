package msgtrace

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// The separators. A record ends with recordEnd, the last one of a body too.
const (
	fieldEnd  = 1
	recordEnd = 2
)

// null is the text of what is not there.
const null = "null"

// ErrRecord is wrapped by every error about a record that cannot be read.
var ErrRecord = errors.New("trace record cannot be read")

// Records are the records of a trace message's body, without the byte that
// ends each. Empty ones are left out.
func Records(body string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(body) > 0 {
			r, rest, _ := strings.Cut(body, string(rune(recordEnd)))
			if body = rest; r != "" && !yield(r) {
				return
			}
		}
	}
}

// Kind is the first field of a record: "Pub", "SubBefore", "SubAfter",
// "EndTransaction", "Recall", or what else somebody has sent.
func Kind(record string) string {
	k, _, _ := strings.Cut(record, string(rune(fieldEnd)))
	return k
}

// appendText appends a field and what ends it. Separators within, which only a
// foreign server's words can contain, must not tear the record apart.
func appendText(dst []byte, s string) []byte {
	if s == "" {
		s = null
	}
	return append(appendClean(dst, s), fieldEnd)
}

func appendClean(dst []byte, s string) []byte {
	n := len(dst)
	dst = append(dst, s...)
	for i := n; i < len(dst); i++ {
		if dst[i] == fieldEnd || dst[i] == recordEnd {
			dst[i] = '?'
		}
	}
	return dst
}

// appendKeys appends a field of keys with blanks between them.
func appendKeys(dst []byte, keys []string) []byte {
	if len(keys) == 0 {
		return appendText(dst, "")
	}
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendClean(dst, k)
	}
	return append(dst, fieldEnd)
}

func appendInt(dst []byte, n int64) []byte {
	return append(strconv.AppendInt(dst, n, 10), fieldEnd)
}

func appendBool(dst []byte, b bool) []byte {
	return append(strconv.AppendBool(dst, b), fieldEnd)
}

// endRecord makes of the last field's end the record's.
func endRecord(dst []byte) []byte {
	dst[len(dst)-1] = recordEnd
	return dst
}

// cut splits a record into out and returns how many fields it has; those that
// out has no room for are counted only.
func cut(record string, out []string) (n int) {
	for {
		f, rest, more := strings.Cut(record, string(rune(fieldEnd)))
		if n < len(out) {
			out[n] = f
		}
		n++
		if !more {
			return n
		}
		record = rest
	}
}

// text is a field that may be absent. A tag or key that is the word "null" is
// taken for none: the format does not tell them apart.
func text(s string) string {
	if s == null {
		return ""
	}
	return s
}

// keysOf are the keys in a field of keys.
func keysOf(s string) []string {
	if s = text(s); s == "" {
		return nil
	}
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' })
}

func number(name, s string, bits int) (int64, error) {
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: its %s is not a number: %.40q", ErrRecord, name, s)
	}
	return n, nil
}

// truth is a boolean as Java's Boolean.parseBoolean reads it.
func truth(s string) bool { return strings.EqualFold(s, "true") }
