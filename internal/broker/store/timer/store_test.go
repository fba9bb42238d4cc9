package timer

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

const testNow = int64(1_800_000_000_000)

func testConfig(fs mfile.FS) Config {
	return Config{
		FS: fs, Dir: "/store", LogFileSize: 5*UnitSize + blankSize, Precision: 1000, Slots: 100, Now: testNow, Clean: true,
		CommitEnd: 1 << 30, QueueMax: 1 << 30, QueueOffset: func(phy int64, _ int32) (int64, bool) { return phy / 100, true },
		Logger: slog.New(slog.DiscardHandler),
	}
}

func openStore(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// unitOf is the n-th message's, for a slot so many seconds ahead.
func unitOf(n int64, ahead int32) Unit {
	return Unit{Magic: MagicDefault, EnqueueTime: testNow, Delay: ahead * 1000, Phy: 100 * n, Size: 100}
}

// addAll adds messages, from the n-th on, for slots so many seconds ahead.
func addAll(t *testing.T, s *Store, n int64, ahead ...int32) {
	t.Helper()
	for i, a := range ahead {
		require.NoError(t, s.Add(unitOf(n+int64(i), a)))
		s.Read(n+int64(i)+1, 0)
	}
}

// take takes the next slot and returns the messages.
func take(s *Store) []int64 {
	var out []int64
	for _, u := range s.Take(nil) {
		out = append(out, u.Phy/100)
	}
	return out
}

func TestStoreTakesSlotsInOrder(t *testing.T) {
	for name, fs := range map[string]mfile.FS{"memory": mfile.NewMemory(), "crash": mfile.NewCrash()} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, testConfig(fs))
			require.Empty(t, take(s))
			addAll(t, s, 0, 5, 3, 5, 9, 3, 5, 5, 5, 5, 3, 5, 5, 9, 5)
			next, ok := s.Next()
			require.True(t, ok)
			require.EqualValues(t, testNow+3000, next)
			require.Equal(t, []int64{9, 4, 1}, take(s), "the newest first, over files")
			addAll(t, s, 14, 3)
			require.Equal(t, []int64{14}, take(s), "those that came since")
			require.Equal(t, []int64{13, 11, 10, 8, 7, 6, 5, 2, 0}, take(s))
			require.Equal(t, []int64{12, 3}, take(s))
			require.Empty(t, take(s))
		})
	}
}

func TestStoreIsReadAgain(t *testing.T) {
	fs := mfile.NewCrash()
	s := openStore(t, testConfig(fs))
	addAll(t, s, 0, 5, 3, 5, 9)
	s.Delivered(1, testNow+3500, 0)
	s.Passed(testNow + 4000)
	waits, err := s.Save(math.MaxInt64, testNow)
	require.NoError(t, err)
	require.False(t, waits)
	addAll(t, s, 4, 5, 9) // will have to be read again
	want := s.State()
	require.NoError(t, s.Close())

	s = openStore(t, testConfig(fs))
	require.EqualValues(t, 4, s.State().Queue)
	require.Equal(t, want.Time, s.State().Time)
	require.False(t, s.CaughtUp())
	require.True(t, s.Done(1, testNow+3500))
	require.False(t, s.Done(4, testNow+5500))
	require.Equal(t, map[int32]int64{0: 3}, s.Pending())
	addAll(t, s, 4, 5, 9)
	require.True(t, s.CaughtUp())
	require.Equal(t, []int64{4, 2, 0}, take(s))
	require.Equal(t, []int64{5, 3}, take(s))
	require.Empty(t, take(s))
}

// TestStoreSavesWhatTheCommitLogHas: a state waits until all that it counts is
// on disk, and newer ones do not hold it up.
func TestStoreSavesWhatTheCommitLogHas(t *testing.T) {
	s := openStore(t, testConfig(mfile.NewMemory()))
	save := func(flushed int64) (waits bool) {
		t.Helper()
		waits, err := s.Save(flushed, testNow)
		require.NoError(t, err)
		return waits
	}
	first := s.State().Phy
	s.Read(1, first+1000)
	require.True(t, save(first+999))
	s.Read(2, first+2000)
	require.False(t, save(first+1500))
	require.EqualValues(t, 1, s.saved.Queue)
	require.True(t, save(first+1999))
	require.False(t, save(first+2000))
	require.EqualValues(t, 2, s.saved.Queue)
	require.False(t, save(0), "nothing new")
}

func TestStoreCutsTheLog(t *testing.T) {
	damage := func(change func(data []byte)) func(*testing.T, *mfile.Memory, *Config) {
		return func(t *testing.T, fs *mfile.Memory, _ *Config) {
			b, err := fs.ReadFile("/store/timerlog/00000000000000000000")
			require.NoError(t, err)
			change(b)
			require.NoError(t, fs.WriteFile("/store/timerlog/00000000000000000000", b))
		}
	}
	for name, x := range map[string]struct {
		do    func(*testing.T, *mfile.Memory, *Config)
		queue int64
		left  int
	}{
		"nothing":           {func(*testing.T, *mfile.Memory, *Config) {}, 8, 8},
		"a hole":            {damage(func(b []byte) { clear(b[2*UnitSize : 3*UnitSize]) }), 2, 2},
		"a wrong chain":     {damage(func(b []byte) { binary.BigEndian.PutUint64(b[2*UnitSize+4:], 7) }), 2, 2},
		"records that went": {func(_ *testing.T, _ *mfile.Memory, c *Config) { c.CommitEnd, c.QueueMax = 650, 6 }, 6, 6},
		"all files": {func(t *testing.T, fs *mfile.Memory, _ *Config) {
			require.NoError(t, fs.RemoveAll("/store/timerlog"))
		}, 0, 0},
		"a file that is gone": {func(t *testing.T, fs *mfile.Memory, _ *Config) {
			require.NoError(t, fs.Remove("/store/timerlog/00000000000000000276"))
		}, 5, 5},
		"all, and the queue's begin": {func(t *testing.T, fs *mfile.Memory, c *Config) {
			require.NoError(t, fs.RemoveAll("/store/timerlog"))
			c.QueueMin = 3
		}, 3, 0},
		"the checkpoint": {func(t *testing.T, fs *mfile.Memory, _ *Config) {
			require.NoError(t, fs.Remove("/store/config/timercheck"))
		}, 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			fs := mfile.NewMemory()
			s := openStore(t, testConfig(fs))
			addAll(t, s, 0, 5, 5, 5, 5, 5, 5, 5, 5)
			_, err := s.Save(math.MaxInt64, testNow)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			cfg := testConfig(fs)
			x.do(t, fs, &cfg)
			s = openStore(t, cfg)
			require.Equal(t, x.queue, s.State().Queue)
			require.Len(t, take(s), x.left)
			addAll(t, s, x.queue, 6)
			require.Equal(t, []int64{x.queue}, take(s))
		})
	}
}

func TestStoreRefusesFilesOfOtherSizes(t *testing.T) {
	fs := mfile.NewCrash()
	s := openStore(t, testConfig(fs))
	addAll(t, s, 0, 1)
	require.NoError(t, s.Close())
	var format *mfile.FormatError
	cfg := testConfig(fs)
	cfg.LogFileSize += UnitSize
	_, err := Open(cfg)
	require.ErrorAs(t, err, &format)
	cfg = testConfig(fs)
	cfg.Slots++
	_, err = Open(cfg)
	require.ErrorAs(t, err, &format)
	cfg.LogFileSize = UnitSize
	_, err = Open(cfg)
	require.ErrorContains(t, err, "at least 68")
}

// goldenStore is what a broker of Apache left: see unit_test.go.
func goldenStore(t *testing.T) *mfile.Crash {
	fs := mfile.NewCrash()
	require.NoError(t, fs.MkdirAll("/store/timerlog"))
	require.NoError(t, fs.MkdirAll("/store/config"))
	log := make([]byte, 5200)
	for i, g := range goldenUnits {
		_, err := hex.Decode(log[i*UnitSize:], []byte(g.hex))
		require.NoError(t, err)
	}
	require.NoError(t, fs.WriteFile("/store/timerlog/00000000000000000000", log))
	check := make([]byte, checkpointSize)
	_, err := hex.Decode(check, []byte("000001a22868846000000000000000680000000000000002000000000000000200000000000000000000"+
		"01a2286885ac0000000000000019"))
	require.NoError(t, err)
	require.NoError(t, fs.WriteFile("/store/config/timercheck", check))
	return fs
}

func goldenConfig(fs mfile.FS) Config {
	cfg := testConfig(fs)
	cfg.LogFileSize, cfg.Slots, cfg.Now, cfg.QueueMax = 5200, WheelSlots, 1795974300000, 2
	cfg.QueueOffset = func(phy int64, _ int32) (int64, bool) { return (phy - 188145) / 335, true }
	return cfg
}

// TestGoldenStore goes on where Apache's broker stopped, and leaves the wheel
// and the checkpoint as that would have.
func TestGoldenStore(t *testing.T) {
	fs := goldenStore(t)
	s := openStore(t, goldenConfig(fs))
	require.EqualValues(t, 2, s.State().Queue)
	require.Equal(t, int64(1795974268000), s.State().Time)
	require.True(t, s.CaughtUp())
	_, err := s.Save(math.MaxInt64, 1795974301000)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	wheel, err := fs.ReadFile("/store/timerwheel")
	require.NoError(t, err)
	require.Len(t, wheel, 38_707_200)
	const place = 0x01ef3d00 // of the pending slot, in the wheel that Apache's broker left
	require.Equal(t, "000000006b0db5e80000000000000034000000000000003400000001"+"00000000", hex.EncodeToString(wheel[place:place+slotSize]))
	clear(wheel[place : place+slotSize])
	require.True(t, bytes.Equal(wheel, make([]byte, len(wheel))), "what is delivered is in nobody's way")
	check, err := fs.ReadFile("/store/config/timercheck")
	require.NoError(t, err)
	require.Equal(t, "000001a2286884600000000000000068000000000000000200000000000000020000"+"00474f524d51"+
		"000001a228690160000000000000001a", hex.EncodeToString(check[:javaSize]))
}

// TestStoreOfApacheAfterACrash: units that the checkpoint does not count yet
// are kept; an offset that is ahead of the units is not believed.
func TestStoreOfApacheAfterACrash(t *testing.T) {
	set := func(fs *mfile.Crash, at int, v uint64) {
		b, err := fs.ReadFile("/store/config/timercheck")
		require.NoError(t, err)
		binary.BigEndian.PutUint64(b[at:], v)
		require.NoError(t, fs.WriteFile("/store/config/timercheck", b))
	}
	fs := goldenStore(t)
	set(fs, 8, 0)
	set(fs, 16, 0)
	set(fs, 24, 0)
	cfg := goldenConfig(fs)
	cfg.Clean = false
	require.EqualValues(t, 2, openStore(t, cfg).State().Queue)

	fs = goldenStore(t)
	set(fs, 16, 9)
	set(fs, 24, 9)
	cfg = goldenConfig(fs)
	cfg.Clean, cfg.QueueMax = false, 10
	require.EqualValues(t, 2, openStore(t, cfg).State().Queue)
	fs = goldenStore(t)
	set(fs, 16, 9)
	set(fs, 24, 9)
	cfg = goldenConfig(fs)
	cfg.QueueMax = 10
	require.EqualValues(t, 9, openStore(t, cfg).State().Queue, "after a clean stop it is")
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{4, 5}, int64(3))
	for _, g := range goldenUnits {
		b, _ := hex.DecodeString(g.hex)
		f.Add(b, make([]byte, 56), int64(200_000))
	}
	f.Fuzz(func(t *testing.T, units, check []byte, end int64) {
		fs := mfile.NewMemory()
		cfg := testConfig(fs)
		cfg.CommitEnd = max(end, 0)
		if fs.MkdirAll("/store/timerlog") != nil || fs.MkdirAll("/store/config") != nil {
			t.Fatal()
		}
		log := make([]byte, cfg.LogFileSize)
		copy(log, units)
		c := make([]byte, checkpointSize)
		copy(c, check)
		_ = fs.WriteFile("/store/timerlog/00000000000000000000", log)
		_ = fs.WriteFile("/store/config/timercheck", c)
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		for range 20 {
			s.Take(nil)
		}
		if err := s.Add(unitOf(1, 5)); err != nil {
			t.Fatal(err)
		}
		st := s.State()
		if st.Queue < 0 || st.Log > cfg.LogFileSize || st.Time < 0 {
			t.Fatal(st)
		}
	})
}
