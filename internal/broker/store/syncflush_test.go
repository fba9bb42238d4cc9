package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// disk holds up and fails what goes to the commit log's files.
type disk struct {
	*mfile.Memory
	mu      sync.Mutex
	gate    chan struct{} // flushes wait until it is closed; nil: they do not
	fail    error         // of flushes
	entered chan struct{} // gets a value when a flush begins
	writes  int

	failQueues error // of flushes of all other files
}

func newDisk() *disk { return &disk{Memory: mfile.NewMemory(), entered: make(chan struct{}, 1000)} }

func (d *disk) hook(op mfile.Op, path string, _, _ int64) error {
	d.mu.Lock()
	if !strings.Contains(path, "commitlog") {
		defer d.mu.Unlock()
		return d.failQueues
	}
	gate, fail := d.gate, d.fail
	if op == mfile.OpWrite {
		d.writes++
	}
	d.mu.Unlock()
	if op != mfile.OpSync {
		return nil
	}
	d.entered <- struct{}{}
	if gate != nil {
		<-gate
	}
	return fail
}

// hold makes flushes wait until the function it returns is called.
func (d *disk) hold(t testing.TB) (release func()) {
	gate := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = gate
	release = sync.OnceFunc(func() {
		d.mu.Lock()
		d.gate = nil
		d.mu.Unlock()
		close(gate)
	})
	t.Cleanup(release) // before the store is ended
	return release
}

func (d *disk) failing(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// syncRig is a store with synchronous flush on a disk.
func syncRig(t testing.TB, change ...func(*store.Config)) (*rig, *disk) {
	d := newDisk()
	r := newRig(t, false, append([]func(*store.Config){func(c *store.Config) {
		c.FS, c.SyncFlush = mfile.Hooked(d, d.hook), true
	}}, change...)...)
	return r, d
}

// numberedAnswer notes in which order answers come.
type numberedAnswer struct {
	n    int
	to   chan<- int
	res  chan store.PutResult
	once sync.Once
	t    testing.TB
}

func (a *numberedAnswer) Stored(r store.PutResult) {
	first := false
	a.once.Do(func() { first = true })
	if !first {
		a.t.Error("answered twice")
		return
	}
	a.res <- r
	a.to <- a.n
}

// send puts a message whose answer must wait.
func (r *rig) send(n int, to chan<- int, body string) *numberedAnswer {
	r.t.Helper()
	a := &numberedAnswer{n: n, to: to, res: make(chan store.PutResult, 1), t: r.t}
	_, later := r.Put(message("T", 0, body), a)
	require.True(r.t, later)
	return a
}

func TestSyncFlushAnswersInOrderAfterTheFlush(t *testing.T) {
	r, d := syncRig(t)
	release := d.hold(t)
	order := make(chan int, 100)
	first := r.send(0, order, "0")
	<-d.entered // the flusher is in its first flush, with the first message
	var rest []*numberedAnswer
	for i := 1; i < 30; i++ {
		rest = append(rest, r.send(i, order, strings.Repeat("x", 500)+fmt.Sprint(i))) // over several files
	}
	require.Empty(t, order, "nothing is answered before it is on disk")
	require.Zero(t, r.Stats().Flushed)
	release()
	for i := range 30 {
		require.Equal(t, i, <-order)
	}
	res := <-first.res
	require.Equal(t, store.PutOK, res.Status)
	require.Zero(t, res.PhyOffset)
	for i, a := range rest {
		res := <-a.res
		require.NoError(t, res.Err)
		require.Equal(t, int64(i+1), res.QueueOffset)
	}
	require.Equal(t, r.Stats().MaxPhy, r.Stats().Flushed)
	require.LessOrEqual(t, d.writes, 1+3, "a group is one write per file")
	require.Greater(t, r.Stats().LogFiles, 1)
	r.settle()
	require.Len(t, r.bodies("T", 0, 0), 30)
	r.reopen()
	require.Len(t, r.bodies("T", 0, 0), 30)
}

// A consumer never sees a message that a power loss could take away.
func TestSyncFlushHidesWhatIsNotDurable(t *testing.T) {
	arrived := make(chan int64, 10)
	r, d := syncRig(t, func(c *store.Config) { c.OnArrival = func(a store.Arrival) { arrived <- a.Offset } })
	order := make(chan int, 10)
	<-r.send(0, order, "durable").res
	require.Zero(t, <-arrived)
	<-d.entered
	release := d.hold(t)
	a := r.send(1, order, "not yet")
	<-d.entered // all that a reader could see has been done but the flush
	res, later := r.Put(&store.Message{Topic: []byte("T"), Body: []byte("not yet, too"), NoWait: true}, a)
	require.False(t, later, "whoever does not want to wait is answered at once")
	require.Equal(t, store.PutOK, res.Status)
	require.Equal(t, []string{"durable"}, r.bodies("T", 0, 0))
	require.Equal(t, int64(1), r.MaxOffset("T", 0))
	_, ok := r.ViewMessage(nil, res.PhyOffset)
	require.False(t, ok)
	require.Empty(t, arrived)
	release()
	require.Equal(t, int64(1), (<-a.res).QueueOffset)
	require.Equal(t, int64(1), <-arrived)
	require.Equal(t, int64(2), <-arrived)
	require.Len(t, r.bodies("T", 0, 0), 3)
}

func TestSyncFlushTimeout(t *testing.T) {
	r, d := syncRig(t, func(c *store.Config) { c.SyncFlushTimeout = 2 * time.Second })
	release := d.hold(t)
	order := make(chan int, 10)
	first := r.send(0, order, "0")
	<-d.entered
	second := r.send(1, order, "1")
	r.clock.Advance(1900 * time.Millisecond)
	third := r.send(2, order, "2")
	require.Empty(t, order)
	r.clock.Advance(200 * time.Millisecond)
	for i, a := range []*numberedAnswer{first, second} {
		res := <-a.res
		require.Equal(t, store.FlushDiskTimeout, res.Status)
		require.True(t, res.Status.Stored())
		require.NoError(t, res.Err)
		require.Equal(t, int64(i), res.QueueOffset)
		require.Equal(t, i, <-order)
	}
	release()
	require.Equal(t, store.PutOK, (<-third.res).Status)
	r.settle()
	require.Equal(t, []string{"0", "1", "2"}, r.bodies("T", 0, 0), "the messages stay")
}

// After a flush that failed nothing is acknowledged, and no second flush is
// taken for a success.
func TestSyncFlushFailure(t *testing.T) {
	arrived := make(chan struct{}, 10)
	r, d := syncRig(t, func(c *store.Config) { c.OnArrival = func(store.Arrival) { arrived <- struct{}{} } })
	order := make(chan int, 10)
	<-r.send(0, order, "kept").res
	<-d.entered
	<-arrived
	release := d.hold(t)
	bad := errors.New("medium error")
	d.failing(bad)
	flushing := r.send(1, order, "lost")
	<-d.entered
	waiting := r.send(2, order, "lost, too")
	release()
	for _, a := range []*numberedAnswer{flushing, waiting} {
		res := <-a.res
		require.Equal(t, store.ServiceNotAvailable, res.Status)
		require.ErrorIs(t, res.Err, bad)
		var io *mfile.IOError
		require.ErrorAs(t, res.Err, &io)
		require.Equal(t, int64(len("kept")+92), io.Offset)
		require.Contains(t, io.Path, "00000000000000000000")
	}
	d.failing(nil)
	res, later := r.Put(message("T", 0, "refused"), waiting)
	require.False(t, later)
	require.Equal(t, store.ServiceNotAvailable, res.Status)
	require.ErrorIs(t, res.Err, bad)
	require.ErrorIs(t, r.WaitDispatched(t.Context()), bad)
	require.Equal(t, []string{"kept"}, r.bodies("T", 0, 0), "reading goes on")
	require.Empty(t, d.entered, "no second flush")
	require.ErrorIs(t, r.Close(), bad)
	require.Empty(t, d.entered, "not when closing either")
	_, err := d.ReadFile("store/abort")
	require.NoError(t, err)
	r.open()
	require.Equal(t, "kept", r.bodies("T", 0, 0)[0])
}

// With asynchronous flush a failure ends the taking of messages as well: what
// a later flush says about the lost pages is not true.
func TestAsyncFlushFailure(t *testing.T) {
	r, d := syncRig(t, func(c *store.Config) { c.SyncFlush, c.FlushLeastPages = false, 1 })
	r.put("T", 0, strings.Repeat("x", 5000))
	bad := errors.New("medium error")
	d.failing(bad)
	for len(d.entered) == 0 { // the flusher may not have its ticker yet
		r.clock.Advance(r.cfg.FlushInterval + time.Second)
	}
	require.Eventually(t, func() bool {
		res, _ := r.Put(message("T", 0, ""), nil)
		return errors.Is(res.Err, bad) && res.Status == store.ServiceNotAvailable
	}, 30*time.Second, time.Millisecond)
	d.failing(nil)
	require.ErrorIs(t, r.Close(), bad)
	require.Len(t, d.entered, 1, "no second flush")
	r.open()
	require.NotEmpty(t, r.bodies("T", 0, 0))
}

// Queues that cannot be flushed hold up nobody, but do not count as flushed
// any more: the next start builds them from the log.
func TestQueueFlushFailure(t *testing.T) {
	r, d := syncRig(t)
	bad := errors.New("medium error")
	d.mu.Lock()
	d.failQueues = bad
	d.mu.Unlock()
	order := make(chan int, 10)
	require.Equal(t, store.PutOK, (<-r.send(0, order, "a").res).Status)
	r.settle()
	require.ErrorIs(t, r.FlushNow(), bad)
	d.mu.Lock()
	d.failQueues = nil
	d.mu.Unlock()
	require.Equal(t, store.PutOK, (<-r.send(1, order, "b").res).Status)
	require.ErrorIs(t, r.Close(), bad, "a second flush is no success")
	_, err := d.ReadFile("store/abort")
	require.NoError(t, err)
	require.NoError(t, d.RemoveAll("store/consumequeue")) // what the disk may have kept
	r.open()
	require.Equal(t, []string{"a", "b"}, r.bodies("T", 0, 0))
}

func TestSyncFlushCloseAnswersEveryone(t *testing.T) {
	for _, end := range []string{"close", "abandon"} {
		t.Run(end, func(t *testing.T) {
			r, d := syncRig(t)
			order := make(chan int, 10)
			release := d.hold(t)
			first := r.send(0, order, "0")
			<-d.entered
			second := r.send(1, order, "1")
			done := make(chan error, 1)
			go func() {
				if end == "abandon" {
					r.Abandon()
					done <- nil
					return
				}
				done <- r.Close()
			}()
			require.Eventually(t, func() bool {
				res, _ := r.Put(message("T", 0, "late"), nil)
				return res.Status == store.ServiceNotAvailable
			}, 30*time.Second, time.Millisecond)
			release()
			require.NoError(t, <-done)
			require.Equal(t, store.PutOK, (<-first.res).Status)
			res := <-second.res
			if end == "close" {
				require.Equal(t, store.PutOK, res.Status)
			} else {
				require.Equal(t, store.ServiceNotAvailable, res.Status)
				require.Error(t, res.Err)
			}
			r.open()
			r.settle()
			got := r.bodies("T", 0, 0)
			require.Equal(t, "0", got[0])
			if end == "close" {
				require.Contains(t, got, "1")
			} else {
				require.NotContains(t, got, "1", "what was in no file is gone with the process")
			}
		})
	}
}

// Restarts under load keep what was acknowledged, in all modes and orders.
func TestSyncFlushRestarts(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk=%v", disk), func(t *testing.T) {
			r := newRig(t, disk, func(c *store.Config) { c.SyncFlush = true })
			var want []string
			order := make(chan int, 1000)
			for life := range 6 {
				r.Abandon()
				r.cfg.SyncFlush = life%3 != 2
				r.open()
				require.Equal(t, want, r.bodies("T", 0, 0))
				for i := range 40 {
					body := fmt.Sprint(life, " ", i, " ", strings.Repeat("x", i*20))
					want = append(want, body)
					if r.cfg.SyncFlush {
						a := r.send(i, order, body)
						require.Equal(t, store.PutOK, (<-a.res).Status)
					} else {
						r.put("T", 0, body)
					}
				}
				r.settle()
				if life == 3 {
					r.reopen()
				}
			}
			require.Equal(t, want, r.bodies("T", 0, 0))
		})
	}
}

// Records found after a crash may be in the system's cache only: they are
// flushed before anyone sees them.
func TestSyncFlushOpenFlushesWhatItFinds(t *testing.T) {
	r, d := syncRig(t, func(c *store.Config) { c.SyncFlush = false })
	r.put("T", 0, "x")
	r.Abandon()
	require.Empty(t, d.entered)
	r.cfg.SyncFlush = true
	bad := errors.New("medium error")
	d.failing(bad)
	_, err := store.Open(r.cfg)
	require.ErrorIs(t, err, bad)
	d.failing(nil)
	r.open()
	require.Equal(t, []string{"x"}, r.bodies("T", 0, 0))
	require.Equal(t, r.Stats().MaxPhy, r.Stats().Flushed)
}

// Waiting for the disk costs no memory of its own.
func TestSyncFlushAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops items under the race detector")
	}
	r := newRig(t, false, func(c *store.Config) {
		c.SyncFlush, c.CommitLogFileSize, c.ConsumeQueueFileSize = true, 16<<20, 100_000*20
	})
	m, done := message("T", 0, "body", "TAGS", "a"), make(answers, 1)
	require.LessOrEqual(t, testing.AllocsPerRun(500, func() {
		r.Put(m, done)
		<-done
	}), 0.0)
}

// A disk that stands still does not take the memory with it: appenders wait
// for room, and are refused when it comes to nothing.
func TestSyncFlushBoundsWhatWaits(t *testing.T) {
	r, d := syncRig(t, func(c *store.Config) { c.CommitLogFileSize = 64 << 20 })
	release := d.hold(t)
	body := make([]byte, 3<<20)
	put := func() store.PutResult {
		res, _ := r.Put(&store.Message{Topic: []byte("T"), Body: body, NoWait: true}, nil)
		return res
	}
	require.NoError(t, put().Err)
	<-d.entered
	for range 5 {
		require.NoError(t, put().Err)
	}
	results := make(chan store.PutResult, 2)
	for range 2 {
		go func() { results <- put() }()
	}
	for refused := 0; refused < 2; { // waits for room, or has not come so far
		r.clock.Advance(time.Second)
		select {
		case res := <-results:
			require.Equal(t, store.OSPageCacheBusy, res.Status)
			require.Error(t, res.Err)
			refused++
		case <-time.After(time.Millisecond):
		}
	}
	release()
	require.Eventually(t, func() bool {
		r.clock.Advance(time.Second)
		return put().Err == nil
	}, 30*time.Second, time.Millisecond)
	r.settle()
	require.Equal(t, int64(7), r.MaxOffset("T", 0))
}
