package sql92

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokInt
	tokFloat
	tokString
	tokSymbol  // ( ) , + - = <> > >= < <=
	tokKeyword // word is upper-case
)

// token is one token; text is its bytes in the expression.
type token struct {
	kind tokenKind
	at   int
	text string
	word string // of symbols and keywords
}

// String is how errors name the token.
func (t token) String() string {
	switch {
	case t.kind == tokEnd:
		return "the end"
	case len(t.text) > 40:
		return fmt.Sprintf("%.40q...", t.text)
	default:
		return fmt.Sprintf("%q", t.text)
	}
}

// keyword returns the keyword a name is, in upper case, or "".
func keyword(name string) string {
	if len(name) > len("STARTSWITH") {
		return ""
	}
	switch up := strings.ToUpper(name); up {
	case "OR", "AND", "NOT", "IS", "NULL", "TRUE", "FALSE", "BETWEEN", "IN", "CONTAINS", "STARTSWITH", "ENDSWITH":
		return up
	default:
		return ""
	}
}

// lexer cuts an expression into tokens.
type lexer struct {
	text string
	pos  int
}

func (l *lexer) fail(at int, format string, args ...any) *SyntaxError {
	return &SyntaxError{l.text, at, fmt.Sprintf(format, args...)}
}

// next is the next token.
func (l *lexer) next() (token, *SyntaxError) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	at := l.pos
	rest := l.text[at:]
	if rest == "" {
		return token{kind: tokEnd, at: at}, nil
	}
	switch c := rest[0]; {
	case isLetter(c):
		n := 1
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
			n++
		}
		if w := keyword(rest[:n]); w != "" {
			return l.take(tokKeyword, n, w), nil
		}
		return l.take(tokName, n, ""), nil
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.number(rest), nil
	case c == '\'':
		return l.quoted(rest)
	}
	for _, s := range [...]string{"<>", "<=", ">=", "<", ">", "=", "(", ")", ",", "+", "-"} {
		if strings.HasPrefix(rest, s) {
			return l.take(tokSymbol, len(s), s), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, l.fail(at, "%q has no meaning here%s", r, hint(rest))
}

func (l *lexer) take(kind tokenKind, n int, word string) token {
	t := token{kind: kind, at: l.pos, text: l.text[l.pos : l.pos+n], word: word}
	l.pos += n
	return t
}

// skip skips white space and comments. A comment to the end of the line needs
// that end: without it Apache sees two minus signs.
func (l *lexer) skip() *SyntaxError {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"):
			i := strings.IndexAny(rest, "\r\n")
			if i < 0 {
				return nil
			}
			l.pos += i + 1
		case strings.HasPrefix(rest, "/*"):
			i := strings.Index(rest[2:], "*/")
			if i < 0 {
				return l.fail(l.pos, "the comment has no end, expected */")
			}
			l.pos += i + 4
		default:
			return nil
		}
	}
	return nil
}

// number reads an integer without leading zeros, with an L or without, or a
// number with point or exponent. What does not belong to it is the next token,
// even without a space between.
func (l *lexer) number(rest string) token {
	n := digits(rest, 0)
	float := false
	if n < len(rest) && rest[n] == '.' {
		float = true
		n = digits(rest, n+1)
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		i := n + 1
		if i < len(rest) && (rest[i] == '+' || rest[i] == '-') {
			i++
		}
		if end := digits(rest, i); end > i {
			float, n = true, end
		}
	}
	if float {
		return l.take(tokFloat, n, "")
	}
	if rest[0] == '0' {
		n = 1 // 007 is 0 and then 0 and 7
	}
	if n < len(rest) && (rest[n] == 'l' || rest[n] == 'L') {
		n++
	}
	return l.take(tokInt, n, "")
}

// quoted reads a string; two quotes in it are one.
func (l *lexer) quoted(rest string) (token, *SyntaxError) {
	for n := 1; n < len(rest); n++ {
		if rest[n] != '\'' {
			continue
		}
		if n+1 == len(rest) || rest[n+1] != '\'' {
			return l.take(tokString, n+1, ""), nil
		}
		n++
	}
	return token{}, l.fail(l.pos, "the string has no end, expected a single quote")
}

// unquoted is what a string token stands for.
func (t token) unquoted() string { return strings.ReplaceAll(t.text[1:len(t.text)-1], "''", "'") }

func digits(s string, from int) int {
	for from < len(s) && isDigit(s[from]) {
		from++
	}
	return from
}

func isDigit(c byte) bool  { return c-'0' < 10 }
func isLetter(c byte) bool { return c|0x20-'a' < 26 || c == '_' || c == '$' }
