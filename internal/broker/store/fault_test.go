package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// One file operation fails, or all do from one on: the k-th, for every k until
// none fails. The store never panics, refuses with an error that names the
// path, goes on by itself when the failure was not in what must be durable,
// and has lost no message that it acknowledged when it is opened again.
func TestFaultAtEveryOperation(t *testing.T) {
	t.Parallel()
	for _, syncFlush := range []bool{false, true} {
		for _, c := range []struct {
			name string
			err  error
			ever bool
		}{{"once ENOSPC", syscall.ENOSPC, false}, {"from then on EIO", syscall.EIO, true}} {
			t.Run(fmt.Sprintf("sync=%v/%s", syncFlush, c.name), func(t *testing.T) {
				k, refused, notOpened := 1, 0, 0
				for fired := true; fired; k++ {
					synctest.Test(t, func(t *testing.T) {
						f := faulty{t: t, err: c.err}
						f.cfg = crashConfig()
						f.cfg.SyncFlush = syncFlush
						f.cfg.SyncFlushTimeout, f.cfg.FlushThorough, f.cfg.QueueFlushThorough = time.Second, time.Second, 2*time.Second
						f.cfg.CommitLogFileSize, f.cfg.ConsumeQueueFileSize = 8<<10, 10*20
						f.run(k, c.ever)
						fired = f.fired.Load()
						refused += f.refused
						notOpened += f.notOpened
					})
				}
				t.Logf("%d operations, %d messages refused, %d openings refused", k-2, refused, notOpened)
				require.Greater(t, k, 100)
				require.Positive(t, refused)
				require.Positive(t, notOpened)
			})
		}
	}
}

// faulty is a mixed workload on a file system that fails.
type faulty struct {
	t     *testing.T
	cfg   store.Config
	err   error
	fired atomic.Bool // files are worked on from several goroutines

	s                  *store.Store
	n                  int
	sent               []*late
	judged             int // of sent
	refused, notOpened int
}

// late is an answer that may come later.
type late struct {
	key    string
	bodies []string
	res    store.PutResult
	came   bool
}

// Stored implements [store.Waiter].
func (l *late) Stored(r store.PutResult) { l.res, l.came = r, true }

func (f *faulty) run(k int, ever bool) {
	c := f.cfg.FS.(*mfile.Crash)
	c.SetFault(func(op mfile.CrashOp) error {
		if op.N == k || ever && op.N > k {
			f.fired.Store(true)
			return f.err
		}
		return nil
	})
	for range 3 {
		if !f.open() {
			continue
		}
		for i := range 12 {
			f.put(i*130, i%3)
		}
		f.settle()
		time.Sleep(3 * time.Second) // all flushers run
		f.put(3000, 0)
		f.batch(8)
		f.put(6000, 1)
		f.settle()
		if err := f.s.Close(); err != nil {
			f.typed(err)
		}
		f.settle()
	}
	// The disk is well again.
	c.SetFault(nil)
	require.True(f.t, f.open())
	f.check()
	f.put(10, 0)
	f.settle()
	f.check()
	require.NoError(f.t, f.s.Close())
}

func (f *faulty) open() bool {
	s, err := store.Open(f.cfg)
	if err != nil {
		f.notOpened++
		f.typed(err)
		return false
	}
	f.s = s
	return true
}

// typed checks that an error tells what is wrong and where.
func (f *faulty) typed(err error) {
	f.t.Helper()
	require.True(f.t, f.fired.Load(), "%v", err)
	require.ErrorIs(f.t, err, f.err)
	var pe *fs.PathError
	var io *mfile.IOError
	switch {
	case errors.As(err, &io):
		require.NotEmpty(f.t, io.Path)
	case errors.As(err, &pe):
		require.NotEmpty(f.t, pe.Path)
	default:
		require.Fail(f.t, "no path", "%v", err)
	}
}

func (f *faulty) put(size, queue int) {
	f.n++
	l := &late{key: fmt.Sprintf("T/%d", queue), bodies: []string{fmt.Sprintf("%d-%0*d", f.n, size, 0)}}
	res, pending := f.s.Put(message("T", int32(queue), l.bodies[0]), l)
	f.answer(l, res, pending)
}

func (f *faulty) batch(n int) {
	f.n++
	l := &late{key: "T/2"}
	for i := range n {
		l.bodies = append(l.bodies, fmt.Sprintf("%d-%d", f.n, i))
	}
	m := message("T", 2, "")
	m.Body = batch(l.bodies...)
	res, pending := f.s.PutBatch(m, nil, l)
	f.answer(l, res, pending)
}

func (f *faulty) answer(l *late, res store.PutResult, pending bool) {
	if !pending {
		l.res, l.came = res, true
	}
	f.sent = append(f.sent, l)
}

// settle waits for the answers and judges them.
func (f *faulty) settle() {
	f.t.Helper()
	time.Sleep(2 * time.Second) // longer than an answer may take
	synctest.Wait()
	for ; f.judged < len(f.sent); f.judged++ {
		l := f.sent[f.judged]
		require.True(f.t, l.came)
		if st := l.res.Status; !st.Stored() {
			f.refused++
			f.typed(l.res.Err)
		} else if st != store.PutOK {
			require.True(f.t, f.fired.Load(), "%v", st)
		}
	}
}

// check reads everything. What was acknowledged is there, in order and once;
// what was not may be there.
func (f *faulty) check() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(f.t, f.s.WaitDispatched(ctx))
	have := map[string][]string{}
	for queue := range int32(3) {
		r := &rig{Store: f.s, t: f.t}
		have[fmt.Sprintf("T/%d", queue)] = r.bodies("T", queue, 0)
	}
	for _, l := range f.sent {
		rest := have[l.key]
		n := 0
		for n < len(rest) && n < len(l.bodies) && rest[n] == l.bodies[n] {
			n++
		}
		require.True(f.t, n == len(l.bodies) || l.res.Status != store.PutOK, "%s: lost %d bodies from %.20s on", l.key, len(l.bodies)-n, l.bodies[0])
		have[l.key] = rest[n:]
	}
	for k, rest := range have {
		require.Empty(f.t, rest, "%s has what nobody sent, or sent once", k)
	}
}
