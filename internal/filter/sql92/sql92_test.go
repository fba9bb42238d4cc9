package sql92

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSyntaxErrors(t *testing.T) {
	for expr, want := range map[string]string{
		"":                        `column 1: expected a property, a number, a string, TRUE, FALSE, NULL, NOT, +, - or (, found the end`,
		"a =":                     `column 4: expected a property,`,
		"(a = 1":                  `column 7: expected ), found the end`,
		"a = 1 AND":               `column 10: expected a property,`,
		"a = 1\nAND  b >":         `line 2, column 9: expected a property,`,
		"a = '\u4e2d\u6587' AND":  `column 13: expected a property,`,
		"a = 'x":                  `column 5: the string has no end`,
		"a = 1 /* x":              `column 7: the comment has no end`,
		"a == 1":                  `column 4: expected a property, a number, a string, TRUE, FALSE, NULL, NOT, +, - or (, found "="`,
		"a != 1":                  `column 3: '!' has no meaning here; <> is the operator for unequal`,
		"a = 1 && b = 1":          `column 7: '&' has no meaning here; write AND`,
		`a = "x"`:                 `column 5: '"' has no meaning here; strings take single quotes`,
		"a like 'x%'":             `column 3: expected AND, OR, a comparison or the end, found "like"; there is no LIKE`,
		"a + 1 = 2":               `column 3: expected AND, OR, a comparison or the end, found "+"; there is no arithmetic`,
		"a = 1 b = 2":             `column 7: expected AND, OR, a comparison or the end, found "b"`,
		"a = 1)":                  `column 6: expected AND, OR, a comparison or the end, found ")"`,
		"a.b = 1":                 `column 2: '.' has no meaning here; property names are made of letters`,
		"a-b = 1":                 `column 2: expected AND, OR, a comparison or the end, found "-"; there is no arithmetic, and property names`,
		"a IS 1":                  `column 6: expected NULL or NOT NULL, found "1"`,
		"a IS NOT 1":              `column 10: expected NULL, found "1"`,
		"a NOT = 1":               `column 7: expected BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT, found "="`,
		"a IN ()":                 `column 7: expected a string in single quotes, found ")"`,
		"a IN (1)":                `column 7: expected a string in single quotes, found "1"`,
		"a IN ('x' 'y')":          `column 11: expected , or ), found "'y'"`,
		"a IN 'x'":                `column 6: expected (, found "'x'"`,
		"1 IN ('x')":              `column 1: expected a property in front of IN`,
		"NOT a IN ('x')":          `column 1: expected a property in front of IN; NOT belongs to the operand alone`,
		"a CONTAINS b":            `column 12: expected a string in single quotes, found "b"`,
		"a BETWEEN 1":             `column 12: expected AND, found the end`,
		"a BETWEEN 3 AND 1":       `column 11: the lower limit of BETWEEN is above the upper one`,
		"a BETWEEN 'x' AND 'y'":   `column 11: expected a number or a property: the string "x" cannot be ordered`,
		"a > 'x'":                 `column 5: expected a number or a property: the string "x" cannot be ordered`,
		"a > 1 > 2":               `column 3: expected a number or a property: a condition cannot be ordered`,
		"NOT a > 1":               `column 1: expected a number or a property: a condition cannot be ordered; NOT belongs`,
		"TRUE > 1":                `column 1: expected a number or a property: TRUE or FALSE cannot be ordered`,
		"a = NULL":                `column 5: NULL cannot be compared, use IS NULL or IS NOT NULL`,
		"TRUE = 'x'":              `column 8: TRUE and FALSE cannot be compared with a number or a string`,
		"1":                       `column 1: expected a condition, found a number`,
		"a = 1 OR 'x'":            `column 10: expected a condition, found the string "x"`,
		"NOT -a":                  `column 5: expected a condition, found a negative number`,
		"a = 0.0":                 `column 5: "0.0" is below the smallest number with a point or an exponent; for zero write 0`,
		"a = 1e309":               `column 5: "1e309" is above 1.797`,
		"a = 9223372036854775808": `column 5: "9223372036854775808" is above 9223372036854775807`,
		"\u4e2d = 1":              `column 1: '` + "\u4e2d" + `' has no meaning here`,
	} {
		err := Check(expr)
		require.Error(t, err, expr)
		require.ErrorContains(t, err, want, expr)
		var se *SyntaxError
		require.ErrorAs(t, err, &se)
		require.Equal(t, expr, se.Expr)
		require.LessOrEqual(t, se.Offset, len(expr))
	}
}

func TestValid(t *testing.T) {
	for _, expr := range []string{
		"a = 1", "((a))", "a=1and(b<>'x')or not c", "a between 1 and 3 and b not in ('x','y')", "-- all\nTRUE",
		"a > 1 -- no end of line", "a /* b */ = 'it''s'", "$a_1 IS NOT NULL IS NULL", "A Not Contains 'x'", "a = - + -1.5e-3",
	} {
		require.NoError(t, Check(expr), expr)
		e, err := Compile(expr)
		require.NoError(t, err, expr)
		require.Equal(t, expr, e.String())
	}
}

// Apache's parser stops where an expression can end.
func TestCompileIgnoresWhatFollows(t *testing.T) {
	e, err := Compile("a = 1 b = 2 !!!")
	require.NoError(t, err)
	require.True(t, e.Match(properties("a=1")))
	require.Error(t, Check("a = 1 b = 2 !!!"))
	_, err = Compile("a = 1 !!! b = 2")
	require.Error(t, err, "the next token is looked at")
}

func TestLimits(t *testing.T) {
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, expr := range []string{
		deep("(", "a", ")", MaxDepth+1), deep("NOT ", "a", "", MaxDepth+1), deep("-", "a", " = 1", MaxDepth+1),
		deep("", "a", " = b", MaxDepth+1), deep("", "a", " IS NULL", MaxDepth+1), deep("(a = 1 OR ", "b", ")", MaxDepth+1),
		deep("(", "", "", MaxLength),
	} {
		_, err := Compile(expr)
		require.ErrorContains(t, err, "more than 500 operators within each other")
	}
	require.NoError(t, Check(deep("(", "a", ")", MaxDepth-1)))
	require.NoError(t, Check(deep("", "a = 1", " OR a = 1", 2000)), "a long list is not deep")
	require.ErrorContains(t, Check(strings.Repeat(" ", MaxLength)+"a"), "the expression has 32769 bytes, more than 32768")
}

// BETWEEN needs its value twice; within each other that must not multiply.
func TestNestedBetweenIsLinear(t *testing.T) {
	expr := "a"
	for range 150 {
		expr = "(-(" + expr + ") BETWEEN -1 AND 1)"
	}
	e, err := Compile(expr)
	require.NoError(t, err)
	require.Equal(t, Unknown, e.Eval(properties("a=1")))
}

func TestThreeValuedLogic(t *testing.T) {
	literals := map[Result]string{True: "t = 1", False: "t = 2", Unknown: "missing = 1"}
	p := properties("t=1")
	result := func(expr string) Result {
		e, err := Compile(expr)
		require.NoError(t, err, expr)
		return e.Eval(p)
	}
	for a, x := range literals {
		not := map[Result]Result{True: False, False: True, Unknown: Unknown}
		require.Equal(t, not[a], result("NOT ("+x+")"))
		require.Equal(t, truthOf(a == Unknown), result("("+x+") IS NULL"))
		require.Equal(t, truthOf(a != Unknown), result("("+x+") IS NOT NULL"))
		for b, y := range literals {
			and, or := Unknown, Unknown
			switch {
			case a == False || b == False:
				and = False
			case a == True && b == True:
				and = True
			}
			switch {
			case a == True || b == True:
				or = True
			case a == False && b == False:
				or = False
			}
			require.Equal(t, and, result(x+" AND "+y))
			require.Equal(t, or, result(x+" OR "+y))
			require.Equal(t, and, result(fmt.Sprintf("%s AND (%s AND TRUE)", x, y)))
			require.Equal(t, or, result(fmt.Sprintf("%s OR (FALSE OR %s)", x, y)))
			require.Equal(t, and, result(fmt.Sprintf("TRUE AND %s AND %s AND TRUE", x, y)))
		}
	}
}

func truthOf(b bool) Result {
	if b {
		return True
	}
	return False
}

// The type of the other side decides how a property is read.
func TestConversions(t *testing.T) {
	for _, c := range []struct {
		value                          string
		asInt, asLong, asDouble, asStr Result // = 5, = 5000000000, = 5.0, = '5'
	}{
		{"5", True, False, True, True},
		{"+5", True, False, True, False},
		{"05", True, False, True, False},
		{"5.0", Failed, Failed, True, False},
		{" 5 ", Failed, Failed, True, False},
		{"5f", Failed, Failed, True, False},
		{"5L", Failed, Failed, Failed, False},
		{"0x5p0", Failed, Failed, True, False},
		{"5_0", Failed, Failed, Failed, False},
		{"5000000000", Failed, True, False, False},
		{"-5", False, False, False, False},
		{"9223372036854775808", Failed, Failed, False, False},
		{"-9223372036854775808", Failed, False, False, False},
		{"-2147483648", False, False, False, False},
		{"2147483648", Failed, False, False, False},
		{"NaN", Failed, Failed, False, False},
		{"-NaN", Failed, Failed, False, False},
		{"-Infinity", Failed, Failed, False, False},
		{"inf", Failed, Failed, Failed, False},
		{"nan", Failed, Failed, Failed, False},
		{"1e999", Failed, Failed, False, False},
		{"five", Failed, Failed, Failed, False},
		{"\uff15", True, False, Failed, False}, // a digit of another script
		{"-", Failed, Failed, Failed, False},
		{".", Failed, Failed, Failed, False},
		{"5e", Failed, Failed, Failed, False},
		{"0x", Failed, Failed, Failed, False},
		{"0x5", Failed, Failed, Failed, False},
	} {
		p := properties("a=" + c.value)
		for expr, want := range map[string]Result{
			"a = 5": c.asInt, "a = 5000000000": c.asLong, "a = 5.0": c.asDouble, "a = '5'": c.asStr,
			"5 = a": c.asInt, "5000000000 = a": c.asLong, "5.0 = a": c.asDouble, "'5' = a": c.asStr,
		} {
			e, err := Compile(expr)
			require.NoError(t, err)
			require.Equal(t, want, e.Eval(p), "%s with %q", expr, c.value)
		}
	}
}

func TestMatchIsTrueAlone(t *testing.T) {
	e, err := Compile("a > 1")
	require.NoError(t, err)
	require.True(t, e.Match(properties("a=2")))
	require.False(t, e.Match(properties("a=1")))
	require.False(t, e.Match(properties("a=x")))
	require.False(t, e.Match(nil))
	not, err := Compile("NOT (a > 1)")
	require.NoError(t, err)
	require.False(t, not.Match(properties("a=x")), "an error is not undone by NOT")
	require.False(t, not.Match(nil))
}

func TestManyProperties(t *testing.T) {
	var terms []string
	list := ""
	for i := range 30 {
		terms = append(terms, fmt.Sprintf("p%d = %d", i, i))
		list += fmt.Sprintf("p%d=%d;", i, i)
	}
	e, err := Compile(strings.Join(terms, " AND ") + " AND p0 = 0")
	require.NoError(t, err)
	require.Len(t, e.Properties(), 30)
	require.True(t, e.Match(properties(list)))
	require.False(t, e.Match(properties(list+"p29=0")), "of equal names the last counts")
}

func TestEvalDoesNotAllocate(t *testing.T) {
	e, err := Compile("a BETWEEN 1 AND 3 AND b IN ('x', 'y') AND c > 1.5 AND d CONTAINS 'bc' AND (e IS NULL OR e = TRUE)")
	require.NoError(t, err)
	p := properties("a=2;b=y;c=2.25;d=abcd;e=true")
	require.True(t, e.Match(p))
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Match(p) }))
}

func TestCache(t *testing.T) {
	var c Cache
	first, err := c.Compile([]byte("a = 0"))
	require.NoError(t, err)
	again, err := c.Compile([]byte("a = 0"))
	require.NoError(t, err)
	require.Same(t, first, again)
	key := []byte("a = 0")
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.Compile(key) }))
	for i := range 10 * CacheSize {
		e, err := c.Compile(fmt.Appendf(nil, "a = %d", i))
		require.NoError(t, err)
		require.True(t, e.Match(properties(fmt.Sprintf("a=%d", i))))
	}
	require.Len(t, c.byKey, CacheSize)
	again, err = c.Compile([]byte("a = 0"))
	require.NoError(t, err)
	require.NotSame(t, first, again, "it has been pushed out")
	_, err = c.Compile([]byte("a = "))
	require.Error(t, err)
	require.Len(t, c.byKey, CacheSize)
}

func FuzzSQL(f *testing.F) {
	for i, c := range golden(f) {
		if i%40 == 0 {
			f.Add(c.expr, string(properties(c.props)))
		}
	}
	f.Fuzz(func(t *testing.T, expr, props string) {
		strict := Check(expr)
		e, err := Compile(expr)
		var se *SyntaxError
		if err != nil {
			require.ErrorAs(t, err, &se)
			require.NotEmpty(t, se.Error())
			require.Error(t, strict)
			return
		}
		p := []byte(props)
		got := e.Eval(p)
		require.Equal(t, got == True, e.Match(p))
		// What may follow an expression does not change it.
		if strict != nil || strings.Contains(expr, "--") {
			return
		}
		not, err := Compile("NOT (" + expr + ")")
		if err != nil {
			require.ErrorContains(t, err, "more than") // the limits
			return
		}
		opposite := map[Result]Result{True: False, False: True, Unknown: Unknown, Failed: Failed}
		require.Equal(t, opposite[got], not.Eval(p))
		both, err := Compile("(" + expr + ") OR NOT (" + expr + ")")
		if err == nil && (got == True || got == False) {
			require.Equal(t, True, both.Eval(p))
		}
	})
}

func BenchmarkEval(b *testing.B) {
	p := properties("UNIQ_KEY=7F0000010001000000000000000000;TAGS=TagA;KEYS=order-1;region=eu;amount=250;price=12.5;vip=true")
	for name, expr := range map[string]string{
		"int":    "amount > 100",
		"double": "price BETWEEN 10.5 AND 20.5",
		"in":     "region IN ('us', 'eu', 'cn')",
		"mixed":  "amount > 100 AND region = 'eu' AND (price < 10.5 OR vip = TRUE) AND note IS NULL",
	} {
		e, err := Compile(expr)
		require.NoError(b, err)
		require.True(b, e.Match(p))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Match(p)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile("amount > 100 AND region = 'eu' AND (price < 10.5 OR vip = TRUE)"); err != nil {
			b.Fatal(err)
		}
	}
}
