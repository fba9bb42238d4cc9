package sql92

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError says where an expression is wrong and what was expected there.
type SyntaxError struct {
	Expr   string
	Offset int // bytes before the place
	Reason string
}

// Error implements error. Lines and columns count from 1, columns in
// characters.
func (e *SyntaxError) Error() string {
	before := e.Expr[:e.Offset]
	where := ""
	if n := strings.Count(before, "\n"); n > 0 {
		where = fmt.Sprintf("line %d, ", n+1)
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	return fmt.Sprintf("SQL92 expression, %scolumn %d: %s", where, utf8.RuneCountInString(before)+1, e.Reason)
}

// hints are for habits from other dialects, by what begins where the parser
// stops.
var hints = [...]struct{ begin, say string }{
	{"!=", "<> is the operator for unequal"},
	{"!", "write NOT"},
	{"&&", "write AND"},
	{"||", "write OR"},
	{`"`, "strings take single quotes, property names none"},
	{"`", "property names take no quotes"},
	{"like", "there is no LIKE, use CONTAINS, STARTSWITH or ENDSWITH"},
	{"+", "there is no arithmetic"},
	{"-", "there is no arithmetic, and property names are made of letters, digits, _ and $"},
	{"*", "there is no arithmetic"},
	{"/", "there is no arithmetic"},
	{".", "property names are made of letters, digits, _ and $"},
}

// hint is advice for what follows at an offset, "" if there is none.
func hint(rest string) string {
	for _, h := range hints {
		if len(rest) >= len(h.begin) && strings.EqualFold(rest[:len(h.begin)], h.begin) {
			return "; " + h.say
		}
	}
	return ""
}
