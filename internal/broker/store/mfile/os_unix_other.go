//go:build unix && !linux

package mfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// coherent: not every one of these systems shows in a mapping what is written
// to the file.
const coherent = false

// allocate leaves the file sparse.
func allocate(*os.File, int64, int64) error { return nil }

func populate([]byte) {}

// nextData knows nothing of holes.
func nextData(_ string, from int64) int64 { return from }

// lockFile takes a record lock, which excludes other processes but not other
// stores of this one.
func lockFile(h *os.File) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 0, Len: 1}
	err := unix.FcntlFlock(h.Fd(), unix.F_SETLK, &l)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}
