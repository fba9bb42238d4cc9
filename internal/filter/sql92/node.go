package sql92

// op is what a node does.
type op uint8

const (
	opConst op = iota
	opProperty
	opNegate // a minus sign
	opNot
	opAnd // of all kids
	opOr
	opEqual
	opNotEqual
	opIsNull
	opIsNotNull
	opGreater
	opGreaterEqual
	opLess
	opLessEqual
	opBetween // kids: value, lower and upper limit
	opNotBetween
	opIn
	opNotIn
	opContains
	opNotContains
	opStartsWith
	opNotStartsWith
	opEndsWith
	opNotEndsWith
)

// node is one operation of a compiled expression.
type node struct {
	op    op
	slot  int32 // of a property
	depth int32
	at    int // in the text, for errors
	kids  []*node
	val   value               // of a constant; the string of CONTAINS and its like
	set   map[string]struct{} // of IN
}

// isBoolean tells whether a node can only be a truth value, so that it cannot
// be ordered.
func (n *node) isBoolean() bool { return n.op >= opNot }

// canBeCondition tells whether a node can be used as a truth value: all but
// numbers, strings and what has a minus sign. A property can, although it is
// never true.
func (n *node) canBeCondition() bool {
	return n.isBoolean() || n.op == opProperty || n.op == opConst && (n.val.kind == boolean || n.val.kind == null)
}

// negated is the operator with a NOT in front.
func (o op) negated() op {
	switch o {
	case opBetween, opIn, opContains, opStartsWith, opEndsWith:
		return o + 1
	default:
		return o
	}
}
