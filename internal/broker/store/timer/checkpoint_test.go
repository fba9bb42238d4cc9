package timer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// reopen opens a checkpoint of a file system anew.
func reopen(t *testing.T, fs mfile.FS, phy int64) (*checkpoint, recovered) {
	t.Helper()
	c, r, err := openCheckpoint(fs, "/store/config/timercheck", 1000, phy)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.file.Close() })
	return c, r
}

func TestCheckpoint(t *testing.T) {
	fs := mfile.NewMemory()
	c, r := reopen(t, fs, 0)
	require.Equal(t, recovered{missing: true}, r)
	a := State{Queue: 2, Time: 1795974300500, Last: math.MaxInt64, Log: 104, Phy: 1000}
	require.NoError(t, c.begin(a, 1795974301452))
	java := javaState{
		read: 1795974300000, log: 104, queue: 2, master: 2,
		version: wire.DataVersion{StateVersion: ourVersion, Timestamp: 1795974301452, Counter: 1},
	}
	_, r = reopen(t, fs, 1000)
	require.Equal(t, recovered{ours: true, java: java, saved: a}, r)

	// Notes count as far as the commit log has what they speak of.
	b := State{Queue: 3, Time: a.Time, Last: 7, Log: 156, Phy: 2000}
	d := State{Queue: 3, Time: a.Time + 1, Last: 7, Log: 156, Phy: 3000}
	c.note(b, 3)
	c.note(d, 3)
	_, r = reopen(t, fs, 2999)
	require.Equal(t, &b, r.noted)
	_, r = reopen(t, fs, 3000)
	require.Equal(t, &d, r.noted)
	_, r = reopen(t, fs, 1999)
	require.Nil(t, r.noted)
	c, _ = reopen(t, fs, 3000)
	e := State{Queue: 4, Time: a.Time + 2, Last: 8, Log: 156, Phy: 3000}
	c.note(e, 4)
	_, r = reopen(t, fs, 3000)
	require.Equal(t, &e, r.noted, "the older one was replaced")
	require.EqualValues(t, 4, r.java.queue, "a broker of Apache is told all the time")
	require.EqualValues(t, 4, r.java.master)
	_, err := c.save(e, 1)
	require.NoError(t, err)
	_, r = reopen(t, fs, 3000)
	require.Nil(t, r.noted, "no news")
	require.Equal(t, e, r.saved)

	// One of the saved ones is torn.
	data := c.file.Data()
	data[2*sector+20]++
	_, r = reopen(t, fs, math.MaxInt64)
	require.True(t, r.ours)
	require.Equal(t, e, r.saved)
	data[2*sector+20]--
	data[sector+20]++
	_, r = reopen(t, fs, math.MaxInt64)
	require.True(t, r.ours)
	require.Equal(t, a, r.saved)
	data[2*sector+20]++
	_, r = reopen(t, fs, math.MaxInt64)
	require.False(t, r.ours)
}

// TestCheckpointOfApache: once Apache's broker has been here its fields count,
// and our notes do not until we have taken over.
func TestCheckpointOfApache(t *testing.T) {
	fs := mfile.NewMemory()
	c, _ := reopen(t, fs, 0)
	require.NoError(t, c.begin(State{Queue: 9, Time: 5000, Log: 52}, 5000))
	c.note(State{Queue: 10, Time: 5001}, 10)
	theirs := javaState{read: 9000, log: 520, queue: 10, master: 10, version: wire.DataVersion{Timestamp: 9000, Counter: 2}}
	theirs.put(c.file.Data())
	c, r := reopen(t, fs, math.MaxInt64)
	require.Equal(t, recovered{java: theirs}, r)
	s := State{Queue: 10, Time: 9000, Log: 520}
	require.NoError(t, c.begin(s, 9001))
	_, r = reopen(t, fs, math.MaxInt64)
	require.True(t, r.ours)
	require.Equal(t, s, r.saved)
	require.Nil(t, r.noted)
	require.EqualValues(t, 3, r.java.version.Counter)
}

func TestCheckpointFileOfAnotherSize(t *testing.T) {
	fs := mfile.NewMemory()
	require.NoError(t, fs.MkdirAll("/store/config"))
	require.NoError(t, fs.WriteFile("/store/config/timercheck", make([]byte, 100)))
	_, _, err := openCheckpoint(fs, "/store/config/timercheck", 1000, 0)
	var format *mfile.FormatError
	require.ErrorAs(t, err, &format)
	require.NoError(t, fs.WriteFile("/store/config/timercheck", nil))
	_, r := reopen(t, fs, 0)
	require.True(t, r.missing, "made, but not written, when the machine died")
}

func TestStateDone(t *testing.T) {
	s := State{Queue: 10, Time: 1000, Last: 5}
	require.True(t, s.Done(9, 999))
	require.True(t, s.Done(5, 1000))
	require.False(t, s.Done(6, 1000))
	require.False(t, s.Done(5, 1001))
	require.False(t, s.Done(10, 1))
}

func FuzzNote(f *testing.F) {
	n := note{seq: 1, state: State{1, 2, 3, 4, 5}}
	b := make([]byte, noteSize)
	n.put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var n note
		if !n.get(b) {
			return
		}
		again := make([]byte, noteSize)
		n.put(again)
		if string(again) != string(b[:noteSize]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}
