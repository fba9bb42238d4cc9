package consume

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// cache puts pages of n messages each into a queue, offsets counting up, the
// last one being next-1.
func cache(t testing.TB, q *queue, pages, n int) []*page {
	t.Helper()
	var out []*page
	for range pages {
		var rs []wire.Record
		for range n {
			rs = append(rs, record(q.next, "x"))
			q.next++
		}
		p, _, err := decodePage(q, encode(rs...), 0, same, all)
		require.NoError(t, err)
		q.pages = append(q.pages, p)
		q.count.Add(int64(n))
		for _, m := range p.meta {
			q.bytes.Add(int64(m.size))
		}
		out = append(out, p)
	}
	return out
}

func TestLowestIsTheFirstUnfinished(t *testing.T) {
	q := newTestQueue()
	q.next = 100
	require.EqualValues(t, 100, q.lowest(), "an empty cache: what comes next")
	ps := cache(t, q, 3, 4) // 100..111
	require.EqualValues(t, 100, q.lowest())
	q.finish(ps[0], 1)
	q.finish(ps[1], 0)
	require.EqualValues(t, 100, q.lowest())
	q.finish(ps[0], 0)
	require.EqualValues(t, 102, q.lowest())
	q.finish(ps[0], 2)
	q.finish(ps[0], 3)
	require.EqualValues(t, 105, q.lowest(), "the page's end is passed over")
	require.Len(t, q.pages, 2)
	require.Nil(t, ps[0].views, "a finished page lets go of its messages")
	for i := range 4 {
		q.finish(ps[2], i)
	}
	require.EqualValues(t, 105, q.lowest())
	require.Nil(t, ps[2].views, "also one behind an unfinished page")
	for i := 1; i < 4; i++ {
		q.finish(ps[1], i)
	}
	require.EqualValues(t, 112, q.lowest())
	require.Empty(t, q.pages)
	require.Zero(t, q.count.Load())
	require.Zero(t, q.bytes.Load())
}

// Between the last bit of a page and its count, the offset must not jump over
// the pages behind it.
func TestLowestInTheMomentAPageFinishes(t *testing.T) {
	q := newTestQueue()
	ps := cache(t, q, 2, 1)
	ps[0].bits[0] = 1
	require.EqualValues(t, 1, q.lowest())
	require.Len(t, q.pages, 2)
}

// Whatever the order of completion, the committed offset never passes an
// unfinished message, never goes back, and ends at the end.
func TestLowestUnderConcurrentCompletion(t *testing.T) {
	q := newTestQueue()
	type unit struct {
		p   *page
		i   int
		off int64
	}
	const n = 40 * 32
	var units []unit
	for _, p := range cache(t, q, 40, 32) {
		for i := range p.views {
			units = append(units, unit{p, i, p.views[i].Offset})
		}
	}
	rand.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
	var done [n]atomic.Bool
	var at atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				k := int(at.Add(1)) - 1
				if k >= len(units) {
					return
				}
				u := units[k]
				done[u.off].Store(true)
				q.finish(u.p, u.i)
			}
		})
	}
	var last int64
	for last < n {
		low := q.lowest()
		if low < last {
			t.Fatalf("went back from %d to %d", last, low)
		}
		for off := last; off < low; off++ {
			if !done[off].Load() {
				t.Fatalf("offset %d was passed by %d and is not done", off, low)
			}
		}
		last = low
	}
	wg.Wait()
	require.EqualValues(t, n, q.lowest())
}

func TestRoom(t *testing.T) {
	q := newTestQueue()
	q.topic.limits.messages.Store(64)
	require.True(t, q.hasRoomLocked())
	ps := cache(t, q, 2, 32)
	require.False(t, q.hasRoomLocked(), "count")
	q.finish(ps[0], 0)
	require.True(t, q.hasRoomLocked())
	q.topic.limits.bytes.Store(100)
	require.False(t, q.hasRoomLocked(), "bytes")
	q.topic.limits.bytes.Store(1 << 20)
	q.next += 2000
	require.False(t, q.hasRoomLocked(), "span")
}

func TestLaneReusesItsSlice(t *testing.T) {
	l := &lane{}
	require.Nil(t, l.next())
	var made []*work
	push := func() {
		w := &work{views: make([]*rocketmq.MessageView, 1)}
		made = append(made, w)
		l.add(w)
	}
	for range 4 {
		push()
	}
	for round := range 100 {
		require.Same(t, made[0], l.next(), fmt.Sprint(round))
		made[0].take(1)
		made = made[1:]
		push()
		require.LessOrEqual(t, cap(l.items), 8)
	}
	for range 4 {
		l.next().take(1)
	}
	require.Nil(t, l.next())
	require.Zero(t, l.head)
}

func TestWorkIsTakenOnce(t *testing.T) {
	w := &work{views: make([]*rocketmq.MessageView, 1000)}
	var taken [1000]atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				from, to := w.take(7)
				if from >= to {
					return
				}
				for i := from; i < to; i++ {
					taken[i].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for i := range taken {
		require.EqualValues(t, 1, taken[i].Load())
	}
	for range 10 {
		from, to := w.take(7)
		require.GreaterOrEqual(t, from, to)
	}
	require.LessOrEqual(t, int(w.pos.Load()), 1000+8*7, "the counter stays near the end")
}

func TestViews(t *testing.T) {
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	_, err := z.Write([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	r := record(1, deflated.String())
	r.SysFlag = wire.SysCompressed
	vs, err := Views(testQueue, encode(r, record(2, "b")))
	require.NoError(t, err)
	require.Len(t, vs, 2)
	require.Equal(t, "content", string(vs[0].Body))
	r.Body = []byte("no zlib")
	vs, err = Views(testQueue, encode(record(0, "a"), r))
	require.Error(t, err)
	require.Len(t, vs, 1)
}
