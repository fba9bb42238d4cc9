package store

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

const (
	// correctQueuesEvery is how often the minimum of every queue is looked at
	// even if no file was removed (correctLogicMinOffsetForceInterval).
	correctQueuesEvery = 5 * time.Minute
	// extraRuns is how many runs [Store.TriggerClean] makes regardless of the hour.
	extraRuns = 20
)

// cleaner is a follower that can forget records. clean is called beside
// follow, by one goroutine at a time, once the log begins at minPhy; with an
// error it is called again later.
type cleaner interface {
	clean(minPhy int64) error
}

// cleaning removes what is too old or in the way: commit log files, and what
// the followers have of their records. One goroutine does that, and watches
// the disks. All fields but those marked belong to it.
type cleaning struct {
	s     *Store
	disks disks
	tick  <-chan time.Time

	wake   chan struct{}      // one slot: a run that somebody asked for
	looks  chan chan struct{} // a look at the disks that somebody waits for
	rounds chan chan struct{} // the same for a run
	extra  atomic.Int32       // runs in which the hour does not count

	logFails  bool        // the log has no room to go on
	hung      *mfile.File // out of the log but still in the directory
	hungSince time.Time   // or since the last attempt

	cleanedTo int64 // log position before which followers have nothing any more
	corrected time.Time
	queues    []*queue // reused
}

func newCleaning(s *Store) *cleaning {
	c := &cleaning{
		s: s, cleanedTo: -1, corrected: s.cfg.Clock.Now(),
		wake: make(chan struct{}, 1), looks: make(chan chan struct{}), rounds: make(chan chan struct{}),
	}
	c.disks.init(&s.cfg)
	return c
}

// run cleans at intervals and on demand, until ctx ends.
func (c *cleaning) run(ctx context.Context) {
	tick := c.s.cfg.Clock.NewTicker(c.s.cfg.CleanInterval)
	defer tick.Stop()
	c.tick = tick.C()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.tick:
			c.watchLog()
			c.round(ctx)
		case <-c.wake:
			c.round(ctx)
		case done := <-c.rounds:
			c.round(ctx)
			close(done)
		case done := <-c.looks:
			c.disks.look()
			close(done)
		}
	}
}

// pause waits for d, but goes on watching the disks. It is false when ctx ends.
func (c *cleaning) pause(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	t := c.s.cfg.Clock.AfterFunc(d, func() { close(over) })
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-c.tick:
			c.disks.look()
		case done := <-c.looks:
			c.disks.look()
			close(done)
		}
	}
}

// watchLog tells the operator when the log cannot get its next file, which
// otherwise only clients see.
func (c *cleaning) watchLog() {
	l := c.s.log
	l.mu.Lock()
	err := l.nextErr
	l.mu.Unlock()
	if errors.Is(err, errClosed) || (err != nil) == c.logFails {
		return
	}
	c.logFails = err != nil
	if c.logFails {
		c.s.cfg.Logger.Error("messages cannot be stored", "err", err)
	} else {
		c.s.cfg.Logger.Info("there is room for messages again")
	}
}

// round is one run. Files leave in an order in which a crash at any moment
// leaves a store that opens: the log's oldest first, each gone from the disk
// before the next is touched, and then what pointed into them.
func (c *cleaning) round(ctx context.Context) {
	c.disks.look()
	c.cleanLog(ctx)
	c.cleanQueues(ctx)
	c.disks.look()
}

// cleanLog removes the oldest files of the log that have to go.
func (c *cleaning) cleanLog(ctx context.Context) {
	cfg := &c.s.cfg
	if c.hung != nil && !c.retryHung() {
		return
	}
	anyHour := c.extra.Load() > 0
	if anyHour {
		c.extra.Add(-1)
	}
	anyHour = anyHour || slices.Contains(cfg.DeleteHours, cfg.Clock.Now().Hour())
	durable := int64(-1) // log position before which all units are on disk
	for n := range cfg.DeleteBatch {
		if n > 0 {
			if !c.pause(ctx, cfg.DeleteInterval) {
				return
			}
			c.disks.look()
		}
		f := c.oldest()
		if f == nil {
			return
		}
		used := c.disks.most()
		switch {
		case used > percent(cfg.DiskCleanPercent) && !cfg.NoForcedClean:
			cfg.Logger.Warn("removing a commit log file, whatever its age: the disk is nearly full", "path", f.Path(), "used", used)
		case (anyHour || used > percent(cfg.DiskMaxPercent)) && c.expired(f):
			cfg.Logger.Info("removing a commit log file that has expired", "path", f.Path())
		default:
			return
		}
		if f.End() > durable {
			var err error
			if durable, err = c.flushUnits(); err != nil {
				cfg.Logger.Error("consume queues not flushed, so no commit log file is removed", "err", err)
				return
			}
		}
		if !c.removeOldest() {
			return
		}
	}
}

// oldest is the first file of the log if it may be removed: never the last
// one, and none that followers have not seen to its end, because queues that
// miss records would have holes.
func (c *cleaning) oldest() *mfile.File {
	files := c.s.log.seq.Files()
	if len(files) < 2 || files[0].End() > c.s.dispatch.pos.Load() {
		return nil
	}
	return files[0]
}

// flushUnits makes durable what queues have of the records before the log
// position that it returns. A queue finds its next offset in its last unit: a
// record must not leave the log while its unit could still be lost.
func (c *cleaning) flushUnits() (int64, error) {
	pos := c.s.dispatch.pos.Load()
	c.queues = c.s.queues.all(c.queues[:0])
	defer func() { clear(c.queues) }()
	for _, q := range c.queues {
		if err := q.cq.Flush(); err != nil && !errors.Is(err, fs.ErrNotExist) { // missing: the topic was deleted
			return 0, err
		}
	}
	return pos, nil
}

// expired reports whether a file was last written longer ago than files are
// kept. Where files have no times the store time of the record after it counts.
func (c *cleaning) expired(f *mfile.File) bool {
	at := c.modified(f)
	if at.IsZero() {
		ms := c.s.log.storeTimeAt(f.End())
		if ms == 0 {
			return false
		}
		at = time.UnixMilli(ms)
	}
	return !at.Add(c.s.cfg.FileReserved).After(c.s.cfg.Clock.Now())
}

func (c *cleaning) modified(f *mfile.File) time.Time {
	list, err := c.s.cfg.FS.ReadDir(c.s.log.seq.Dir())
	if err != nil {
		c.s.cfg.Logger.Warn("age of a commit log file is not known", "path", f.Path(), "err", err)
	}
	for _, e := range list {
		if e.Name == filepath.Base(f.Path()) {
			return e.ModTime
		}
	}
	return time.Time{}
}

// removeOldest removes the first file of the log: out of readers' sight under
// the append lock, from the disk outside of it. Whoever reads the file
// finishes undisturbed; it is unmapped after that. The result is false if no
// more files may be removed now.
func (c *cleaning) removeOldest() bool {
	l := c.s.log
	l.mu.Lock()
	f := l.seq.DetachFirst()
	l.mu.Unlock()
	if err := f.Destroy(); err != nil {
		c.s.cfg.Logger.Error("commit log file not unmapped", "path", f.Path(), "err", err)
	}
	if !f.Removed() {
		c.hung, c.hungSince = f, c.s.cfg.Clock.Now()
		return false
	}
	return c.syncDir(l.seq)
}

// syncDir makes a removal last, so that after a crash no file reappears
// without those that follow it.
func (c *cleaning) syncDir(seq *mfile.Sequence) bool {
	if err := seq.SyncDir(); err != nil {
		c.s.cfg.Logger.Error("removal of a file may not outlast a power failure", "dir", seq.Dir(), "err", err)
		return false
	}
	return true
}

// retryHung deals with a file that could not be removed, as on systems that
// keep files in use. Its last reader removes it; if it is still there after
// DeleteRetry, this does. It reports whether the file is gone.
func (c *cleaning) retryHung() bool {
	now := c.s.cfg.Clock.Now()
	if !c.hung.Removed() {
		if now.Sub(c.hungSince) < c.s.cfg.DeleteRetry {
			return false
		}
		c.hungSince = now
		if err := c.hung.Remove(); err != nil {
			c.s.cfg.Logger.Warn("commit log file cannot be removed; cleaning waits for it", "path", c.hung.Path(), "err", err)
			return false
		}
	}
	c.hung = nil
	return c.syncDir(c.s.log.seq)
}

// ask has the cleaner do something and waits until it is done, ctx ends, or
// the store is closed.
func (s *Store) ask(ctx context.Context, what chan chan struct{}) error {
	done := make(chan struct{})
	select {
	case what <- done:
		return s.await(ctx, done)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.group.Context().Done():
		return errClosed
	}
}

// CheckDisk looks at the disks now rather than at the next interval: whether
// messages are refused has been decided anew when it returns.
func (s *Store) CheckDisk(ctx context.Context) error { return s.ask(ctx, s.cleaning.looks) }

// TriggerClean starts a run of the cleaner. In it and the next 19 ones the
// hour of the day does not count: files that have expired are removed
// (DELETE_EXPIRED_COMMITLOG). It does not wait.
func (s *Store) TriggerClean() {
	s.cleaning.extra.Store(extraRuns)
	select {
	case s.cleaning.wake <- struct{}{}:
	default:
	}
}
