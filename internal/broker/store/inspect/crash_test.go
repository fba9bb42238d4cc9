package inspect_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/inspect"
)

// TestWhatACrashLeaves: nothing of it is damage, and each is reported.
func TestWhatACrashLeaves(t *testing.T) {
	stores := map[string]image{"4.9-killed": golden(t, "4.9-killed"), "5.3-killed": golden(t, "5.3-killed")}
	for name, f := range map[string]func(im image) at{
		"last record half there": func(im image) at {
			r := im.last()
			clear(im.bytes(r.path)[r.at+60 : r.at+int64(r.Size)])
			return at{r.path, r.at}
		},
		"only the head of a record": func(im image) at {
			r := im.last()
			copy(im.bytes(r.path)[r.at+int64(r.Size):], im.bytes(r.path)[r.at:r.at+10])
			return at{r.path, r.at + int64(r.Size)}
		},
		"garbage behind the end": func(im image) at {
			r := im.last()
			copy(im.bytes(r.path)[r.at+int64(r.Size):], bytes.Repeat([]byte{0xA5}, 777))
			return at{r.path, r.at + int64(r.Size)}
		},
		"last record without the end of its properties": func(im image) at {
			r := im.last()
			clear(im.bytes(r.path)[r.at+int64(r.Size)-5 : r.at+int64(r.Size)])
			return at{r.path, r.at}
		},
		"lost page with records behind it": func(im image) at {
			all := im.records()
			r := all[len(all)-3]
			clear(im.bytes(r.path)[r.at:all[len(all)-2].at])
			return at{r.path, r.at}
		},
		"queue behind the log": func(im image) at {
			rs := im.of("TopicB")
			r := rs[len(rs)-1]
			p, off := r.unit(2000)
			clear(im.bytes(p)[off : off+20])
			return at{"consumequeue", -1}
		},
		"half a unit": func(im image) at {
			rs := im.of("TopicB")
			r := rs[len(rs)-1]
			p, off := r.unit(2000)
			clear(im.bytes(p)[off+8 : off+12])
			return at{p, off}
		},
		"newest file without content": func(im image) at {
			im.add("commitlog/00000000000000393216", nil)
			return at{"commitlog/00000000000000393216", -1}
		},
		"table that was being written": func(im image) at {
			im.cut("config/topics.json", 0)
			return at{"config/topics.json", 0}
		},
		"index that was not flushed": func(im image) at {
			p := im.under("index")[3]
			clear(im.bytes(p)[280:340])
			return at{p, -2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version, store := range stores {
				im := clone(store)
				want := f(im)
				_, found := im.check(apacheSizes)
				assert.Empty(t, damages(found), version)
				there := false
				for _, n := range found {
					there = there || n.Path == "store/"+want.path && (want.offset == n.Offset || want.offset == -2)
				}
				assert.True(t, there, "%s: nothing at %v: %v", version, want, found)
			}
		})
	}
}

// TestDamageInAKilledStore is what no crash leaves.
func TestDamageInAKilledStore(t *testing.T) {
	stores := map[string]image{"4.9-killed": golden(t, "4.9-killed"), "5.3-killed": golden(t, "5.3-killed")}
	for name, f := range map[string]func(im image) at{
		"body byte of the last record": func(im image) at {
			r := im.last()
			im.flip(r.path, r.body())
			return at{r.path, r.at}
		},
		"body byte in the middle": func(im image) at {
			r := im.of("TopicB")[80]
			im.flip(r.path, r.body())
			return at{r.path, r.at}
		},
		"unit": func(im image) at {
			p, off := im.of("TopicB")[150].unit(2000)
			im.flip(p, off+6)
			return at{p, off}
		},
		"single empty unit": func(im image) at {
			p, off := im.of("TopicB")[140].unit(2000)
			clear(im.bytes(p)[off : off+20])
			return at{p, off}
		},
		"both copies of a table": func(im image) at {
			im.cut("config/topics.json", 0)
			im.cut("config/topics.json.bak", 9)
			return at{"config/topics.json", -1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version, store := range stores {
				im := clone(store)
				want := f(im)
				_, found := im.check(apacheSizes)
				bad := damages(found)
				require.Len(t, bad, 1, "%s: %v", version, found)
				assert.Equal(t, at{"store/" + want.path, want.offset}, at{bad[0].Path, bad[0].Offset}, version)
			}
		})
	}
}

// TestEveryByteCounts flips one bit anywhere in what is compared: bodies,
// units, index entries and slots in use. Each must be found.
func TestEveryByteCounts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	whole := golden(t, "5.3-clean")
	records := whole.records()
	for i := range 150 {
		im := clone(whole)
		r := records[rnd.IntN(len(records))]
		var p string
		var off int64
		switch i % 3 {
		case 0:
			if len(r.Body) == 0 {
				continue
			}
			p, off = r.path, r.body()+rnd.Int64N(int64(len(r.Body)))
		case 1:
			if r.SysFlag&0xC == 4 || r.SysFlag&0xC == 12 {
				continue // no unit
			}
			p, off = r.unit(2000)
			off += rnd.Int64N(20)
		case 2:
			p = im.under("index")[rnd.IntN(3)]
			// Entries in use; the time of a file's first one is not compared.
			if off = 240 + 20 + rnd.Int64N(20*80); p == im.under("index")[2] {
				off = 240 + 20 + rnd.Int64N(20*50)
			}
			if off >= 272 && off < 276 {
				continue
			}
		}
		bit := byte(1) << rnd.IntN(8)
		im.bytes(p)[off] ^= bit
		_, found := im.check(apacheSizes)
		if string(r.Topic) == "rmq_sys_wheel_timer" && i%3 == 1 {
			continue
		}
		require.NotEmpty(t, damages(found), "seed %d: bit %#x of byte %d of %s", seed, bit, off, p)
	}
}

// failing cannot read one file from a place on.
type failing struct {
	fs.FS
	path string
	from int64 // -1: not even open it
}

var errDisk = errors.New("input/output error")

func (f failing) Open(name string) (fs.File, error) {
	h, err := f.FS.Open(name)
	if err != nil || name != f.path {
		return h, err
	}
	if f.from < 0 {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}, h.Close())
	}
	return failingFile{h, f.from}, nil
}

type failingFile struct {
	fs.File
	from int64
}

func (f failingFile) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > f.from {
		return 0, errDisk
	}
	return f.File.(io.ReaderAt).ReadAt(b, off)
}

func TestUnreadable(t *testing.T) {
	im := golden(t, "5.3-clean")
	for _, p := range []string{
		"commitlog/00000000000000065536", "consumequeue/TopicA/0/00000000000000000000", "index/20261129174408200", "checkpoint",
	} {
		for _, from := range []int64{-1, 0} {
			sum, found := checkFS(t, failing{im.MapFS, p, from}, apacheSizes)
			bad := damages(found)
			require.NotEmpty(t, bad, p)
			assert.Equal(t, "store/"+p, bad[0].Path)
			assert.Contains(t, bad[0].Text, "cannot be read")
			if p != "commitlog/00000000000000065536" {
				assert.EqualValues(t, 199, sum.Messages, "the rest is read")
			}
		}
	}
}

func TestSizesAreFoundOut(t *testing.T) {
	// Without settings, a cut file is seen by its neighbours.
	im := golden(t, "4.9-clean")
	im.cut("consumequeue/TopicB/0/00000000000000002000", 1000)
	im.cut("commitlog/00000000000000131072", 65000)
	_, found := im.check(inspect.Sizes{})
	bad := damages(found)
	require.Len(t, bad, 2, "%v", found)
	assert.EqualValues(t, 1000, bad[0].Offset)
	assert.EqualValues(t, 65000, bad[1].Offset)
	// With wrong settings nothing fits.
	sum, _ := golden(t, "4.9-clean").check(inspect.Sizes{CommitLog: 1 << 20, ConsumeQueue: 2000})
	assert.GreaterOrEqual(t, sum.Problems, 3)
}
