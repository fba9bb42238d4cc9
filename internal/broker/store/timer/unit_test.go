package timer

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// goldenUnits were written by a broker of Apache 5.3.3: one message that has been
// delivered, one for the next day.
var goldenUnits = []struct {
	hex  string
	unit Unit
}{
	{"00000034ffffffffffffffff00000001000001a228683640000007d0000000000002def10000014f4394bdb40000000000000000",
		Unit{Prev: -1, Magic: 1, EnqueueTime: 1795974248000, Delay: 2000, Phy: 188145, Size: 335, TopicHash: 1133821364}},
	{"00000034ffffffffffffffff00000001000001a22868364005265c00000000000002e040000001564394bdb40000000000000000",
		Unit{Prev: -1, Magic: 1, EnqueueTime: 1795974248000, Delay: 86400000, Phy: 188480, Size: 342, TopicHash: 1133821364}},
}

func TestGoldenUnits(t *testing.T) {
	require.EqualValues(t, 1133821364, wire.JavaHash("TopicDelay"))
	for _, g := range goldenUnits {
		want, err := hex.DecodeString(g.hex)
		require.NoError(t, err)
		var u Unit
		require.Equal(t, foundUnit, u.decode(want))
		require.Equal(t, g.unit, u)
		b := make([]byte, UnitSize)
		u.put(b)
		require.Equal(t, want, b)
	}
	blank := make([]byte, blankSize)
	putBlank(blank, 100)
	require.Equal(t, "000000640000000000000000cbd43194", hex.EncodeToString(blank))
	require.Equal(t, foundBlank, new(Unit).decode(blank))
}

func TestWhatIsNoUnit(t *testing.T) {
	good := goldenUnits[0].unit
	for name, change := range map[string]func(*Unit){
		"prev":       func(u *Unit) { u.Prev = -2 },
		"magic":      func(u *Unit) { u.Magic = 16 },
		"no magic":   func(u *Unit) { u.Magic = 0 },
		"enqueued":   func(u *Unit) { u.EnqueueTime = -1 },
		"in aeons":   func(u *Unit) { u.EnqueueTime = maxTime + 1 },
		"before all": func(u *Unit) { u.EnqueueTime, u.Delay = 1, -2 },
		"phy":        func(u *Unit) { u.Phy = -1 },
		"far phy":    func(u *Unit) { u.Phy = maxPhy + 1 },
		"size":       func(u *Unit) { u.Size = 0 },
	} {
		u, b := good, make([]byte, UnitSize)
		change(&u)
		u.put(b)
		require.Equal(t, foundEnd, new(Unit).decode(b), name)
	}
	b := make([]byte, UnitSize)
	require.Equal(t, foundEnd, new(Unit).decode(b))
	good.put(b)
	for n := range UnitSize {
		require.Equal(t, foundEnd, new(Unit).decode(b[:n]), n)
	}
}

func FuzzUnit(f *testing.F) {
	for _, g := range goldenUnits {
		b, _ := hex.DecodeString(g.hex)
		f.Add(b)
	}
	blank := make([]byte, blankSize)
	putBlank(blank, 100)
	f.Add(blank)
	f.Fuzz(func(t *testing.T, b []byte) {
		var u Unit
		if u.decode(b) != foundUnit {
			return
		}
		again := make([]byte, UnitSize)
		u.put(again)
		if copy(again[44:], b[44:UnitSize]); !slices.Equal(again, b[:UnitSize]) { // what is reserved may be anything
			t.Fatalf("%x became %x", b, again)
		}
		if u.Time() < 0 || u.Phy+int64(u.Size) < 0 {
			t.Fatal(u)
		}
	})
}

func TestTimeHeap(t *testing.T) {
	var h timeHeap
	_, ok := h.first()
	require.False(t, ok)
	r := rand.New(rand.NewPCG(1, 2))
	var want []int64
	for range 1000 {
		v := r.Int64N(500)
		h.push(v)
		want = append(want, v)
	}
	slices.Sort(want)
	for _, v := range want {
		got, ok := h.first()
		require.True(t, ok)
		require.Equal(t, v, got)
		h.pop()
	}
	require.Empty(t, h)
}
