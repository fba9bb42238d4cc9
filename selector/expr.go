package selector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/filter/sql92"
)

// Expr says which messages of a topic a subscription gets. The zero value is
// [All]. An Expr is immutable and may be shared. All members of a group must
// subscribe to the same topics with the same expressions.
type Expr struct {
	kind exprKind
	text string
}

type exprKind uint8

const (
	kindAll exprKind = iota
	kindTags
	kindSQL
)

// All selects every message, tagged or not.
var All Expr

// Tags selects messages that carry one of the tags, exactly and with regard
// to case: Tags("a", "b") is the expression "a || b" of the Java client. No
// tags at all, an empty tag, or a tag that the expression cannot carry is
// reported by [Expr.Validate] and so by the constructor of the consumer.
// Messages with other tags are skipped: they count as consumed for the group.
func Tags(tags ...string) Expr {
	return Expr{kind: kindTags, text: strings.Join(tags, " || ")}
}

// SQL selects messages by their properties, TAGS and KEYS among them, with an
// expression of the SQL92 dialect of RocketMQ:
//
//	price BETWEEN 10 AND 99.5 AND (region IN ('eu', 'us') OR vip = TRUE) AND note IS NULL
//
// From lowest to highest precedence there are OR; AND; =, <>, IS NULL and IS
// NOT NULL; >, >=, <, <=, BETWEEN, IN, CONTAINS, STARTSWITH and ENDSWITH, which
// may have NOT in front; NOT, + and -; names of properties (letters, digits, _
// and $), numbers, 'strings', TRUE, FALSE and parentheses. Brokers before 5.0
// do not know CONTAINS, STARTSWITH and ENDSWITH.
//
// A message is delivered if the expression is true for it, not if properties
// are missing that decide it. Properties are strings: next to a number they are
// read as a number of its type, and the message is not delivered if one cannot
// be; compared with an integer "1.5" and "5 " are none, so write amount > 1.0
// if there may be fractions. NOT binds tighter than comparisons: write NOT (a =
// 1).
//
// The syntax is checked by [Expr.Validate] and so by the constructor of the
// consumer; Apache's own parser accepts more, it ignores what follows a
// complete expression. When the consumer starts it asks a broker, because
// brokers filter by SQL92 only with enablePropertyFilter=true.
func SQL(expr string) Expr { return Expr{kind: kindSQL, text: expr} }

// Validate reports why the expression cannot be used.
func (e Expr) Validate() error {
	switch e.kind {
	case kindAll:
		return nil
	case kindSQL:
		return sql92.Check(e.text)
	}
	if e.text == "" {
		return errors.New("a tag expression needs at least one tag; use selector.All for all messages")
	}
	for tag := range strings.SplitSeq(e.text, " || ") {
		switch {
		case strings.TrimSpace(tag) == "":
			return fmt.Errorf("tag expression %q has an empty tag", e.text)
		case tag == filter.All:
			return fmt.Errorf("tag expression %q: * is no tag; use selector.All for all messages", e.text)
		case strings.ContainsAny(tag, "|\x01\x02"):
			return fmt.Errorf("tag %q: the characters | 0x01 0x02 cannot be part of a tag", tag)
		case strings.TrimSpace(tag) != tag:
			return fmt.Errorf("tag %q: blanks around a tag are lost on the way, leave them out", tag)
		}
	}
	return nil
}

// String is the expression as it is sent: "*", "a || b" or SQL.
func (e Expr) String() string {
	if e.kind == kindAll {
		return filter.All
	}
	return e.text
}

// Type is the expression's type on the wire: "TAG" or "SQL92".
func (e Expr) Type() string {
	if e.kind == kindSQL {
		return filter.TypeSQL
	}
	return filter.TypeTag
}
