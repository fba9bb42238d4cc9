// Package sql92 compiles the filter expressions of subscriptions of type SQL92
// and evaluates them over the properties of messages. It does what the filter
// of Apache's broker does, quirks included, because a group that moves from
// one broker to the other must get the same messages; testdata has what
// Apache's own classes make of several thousand expressions.
//
// Precedence from lowest to highest, all operators left-associative:
//
//	OR
//	AND
//	=  <>  IS [NOT] NULL
//	>  >=  <  <=  [NOT] BETWEEN x AND y  [NOT] IN ('a', ...)
//	[NOT] CONTAINS 's'  [NOT] STARTSWITH 's'  [NOT] ENDSWITH 's'
//	+  -  NOT
//	property  number  'string'  TRUE  FALSE  NULL  (...)
//
// NOT binds tighter than comparisons: NOT a = 1 is (NOT a) = 1.
package sql92

import (
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Limits of an expression. Apache has none but its stack.
const (
	MaxLength = 32 << 10 // bytes
	MaxDepth  = 500      // operators and parentheses within each other; AND and OR chains count once
)

// Expr is a compiled expression. It is immutable and may be shared.
type Expr struct {
	text  string
	root  *node
	names []string // of properties, by slot
}

// Compile reads an expression as Apache's broker does. That parser stops at
// the first token that cannot continue the expression and ignores the rest:
// "a = 1 b = 2" is "a = 1". Errors are a [*SyntaxError].
func Compile(expr string) (*Expr, error) { return compile(expr, false) }

// Check reports what is wrong with an expression, also if all that is wrong is
// something behind it that [Compile] ignores. Errors are a [*SyntaxError].
func Check(expr string) error {
	_, err := compile(expr, true)
	return err
}

// String is the expression as it was written.
func (e *Expr) String() string { return e.text }

// Match tells whether a message with these properties is to be delivered: the
// expression is true for them, not unknown, and could be evaluated. It may be
// called by many goroutines at once.
func (e *Expr) Match(p wire.Properties) bool { return e.Eval(p) == True }

// Result is what an expression is for a message.
type Result uint8

// Results. Only True delivers.
const (
	Unknown Result = iota // properties that count are missing
	False
	True
	Failed // a string that should be a number is not one, or the like
)

// Eval evaluates the expression. It does not allocate unless the expression
// names many properties or a number has more than 32 characters.
func (e *Expr) Eval(p wire.Properties) Result {
	c := context{props: p, names: e.names}
	if n := len(e.names); n > len(c.few) {
		c.many = make([]slot, n)
	}
	switch v := c.eval(e.root); v.kind {
	case null:
		return Unknown
	case failed:
		return Failed
	case boolean:
		if v.n != 0 {
			return True
		}
	}
	return False // a property by itself is no boolean
}
