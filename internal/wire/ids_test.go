package wire

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGoldenOffsetMsgID(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "offset_msg_id") {
		ip := netip.MustParseAddr(v.text("ip"))
		host := netip.AddrPortFrom(ip, uint16(v.int(t, "port")))
		id := AppendOffsetMsgID(nil, host, v.int(t, "offset"))
		require.Equal(t, v.text("id"), string(id))
		got, phy, err := ParseOffsetMsgID(id)
		require.NoError(t, err)
		require.Equal(t, host, got)
		require.Equal(t, v.int(t, "offset"), phy)
	}
}

// Java reads ZZ as 255 and crashes on other faults; here all faults are errors.
func TestGoldenOffsetMsgIDDecode(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "offset_msg_id_decode") {
		host, phy, err := ParseOffsetMsgID(v.text("id"))
		if v.text("error") != "" || strings.Contains(v.text("id"), "Z") {
			require.ErrorIs(t, err, ErrID, v.text("id"))
			continue
		}
		require.NoError(t, err, v.text("id"))
		require.Equal(t, v.text("decoded"), host.String())
		require.Equal(t, v.int(t, "offset"), phy)
	}
	_, _, err := ParseOffsetMsgID("0A00000201002A9F0000000000000004") // port beyond 16 bits
	require.ErrorIs(t, err, ErrID)
}

func TestGoldenUniqID(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "uniq_id") {
		zone, err := time.LoadLocation(v.text("time_zone"))
		if err != nil {
			t.Logf("no time zone data: %v", err)
			continue
		}
		u, err := ParseUniqID(v.text("id"))
		require.NoError(t, err)
		layout := v.sub("layout")
		require.Equal(t, netip.MustParseAddr(vector(v.sub("apache_decodes")).text("ip")), u.IP)
		require.EqualValues(t, layout.int(t, "pid"), u.PID)
		require.EqualValues(t, layout.int(t, "loader_hash"), u.Loader)
		require.EqualValues(t, layout.int(t, "ms_since_month_start"), u.Millis)
		require.EqualValues(t, layout.int(t, "counter"), u.Counter)

		made := v.int(t, "month_start") + layout.int(t, "ms_since_month_start")
		require.GreaterOrEqual(t, made, v.int(t, "created_not_before"))
		require.LessOrEqual(t, made, v.int(t, "created_not_after"))
		at := time.UnixMilli(made).In(zone)
		require.Equal(t, made, u.Time(at).UnixMilli())

		s := NewIDSource(u.IP, int(u.PID), u.Loader)
		id := string(s.Append(nil, at))
		require.Equal(t, v.text("id")[:len(id)-4]+"0000", id)
	}
}

func TestGoldenUniqIDDecode(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "uniq_id_decode") {
		u, err := ParseUniqID(v.text("id"))
		require.NoError(t, err)
		require.Equal(t, netip.MustParseAddr(v.text("ip")), u.IP)
		require.EqualValues(t, v.int(t, "pid"), u.PID)
	}
	for _, bad := range []string{"", "00", strings.Repeat("0", 31), strings.Repeat("0", 55), strings.Repeat("G", 32), strings.Repeat("0", 1<<20)} {
		_, err := ParseUniqID(bad)
		require.ErrorIs(t, err, ErrID)
		require.Less(t, len(err.Error()), 200)
	}
}

// The month is the zone's own, and an id of the last day of a month is not
// taken for one of the next month.
func TestUniqIDMonths(t *testing.T) {
	zone := time.FixedZone("", 8*3600)
	s := NewIDSource(netip.MustParseAddr("10.0.0.1"), 7, 9)
	for _, at := range []time.Time{
		time.Date(2026, 1, 31, 23, 59, 59, 999e6, zone),
		time.Date(2026, 2, 1, 0, 0, 0, 0, zone),
		time.Date(2026, 12, 31, 23, 59, 59, 999e6, zone),
		time.Date(2027, 1, 1, 0, 0, 0, 1e6, zone),
	} {
		u, err := ParseUniqID(s.Append(nil, at))
		require.NoError(t, err)
		begin := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, zone)
		require.EqualValues(t, at.Sub(begin).Milliseconds(), u.Millis)
		require.Equal(t, at.UnixMilli(), u.Time(at).UnixMilli())
		require.Equal(t, at.UnixMilli(), u.Time(at.Add(20*24*time.Hour)).UnixMilli())
	}
	u := UniqID{Millis: uint32((30 * time.Second).Milliseconds())}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, zone)
	require.Equal(t, now.Add(30*time.Second), u.Time(now), "a clock half a minute ahead is no reason to go back a month")
}

// More ids than the counter holds within one millisecond, and a clock that goes
// back: still no id comes twice, and later ids are larger.
func TestIDSourceIsUnique(t *testing.T) {
	s := NewIDSource(netip.MustParseAddr("fe80::1"), 1, 2)
	now := time.Date(2026, 5, 5, 1, 2, 3, 0, time.UTC)
	last := ""
	buf := make([]byte, 0, 56)
	for i := range 150_000 {
		at := now
		if i > 75_000 {
			at = now.Add(-time.Hour)
		}
		buf = s.Append(buf[:0], at)
		if len(buf) != 56 || string(buf) <= last {
			t.Fatalf("id %d: %s after %s", i, buf, last)
		}
		last = string(buf)
	}
}

func TestIDSourceConcurrent(t *testing.T) {
	s := NewIDSource(netip.MustParseAddr("10.0.0.1"), 1, 2)
	const workers, each = 8, 5_000
	ids := make([][]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				ids[w] = append(ids[w], string(s.Append(nil, time.Now())))
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, list := range ids {
		for _, id := range list {
			seen[id] = true
		}
	}
	require.Len(t, seen, workers*each)
}

func TestIDSourceAllocatesNothing(t *testing.T) {
	s := NewIDSource(netip.MustParseAddr("10.0.0.1"), 1, 2)
	buf := make([]byte, 0, 64)
	now := time.Now()
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = s.Append(buf[:0], now) }))
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	require.Zero(t, testing.AllocsPerRun(100, func() { buf = AppendOffsetMsgID(buf[:0], host, 1<<40) }))
}

func TestIDSourceWithoutAddress(t *testing.T) {
	id := NewIDSource(netip.Addr{}, -1, -1).Append(nil, time.UnixMilli(1).UTC())
	require.Equal(t, "00000000FFFFFFFFFFFF000000010000", string(id))
}
