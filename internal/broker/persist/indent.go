package persist

// Indent lays out a JSON document the way fastjson's pretty format does: one
// member a line, indented with tabs, no space after the colon, empty objects
// closed at once. It works on the dialect with unquoted keys as well, which
// encoding/json cannot indent. The document must be compact.
func Indent(doc []byte) []byte {
	out := make([]byte, 0, len(doc)+len(doc)/2)
	depth := 0
	line := func() {
		out = append(out, '\n')
		for range depth {
			out = append(out, '\t')
		}
	}
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch c {
		case '"':
			end := stringEnd(doc, i)
			out = append(out, doc[i:end]...)
			i = end - 1
		case '{':
			out = append(out, c)
			if i+1 < len(doc) && doc[i+1] == '}' {
				out = append(out, '}')
				i++
				continue
			}
			depth++
			line()
		case '}':
			depth--
			line()
			out = append(out, c)
		case ',':
			out = append(out, c)
			line()
		case '[':
			end := arrayEnd(doc, i) // arrays stay on one line
			out = append(out, doc[i:end]...)
			i = end - 1
		default:
			out = append(out, c)
		}
	}
	return out
}

// stringEnd is the index after the string that starts at i.
func stringEnd(doc []byte, i int) int {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

// arrayEnd is the index after the array that starts at i.
func arrayEnd(doc []byte, i int) int {
	depth := 0
	for i < len(doc) {
		switch doc[i] {
		case '"':
			i = stringEnd(doc, i)
			continue
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(doc)
}
