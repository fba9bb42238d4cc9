package sql92

import (
	"bufio"
	"compress/gzip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// goldenCase is an expression, the properties of a message, and what Apache's
// own filter makes of them: invalid, or what it evaluates to.
type goldenCase struct{ expr, props, want string }

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r")

func golden(tb testing.TB) (out []goldenCase) {
	tb.Helper()
	f, err := os.Open("testdata/apache.tsv.gz")
	require.NoError(tb, err)
	defer func() { require.NoError(tb, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(tb, err)
	for lines := bufio.NewScanner(z); lines.Scan(); {
		cols := strings.Split(lines.Text(), "\t")
		require.Len(tb, cols, 3)
		out = append(out, goldenCase{unescape.Replace(cols[0]), unescape.Replace(cols[1]), cols[2]})
	}
	return out
}

// properties encodes name=value;name=value.
func properties(list string) (p wire.Properties) {
	for kv := range strings.SplitSeq(list, ";") {
		if name, value, ok := strings.Cut(kv, "="); ok {
			p = wire.AppendProperty(p, name, value)
		}
	}
	return p
}

var resultNames = map[Result]string{Unknown: "null", False: "false", True: "true", Failed: "error"}

func TestAsApacheEvaluates(t *testing.T) {
	cases := golden(t)
	require.Greater(t, len(cases), 5000)
	wrong := 0
	for _, c := range cases {
		got := "invalid"
		e, err := Compile(c.expr)
		if err == nil {
			got = resultNames[e.Eval(properties(c.props))]
		} else {
			require.Error(t, Check(c.expr), c.expr)
		}
		if got != c.want {
			wrong++
			if wrong < 20 {
				t.Errorf("%q with %q: %s, want %s (%v)", c.expr, c.props, got, c.want, err)
			}
		}
	}
	require.Zero(t, wrong, "of %d", len(cases))
}
