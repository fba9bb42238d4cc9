package wire

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

// The text is one that Apache's client makes.
func TestRecallHandleGolden(t *testing.T) {
	const golden = "djEgVG9waWNBIGJyb2tlci1hIDE3MDAwMDAwMDAwMDEgQUMxMTAwMDEwMDAw"
	h := RecallHandle{Topic: "TopicA", Broker: "broker-a", DeliverTime: 1700000000001, MessageID: "AC1100010000"}
	require.Equal(t, golden, string(h.Append(nil)))
	got, err := ParseRecallHandle(golden)
	require.NoError(t, err)
	require.Equal(t, h, got)
}

func TestRecallHandlePadding(t *testing.T) {
	for _, id := range []string{"A", "AB", "ABC", "\xfb\xff\xfe?"} {
		h := RecallHandle{Topic: "%RETRY%G", Broker: "b", MessageID: id}
		text := string(h.Append([]byte("x"))[1:])
		require.Zero(t, len(text)%4, "padded")
		require.NotContains(t, text, "+")
		require.NotContains(t, text, "/")
		for text != "" && text[len(text)-1] == '=' {
			got, err := ParseRecallHandle(text)
			require.NoError(t, err)
			require.Equal(t, h, got)
			text = text[:len(text)-1]
		}
		got, err := ParseRecallHandle(text)
		require.NoError(t, err)
		require.Equal(t, h, got)
	}
}

func TestRecallHandleFaults(t *testing.T) {
	for text, why := range map[string]string{
		"v2 T b 1 ID":                    "version",
		"v1 T b 1":                       "are expected",
		"v1 T b 1 ID more":               "are expected",
		"v1  b 1 ID":                     "are expected",
		"v1 T  1 ID":                     "are expected",
		"v1 T b 1 ":                      "are expected",
		"v1 T b soon ID":                 "milliseconds",
		"v1 T b -1 ID":                   "milliseconds",
		"v1 T b 99999999999999999999 ID": "milliseconds",
		" ":                              "version",
	} {
		_, err := ParseRecallHandle(base64.URLEncoding.EncodeToString([]byte(text)))
		require.ErrorIs(t, err, ErrRecallHandle, text)
		require.ErrorContains(t, err, why, text)
	}
	for text, why := range map[string]string{"": "empty", "====": "version", "no handle!": "base64", "djEg+w": "base64"} {
		_, err := ParseRecallHandle(text)
		require.ErrorIs(t, err, ErrRecallHandle, text)
		require.ErrorContains(t, err, why, text)
	}
}

func FuzzRecallHandle(f *testing.F) {
	f.Add("djEgVG9waWNBIGJyb2tlci1hIDE3MDAwMDAwMDAwMDEgQUMxMTAwMDEwMDAw")
	f.Add("====")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseRecallHandle(s)
		if err != nil {
			return
		}
		again, err := ParseRecallHandle(string(h.Append(nil)))
		if err != nil || again != h {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}
