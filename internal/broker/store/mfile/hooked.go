package mfile

// Op is a kind of file operation.
type Op uint8

// The operations of open files that reach the system.
const (
	OpWrite Op = iota // [File.Append]
	OpSync            // [File.Flush] and [File.Sync]
)

// Hook is called before an operation on bytes [from, to) of the file at path.
// The operation takes place after it has returned, and not at all if it
// returns an error. It may block, and is called by whoever does the operation.
type Hook func(op Op, path string, from, to int64) error

// Hooked returns fsys with a hook, for tests that hold up or fail what goes to
// the disk.
func Hooked(fsys FS, h Hook) FS { return hookedFS{fsys, h} }

type hookedFS struct {
	FS
	hook Hook
}

// Create implements [FS].
func (h hookedFS) Create(path string, size int64, reserve bool) (*File, error) {
	return h.wrap(h.FS.Create(path, size, reserve))
}

// Open implements [FS].
func (h hookedFS) Open(path string) (*File, error) { return h.wrap(h.FS.Open(path)) }

func (h hookedFS) wrap(f *File, err error) (*File, error) {
	if err == nil {
		f.back = hookedFile{f.back, h.hook, f.path}
	}
	return f, err
}

type hookedFile struct {
	backing
	hook Hook
	path string
}

func (f hookedFile) sync(data []byte, from, to int64) error {
	if err := f.hook(OpSync, f.path, from, to); err != nil {
		return err
	}
	return f.backing.sync(data, from, to)
}

func (f hookedFile) write(path string, data, b []byte, at int64) error {
	if err := f.hook(OpWrite, path, at, at+int64(len(b))); err != nil {
		return err
	}
	return f.backing.write(path, data, b, at)
}
