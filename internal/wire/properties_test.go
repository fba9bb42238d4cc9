package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoldenPropertiesDecode(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "properties_decode", "properties_encode") {
		p := Properties(v.hex(t, "hex"))
		want := v.textMap("map")
		if v["kind"] == "properties_encode" {
			want = v.textMap("decoded")
		}
		require.Equal(t, want, p.Map(), "%q", p)
		for k, x := range want {
			got, ok := p.Lookup(k)
			require.True(t, ok, "%q in %q", k, p)
			require.Equal(t, x, string(got))
			require.Equal(t, x, p.Text(k))
		}
		for _, k := range []string{"", "nothing", "A"} {
			_, ok := p.Lookup(k)
			require.False(t, ok, "%q in %q", k, p)
		}
	}
}

// TestGoldenPropertiesEncode writes the pairs in Java's order, which is that of
// its hash map: 5.3 to the byte, 4.9 but for the last separator.
func TestGoldenPropertiesEncode(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "properties_encode") {
		want := v.hex(t, "hex")
		var got []byte
		for _, pair := range strings.Split(strings.TrimSuffix(string(want), "\x02"), "\x02") {
			if k, x, ok := strings.Cut(pair, "\x01"); ok {
				got = AppendProperty(got, k, x)
			}
		}
		if v.is("4.9") {
			got = []byte(strings.TrimSuffix(string(got), "\x02"))
		}
		require.Equal(t, string(want), string(got))
	}
}

func TestC20_Properties(t *testing.T) {
	require.ErrorIs(t, ValidateProperty("k", "a\x01b"), ErrProperty)
	require.ErrorIs(t, ValidateProperty("k", "a\x02"), ErrProperty)
	require.ErrorIs(t, ValidateProperty("k\x01", "v"), ErrProperty)
	require.ErrorIs(t, ValidateProperty("\x02k", "v"), ErrProperty)
	require.ErrorIs(t, ValidateProperty("", "v"), ErrProperty)
	require.ErrorIs(t, ValidateProperty("k", ""), ErrProperty)
	require.NoError(t, ValidateProperty("k", "v\x00\x03\xff"))

	require.NoError(t, CheckProperties(make(Properties, 32767)))
	require.ErrorIs(t, CheckProperties(make(Properties, 32768)), ErrProperty)
	require.ErrorIs(t, CheckProperties(make(Properties, 40000)), ErrProperty)

	require.Equal(t, "a b", JoinKeys("a", "b"))
	require.Empty(t, JoinKeys())

	p := Properties("k\x01a\x01b\x02x\x01y")
	require.Equal(t, map[string]string{"k": "a\x01b", "x": "y"}, p.Map())
	require.Equal(t, "a\x01b", p.Text("k"))
	require.Equal(t, "y", p.Text("x"))
	_, ok := p.Lookup("k\x01a")
	require.False(t, ok, "a name ends at the first 0x01")
}

func TestPropertiesEdit(t *testing.T) {
	p := Properties("a\x011\x02b\x012") // no separator at the end
	q := Properties(AppendProperty(append([]byte(nil), p...), "c", []byte("3")))
	require.Equal(t, "a\x011\x02b\x012\x02c\x013\x02", string(q))
	require.Equal(t, "b\x012\x02", string(q.Without(nil, "a", "c", "nothing")))
	require.Equal(t, string(q), string(q.Without(nil)))
	require.Empty(t, Properties("a\x011\x02a\x012").Without(nil, "a"))

	var seen []string
	q.Each(func(k, v []byte) bool {
		seen = append(seen, string(k)+"="+string(v))
		return len(seen) < 2
	})
	require.Equal(t, []string{"a=1", "b=2"}, seen)
}

func TestPropertiesLookupAllocatesNothing(t *testing.T) {
	p := Properties("KEYS\x01k\x02UNIQ_KEY\x01AC110001000018B4AAC20000000A0000\x02TAGS\x01TagA\x02")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, ok := p.Lookup(PropTags); !ok {
			t.Fail()
		}
	}))
}
