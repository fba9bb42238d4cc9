package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseProperties(t *testing.T) {
	got, err := parseProperties("# comment\n" +
		"! another = comment\r\n" +
		"\n" +
		"brokerName=broker-a\r\n" +
		"  listenPort : 10911\n" +
		"brokerId 0\n" +
		"namesrvAddr = a:9876;\\\n" +
		"    b:9876\n" +
		"storePathRootDir=C:\\\\data\\\\store\n" +
		"key\\ with\\=both=v\\u0041\\t\\u4e2d\\ud83d\\ude00\n" +
		"empty=\n" +
		"alone\n" +
		"last=x\\")
	require.NoError(t, err)
	require.Equal(t, []property{
		{"brokerName", "broker-a", 4},
		{"listenPort", "10911", 5},
		{"brokerId", "0", 6},
		{"namesrvAddr", "a:9876;b:9876", 7},
		{"storePathRootDir", `C:\data\store`, 9},
		{"key with=both", "vA\t\u4e2d\U0001f600", 10},
		{"empty", "", 11},
		{"alone", "", 12},
		{"last", "x", 13},
	}, got)
}

func TestParsePropertiesBadEscape(t *testing.T) {
	for _, text := range []string{"a=1\nb=\\u12", "a=1\nb=\\uzzzz", "a=1\n\\u00=1", "a=1\nb=\\ud83d\\u1"} {
		_, err := parseProperties(text)
		require.ErrorContains(t, err, "line 2: ", text)
	}
}

func FuzzParseProperties(f *testing.F) {
	f.Add("a=1\n")
	f.Add("a\\\n b\\u0041:c")
	f.Add("\\ud83d\\ude00")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseProperties(text)
		if err != nil {
			return
		}
		last := 0
		for _, p := range got {
			if p.line <= last {
				t.Fatalf("lines do not rise: %v", got)
			}
			last = p.line
		}
	})
}
