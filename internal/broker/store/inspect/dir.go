package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// Sizes are the settings that the files of a store do not say themselves. 0
// and nil mean unknown: they are then found out from the files, as far as
// that is possible.
type Sizes struct {
	CommitLog    int64 // bytes of a commit log file (mappedFileSizeCommitLog)
	ConsumeQueue int64 // bytes of a consume queue file (mappedFileSizeConsumeQueue)
	IndexSlots   int64 // hash slots of an index file (maxHashSlotNum)
	IndexEntries int64 // entries of an index file (maxIndexNum)
	// Delays are the delays of SCHEDULE_TOPIC_XXXX, level 1 first
	// (messageDelayLevel). With nil only the order of magnitude is checked.
	Delays []time.Duration
}

// Dir is a store directory to be read. It holds no files open between calls;
// one goroutine at a time uses it.
type Dir struct {
	name  string // for messages
	fsys  fs.FS
	sizes Sizes
	stop  func() error // why to give up, nil: go on
}

// ErrNotAStore is wrapped by [Open] for a path that is there but cannot be a
// store.
var ErrNotAStore = errors.New("not a store directory")

// Open looks whether there is a store in a directory (storePathRootDir).
func Open(dir string, s Sizes) (*Dir, error) {
	i, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fs.PathError{Op: "store", Path: dir, Err: fs.ErrNotExist}
	case err != nil:
		return nil, err
	case !i.IsDir():
		return nil, fmt.Errorf("%s: %w: it is a file; give the directory that has the folder commitlog", dir, ErrNotAStore)
	}
	return OpenFS(os.DirFS(dir), filepath.Clean(dir), s)
}

// OpenFS is [Open] for a file system whose root is the store's directory. Its
// files must implement io.ReaderAt. name stands for the root in messages.
func OpenFS(fsys fs.FS, name string, s Sizes) (*Dir, error) {
	list, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w: it is empty", name, ErrNotAStore)
	}
	known := func(e fs.DirEntry) bool {
		return slices.Contains([]string{"commitlog", "consumequeue", "checkpoint", "abort", "index"}, e.Name())
	}
	if !slices.ContainsFunc(list, known) {
		return nil, fmt.Errorf("%s: %w: it has none of commitlog, consumequeue, index, checkpoint; give the directory that storePathRootDir names",
			name, ErrNotAStore)
	}
	return &Dir{name: name, fsys: fsys, sizes: s, stop: func() error { return nil }}, nil
}

// show is a path within the store as messages have it.
func (d *Dir) show(p string) string { return filepath.Join(d.name, filepath.FromSlash(p)) }

// exists reports whether there is something at p.
func (d *Dir) exists(p string) bool {
	_, err := fs.Stat(d.fsys, p)
	return err == nil
}

// list lists a directory; one that is missing is empty.
func (d *Dir) list(p string) ([]entry, error) {
	es, err := fs.ReadDir(d.fsys, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]entry, 0, len(es))
	for _, e := range es {
		i, err := fs.Stat(d.fsys, path.Join(p, e.Name())) // follows links
		if errors.Is(err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0 {
			continue // removed since it was listed
		}
		x := entry{name: e.Name(), err: err}
		if err == nil {
			x.dir, x.size = i.IsDir(), i.Size()
			if !x.dir && !i.Mode().IsRegular() {
				x.err = errors.New("not a regular file")
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// entry is one name in a directory.
type entry struct {
	name string
	dir  bool
	size int64
	err  error // it cannot be looked at
}

// open opens a file for reading at any place.
func (d *Dir) open(p string) (*window, error) {
	f, err := d.fsys.Open(p)
	if err != nil {
		return nil, err
	}
	r, ok := f.(io.ReaderAt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s cannot be read at any place", p), f.Close())
	}
	return &window{src: r, c: f}, nil
}

// readAt fills b from a file, all of it.
func (d *Dir) readAt(p string, b []byte, off int64) error {
	w, err := d.open(p)
	if err != nil {
		return err
	}
	defer w.close()
	n, err := w.src.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// windowStep is how much is read at a time.
const windowStep = 256 << 10

// window reads a file from front to back with the right to look ahead.
type window struct {
	src io.ReaderAt
	c   io.Closer
	at  int64 // place of buf in the file
	buf []byte
	eof bool // buf goes to the file's end
}

// peek returns n bytes from off on, valid until the next call; fewer at the
// file's end.
func (w *window) peek(off, n int64) ([]byte, error) {
	if w.buf == nil || off < w.at || off > w.at+int64(len(w.buf)) || !w.eof && off+n > w.at+int64(len(w.buf)) {
		want := max(n, windowStep)
		if int64(cap(w.buf)) < want {
			w.buf = make([]byte, want)
		}
		w.at = off
		got, err := w.src.ReadAt(w.buf[:want], off)
		w.buf, w.eof = w.buf[:got], int64(got) < want
		if err != nil && !errors.Is(err, io.EOF) {
			w.buf = nil
			return nil, err
		}
	}
	b := w.buf[off-w.at:]
	return b[:min(n, int64(len(b)))], nil
}

func (w *window) close() { _ = w.c.Close() }
