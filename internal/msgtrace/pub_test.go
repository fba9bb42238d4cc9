package msgtrace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// golden is what the format's description makes of somePub: no trace of
// Apache's own was at hand.
const golden = "Pub\x011700000000123\x01DefaultRegion\x01GO_PRODUCER\x01orders\x017F0000010000A227000000000000000A\x01TagA\x01k1 k2\x0110.0.0.2:10911\x0142\x017\x014\x010A00000200002A9F0000000000000004\x01true\x0110.0.0.9\x02"

func somePub() Pub {
	return Pub{
		Time: time.UnixMilli(1700000000123), Region: "DefaultRegion", Group: "GO_PRODUCER", Topic: "orders",
		MessageID: "7F0000010000A227000000000000000A", Tags: "TagA", Keys: []string{"k1", "k2"}, StoreHost: "10.0.0.2:10911",
		BodyLength: 42, Cost: 7 * time.Millisecond, Type: Order, OffsetID: "0A00000200002A9F0000000000000004",
		Success: true, ClientHost: "10.0.0.9",
	}
}

func TestPubGolden(t *testing.T) {
	p := somePub()
	require.Equal(t, "before"+golden, string(p.Append([]byte("before"))))
	// What is not there is null; parts of a millisecond are cut off.
	p = Pub{Time: time.UnixMicro(1999), Group: "g", Topic: "t", Cost: 1999 * time.Microsecond}
	require.Equal(t, "Pub\x011\x01null\x01g\x01t\x01null\x01null\x01null\x01null\x010\x011\x010\x01null\x01false\x01null\x02", string(p.Append(nil)))
	require.Equal(t, []MsgType{0, 1, 2, 3, 4}, []MsgType{Normal, TransHalf, TransCommit, Delay, Order})
	// No text can be taken for two fields or records.
	p.Region, p.Keys = "a\x01b\x02", []string{"c\x01", "\x02d"}
	require.Equal(t, "Pub\x011\x01a?b?\x01g\x01t\x01null\x01null\x01c? ?d\x01null\x010\x011\x010\x01null\x01false\x01null\x02", string(p.Append(nil)))
}

func TestParsePubOfAllVersions(t *testing.T) {
	record := strings.TrimSuffix(golden, "\x02")
	p, err := ParsePub(record)
	require.NoError(t, err)
	require.Equal(t, somePub(), p)

	p, err = ParsePub(record + "\x01more\x01and more")
	require.NoError(t, err)
	require.Equal(t, somePub(), p, "what later versions add is passed over")

	fields := strings.Split(record, "\x01")
	four, old := somePub(), somePub()
	four.ClientHost, old.ClientHost, old.OffsetID = "", "", ""
	p, err = ParsePub(strings.Join(fields[:14], "\x01"))
	require.NoError(t, err)
	require.Equal(t, four, p)
	p, err = ParsePub(strings.Join(slices.Delete(slices.Clone(fields[:14]), 12, 13), "\x01"))
	require.NoError(t, err)
	require.Equal(t, old, p, "13 fields have no offset id")

	nulls := Pub{Time: time.UnixMilli(1), Group: "null", Topic: "null"}
	p, err = ParsePub(strings.TrimSuffix(string(nulls.Append(nil)), "\x02"))
	require.NoError(t, err)
	require.Equal(t, nulls, p)
}

func TestParsePubRefuses(t *testing.T) {
	fields := strings.Split(strings.TrimSuffix(golden, "\x02"), "\x01")
	with := func(i int, v string) string {
		f := slices.Clone(fields)
		f[i] = v
		return strings.Join(f, "\x01")
	}
	for _, tt := range []struct{ record, why string }{
		{"", "not a Pub"},
		{with(0, "SubBefore"), `"SubBefore"`},
		{strings.Join(fields[:12], "\x01"), "12 fields"},
		{"Pub", "1 fields"},
		{with(1, "now"), "time"},
		{with(9, "2147483648"), "body length"},
		{with(9, "-1"), "negative"},
		{with(10, ""), "cost"},
		{with(11, "Order"), "message type"},
		{with(11, "-1"), "negative"},
		{with(1, strings.Repeat("9", 1<<20)), "time"},
	} {
		p, err := ParsePub(tt.record)
		require.ErrorIs(t, err, ErrRecord)
		require.ErrorContains(t, err, tt.why)
		require.Less(t, len(err.Error()), 200)
		require.Zero(t, p)
	}
}

func TestRecords(t *testing.T) {
	body := golden + "SubAfter\x01x\x02\x02Odd\x02" + strings.TrimSuffix(golden, "\x02")
	var kinds []string
	for r := range Records(body) {
		kinds = append(kinds, Kind(r))
	}
	require.Equal(t, []string{"Pub", "SubAfter", "Odd", "Pub"}, kinds)
	for r := range Records(body) {
		require.Equal(t, strings.TrimSuffix(golden, "\x02"), r)
		break
	}
	require.Empty(t, slices.Collect(Records("")))
	require.Empty(t, Kind(""))
}

func FuzzParsePub(f *testing.F) {
	fields := strings.Split(strings.TrimSuffix(golden, "\x02"), "\x01")
	f.Add(golden)
	f.Add(golden + golden[:30])
	f.Add(strings.Join(fields[:13], "\x01") + "\x02")
	f.Add(strings.Join(fields[:14], "\x01") + "\x02")
	f.Add("Pub\x01\x02SubBefore\x01")
	f.Fuzz(func(t *testing.T, body string) {
		for r := range Records(body) {
			p, err := ParsePub(r)
			if err != nil {
				require.Zero(t, p)
				continue
			}
			// What was read is written, and read as the same.
			again, err := ParsePub(strings.TrimSuffix(string(p.Append(nil)), "\x02"))
			require.NoError(t, err)
			if p.Group == "" || p.Topic == "" { // absent names are written as null
				continue
			}
			require.Equal(t, p, again)
		}
	})
}
