package sql92

import (
	"bytes"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// kind is the type of a value, as Java has it: which one decides what a string
// on the other side of an operator is converted to.
type kind uint8

const (
	null kind = iota // unknown
	failed
	boolean
	integer
	long
	double
	str
)

// value is what a node evaluates to.
type value struct {
	kind kind
	n    int64 // boolean (0 or 1), integer, long
	f    float64
	s    []byte // points into the properties or the expression
}

func truth(b bool) value {
	if b {
		return value{kind: boolean, n: 1}
	}
	return value{kind: boolean}
}

func (v value) isNumber() bool { return v.kind >= integer && v.kind <= double }

// truth is the value as a condition: a string is false.
func (v value) truth() value {
	if v.kind == str {
		return truth(false)
	}
	return v
}

func (v value) isTrue() bool { return v.kind == boolean && v.n != 0 }

// not is NOT of a condition.
func (v value) not() value {
	if v.kind == boolean {
		v.n ^= 1
	}
	return v
}

// context is one evaluation. Each property is looked up once, when it is
// first needed.
type context struct {
	props wire.Properties
	names []string
	few   [6]slot
	many  []slot // instead of few
}

type slot struct {
	known bool
	val   value
}

func (c *context) property(i int32) value {
	var s *slot
	if c.many != nil {
		s = &c.many[i]
	} else {
		s = &c.few[i]
	}
	if !s.known {
		s.known = true
		if b, ok := c.props.Lookup(c.names[i]); ok {
			s.val = value{kind: str, s: b}
		}
	}
	return s.val
}

func (c *context) eval(n *node) value {
	switch n.op {
	case opConst:
		return n.val
	case opProperty:
		return c.property(n.slot)
	case opNegate:
		return c.negate(n)
	case opNot:
		return c.eval(n.kids[0]).truth().not()
	case opAnd, opOr:
		return c.junction(n)
	case opEqual:
		return equal(c.eval(n.kids[0]), c.eval(n.kids[1]))
	case opNotEqual:
		return equal(c.eval(n.kids[0]), c.eval(n.kids[1])).not()
	case opIsNull, opIsNotNull:
		v := c.eval(n.kids[0])
		if v.kind == failed {
			return v
		}
		return truth((v.kind == null) == (n.op == opIsNull))
	case opGreater, opGreaterEqual, opLess, opLessEqual:
		return c.compare(n.op, c.eval(n.kids[0]), n.kids[1])
	case opBetween:
		return c.both(opGreaterEqual, opLessEqual, n, false)
	case opNotBetween:
		return c.both(opLess, opGreater, n, true)
	case opIn, opNotIn:
		v := c.eval(n.kids[0])
		if v.kind == null {
			return v
		}
		_, ok := n.set[string(v.s)]
		return truth(ok == (n.op == opIn))
	default:
		return c.search(n)
	}
}

// negate is a minus sign; what is no number becomes unknown.
func (c *context) negate(n *node) value {
	v := c.eval(n.kids[0])
	switch v.kind {
	case integer, long:
		v.n = -v.n // both are above the least number of their type
	case double:
		v.f = -v.f
	case failed:
	default:
		return value{}
	}
	return v
}

// junction is AND and OR of any number of operands. What decides the result
// ends it; unknown does not.
func (c *context) junction(n *node) value {
	result := truth(n.op == opAnd)
	for _, k := range n.kids {
		switch v := c.eval(k).truth(); {
		case v.kind == failed:
			return v
		case v.kind == null:
			result = v
		case v.isTrue() == (n.op == opOr):
			return v
		}
	}
	return result
}

// both is BETWEEN, one comparison AND another, and NOT BETWEEN, one OR
// another. The value is evaluated once: BETWEENs within each other would take
// exponential time.
func (c *context) both(low, high op, n *node, decisive bool) value {
	l := c.eval(n.kids[0])
	a := c.compare(low, l, n.kids[1])
	if a.kind == failed || a.kind == boolean && a.isTrue() == decisive {
		return a
	}
	b := c.compare(high, l, n.kids[2])
	if a.kind == null && (b.kind == null || b.isTrue() != decisive) && b.kind != failed {
		return a
	}
	return b
}

// compare is the operators of order. The right side does not matter if the
// left one is unknown.
func (c *context) compare(o op, l value, right *node) value {
	if l.kind == null || l.kind == failed {
		return l
	}
	r := c.eval(right)
	if r.kind == null || r.kind == failed {
		return r
	}
	if l.kind == str && r.kind == str {
		var ok bool
		if l, ok = l.convert(double); !ok {
			return value{kind: failed}
		}
	}
	d, ok := order(l, r)
	if !ok {
		return value{kind: failed}
	}
	switch o {
	case opGreater:
		return truth(d > 0)
	case opGreaterEqual:
		return truth(d >= 0)
	case opLess:
		return truth(d < 0)
	default:
		return truth(d <= 0)
	}
}

// order compares two values of which at least one is a number; false if the
// other one cannot be converted.
func order(l, r value) (c int, ok bool) {
	ok = true
	if l.kind == str {
		l, ok = l.convert(r.kind)
	} else if r.kind == str {
		r, ok = r.convert(l.kind)
	}
	if !ok || !l.isNumber() || !r.isNumber() {
		return 0, false
	}
	if l.kind != double && r.kind != double {
		switch {
		case l.n < r.n:
			return -1, true
		case l.n > r.n:
			return 1, true
		}
		return 0, true
	}
	return compareDoubles(l.double(), r.double()), true
}

// equal is the operator =.
func equal(l, r value) value {
	switch {
	case l.kind == failed:
		return l
	case r.kind == failed:
		return r
	case l.kind == null:
		if r.kind == null {
			return truth(true)
		}
		return l
	case r.kind == null:
		return truth(false)
	case l.kind == str && r.kind == str:
		return truth(bytes.Equal(l.s, r.s))
	case l.kind == boolean && r.kind == boolean:
		return truth(l.n == r.n)
	case l.kind == boolean && r.kind == str:
		return value{kind: failed} // Apache's broker stumbles here
	case l.kind == str && r.kind == boolean:
		isTrue := len(l.s) == 4 && strings.EqualFold(string(l.s), "true")
		return truth(isTrue == r.isTrue())
	case l.kind == boolean || r.kind == boolean:
		return truth(false)
	}
	d, ok := order(l, r)
	if !ok {
		return value{kind: failed}
	}
	return truth(d == 0)
}

// search is CONTAINS, STARTSWITH and ENDSWITH. What is no string, and the
// empty string, are neither found nor not found.
func (c *context) search(n *node) value {
	if len(n.val.s) == 0 {
		return truth(false)
	}
	v := c.eval(n.kids[0])
	if v.kind == failed {
		return v
	}
	if v.kind != str {
		return truth(false)
	}
	switch n.op {
	case opContains:
		return truth(bytes.Contains(v.s, n.val.s))
	case opNotContains:
		return truth(!bytes.Contains(v.s, n.val.s))
	case opStartsWith:
		return truth(bytes.HasPrefix(v.s, n.val.s))
	case opNotStartsWith:
		return truth(!bytes.HasPrefix(v.s, n.val.s))
	case opEndsWith:
		return truth(bytes.HasSuffix(v.s, n.val.s))
	default:
		return truth(!bytes.HasSuffix(v.s, n.val.s))
	}
}
