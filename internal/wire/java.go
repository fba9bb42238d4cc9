package wire

import "unicode/utf8"

// JavaHash is Java's String.hashCode: over UTF-16 units, wrapping at 32 bits.
func JavaHash[T string | []byte](s T) int32 {
	var h int32
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return hashRunes(h, string(s[i:]))
		}
		h = 31*h + int32(s[i])
	}
	return h
}

func hashRunes(h int32, s string) int32 {
	for _, c := range s {
		if c >= 0x10000 {
			c -= 0x10000
			h = 31*h + 0xD800 + c>>10
			c = 0xDC00 + c&0x3FF
		}
		h = 31*h + c
	}
	return h
}

// TagsCode is what a consume queue keeps of a tag: its Java hash, 0 if there is
// none.
func TagsCode[T string | []byte](tag T) int64 { return int64(JavaHash(tag)) }

// IndexHash is the hash of "topic#key" in a key index: never negative.
func IndexHash[T string | []byte](key T) int32 {
	h := JavaHash(key)
	if h < 0 {
		h = -h
	}
	return max(h, 0) // -MinInt32 is negative still
}

// CompareJava orders strings as Java's String.compareTo: by UTF-16 units, in
// which U+10000 and above come before U+E000.
func CompareJava(a, b string) int {
	for i := 0; i < min(len(a), len(b)); i++ {
		if a[i] != b[i] {
			return rankUTF16(a[i]) - rankUTF16(b[i])
		}
	}
	return len(a) - len(b)
}

// rankUTF16 orders UTF-8 bytes so that what takes four of them, a pair of
// surrogates in UTF-16, comes before U+E000 (lead bytes EE and EF).
func rankUTF16(c byte) int {
	if c >= 0xF0 {
		return int(c) - 0xF0 + 0xEE
	}
	if c >= 0xEE {
		return int(c) + 0x100
	}
	return int(c)
}
