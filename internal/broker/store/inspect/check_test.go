package inspect_test

import (
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/inspect"
)

// apacheSizes are the settings of the brokers that left the golden stores.
var apacheSizes = inspect.Sizes{CommitLog: 65536, ConsumeQueue: 2000, IndexSlots: 50, IndexEntries: 100,
	Delays: []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute, 7 * time.Minute,
		8 * time.Minute, 9 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour}}

func TestApacheStores(t *testing.T) {
	for name, want := range map[string]inspect.Summary{
		"4.9-clean":  {Files: 33, Messages: 198},
		"4.9-killed": {Files: 38, Messages: 238, Notes: 1}, // the abort file
		"5.3-clean":  {Files: 40, Messages: 199},
		"5.3-killed": {Files: 45, Messages: 239, Notes: 1},
	} {
		im := golden(t, name)
		for _, sizes := range []inspect.Sizes{{}, apacheSizes} {
			sum, found := im.check(sizes)
			assert.Equal(t, want, sum, "%s: %v", name, found)
			assert.Len(t, im.records(), int(want.Messages))
		}
	}
	require.Equal(t, "checked 12 files, 2048 messages, 3 problems", inspect.Summary{Files: 12, Messages: 2048, Problems: 3}.String())
}

// at is where something must be found.
type at struct {
	path   string
	offset int64
}

// TestDamage makes one kind of damage at a time. Exactly one finding is
// damage, and it says where.
func TestDamage(t *testing.T) {
	const q = 2000
	unitOf := func(r placed) at { p, off := r.unit(q); return at{p, off} }
	start := func(r placed) at { return at{r.path, r.at} }
	stores := map[string]image{"4.9-clean": golden(t, "4.9-clean"), "5.3-clean": golden(t, "5.3-clean")}
	for name, f := range map[string]func(im image) at{
		// The commit log.
		"body byte": func(im image) at { r := im.of("TopicA")[3]; im.flip(r.path, r.body()+2); return start(r) },
		"body byte of the last record": func(im image) at { // in the log's middle for the queue
			r := im.last()
			im.flip(r.path, r.body())
			return start(r)
		},
		"magic":        func(im image) at { r := im.of("TopicB")[70]; im.flip(r.path, r.at+5); return start(r) },
		"size":         func(im image) at { r := im.of("TopicB")[71]; im.flip(r.path, r.at+3); return start(r) },
		"huge size":    func(im image) at { r := im.of("TopicB")[72]; im.flip(r.path, r.at); return start(r) },
		"log position": func(im image) at { r := im.of("TopicB")[73]; im.flip(r.path, r.at+35); return start(r) },
		"queue offset": func(im image) at { r := im.of("TopicB")[74]; im.flip(r.path, r.at+27); return start(r) },
		"overwritten page": func(im image) at {
			r := im.of("TopicB")[30]
			clear(im.bytes(r.path)[r.at : r.at+3000])
			return start(r)
		},
		"filler": func(im image) at {
			p := im.under("commitlog")[0]
			var end placed
			for _, r := range im.records() {
				if r.path == p {
					end = r
				}
			}
			im.flip(p, end.at+int64(end.Size)+6)
			return at{p, end.at + int64(end.Size)}
		},
		"short log file": func(im image) at { p := im.under("commitlog")[1]; im.cut(p, 60000); return at{p, 60000} },
		"long log file": func(im image) at {
			p := im.under("commitlog")[1]
			im.add(p, append(im.bytes(p), 1))
			return at{p, 65536}
		},
		"no middle file": func(im image) at { p := im.under("commitlog")[1]; im.remove(p); return at{p, -1} },
		"foreign file": func(im image) at {
			im.add("commitlog/readme.txt", nil)
			im.add("commitlog/zz", []byte("x"))
			return at{"commitlog/readme.txt", 0}
		},
		"misnamed file": func(im image) at {
			im.add("commitlog/00000000000000300000", make([]byte, 65536))
			return at{"commitlog/00000000000000300000", 0}
		},
		"no commit log":   func(im image) at { removeAll(im, "commitlog"); return at{"commitlog", -1} },
		"no first queues": func(im image) at { removeAll(im, "consumequeue/TopicA/1"); return at{"consumequeue/TopicA/1", -1} },

		// Consume queues.
		"position of a unit":      func(im image) at { u := unitOf(im.of("TopicA")[9]); im.flip(u.path, u.offset+6); return u },
		"high position of a unit": func(im image) at { u := unitOf(im.of("TopicB")[9]); im.flip(u.path, u.offset+1); return u },
		"size of a unit":          func(im image) at { u := unitOf(im.of("TopicA")[9]); im.flip(u.path, u.offset+11); return u },
		"tags code of a unit":     func(im image) at { u := unitOf(im.of("TopicA")[9]); im.flip(u.path, u.offset+19); return u },
		"due time of a unit": func(im image) at {
			u := unitOf(im.of("SCHEDULE_TOPIC_XXXX")[0])
			im.flip(u.path, u.offset+13)
			return u
		},
		"first unit": func(im image) at { u := unitOf(im.of("TopicB")[0]); im.flip(u.path, u.offset+4); return u },
		"empty unit": func(im image) at {
			u := unitOf(im.of("TopicB")[50])
			clear(im.bytes(u.path)[u.offset : u.offset+20])
			return u
		},
		"negative size of a unit": func(im image) at { u := unitOf(im.of("TopicB")[50]); im.bytes(u.path)[u.offset+8] = 0x80; return u },
		"last units of a queue":   func(im image) at { u := unitOf(im.of("TopicA")[20]); clear(im.bytes(u.path)[u.offset:]); return u },
		"no first queue file": func(im image) at {
			im.remove("consumequeue/TopicB/0/00000000000000000000")
			return at{"consumequeue/TopicB/0/00000000000000000000", 0}
		},
		"no last queue file": func(im image) at {
			im.remove("consumequeue/TopicB/0/00000000000000002000")
			return at{"consumequeue/TopicB/0/00000000000000002000", 0}
		},
		"short queue file": func(im image) at {
			im.cut("consumequeue/TopicA/2/00000000000000000000", 1999)
			return at{"consumequeue/TopicA/2/00000000000000000000", 1999}
		},
		"foreign file in a queue": func(im image) at {
			im.add("consumequeue/TopicA/2/x", []byte("x"))
			return at{"consumequeue/TopicA/2/x", 0}
		},
		"something behind the end": func(im image) at {
			im.flip("consumequeue/TopicA/2/00000000000000000000", 1500)
			return at{"consumequeue/TopicA/2/00000000000000000000", 120}
		},

		// The key index.
		"hash of an entry":      func(im image) at { p := im.under("index")[1]; im.flip(p, 240+20*7+3); return at{p, -2} },
		"position of an entry":  func(im image) at { p := im.under("index")[1]; im.flip(p, 240+20*9+10); return at{p, -2} },
		"chain of an entry":     func(im image) at { p := im.under("index")[1]; im.flip(p, 240+20*9+19); return at{p, 240 + 20*9 + 16} },
		"time of an entry":      func(im image) at { p := im.under("index")[1]; im.flip(p, 240+20*9+15); return at{p, 240 + 20*9 + 12} },
		"entry count":           func(im image) at { p := im.under("index")[1]; im.bytes(p)[37] = 1; return at{p, 36} },
		"used slots":            func(im image) at { p := im.under("index")[1]; im.bytes(p)[32] = 1; return at{p, 32} },
		"slot":                  func(im image) at { p := im.under("index")[1]; im.bytes(p)[40+4*3+3] = 99; return at{p, 40 + 4*3} },
		"short index file":      func(im image) at { p := im.under("index")[2]; im.cut(p, 2000); return at{p, 2000} },
		"foreign file of index": func(im image) at { im.add("index/notes", []byte("x")); return at{"index/notes", 0} },

		// The small files.
		"short checkpoint":    func(im image) at { im.cut("checkpoint", 100); return at{"checkpoint", 100} },
		"no checkpoint":       func(im image) at { im.remove("checkpoint"); return at{"checkpoint", -1} },
		"negative checkpoint": func(im image) at { im.put64("checkpoint", 8, 1<<63); return at{"checkpoint", 8} },
		"cut config":          func(im image) at { im.cut("config/topics.json", 50); return at{"config/topics.json", 50} },
		"config with a hole": func(im image) at {
			im.bytes("config/consumerOffset.json")[20] = 0
			return at{"config/consumerOffset.json", 20}
		},
		"empty config": func(im image) at {
			im.cut("config/subscriptionGroup.json", 0)
			return at{"config/subscriptionGroup.json", 0}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for version, store := range stores {
				im := clone(store)
				want := f(im)
				_, found := im.check(apacheSizes)
				bad := damages(found)
				require.NotEmpty(t, bad, "%s: %v", version, found)
				assert.Equal(t, "store/"+want.path, bad[0].Path, "%s: %v", version, bad)
				if want.offset >= -1 {
					assert.Equal(t, want.offset, bad[0].Offset, "%s: %v", version, bad)
				}
				for _, b := range bad[1:] { // what follows from it at most
					t.Logf("%s: also %v", version, b)
				}
				if want.offset >= -1 && path.Dir(want.path) != "index" && name != "no commit log" {
					assert.Len(t, bad, map[bool]int{true: 2, false: 1}[name == "foreign file"], "%s: %v", version, bad)
				}
			}
		})
	}
}

func removeAll(im image, dir string) {
	for _, p := range im.under(dir) {
		im.remove(p)
	}
}
