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
		h = hashRune(h, c)
	}
	return h
}

func hashRune(h int32, c rune) int32 {
	if c >= 0x10000 {
		c -= 0x10000
		h = 31*h + 0xD800 + c>>10
		c = 0xDC00 + c&0x3FF
	}
	return 31*h + c
}

// TagsCode is what a consume queue keeps of a tag: its Java hash, 0 if there is
// none.
func TagsCode[T string | []byte](tag T) int64 { return int64(JavaHash(tag)) }

// IndexHash is the hash of "topic#key" in a key index: never negative.
func IndexHash[T string | []byte](key T) int32 { return foldIndexHash(JavaHash(key)) }

// IndexHashPrefix is what the keys of one topic have in common, for
// [IndexHashOf].
func IndexHashPrefix(topic []byte) int32 { return 31*hashOn(0, topic) + '#' }

// IndexHashOf is the IndexHash of "topic#key" with the prefix of the topic. It
// does not put the two together, and allocates nothing.
func IndexHashOf(prefix int32, key []byte) int32 { return foldIndexHash(hashOn(prefix, key)) }

func foldIndexHash(h int32) int32 {
	if h < 0 {
		h = -h
	}
	return max(h, 0) // -MinInt32 is negative still
}

// hashOn is JavaHash of a text that ends with b, from that of the text before b.
func hashOn(h int32, b []byte) int32 {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			h = 31*h + int32(b[i])
			i++
			continue
		}
		c, n := utf8.DecodeRune(b[i:])
		h = hashRune(h, c)
		i += n
	}
	return h
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
