package timer

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// reopen opens a checkpoint of a file system anew.
func reopen(t *testing.T, fs mfile.FS, phy int64) (*checkpoint, recovered) {
	t.Helper()
	c, r, err := openCheckpoint(fs, "/store/config/timercheck", phy)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.file.Close() })
	return c, r
}

func TestCheckpoint(t *testing.T) {
	fs := mfile.NewMemory()
	c, r := reopen(t, fs, 0)
	require.Equal(t, recovered{missing: true}, r)
	a := State{Queue: 2, Time: 1795974300500, Last: math.MaxInt64, Log: 104, Phy: 1000}
	_, err := c.save(a, 1000, 1795974301452)
	require.NoError(t, err)
	java := javaState{read: 1795974300000, log: 104, queue: 2, master: 2, version: wire.DataVersion{Timestamp: 1795974301452, Counter: 1}}
	_, r = reopen(t, fs, 1000)
	require.Equal(t, recovered{ours: true, java: java, saved: a}, r)

	// Notes count as far as the commit log has what they speak of.
	b := State{Queue: 3, Time: a.Time, Last: 7, Log: 156, Phy: 2000}
	d := State{Queue: 3, Time: a.Time + 1, Last: 7, Log: 156, Phy: 3000}
	c.note(b)
	c.note(d)
	_, r = reopen(t, fs, 2999)
	require.Equal(t, &b, r.noted)
	_, r = reopen(t, fs, 3000)
	require.Equal(t, &d, r.noted)
	_, r = reopen(t, fs, 1999)
	require.Nil(t, r.noted)
	c, _ = reopen(t, fs, 3000)
	e := State{Queue: 4, Time: a.Time + 2, Last: 8, Log: 156, Phy: 3000}
	c.note(e)
	_, r = reopen(t, fs, 3000)
	require.Equal(t, &e, r.noted, "the older one was replaced")
	_, err = c.save(e, 1000, 1)
	require.NoError(t, err)
	_, r = reopen(t, fs, 3000)
	require.Nil(t, r.noted, "no news")
	require.Equal(t, e, r.saved)
}

// TestCheckpointOfApache: fields that we have not written are somebody else's.
func TestCheckpointOfApache(t *testing.T) {
	fs := mfile.NewMemory()
	c, _ := reopen(t, fs, 0)
	for i := range int64(3) {
		_, err := c.save(State{Queue: i, Log: 52 * i, Time: 1000 * i}, 1000, 5000+i)
		require.NoError(t, err)
		c.note(State{Queue: i + 1, Time: 1000*i + 1})
	}
	data := c.file.Data()
	old := append([]byte(nil), data...)
	for i := range 7 {
		copy(data, old)
		binary.BigEndian.PutUint64(data[8*i:], 77)
		_, r := reopen(t, fs, math.MaxInt64)
		require.False(t, r.ours, i)
		require.False(t, r.missing, i)
		require.Nil(t, r.noted)
	}
	// A crash while ours were being written leaves some of this note's and some
	// of the one before.
	copy(data, old)
	for i, v := range [...]int64{1000, 52} {
		binary.BigEndian.PutUint64(data[8*i:], uint64(v))
	}
	_, r := reopen(t, fs, math.MaxInt64)
	require.True(t, r.ours)
	require.EqualValues(t, 2, r.saved.Queue)
	data[sector+20]++ // a torn note
	data[2*sector+20]++
	_, r = reopen(t, fs, math.MaxInt64)
	require.False(t, r.ours)
}

func TestCheckpointFileOfAnotherSize(t *testing.T) {
	fs := mfile.NewMemory()
	require.NoError(t, fs.MkdirAll("/store/config"))
	require.NoError(t, fs.WriteFile("/store/config/timercheck", make([]byte, 100)))
	_, _, err := openCheckpoint(fs, "/store/config/timercheck", 0)
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
	n := note{seq: 1, state: State{1, 2, 3, 4, 5}, java: javaState{6, 7, 8, 9, wire.DataVersion{Counter: 1}}}
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
