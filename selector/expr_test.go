package selector_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/selector"
)

func TestExprText(t *testing.T) {
	require.Equal(t, "*", selector.All.String())
	require.Equal(t, "*", selector.Expr{}.String())
	require.Equal(t, "a || b", selector.Tags("a", "b").String())
	require.Equal(t, "TAG", selector.Tags("a").Type())
	require.Equal(t, selector.All, selector.Expr{})
}

func TestExprValidate(t *testing.T) {
	for _, e := range []selector.Expr{selector.All, selector.Tags("a"), selector.Tags("a", "b c", "\u4e2d\u6587")} {
		require.NoError(t, e.Validate(), e.String())
		// What is valid must survive the parser both sides use.
		parsed, err := filter.Parse(e.String())
		require.NoError(t, err)
		require.Equal(t, e == selector.All, parsed.All())
	}
	bad := map[string]selector.Expr{
		"at least one tag": selector.Tags(),
		"empty tag":        selector.Tags("a", ""),
		"is no tag":        selector.Tags("a", "*"),
		"cannot be part":   selector.Tags("a||b"),
		"blanks around":    selector.Tags(" a"),
	}
	for want, e := range bad {
		require.ErrorContains(t, e.Validate(), want, "%q", e.String())
	}
	require.Error(t, selector.Tags("").Validate())
	require.Error(t, selector.Tags("a\x01b").Validate())
	require.Error(t, selector.Tags("a|").Validate())
}

func TestTagsKeepOrderAndCase(t *testing.T) {
	parsed, err := filter.Parse(selector.Tags("B", "b", "A").String())
	require.NoError(t, err)
	require.Equal(t, []string{"B", "b", "A"}, parsed.Names())
	require.True(t, parsed.Match([]byte("b")))
	require.False(t, parsed.Match([]byte("a")))
}

func ExampleTags() {
	fmt.Println(selector.Tags("paid", "refunded"))
	// Output: paid || refunded
}

func TestSQL(t *testing.T) {
	e := selector.SQL("a > 1 AND b = 'x'")
	require.NoError(t, e.Validate())
	require.Equal(t, "a > 1 AND b = 'x'", e.String())
	require.Equal(t, "SQL92", e.Type())
	require.Equal(t, e, selector.SQL("a > 1 AND b = 'x'"))
	for expr, want := range map[string]string{
		"":              "column 1: expected",
		"a > 'x'":       "column 5: expected a number or a property",
		"a = 1 b = 2":   `column 7: expected AND, OR, a comparison or the end, found "b"`,
		"a = \"x\"":     "strings take single quotes",
		"a == 1 OR b <": "column 4: expected",
	} {
		require.ErrorContains(t, selector.SQL(expr).Validate(), want, expr)
	}
}

func ExampleSQL() {
	e := selector.SQL("price BETWEEN 10 AND 99.5 AND region IN ('eu', 'us')")
	fmt.Println(e.Validate(), e.Type())
	fmt.Println(selector.SQL("price > 10 AND region == 'eu'").Validate())
	// Output:
	// <nil> SQL92
	// SQL92 expression, column 24: expected a property, a number, a string, TRUE, FALSE, NULL, NOT, +, - or (, found "="
}
