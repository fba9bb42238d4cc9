package wire

import "strconv"

// FieldError says which extension field of a header is missing or unreadable.
// A server answers it with [RespInvalidParameter] or [RespSystemError].
type FieldError struct {
	Field  string // its name on the wire
	Reason string // "is missing", "is not a number: ...", ...
}

// Error names the field.
func (e *FieldError) Error() string { return "header field " + e.Field + " " + e.Reason }

func missing(field string) error { return &FieldError{field, "is missing"} }

func badNumber(field string, v []byte) error {
	return &FieldError{field, "is not a number that fits: " + strconv.Quote(string(clip(v)))}
}

// fieldReader reads the fields of a header by name and keeps the first error.
// It serves the headers off the message path; the others go through the fields
// once, in order of arrival.
type fieldReader struct {
	f   *Frame
	err error
}

func (r *fieldReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// text is a required string. It may be empty, as far as this is concerned.
func (r *fieldReader) text(key string) string {
	v, ok := r.f.Lookup(key)
	if !ok {
		r.fail(missing(key))
	}
	return string(v)
}

// number reads a number. Java's binary form cannot tell empty from absent, so
// an empty one is absent.
func (r *fieldReader) number(key string, required bool, lo, hi int64) int64 {
	v, ok := r.f.Lookup(key)
	if !ok || len(v) == 0 {
		if required {
			r.fail(missing(key))
		}
		return 0
	}
	n, ok := ParseInt(v)
	if !ok || n < lo || n > hi {
		r.fail(badNumber(key, v))
		return 0
	}
	return n
}

const (
	minInt32 = -1 << 31
	maxInt32 = 1<<31 - 1
	minInt64 = -1 << 63
	maxInt64 = 1<<63 - 1
)

func (r *fieldReader) int32(key string) int32 {
	return int32(r.number(key, true, minInt32, maxInt32))
}

func (r *fieldReader) int64(key string) int64 {
	return r.number(key, true, minInt64, maxInt64)
}

func (r *fieldReader) optInt32(key string) int32 {
	return int32(r.number(key, false, minInt32, maxInt32))
}

func (r *fieldReader) optInt64(key string) int64 {
	return r.number(key, false, minInt64, maxInt64)
}

// has tells whether an optional field is there and not empty.
func (r *fieldReader) has(key string) bool {
	v, ok := r.f.Lookup(key)
	return ok && len(v) > 0
}

// fieldInt64 reads a number of a header whose fields are gone through in order.
// It keeps the first error; an empty number is 0.
func fieldInt64(field string, v []byte, err *error) int64 {
	n, ok := ParseInt(v)
	if !ok && len(v) > 0 && *err == nil {
		*err = badNumber(field, v)
	}
	return n
}

func fieldInt32(field string, v []byte, err *error) int32 {
	n := fieldInt64(field, v, err)
	if n != int64(int32(n)) && *err == nil {
		*err = badNumber(field, v)
	}
	return int32(n)
}

// optText adds a field unless it is empty.
func optText(e *Encoder, key, value string) {
	if value != "" {
		e.Text(key, value)
	}
}

// optBytes adds a field unless it is empty.
func optBytes(e *Encoder, key string, value []byte) {
	if len(value) > 0 {
		e.Bytes(key, value)
	}
}

// ExtFields is a header of any fields, for what is too rare for a struct.
type ExtFields map[string]string

// EncodeExt writes the fields in the order of their names.
func (m ExtFields) EncodeExt(e *Encoder) {
	for _, k := range sortedKeys(m) {
		e.Text(k, m[k])
	}
}
