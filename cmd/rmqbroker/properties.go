package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// property is one entry of a Java properties file.
type property struct {
	key, value string
	line       int // where the entry starts, from 1
}

// parseProperties reads the syntax of java.util.Properties: comments with # or
// !, keys that end at =, : or white space, lines continued by a backslash,
// escapes. The text is UTF-8.
func parseProperties(text string) ([]property, error) {
	var out []property
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		at := i + 1
		line := trimLine(lines[i])
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continued(line) {
			line = line[:len(line)-1]
			if i+1 == len(lines) {
				break
			}
			i++
			line += trimLine(lines[i])
		}
		key, value := splitProperty(line)
		k, err := unescapeProperty(key)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		v, err := unescapeProperty(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", at, k, err)
		}
		out = append(out, property{k, v, at})
	}
	return out, nil
}

func trimLine(s string) string {
	return strings.TrimLeft(strings.TrimSuffix(s, "\r"), " \t\f")
}

// continued is true for a line that ends with an odd number of backslashes.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// splitProperty cuts a logical line at its first separator that is not
// escaped. White space around the separator belongs to neither side.
func splitProperty(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == '\\' {
			i++
			continue
		}
		if c == '=' || c == ':' || c == ' ' || c == '\t' || c == '\f' {
			end = i
			break
		}
	}
	rest := strings.TrimLeft(line[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	return line[:end], rest
}

func unescapeProperty(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, err := unicodeEscape(s[i:])
			if err != nil {
				return "", err
			}
			i += 4
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
				low, err := unicodeEscape(s[i+2:])
				if err != nil {
					return "", err
				}
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// unicodeEscape reads the four digits after the u that s begins with.
func unicodeEscape(s string) (rune, error) {
	if len(s) < 5 {
		return 0, fmt.Errorf(`malformed escape \%s`, s)
	}
	n, err := strconv.ParseUint(s[1:5], 16, 16)
	if err != nil {
		return 0, fmt.Errorf(`malformed escape \%s`, s[:5])
	}
	return rune(n), nil
}
