package store_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// seeds is how many seeds a test runs: n, or what CRASH_SEEDS says.
func seeds(t *testing.T, n int) uint64 {
	v := os.Getenv("CRASH_SEEDS")
	if v == "" {
		return uint64(n)
	}
	all, err := strconv.ParseUint(v, 10, 32)
	require.NoError(t, err, "CRASH_SEEDS")
	return all
}

// saga is the story of one store directory through several lives: what was
// put, in the order of the log, against what is there. It runs in a bubble,
// so that flushers work when it sleeps.
type saga struct {
	*store.Store
	t       testing.TB
	rand    *rand.Rand
	cfg     store.Config
	crash   *mfile.Crash // cfg.FS where power can be lost
	puts    []stored     // all that was accepted and not lost
	acked   int64        // log position up to which it must survive a power loss
	n       int          // messages made up
	failing bool         // operations may fail

	told  told
	story []string // what happened, for the one who has to find out why

	lives, lost int
}

// stored is one message of the oracle.
type stored struct {
	topic      string
	queue      int32
	offset     int64
	phy, end   int64
	body, tags string
	key        string // of a record that can be found by it
}

// tell runs f as a saga of the given seed.
func tell(t *testing.T, seed uint64, cfg store.Config, f func(g *saga)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &saga{t: t, rand: rand.New(rand.NewPCG(seed, 1)), cfg: cfg}
		g.cfg.IndexSlots, g.cfg.IndexEntries = 20, 100
		g.crash, _ = cfg.FS.(*mfile.Crash)
		defer func() {
			if g.Store != nil {
				g.Abandon()
			}
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(g.story, "\n"))
			}
		}()
		g.open()
		f(g)
	})
}

func (g *saga) note(format string, args ...any) {
	g.story = append(g.story, fmt.Sprintf(format, args...))
}

func (g *saga) open() {
	g.t.Helper()
	s, err := store.Open(g.cfg)
	require.NoError(g.t, err)
	g.Store = s
	g.lives++
}

// message makes up a message for one of a few queues.
func (g *saga) message(size int) (*store.Message, stored) {
	p := stored{topic: fmt.Sprintf("T%d", g.rand.IntN(3)), queue: int32(g.rand.IntN(3))}
	g.n++
	p.body = fmt.Sprintf("%d-%s", g.n, strings.Repeat("x", size))
	m := message(p.topic, p.queue, p.body)
	if g.rand.IntN(2) == 0 {
		p.tags = fmt.Sprintf("tag%d", g.rand.IntN(5))
		m.Properties = wire.AppendProperty(m.Properties, wire.PropTags, p.tags)
	}
	if g.rand.IntN(3) == 0 {
		p.key = fmt.Sprintf("key%d", g.n)
		m.Properties = wire.AppendProperty(m.Properties, wire.PropKeys, p.key)
	}
	if g.rand.IntN(4) == 0 {
		m.Properties = wire.AppendProperty(m.Properties, "filler", strings.Repeat("p", g.rand.IntN(1500)))
	}
	return m, p
}

// told takes what the store says later, in the order of the log.
type told struct {
	mu  sync.Mutex
	got []toldOne
}

type toldOne struct {
	res   store.PutResult
	parts []stored
}

// waiter is one message, or batch, that waits for its answer.
type waiter struct {
	to    *told
	parts []stored
}

// Stored implements [store.Waiter].
func (w waiter) Stored(r store.PutResult) {
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	w.to.got = append(w.to.got, toldOne{r, w.parts})
}

// put stores a message and reports whether it was accepted. With synchronous
// flush that is known after the next wait.
func (g *saga) put(size int) bool {
	m, p := g.message(size)
	res, pending := g.Put(m, waiter{&g.told, []stored{p}})
	return g.took(res, pending, []stored{p})
}

func (g *saga) putBatch(n int) bool {
	m, first := g.message(0)
	m.Properties = nil
	var bodies []string
	var parts []stored
	for i := range n {
		first.body, first.tags, first.key = fmt.Sprintf("%d-%d", g.n, i), "", ""
		bodies, parts = append(bodies, first.body), append(parts, first)
	}
	m.Body = batch(bodies...)
	res, pending := g.PutBatch(m, []int64{}, waiter{&g.told, parts})
	return g.took(res, pending, parts)
}

func (g *saga) took(res store.PutResult, pending bool, parts []stored) bool {
	if pending {
		return true
	}
	if !res.Status.Stored() {
		require.Error(g.t, res.Err)
		g.note("refused: %v", res.Err)
		return false
	}
	g.add(res, parts)
	return true
}

// add notes what has a place in the log.
func (g *saga) add(res store.PutResult, parts []stored) {
	phy := append(res.PhyOffsets, res.End)
	if len(parts) == 1 && len(res.PhyOffsets) == 0 {
		phy = []int64{res.PhyOffset, res.End}
	}
	for i, p := range parts {
		p.offset, p.phy, p.end = res.QueueOffset+int64(i), phy[i], phy[i+1]
		g.note("%s/%d %d at %d to %d: %v", p.topic, p.queue, p.offset, p.phy, p.end, res.Status)
		g.puts = append(g.puts, p)
	}
	if g.cfg.SyncFlush && res.Status == store.PutOK {
		g.acked = res.End
	}
	require.True(g.t, res.Status == store.PutOK || g.failing, "%v: %v", res.Status, res.Err)
}

// wait takes the answers that have come.
func (g *saga) wait() {
	if !g.cfg.SyncFlush {
		return
	}
	synctest.Wait()
	g.told.mu.Lock()
	defer g.told.mu.Unlock()
	for _, a := range g.told.got {
		g.add(a.res, a.parts)
	}
	g.told.got = nil
}

// check compares everything that can be read with the oracle.
func (g *saga) check() {
	g.t.Helper()
	g.wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(g.t, g.WaitDispatched(ctx))
	begin := g.Stats().MinPhy
	want := map[string][]stored{}
	end := int64(0)
	for _, p := range g.puts {
		end = p.end
		k := fmt.Sprintf("%s/%d", p.topic, p.queue)
		if p.phy >= begin && p.topic != "" {
			want[k] = append(want[k], p)
		}
	}
	if len(g.puts) > 0 {
		require.Equal(g.t, end, g.logEnd(), "the log ends behind the last message")
	}
	require.NoError(g.t, g.WaitIndexed(ctx))
	r := &rig{Store: g.Store, t: g.t}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		topic, queue := splitQueue(g.t, k)
		all := want[k]
		recs := r.records(topic, queue, all[0].offset)
		require.Len(g.t, recs, len(all), k)
		require.Equal(g.t, all[len(all)-1].offset+1, g.MaxOffset(topic, queue), k)
		for i, p := range all {
			require.Equal(g.t, p.offset, recs[i].QueueOffset, k)
			require.Equal(g.t, p.phy, recs[i].PhyOffset, k)
			require.Equal(g.t, p.body, string(recs[i].Body), k)
			require.Equal(g.t, p.tags, recs[i].Properties.Text(wire.PropTags), k)
			if p.key != "" && i%4 == 0 {
				b, res := g.Query(nil, store.QueryRequest{Topic: []byte(topic), Key: []byte(p.key), End: math.MaxInt64, Max: 8})
				require.Equal(g.t, 1, res.Count, "%s of %s %d", p.key, k, p.offset)
				var rec wire.Record
				_, err := wire.DecodeRecord(b, &rec)
				require.NoError(g.t, err)
				require.Equal(g.t, p.phy, rec.PhyOffset)
			}
		}
		g.checkTags(topic, queue, all)
	}
	for _, topic := range g.Topics() {
		for _, queue := range g.Queues(topic) {
			if k := fmt.Sprintf("%s/%d", topic, queue); want[k] == nil {
				require.Empty(g.t, r.records(topic, queue, g.MinOffset(topic, queue)), k)
			}
		}
	}
}

// logEnd is where the log ends, but for a filler.
func (g *saga) logEnd() int64 {
	st := g.Stats()
	if last := g.puts[len(g.puts)-1].end; st.MaxPhy > last && st.MaxPhy%g.cfg.CommitLogFileSize == 0 && st.MaxPhy-last < g.cfg.CommitLogFileSize {
		return last // the next one did not fit any more and is lost
	}
	return st.MaxPhy
}

// checkTags reads a queue by the units' tags codes.
func (g *saga) checkTags(topic string, queue int32, all []stored) {
	g.t.Helper()
	tag := fmt.Sprintf("tag%d", g.rand.IntN(5))
	var want, got []string
	for _, p := range all {
		if p.tags == tag {
			want = append(want, p.body)
		}
	}
	for at := all[0].offset; ; {
		b, res := g.Get(nil, store.GetRequest{Topic: []byte(topic), QueueID: queue, Offset: at, MaxMsgs: 32, Filter: filter{tag: tag}})
		if res.Status != store.Found && res.Status != store.NoMatchedMessage {
			require.Equal(g.t, store.OffsetOverflowOne, res.Status)
			break
		}
		it := wire.Records(b)
		for rec := new(wire.Record); ; {
			ok, err := it.Next(rec)
			require.NoError(g.t, err)
			if !ok {
				break
			}
			got = append(got, string(rec.Body))
		}
		require.Greater(g.t, res.NextOffset, at)
		at = res.NextOffset
	}
	require.Equal(g.t, want, got, "%s/%d %s", topic, queue, tag)
}

// losePower ends this life and begins the next with what the disk has kept:
// a prefix of the log with all that was flushed.
func (g *saga) losePower() {
	g.t.Helper()
	g.wait()
	g.failing = true
	flushed := max(g.Stats().Flushed, g.acked)
	g.Abandon()
	g.wait() // those who still waited were told that nobody knows
	seed := g.rand.Uint64()
	g.crash = g.crash.PowerLoss(seed)
	g.cfg.FS = g.crash
	g.open()
	end := g.Stats().MaxPhy
	g.note("power loss %d: flushed to %d, back with %d", seed, flushed, end)
	require.GreaterOrEqual(g.t, end, flushed, "what was flushed is there")
	keep := 0
	for keep < len(g.puts) && g.puts[keep].end <= end {
		keep++
	}
	g.lost += len(g.puts) - keep
	g.puts = g.puts[:keep]
	g.acked, g.failing = 0, false
	g.check()
}

// failFrom makes every file operation fail from the n-th one from now on.
func (g *saga) failFrom(n int, err error) {
	g.wait()
	g.failing = true
	from := g.crash.Ops() + n
	g.note("operations fail from %d on", from)
	g.crash.SetFault(func(op mfile.CrashOp) error {
		if op.N >= from {
			return err
		}
		return nil
	})
}
