package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
)

// Config says where an index lives. All fields are needed.
type Config struct {
	FS      mfile.FS
	Dir     string      // created with the first file
	Slots   int32       // of a file (maxHashSlotNum), at least 1
	Entries int32       // of a file (maxIndexNum), at least 2: one is never used
	Clock   clock.Clock // gives files their names
	Logger  *slog.Logger
}

// Index is an open index. Put, Prepare and Recover belong to the writer, one
// goroutine at a time; everything else is safe for concurrent use.
type Index struct {
	cfg  Config
	size int64

	// files is replaced, never changed, so that readers need no lock.
	files atomic.Pointer[[]*file]
	mu    sync.Mutex // orders replacements of files

	// keys is how many keys of the record at the end are in the index; the
	// writer's.
	keys int
}

// Open opens the files in cfg.Dir, which may be missing. A newest file of
// length 0 is removed. A file of another size, or one that is not named after
// a time, is a [*mfile.FormatError], and nothing is left open. The index
// cannot be written before Recover.
func Open(cfg Config) (*Index, error) {
	if cfg.Slots < 1 || cfg.Entries < 2 {
		return nil, fmt.Errorf("index: %d slots and %d entries: at least 1 and 2 are needed", cfg.Slots, cfg.Entries)
	}
	x := &Index{cfg: cfg, size: FileSize(cfg.Slots, cfg.Entries)}
	x.files.Store(&[]*file{})
	list, err := cfg.FS.ReadDir(cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e mfile.Entry) bool { return e.Dir })
	if n := len(list); n > 0 && list[n-1].Size == 0 {
		if err := cfg.FS.Remove(filepath.Join(cfg.Dir, list[n-1].Name)); err != nil {
			return nil, err
		}
		list = list[:n-1]
	}
	files := make([]*file, 0, len(list))
	for _, e := range list {
		f, err := x.open(e)
		if err != nil {
			for _, f := range files {
				err = errors.Join(err, f.Close())
			}
			return nil, err
		}
		files = append(files, f)
	}
	x.files.Store(&files)
	return x, nil
}

func (x *Index) open(e mfile.Entry) (*file, error) {
	path := filepath.Join(x.cfg.Dir, e.Name)
	if _, ok := parseName(e.Name); !ok {
		return nil, &mfile.FormatError{Path: path, Reason: "not the name of an index file: want a time of 17 digits"}
	}
	if e.Size != x.size {
		return nil, &mfile.FormatError{Path: path, Offset: min(e.Size, x.size), Reason: fmt.Sprintf(
			"the file has %d bytes, want %d; open the store with the maxHashSlotNum and maxIndexNum it was made with", e.Size, x.size)}
	}
	f, err := x.cfg.FS.Open(path)
	if err != nil {
		return nil, err
	}
	return newFile(f, x.cfg.Slots, x.cfg.Entries), nil
}

// Recover makes an index ready that was just opened. It removes what cannot be
// trusted: files with an impossible header and files that end at a log
// position where inLog finds no record; after a crash also those that were not
// full and those with records that are younger than safe, a store time in ms
// up to which the index is on disk. Whatever follows a file that is removed
// goes with it. The rest is added again from the log, from End on.
func (x *Index) Recover(aborted bool, safe int64, inLog func(phy int64) bool) error {
	files := x.list()
	keep := 0
	for ; keep < len(files); keep++ {
		f := files[keep]
		why := f.damage()
		switch {
		case why == "" && keep > 0 && f.endPhy.Load() < files[keep-1].endPhy.Load():
			why = "it ends before the file before it"
		case why == "" && f.trailing(f.endPhy.Load()) == 0:
			why = "its last entry is of another record than its header says"
		case why == "" && aborted && (!f.full() || f.endTime.Load() > safe):
			why = "it may not be on disk"
		}
		if why != "" {
			x.cfg.Logger.Info("index file is made anew", "path", f.Path(), "reason", why)
			break
		}
	}
	for ; keep > 0 && !inLog(files[keep-1].endPhy.Load()); keep-- {
		x.cfg.Logger.Warn("index file is made anew", "path", files[keep-1].Path(), "reason", "the log has no record where it ends")
	}
	kept := files[:keep:keep]
	x.files.Store(&kept)
	x.keys = 0
	for i := keep - 1; i >= 0; i-- {
		f := kept[i]
		f.synced.Store(true)
		n := f.trailing(kept[keep-1].endPhy.Load())
		if x.keys += n; n < int(f.count.Load())-1 {
			break
		}
	}
	for _, f := range kept {
		f.synced.Store(true)
	}
	var err error
	for _, f := range files[keep:] {
		err = errors.Join(err, f.Destroy())
	}
	if keep < len(files) {
		err = errors.Join(err, x.cfg.FS.SyncDir(x.cfg.Dir))
	}
	return err
}

func (x *Index) list() []*file { return *x.files.Load() }

func (x *Index) last() *file {
	if fs := x.list(); len(fs) > 0 {
		return fs[len(fs)-1]
	}
	return nil
}

// End is the log position of the last record in the index, and its store time
// in ms. That record may have keys which are not in the index yet. ok is false
// for an empty index.
func (x *Index) End() (phy, storeTime int64, ok bool) {
	f := x.last()
	if f == nil {
		return 0, 0, false
	}
	return f.endPhy.Load(), f.endTime.Load(), true
}

// Files is how many files there are.
func (x *Index) Files() int { return len(x.list()) }

// Clean removes the files whose records are all before the log position
// minPhy, oldest first, but never the newest file. Queries that read one of
// them finish. It returns how many are gone.
func (x *Index) Clean(minPhy int64) (int, error) {
	x.mu.Lock()
	files := x.list()
	n := 0
	for n < len(files)-1 && files[n].endPhy.Load() < minPhy {
		n++
	}
	rest := slices.Clone(files[n:])
	x.files.Store(&rest)
	x.mu.Unlock()
	if n == 0 {
		return 0, nil
	}
	var err error
	for _, f := range files[:n] {
		err = errors.Join(err, f.Destroy())
	}
	if err = errors.Join(err, x.cfg.FS.SyncDir(x.cfg.Dir)); err != nil {
		return n, fmt.Errorf("index: clean: %w", err)
	}
	return n, nil
}

// Close closes all files without flushing them.
func (x *Index) Close() error {
	x.mu.Lock()
	files := x.list()
	x.files.Store(&[]*file{})
	x.mu.Unlock()
	var err error
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// nameDigits is yyyyMMddHHmmssSSS.
const nameDigits = 17

// nextName is the name of a file that is made now: the local time, but always
// behind the newest file, whatever the clock does.
func (x *Index) nextName() string {
	t := x.cfg.Clock.Now().Local().Format("20060102150405.000")
	n, _ := strconv.ParseInt(strings.Replace(t, ".", "", 1), 10, 64)
	if f := x.last(); f != nil {
		last, _ := parseName(filepath.Base(f.Path()))
		n = max(n, last+1)
	}
	return fmt.Sprintf("%0*d", nameDigits, n)
}

func parseName(name string) (int64, bool) {
	if len(name) != nameDigits || strings.Trim(name, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil
}
