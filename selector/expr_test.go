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
