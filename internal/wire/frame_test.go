package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goldenFrames calls f for each frame of the vectors, with a name for it.
func goldenFrames(tb testing.TB, f func(name string, v vector)) {
	tb.Helper()
	for _, v := range golden(tb, "wire.jsonl.gz", "exchange", "frame") {
		for _, part := range []string{"request", "response", "frame"} {
			if x := v.sub(part); x != nil {
				f(v.text("name")+" "+part, x)
			}
		}
	}
}

func TestGoldenFrames(t *testing.T) {
	n := 0
	var f Frame
	goldenFrames(t, func(name string, v vector) {
		n++
		raw := v.hex(t, "hex")
		size, err := FrameSize(raw, 0)
		require.NoError(t, err, name)
		require.Equal(t, len(raw), size, name)
		require.NoError(t, f.Decode(bytes.Clone(raw)), name)
		requireFrame(t, name, v, &f)
		requireFrame(t, name, v, f.Clone())
		requireSameBytes(t, name, raw, &f)
	})
	require.Greater(t, n, 900)
}

func requireFrame(t *testing.T, name string, want vector, f *Frame) {
	t.Helper()
	require.Equal(t, want.text("serialize") == "ROCKETMQ", f.Encoding == Binary, name)
	require.EqualValues(t, want.int(t, "code"), f.Code, name)
	require.EqualValues(t, want.int(t, "version"), f.Version, name)
	require.EqualValues(t, want.int(t, "opaque"), f.Opaque, name)
	require.EqualValues(t, want.int(t, "flag"), f.Flag, name)
	require.Equal(t, want.text("language"), f.Language.String(), name)
	require.Equal(t, want.text("remark"), string(f.Remark), name)
	ext := map[string]string{}
	for i := range f.NumFields() {
		x := f.Field(i)
		if len(x.Value) > 0 || f.Encoding == JSON { // Java's binary form reads an empty value as null
			ext[string(x.Key)] = string(x.Value)
		}
	}
	require.Equal(t, want.textMap("ext"), ext, name)
	body := want.text("body_hex")
	if body == "" {
		body = hex.EncodeToString([]byte(want.text("body")))
	}
	require.Equal(t, body, hex.EncodeToString(f.Body), name)
}

// requireSameBytes encodes the frame again, fields in the order of arrival, and
// compares with what Apache wrote. Language and version are our own, so they are
// put into Apache's bytes; what our writer leaves out (an empty remark, an empty
// object of fields) is taken out of them.
func requireSameBytes(t *testing.T, name string, raw []byte, f *Frame) {
	t.Helper()
	e := Begin(nil, Head{Code: f.Code, Flag: f.Flag, Opaque: f.Opaque, Encoding: f.Encoding, Remark: string(f.Remark)})
	for i := range f.NumFields() {
		e.Bytes(string(f.Field(i).Key), f.Field(i).Value)
	}
	got := e.Finish(f.Body)

	h := int(binary.BigEndian.Uint32(raw[4:]) & 0xFFFFFF)
	header := bytes.Clone(raw[FrameHead : FrameHead+h])
	if f.Encoding == Binary {
		header[2] = byte(LanguageGo)
		binary.BigEndian.PutUint16(header[3:], uint16(Version479))
	} else {
		text := string(header)
		text = strings.Replace(text, `"language":"JAVA"`, `"language":"GO"`, 1)
		text = strings.Replace(text, fmt.Sprintf(`"version":%d}`, f.Version), `"version":479}`, 1)
		text = strings.Replace(text, `,"extFields":{}`, "", 1)
		text = strings.Replace(text, `,"remark":""`, "", 1)
		header = []byte(text)
	}
	want := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(f.Body)))
	want = binary.BigEndian.AppendUint32(want, uint32(f.Encoding)<<24|uint32(len(header)))
	want = append(append(want, header...), f.Body...)
	if !bytes.Equal(want, got) {
		require.Equal(t, string(want), string(got), name)
	}
}

// signer keeps what it was given to sign.
type signer struct{ key, token, content string }

func (s *signer) Sign() (string, string, func([]byte) string) {
	return s.key, s.token, func(content []byte) string {
		s.content = hex.EncodeToString(content)
		return "signed"
	}
}

// TestGoldenSignedContent compares what is given to be signed with what Apache
// signed: all values in the order of their names, then the body.
func TestGoldenSignedContent(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "acl_signature") {
		ext := v.textMap("ext")
		s := &signer{key: ext["AccessKey"], token: ext["SecurityToken"]}
		if _, ok := ext["AccessKey"]; !ok {
			continue // not a request that a signer made
		}
		delete(ext, "AccessKey")
		delete(ext, "SecurityToken")
		for _, enc := range []Encoding{JSON, Binary} {
			c := Command{Code: 10, Ext: ExtFields(ext), Body: v.hex(t, "body_hex")}
			raw := c.Append(nil, Head{Encoding: enc, Signer: s})
			require.Equal(t, v.text("content_hex"), s.content)
			var f Frame
			require.NoError(t, f.Decode(raw))
			require.Equal(t, "signed", f.Text("Signature"))
			require.Equal(t, s.key, f.Text("AccessKey"))
			require.Equal(t, s.token, f.Text("SecurityToken"))
			require.Equal(t, v.text("body_hex"), hex.EncodeToString(f.Body))
		}
	}
}

func TestC12_FrameSize(t *testing.T) {
	head := func(s string) []byte { return unhex(t, strings.ReplaceAll(s, " ", "")) }
	for name, b := range map[string][]byte{
		"minus one":           head("FFFFFFFF 00000000"),
		"2 GiB":               head("7FFFFFFF 00000000"),
		"least number":        head("80000000 00000000"),
		"zero":                head("00000000 00000000"),
		"no room for a mark":  head("00000003 00000000"),
		"HTTP":                []byte("HTTP/1.1 400 Bad Request")[:FrameHead],
		"TLS alert":           head("15030100 02022800"),
		"header larger":       head("00000010 0000000D"),
		"header of 16 MiB":    head("00000010 00FFFFFF"),
		"encoding 2":          head("00000010 02000004"),
		"encoding 255":        head("00000010 FF000004"),
		"one over the limit":  head("00FFFFFD 00000004"),
		"far above the limit": head("01000000 00000004"),
	} {
		n, err := FrameSize(b, 0)
		require.ErrorIs(t, err, ErrFrame, name)
		require.Zero(t, n, name)
		var f Frame
		require.ErrorIs(t, f.Decode(b), ErrFrame, name)
	}
	n, err := FrameSize(head("00FFFFFC 00000004"), 0)
	require.NoError(t, err, "the limit itself")
	require.Equal(t, DefaultMaxFrame, n)
	_, err = FrameSize(head("00000005 00000000"), 8)
	require.ErrorIs(t, err, ErrFrame)
	n, err = FrameSize(head("00000004 00000000"), 8)
	require.NoError(t, err)
	require.Equal(t, 8, n)
	require.Error(t, new(Frame).Decode([]byte{0, 0, 0}))
}

// Every prefix of good frames, with the length set to fit: an error or a frame,
// no panic.
func TestFrameDecodePrefixes(t *testing.T) {
	for _, enc := range []Encoding{JSON, Binary} {
		h := SendRequest{Group: []byte("G"), Topic: []byte("T\"\n\xe4\xb8\xad"), DefaultTopic: []byte(TopicDefault)}
		e := Begin(nil, Head{Code: ReqSendMessageV2, Encoding: enc, Remark: "r\\"})
		h.EncodeExt(&e)
		good := e.Finish(nil)
		var f Frame
		require.NoError(t, f.Decode(bytes.Clone(good)))
		for n := FrameHead; n < len(good); n++ {
			b := bytes.Clone(good[:n])
			binary.BigEndian.PutUint32(b, uint32(n-4))
			binary.BigEndian.PutUint32(b[4:], uint32(enc)<<24|uint32(n-FrameHead))
			require.Error(t, f.Decode(b), "%d of %d bytes", n, len(good))
		}
	}
}

// What others write into JSON headers: the official Go client, older servers, a
// hand.
func TestFrameDecodeOddJSON(t *testing.T) {
	frame := func(h string) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(4+len(h)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
		return append(b, h...)
	}
	var f Frame
	require.NoError(t, f.Decode(frame(` { "opaque" : 5 , "code":"310","language":9,"remark":"","extFields":{"a":1,"b":true,"c":null,"d":"\u4e2d\ud83d\ude00\/"},"more":[{"x":[1,2]},"y"],"flag":1,"version":317} `)))
	require.EqualValues(t, 310, f.Code)
	require.EqualValues(t, 5, f.Opaque)
	require.EqualValues(t, 317, f.Version)
	require.Equal(t, LanguageGo, f.Language)
	require.True(t, f.IsResponse())
	require.Equal(t, 3, f.NumFields())
	require.Equal(t, "1", f.Text("a"))
	require.True(t, f.Bool("b"))
	require.Equal(t, "\u4e2d\U0001F600/", f.Text("d"))

	require.NoError(t, f.Decode(frame(`{"language":"COBOL","extFields":null,"remark":null}`)))
	require.Equal(t, LanguageOther, f.Language)
	require.Zero(t, f.NumFields())

	for _, bad := range []string{
		``, `{`, `[]`, `{"code":}`, `{"code":99999999999}`, `{"code":"x"}`, `{"code":1}x`, `{"extFields":[]}`, `{"extFields":{"a":{}}}`,
		`{"extFields":{"a":"\q"}}`, `{"extFields":{"a":"\u12"}}`, `{"extFields":{"a":"x`, `{"a":` + strings.Repeat("[", 1000), `{"remark":"\`,
	} {
		require.ErrorIs(t, f.Decode(frame(bad)), ErrFrame, bad)
	}
	require.NoError(t, f.Decode(frame(`{"remark":"\ud83d x \ude00 \ud83d\u0041"}`)))
	require.Equal(t, "\uFFFD x \uFFFD \uFFFDA", string(f.Remark), "lone surrogates")
}

func TestFrameFields(t *testing.T) {
	c := Command{Code: 1, Ext: ExtFields{"n": "-7", "big": "4294967296", "bad": "x", "empty": "", "yes": "TRUE", "no": "1"}}
	for _, enc := range []Encoding{JSON, Binary} {
		var f Frame
		require.NoError(t, f.Decode(c.Append(nil, Head{Encoding: enc, Flag: FlagOneway})))
		require.True(t, f.IsOneway())
		require.False(t, f.IsResponse())
		n, err := f.Int32("n")
		require.NoError(t, err)
		require.EqualValues(t, -7, n)
		big, err := f.Int64("big")
		require.NoError(t, err)
		require.EqualValues(t, int64(1<<32), big)
		_, err = f.Int32("big")
		require.ErrorContains(t, err, "big")
		_, err = f.Int64("bad")
		require.ErrorContains(t, err, "bad")
		zero, err := f.Int64("empty")
		require.NoError(t, err)
		require.Zero(t, zero)
		require.True(t, f.Bool("yes"))
		require.False(t, f.Bool("no"))
	}
}

func TestParseInt(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "-0": 0, "12": 12, "-9223372036854775808": -1 << 63, "9223372036854775807": 1<<63 - 1, "000000000000000000000007": 7} {
		n, ok := ParseInt([]byte(s))
		require.True(t, ok, s)
		require.Equal(t, want, n, s)
	}
	for _, s := range []string{"", "-", "+", "1 ", "0x1", "9223372036854775808", "1e3", "--1", "\u0661"} {
		_, ok := ParseInt([]byte(s))
		require.False(t, ok, s)
	}
}
