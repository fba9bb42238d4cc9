// Package persist keeps the broker's tables in files the way ConfigManager of
// Apache's broker does: a file, the state before it in NAME.bak, and at no
// moment neither of them.
package persist

import (
	"errors"
	"fmt"
	"io/fs"
)

// Files is the folder the tables are in. Names are plain file names. The
// methods are safe for concurrent use; concurrent calls for one name are not
// made by this package's users.
type Files interface {
	// ReadFile returns a whole file. The error wraps fs.ErrNotExist if there
	// is none.
	ReadFile(name string) ([]byte, error)
	// WriteFile replaces a file: its data is on stable storage when it
	// returns. It need not be atomic.
	WriteFile(name string, data []byte) error
	// Rename moves a file over another one, atomically.
	Rename(from, to string) error
}

// Load reads a table. It tries NAME, then NAME.bak, and takes the first that
// is there, not empty and accepted by decode. No file at all is an empty
// table: found is false without an error. If files are there and none is
// good, the error says why, because starting empty would lose what is in them.
func Load(files Files, name string, decode func([]byte) error) (found bool, err error) {
	for _, n := range [...]string{name, name + ".bak"} {
		data, e := files.ReadFile(n)
		switch {
		case errors.Is(e, fs.ErrNotExist):
			continue
		case e != nil:
			err = errors.Join(err, fmt.Errorf("reading %s: %w", n, e))
			continue
		case len(data) == 0:
			continue // a write that was cut off before its first byte
		}
		if e := decode(data); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", n, e))
			continue
		}
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("%w (repair the file or remove it to start with an empty table)", err)
	}
	return false, err
}

// Save writes a table: the new state goes to a file of its own first, then
// the old file becomes NAME.bak and the new one takes its place. A crash
// between the two leaves NAME.bak, which [Load] reads.
func Save(files Files, name string, data []byte) error {
	tmp := name + ".tmp"
	if err := files.WriteFile(tmp, data); err != nil {
		return fmt.Errorf("writing %s: %w", tmp, err)
	}
	if err := files.Rename(name, name+".bak"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keeping the old %s: %w", name, err)
	}
	if err := files.Rename(tmp, name); err != nil {
		return fmt.Errorf("putting the new %s in place: %w", name, err)
	}
	return nil
}
