package store

import (
	"context"
	"fmt"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// populateStep is how many bytes of pages are brought in at a time; one to two
// steps ahead of the append position are kept ready. First touches of pages
// cost more than the copying and would otherwise happen inside the append
// lock. Bringing in a whole file would stall, and write zeros to the disk.
const populateStep = 2 << 20

// wake asks prepare to look whether there is something to do.
func (l *commitLog) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// prepare makes the next file before the present one is full, and populates
// pages ahead of the append position, until ctx ends. It runs once per log.
func (l *commitLog) prepare(ctx context.Context) {
	var pages ahead
	for {
		select {
		case <-ctx.Done():
			l.announce(nil, errClosed)
			return
		case <-l.kick:
		}
		if start, ok, urgent := l.needsFile(); ok {
			f, err := l.createFile(start)
			if f != nil && !urgent && !l.grouped {
				f.Populate(0, 2*populateStep)
				pages.ready = f
			}
			l.announce(f, err)
		}
		pages.follow(l)
	}
}

// needsFile reports whether a file should be made now and where it starts. A
// half full file asks for the next one: early enough under any load, and an
// idle broker does not take the disk space of a file it may never fill. It is
// urgent when appenders wait, or will with the next message.
func (l *commitLog) needsFile() (start int64, ok, urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil || l.closed {
		return 0, false, false
	}
	if l.cur == nil {
		return l.end.Load(), true, true
	}
	return l.cur.End(), l.wanted || l.pos > l.cur.Size()/2, l.wanted
}

func (l *commitLog) createFile(start int64) (*mfile.File, error) {
	f, err := l.seq.Create(start, true)
	if err != nil {
		return nil, fmt.Errorf("store: no commit log file at log position %d: %w", start, err)
	}
	if err := l.seq.SyncDir(); err != nil {
		_ = f.Destroy()
		return nil, fmt.Errorf("store: no commit log file at log position %d: %w", start, err)
	}
	return f, nil
}

// announce hands over a new file, or the reason why there is none, to the
// appenders that wait.
func (l *commitLog) announce(f *mfile.File, err error) {
	l.mu.Lock()
	l.next, l.nextErr, l.wanted = orKeep(f, l.next), err, false
	ready := l.ready
	l.ready = make(chan struct{})
	l.mu.Unlock()
	close(ready)
}

func orKeep(f, old *mfile.File) *mfile.File {
	if f != nil {
		return f
	}
	return old
}

// dropNext gives up the file that was made ahead. With remove it disappears
// from the disk, else it stays as a killed process leaves it.
func (l *commitLog) dropNext(remove bool) error {
	l.mu.Lock()
	f := l.next
	l.next = nil
	l.mu.Unlock()
	switch {
	case f == nil:
		return nil
	case remove:
		return f.Destroy()
	default:
		return f.Close()
	}
}

// ahead remembers up to where pages of the file being written are populated.
// It belongs to the goroutine of prepare.
type ahead struct {
	file  *mfile.File
	done  int64
	ready *mfile.File // the newest file whose first pages were brought in before it was used
}

// follow populates a step beyond the append position.
func (a *ahead) follow(l *commitLog) {
	l.mu.Lock()
	cur, pos, grouped := l.cur, l.pos, l.grouped
	ok := cur != nil && !l.closed && cur.Hold()
	l.mu.Unlock()
	if !ok {
		return
	}
	defer cur.Release()
	if cur != a.file {
		a.file, a.done = cur, pos
		if cur == a.ready {
			a.done = max(pos, 2*populateStep)
		}
	}
	a.done = max(a.done, pos)
	if want := min(pos+2*populateStep, cur.Size()); a.done < want {
		if !grouped {
			cur.Populate(a.done, want)
		}
		a.done = want
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur != cur {
		l.wake() // rolled meanwhile
		return
	}
	l.attention = cur.Size()
	if a.done < cur.Size() {
		l.attention = a.done - populateStep
	}
	if l.next == nil && l.nextErr == nil {
		l.attention = min(l.attention, cur.Size()/2+1)
	}
	if l.pos >= l.attention {
		l.wake()
	}
}
