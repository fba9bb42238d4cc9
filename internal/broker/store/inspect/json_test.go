package inspect

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckJSON(t *testing.T) {
	for text, want := range map[string]int{
		`{}`:                                -1,
		` [1, -2.5e+3, true, null, "a\"b"]`: -1,
		`{"a":{0:12,1:7
}}`: -1,
		``:                       0,
		`{`:                      1,
		`{"a"}`:                  4,
		`{"a":}`:                 5,
		`{"a":1,}`:               7,
		`[1 2]`:                  3,
		`{"a":"x`:                7,
		"{\"a\":\"\x00\"}":       6,
		`{} x`:                   3,
		`{"a":nul}`:              5,
		strings.Repeat("[", 999): maxDepth + 1,
	} {
		at, why := checkJSON([]byte(text))
		if (want < 0) != (why == "") || want >= 0 && at != want {
			t.Errorf("%.20q: byte %d, %q, want %d", text, at, why, want)
		}
	}
}

func FuzzCheckJSON(f *testing.F) {
	f.Add(`{"offsetTable":{1:2,18:0}}`)
	f.Add(`["\u4e2d",1e9,{}]`)
	f.Fuzz(func(t *testing.T, text string) {
		at, why := checkJSON([]byte(text))
		if at < 0 || at > len(text) {
			t.Fatalf("byte %d of %d", at, len(text))
		}
		// Whatever the standard library takes is good; nesting is the exception.
		if json.Valid([]byte(text)) && why != "" && !strings.Contains(why, "nested") {
			t.Fatalf("%q: %s at byte %d", text, why, at)
		}
	})
}
