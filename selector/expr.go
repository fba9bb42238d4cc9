package selector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/filter"
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

// Validate reports why the expression cannot be used.
func (e Expr) Validate() error {
	if e.kind == kindAll {
		return nil
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

// String is the expression as it is sent: "*" or "a || b".
func (e Expr) String() string {
	if e.kind == kindAll {
		return filter.All
	}
	return e.text
}

// Type is the expression's type on the wire: "TAG".
func (e Expr) Type() string { return filter.TypeTag }
