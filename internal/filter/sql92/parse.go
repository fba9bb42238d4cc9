package sql92

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// parser is a recursive descent parser with one token of look-ahead.
type parser struct {
	lex   lexer
	tok   token // not consumed yet
	names []string
	slots map[string]int32
	depth int32 // of recursion
}

func compile(text string, strict bool) (e *Expr, err error) {
	p := &parser{lex: lexer{text: text}, slots: map[string]int32{}}
	if len(text) > MaxLength {
		return nil, p.lex.fail(0, "the expression has %d bytes, more than %d", len(text), MaxLength)
	}
	// One recovery in place of a check behind each of some forty calls.
	defer func() {
		if r := recover(); r != nil {
			se, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			e, err = nil, se
		}
	}()
	p.advance()
	root := p.or()
	p.wantCondition(root)
	if strict && p.tok.kind != tokEnd && !strings.HasPrefix(text[p.tok.at:], "--") {
		p.fail(p.tok.at, "expected AND, OR, a comparison or the end, found %s%s", p.tok, hint(text[p.tok.at:]))
	}
	return &Expr{text: text, root: root, names: p.names}, nil
}

func (p *parser) fail(at int, format string, args ...any) { panic(p.lex.fail(at, format, args...)) }

func (p *parser) advance() token {
	t := p.tok
	next, err := p.lex.next()
	if err != nil {
		panic(err)
	}
	p.tok = next
	return t
}

// is tells whether the next token is this symbol or keyword, accept consumes
// it, expect insists on it.
func (p *parser) is(word string) bool { return p.tok.word == word }

func (p *parser) accept(word string) bool {
	if !p.is(word) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(word string) {
	if !p.accept(word) {
		p.wrong(word)
	}
}

// wrong complains about the next token.
func (p *parser) wrong(expected string) {
	p.fail(p.tok.at, "expected %s, found %s%s", expected, p.tok, hint(p.lex.text[p.tok.at:]))
}

// node makes a node and bounds what evaluation will need of the stack.
func (p *parser) node(o op, at int, kids ...*node) *node {
	n := &node{op: o, at: at, kids: kids, depth: 1}
	for _, k := range kids {
		n.depth = max(n.depth, k.depth+1)
	}
	if n.depth > MaxDepth {
		p.tooDeep(at)
	}
	return n
}

func (p *parser) tooDeep(at int) { p.fail(at, "more than %d operators within each other", MaxDepth) }

func (p *parser) or() *node  { return p.chain("OR", opOr, p.and) }
func (p *parser) and() *node { return p.chain("AND", opAnd, p.equality) }

// chain makes one node of all operands, so that a long list of alternatives is
// not a deep tree.
func (p *parser) chain(word string, o op, operand func() *node) *node {
	first := operand()
	if !p.is(word) {
		return first
	}
	p.wantCondition(first)
	kids := []*node{first}
	for p.accept(word) {
		k := operand()
		p.wantCondition(k)
		kids = append(kids, k)
	}
	return p.node(o, first.at, kids...)
}

func (p *parser) equality() *node {
	left := p.comparison()
	for {
		at := p.tok.at
		switch {
		case p.accept("="):
			left = p.equal(opEqual, at, left)
		case p.accept("<>"):
			left = p.equal(opNotEqual, at, left)
		case p.accept("IS"):
			o := opIsNull
			if p.accept("NOT") {
				o = opIsNotNull
			}
			if !p.is("NULL") && o == opIsNull {
				p.wrong("NULL or NOT NULL")
			}
			p.expect("NULL")
			left = p.node(o, at, left)
		default:
			return left
		}
	}
}

// equal refuses the comparisons that cannot be meant.
func (p *parser) equal(o op, at int, left *node) *node {
	right := p.comparison()
	for _, n := range [...]*node{left, right} {
		if n.op == opConst && n.val.kind == null {
			p.fail(n.at, "NULL cannot be compared, use IS NULL or IS NOT NULL")
		}
	}
	if left.op == opConst && left.val.kind == boolean && right.op == opConst && right.val.kind != boolean {
		p.fail(right.at, "TRUE and FALSE cannot be compared with a number or a string")
	}
	return p.node(o, at, left, right)
}

func (p *parser) comparison() *node {
	left := p.unary()
	for {
		at := p.tok.at
		not := p.accept("NOT")
		var o op
		switch w := p.tok.word; {
		case w == "BETWEEN":
			left = p.between(not, at, left)
			continue
		case w == "IN":
			left = p.in(not, at, left)
			continue
		case w == "CONTAINS":
			left = p.contains(opContains, not, at, left)
			continue
		case w == "STARTSWITH":
			left = p.contains(opStartsWith, not, at, left)
			continue
		case w == "ENDSWITH":
			left = p.contains(opEndsWith, not, at, left)
			continue
		case not:
			p.wrong("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT")
		case w == ">":
			o = opGreater
		case w == ">=":
			o = opGreaterEqual
		case w == "<":
			o = opLess
		case w == "<=":
			o = opLessEqual
		default:
			return left
		}
		p.advance()
		right := p.unary()
		p.wantOrdered(left)
		p.wantOrdered(right)
		left = p.node(o, at, left, right)
	}
}

func withNot(o op, not bool) op {
	if not {
		return o.negated()
	}
	return o
}

func (p *parser) between(not bool, at int, x *node) *node {
	p.advance()
	low := p.unary()
	p.expect("AND")
	high := p.unary()
	p.wantOrdered(x)
	p.wantOrdered(low)
	p.wantOrdered(high)
	if !not && low.op == opConst && high.op == opConst {
		if c, ok := order(low.val, high.val); !ok || c > 0 {
			p.fail(low.at, "the lower limit of BETWEEN is above the upper one")
		}
	}
	return p.node(withNot(opBetween, not), at, x, low, high)
}

func (p *parser) in(not bool, at int, x *node) *node {
	p.advance()
	if x.op != opProperty {
		p.fail(x.at, "expected a property in front of IN%s", p.notHint(x))
	}
	n := p.node(withNot(opIn, not), at, x)
	n.set = map[string]struct{}{}
	p.expect("(")
	for {
		n.set[p.literal()] = struct{}{}
		if p.accept(")") {
			return n
		}
		if !p.accept(",") {
			p.wrong(", or )")
		}
	}
}

func (p *parser) contains(o op, not bool, at int, x *node) *node {
	p.advance()
	n := p.node(withNot(o, not), at, x)
	n.val = value{kind: str, s: []byte(p.literal())}
	return n
}

// literal consumes a string.
func (p *parser) literal() string {
	if p.tok.kind != tokString {
		p.wrong("a string in single quotes")
	}
	return p.advance().unquoted()
}

func (p *parser) unary() *node {
	if p.depth++; p.depth > MaxDepth {
		p.tooDeep(p.tok.at)
	}
	defer func() { p.depth-- }()
	at := p.tok.at
	switch {
	case p.accept("+"):
		return p.unary()
	case p.accept("-"):
		return p.node(opNegate, at, p.unary())
	case p.accept("NOT"):
		x := p.unary()
		p.wantCondition(x)
		return p.node(opNot, at, x)
	}
	return p.primary()
}

func (p *parser) primary() *node {
	at := p.tok.at
	switch {
	case p.accept("("):
		n := p.or()
		p.expect(")")
		return n
	case p.accept("TRUE"):
		return p.constant(at, truth(true))
	case p.accept("FALSE"):
		return p.constant(at, truth(false))
	case p.accept("NULL"):
		return p.constant(at, value{})
	}
	switch p.tok.kind {
	case tokName:
		n := p.node(opProperty, at)
		n.slot = p.slot(p.advance().text)
		return n
	case tokString:
		return p.constant(at, value{kind: str, s: []byte(p.literal())})
	case tokInt:
		return p.constant(at, p.integer(p.advance()))
	case tokFloat:
		return p.constant(at, p.float(p.advance()))
	}
	p.wrong("a property, a number, a string, TRUE, FALSE, NULL, NOT, +, - or (")
	return nil
}

func (p *parser) constant(at int, v value) *node {
	n := p.node(opConst, at)
	n.val = v
	return n
}

func (p *parser) slot(name string) int32 {
	i, ok := p.slots[name]
	if !ok {
		i = int32(len(p.names))
		p.slots[name] = i
		p.names = append(p.names, strings.Clone(name))
	}
	return i
}

// integer is a Java int if it fits into one, with an L or without.
func (p *parser) integer(t token) value {
	n, err := strconv.ParseInt(strings.TrimRight(t.text, "lL"), 10, 64)
	if err != nil {
		p.fail(t.at, "%s is above %d, the largest integer", t, int64(math.MaxInt64))
	}
	if n > math.MaxInt32 {
		return value{kind: long, n: n}
	}
	return value{kind: integer, n: n}
}

func (p *parser) float(t token) value {
	f, err := strconv.ParseFloat(t.text, 64)
	switch {
	case err != nil || f > math.MaxFloat64:
		p.fail(t.at, "%s is above %g, the largest number", t, math.MaxFloat64)
	case f < math.SmallestNonzeroFloat64:
		p.fail(t.at, "%s is below the smallest number with a point or an exponent; for zero write 0", t)
	}
	return value{kind: double, f: f}
}

// wantOrdered refuses operands that are neither properties nor numbers.
func (p *parser) wantOrdered(n *node) {
	if n.isBoolean() || n.op == opConst && !n.val.isNumber() {
		p.fail(n.at, "expected a number or a property: %s cannot be ordered%s", n.what(), p.notHint(n))
	}
}

// wantCondition refuses operands that cannot be true or false.
func (p *parser) wantCondition(n *node) {
	if !n.canBeCondition() {
		p.fail(n.at, "expected a condition, found %s", n.what())
	}
}

// notHint is for those who think that NOT applies to the comparison.
func (p *parser) notHint(n *node) string {
	if n.op == opNot {
		return "; NOT belongs to the operand alone, put the comparison in parentheses"
	}
	return ""
}

// what is how errors name an operand.
func (n *node) what() string {
	switch {
	case n.op == opNegate:
		return "a negative number"
	case n.isBoolean():
		return "a condition"
	case n.op == opProperty:
		return "a property"
	}
	switch n.val.kind {
	case null:
		return "NULL"
	case boolean:
		return "TRUE or FALSE"
	case str:
		return fmt.Sprintf("the string %.40q", n.val.s)
	default:
		return "a number"
	}
}

// Properties are the names of the properties that count, in order of
// appearance.
func (e *Expr) Properties() []string { return slices.Clone(e.names) }
