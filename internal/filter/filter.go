// Package filter holds the tag expressions of subscriptions. The broker
// narrows down what it delivers by the hash codes of the tags; the consumer
// then compares the tags themselves, because codes collide.
package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// All is the expression that selects every message.
const All = "*"

// Expression types of a subscription.
const (
	TypeTag = "TAG"
	TypeSQL = "SQL92"
)

// Tags is a parsed tag expression: tags separated by "||", or "*" for all
// messages, tagged or not. The zero value selects nothing. A Tags is
// immutable and may be shared; copying it is cheap.
type Tags struct {
	expr  string
	all   bool
	names []string
	codes []int32 // sorted, distinct
}

// Parse reads an expression as FilterAPI.buildSubscriptionData of Apache's
// client does: empty and "*" select all, otherwise the tags are cut at "||",
// trimmed, and empty ones dropped. Nothing but separators is an error. The
// quirks are kept because both sides of a subscription must agree: " " and
// "a || *" are lists of tags, not "all".
func Parse(expr string) (Tags, error) {
	if expr == "" || expr == All {
		return Tags{expr: All, all: true}, nil
	}
	if strings.Trim(expr, "|") == "" && len(expr)%2 == 0 {
		return Tags{}, fmt.Errorf("tag expression %q names no tag; write \"*\" for all messages or tags separated by \"||\"", expr)
	}
	t := Tags{expr: expr}
	for part := range strings.SplitSeq(expr, "||") {
		if name := trim(part); name != "" && !slices.Contains(t.names, name) {
			t.names = append(t.names, name)
			t.codes = append(t.codes, wire.JavaHash(name))
		}
	}
	slices.Sort(t.codes)
	t.codes = slices.Compact(t.codes)
	return t, nil
}

// trim is Java's String.trim: it cuts all characters up to the space.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// FromCodes is the expression as a client's heartbeat carries it, with the
// tags and codes already worked out by the client. Codes may be in any order.
func FromCodes(expr string, names []string, codes []int32) Tags {
	if expr == "" || expr == All {
		return Tags{expr: All, all: true}
	}
	c := slices.Clone(codes)
	slices.Sort(c)
	return Tags{expr: expr, names: slices.Clone(names), codes: slices.Compact(c)}
}

// Expr is the expression as written; "*" for the empty one.
func (t Tags) Expr() string { return t.expr }

// All tells whether every message is selected.
func (t Tags) All() bool { return t.all }

// Names are the tags in the order of the expression. The slice must not be
// changed.
func (t Tags) Names() []string { return t.names }

// Codes are the hash codes of the tags, sorted and distinct. The slice must
// not be changed.
func (t Tags) Codes() []int32 { return t.codes }

// MatchCode is the broker's test: whether a message with this tags code, as
// its consume queue unit has it, may be wanted. Like Apache it looks at the
// low 32 bits alone. It can be true for a tag that was not asked for.
func (t Tags) MatchCode(code int64) bool {
	if t.all {
		return true
	}
	c := int32(code)
	if len(t.codes) <= 8 {
		return slices.Contains(t.codes, c)
	}
	_, ok := slices.BinarySearch(t.codes, c)
	return ok
}

// Match is the consumer's exact test of a message's tag, nil for none.
func (t Tags) Match(tag []byte) bool {
	if t.all {
		return true
	}
	for _, name := range t.names {
		if name == string(tag) {
			return true
		}
	}
	return false
}
