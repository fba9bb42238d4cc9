package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"reflect"
	"slices"
	"testing"
)

// Each decoder gets any bytes: it must not panic, what it reads must survive
// being written and read again, and what it points to must lie within its input.

func FuzzFrameDecode(f *testing.F) {
	seen := map[string]bool{}
	goldenFrames(f, func(_ string, v vector) {
		key := v.text("serialize") + v.text("code_name")
		if !seen[key] { // one of each is enough to start from
			seen[key] = true
			f.Add(v.hex(f, "hex"))
		}
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= FrameHead {
			if n, err := FrameSize(b, 1<<20); err == nil && (n < FrameHead || n > 1<<20) {
				t.Fatalf("size %d", n)
			}
		}
		var x, y Frame
		if x.Decode(b) != nil {
			return
		}
		for _, table := range []map[int32]func() header{requestHeaders, responseHeaders} {
			if h := table[x.Code]; h != nil {
				_ = h().DecodeExt(&x) // an error is fine
			}
		}
		e := Begin(nil, Head{Code: x.Code, Flag: x.Flag, Opaque: x.Opaque, Encoding: x.Encoding, Remark: string(x.Remark)})
		for i := range x.NumFields() {
			if k := x.Field(i).Key; len(appendEscaped(nil, k)) != len(k) {
				return // our own names need no escapes
			}
			e.Bytes(string(x.Field(i).Key), x.Field(i).Value)
		}
		if err := y.Decode(e.Finish(x.Body)); err != nil {
			t.Fatal(err)
		}
		if y.Code != x.Code || y.Flag != x.Flag || y.Opaque != x.Opaque || !bytes.Equal(y.Remark, x.Remark) ||
			!bytes.Equal(y.Body, x.Body) || !reflect.DeepEqual(copyFields(&x), copyFields(&y)) {
			t.Fatalf("%+v\nbecame\n%+v", x.Clone(), y.Clone())
		}
	})
}

func copyFields(f *Frame) (out []string) {
	for i := range f.NumFields() {
		out = append(out, string(f.Field(i).Key), string(f.Field(i).Value))
	}
	return out
}

func FuzzDecodeRecord(f *testing.F) {
	for _, v := range golden(f, "messages.jsonl", "record", "blank", "inner_batch", "broker_batch") {
		f.Add(v.hex(f, "hex"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		it := Records(b)
		var r, back Record
		for {
			ok, err := it.Next(&r)
			if err != nil || !ok {
				return
			}
			if r.Check() != nil { // a topic of no length
				continue
			}
			_ = r.CheckBody()
			raw := AppendRecord(nil, &r)
			if n, err := DecodeRecord(raw, &back); err != nil || n != len(raw) || n != RecordSize(&r) {
				t.Fatal(n, err)
			}
			back.BodyCRC = r.BodyCRC // any checksum is read, only the right one is written
			if !reflect.DeepEqual(r, back) {
				t.Fatalf("%+v\nbecame\n%+v", r, back)
			}
			r.Properties.Each(func(k, v []byte) bool { return len(k) > 0 && len(v) > 0 })
		}
	})
}

func FuzzBatch(f *testing.F) {
	for _, v := range golden(f, "messages.jsonl", "client_batch") {
		f.Add(v.hex(f, "hex"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var back []byte
		it := Batch(b)
		for {
			x, ok, err := it.Next()
			if err != nil {
				return
			}
			if !ok {
				break
			}
			back = AppendBatchItem(back, x.Flag, x.Body, x.Properties)
		}
		if len(back) != len(b) {
			t.Fatalf("%d bytes became %d", len(b), len(back))
		}
	})
}

func FuzzProperties(f *testing.F) {
	for _, v := range golden(f, "ids.jsonl", "properties_decode", "properties_encode") {
		f.Add(v.hex(f, "hex"), PropTags)
	}
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		p := Properties(b)
		m := p.Map()
		got, ok := p.Lookup(key)
		if want, has := m[key]; has != ok || want != string(got) {
			t.Fatalf("%q in %q: %q, %v, the map has %q", key, p, got, ok, want)
		}
		var back []byte
		for k, v := range m {
			back = AppendProperty(back, k, v)
		}
		if !reflect.DeepEqual(m, Properties(back).Map()) {
			t.Fatalf("%q became %q", p, back)
		}
		if _, ok := Properties(p.Without(nil, key)).Lookup(key); ok {
			t.Fatalf("%q is still in %q", key, p)
		}
	})
}

func FuzzIDs(f *testing.F) {
	for _, v := range golden(f, "ids.jsonl", "offset_msg_id", "offset_msg_id_decode", "uniq_id_decode") {
		f.Add(v.text("id"))
	}
	f.Fuzz(func(t *testing.T, s string) {
		if u, err := ParseUniqID(s); err == nil && !u.IP.IsValid() {
			t.Fatal(s)
		}
		host, phy, err := ParseOffsetMsgID(s)
		if err != nil {
			return
		}
		want, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := hex.DecodeString(string(AppendOffsetMsgID(nil, host, phy))); !bytes.Equal(want, got) {
			t.Fatalf("%x became %x", want, got)
		}
	})
}

// FuzzBodies is the fuzzer of all JSON bodies; kind selects the decoder.
func FuzzBodies(f *testing.F) {
	kinds := bodyKinds()
	seen := map[string]int{}
	add := func(name string, text []byte) {
		i := slices.IndexFunc(kinds, func(k bodyKind) bool { return k.name == name })
		if seen[name]++; seen[name] <= 3 && len(text) < 8000 {
			f.Add(byte(i), text)
		}
	}
	for name, s := range sampleBodies() {
		add(name, []byte(s.text))
	}
	goldenBodies(f, func(_ string, k bodyKind, text []byte, _ bool) { add(k.name, text) })
	for _, v := range golden(f, "wire.jsonl.gz", "registration_body") {
		add("registration", v.hex(f, "hex"))
	}
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		k := kinds[int(kind)%len(kinds)]
		x, err := k.decode(b)
		if err != nil {
			return
		}
		text := x.AppendJSON(nil)
		back, err := k.decode(text)
		if err != nil {
			t.Fatalf("%s: %q became %q: %v", k.name, b, text, err)
		}
		if again := back.AppendJSON(nil); !bytes.Equal(text, again) {
			t.Fatalf("%s: %q became %q", k.name, text, again)
		}
		if d, ok := x.(*RouteData); ok {
			if _, err := DecodeRouteData(d.AppendStrictJSON(nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzJSONReader walks any JSON; what it walks over without an error must end
// where it says.
func FuzzJSONReader(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u4e2d",{{"x":1}:null}],2:true}`, `[[[[]]]]`, `{`, `"\`, `{"$ref":"$"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		r := jsonReader{b: b}
		r.skip()
		err := r.finish("any")
		if !bytes.Equal(before, b) {
			t.Fatal("the input was changed")
		}
		if err == nil && r.i < len(bytes.TrimRight(b, " \t\r\n")) {
			t.Fatalf("stopped at %d of %q", r.i, b)
		}
	})
}

// FuzzEscapes writes any text as a JSON string, in both forms.
func FuzzEscapes(f *testing.F) {
	for _, s := range []string{"", "a\"\\/\b\f\n\r\t\x00\x1f\x7f", "\u0080\u009f\u00a0\u2028\u2029\u4e2d\U0001F600", "\xc2", "\xe2\x80", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		valid := string([]rune(s)) == s
		for _, esc := range [][]byte{appendEscaped(nil, s), appendASCII(nil, s)} {
			r := jsonReader{b: append(append([]byte{'"'}, esc...), '"')}
			got := r.text()
			if err := r.finish("text"); err != nil {
				t.Fatalf("%q: %v", esc, err)
			}
			if got != s && valid {
				t.Fatalf("%q became %q", s, got)
			}
		}
		// In a frame, in place.
		b := append([]byte(nil), `{"remark":"`...)
		b = append(append(b, appendEscaped(nil, s)...), `"}`...)
		head := binary.BigEndian.AppendUint32(nil, uint32(4+len(b)))
		head = binary.BigEndian.AppendUint32(head, uint32(len(b)))
		var x Frame
		if err := x.Decode(append(head, b...)); err != nil || string(x.Remark) != s {
			t.Fatalf("%q: %q, %v", s, x.Remark, err)
		}
	})
}
