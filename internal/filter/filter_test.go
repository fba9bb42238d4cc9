package filter_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestParseAsJavaDoes(t *testing.T) {
	data, err := os.ReadFile("testdata/subscriptions.jsonl")
	require.NoError(t, err)
	n := 0
	for line := range bytes.Lines(data) {
		var v struct {
			Expression *string
			SubString  string
			TagsSet    []string
			CodeSet    []int32
		}
		require.NoError(t, json.Unmarshal(line, &v))
		expr := ""
		if v.Expression != nil {
			expr = *v.Expression
		}
		tags, err := filter.Parse(expr)
		require.NoError(t, err, "%q", expr)
		require.Equal(t, v.SubString, tags.Expr())
		require.Equal(t, v.SubString == "*", tags.All(), "%q", expr)
		require.ElementsMatch(t, v.TagsSet, tags.Names(), "%q", expr)
		require.ElementsMatch(t, v.CodeSet, tags.Codes(), "%q", expr)
		n++
	}
	require.Greater(t, n, 10)
}

func TestOnlySeparatorsAreRefused(t *testing.T) {
	for _, expr := range []string{"||", "||||"} {
		_, err := filter.Parse(expr)
		require.ErrorContains(t, err, `write "*"`)
	}
	tags, err := filter.Parse("|")
	require.NoError(t, err)
	require.Equal(t, []string{"|"}, tags.Names())
}

func TestMatch(t *testing.T) {
	tags, err := filter.Parse("Aa || TagB")
	require.NoError(t, err)
	require.True(t, tags.Match([]byte("Aa")))
	require.True(t, tags.Match([]byte("TagB")))
	require.False(t, tags.Match([]byte("BB")), "same code as Aa, another tag")
	require.False(t, tags.Match(nil))
	require.True(t, tags.MatchCode(wire.TagsCode([]byte("BB"))))
	require.False(t, tags.MatchCode(0))
	require.False(t, filter.Tags{}.MatchCode(0))
	require.False(t, filter.Tags{}.Match(nil))

	all, err := filter.Parse("*")
	require.NoError(t, err)
	require.True(t, all.Match(nil))
	require.True(t, all.MatchCode(42))
}

func TestManyTags(t *testing.T) {
	var names []string
	for c := 'a'; c <= 'z'; c++ {
		names = append(names, string(c))
	}
	codes := make([]int32, 0, len(names))
	for _, n := range names {
		codes = append(codes, wire.JavaHash(n))
	}
	slices.Reverse(codes)
	tags := filter.FromCodes("many", names, codes)
	for _, n := range names {
		require.True(t, tags.MatchCode(wire.TagsCode([]byte(n))), n)
	}
	require.False(t, tags.MatchCode(wire.TagsCode([]byte("aa"))))
	require.True(t, filter.FromCodes("*", nil, nil).All())
	require.True(t, filter.FromCodes("", nil, nil).All())
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "*", "a||b", "||", " a | b ||", "\x00||\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		tags, err := filter.Parse(expr)
		if err != nil {
			return
		}
		for _, n := range tags.Names() {
			if !tags.Match([]byte(n)) || !tags.MatchCode(wire.TagsCode([]byte(n))) {
				t.Fatalf("%q does not select its own tag %q", expr, n)
			}
		}
	})
}
