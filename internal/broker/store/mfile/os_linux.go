package mfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// coherent: what is written to a file shows in its mapping at once.
const coherent = true

// allocate takes the disk space of part of a file.
func allocate(h *os.File, from, n int64) error {
	for {
		err := unix.Fallocate(int(h.Fd()), 0, from, n)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP):
			return nil // the file stays sparse
		case err != nil:
			return &os.PathError{Op: "fallocate", Path: h.Name(), Err: err}
		}
		return nil
	}
}

// populate makes pages present and writable. Kernels before 5.14 do not know
// the advice; the pages then come with the first write.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// lockFile takes a lock of the open file: it conflicts with the record locks
// of a JVM, as fcntl locks do, but also with another store of this process
// and is not lost when some other handle of the file is closed.
func lockFile(h *os.File) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 0, Len: 1}
	err := unix.FcntlFlock(h.Fd(), unix.F_OFD_SETLK, &l)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}

// nextData finds the next part of a file that is no hole. Failures only make
// the caller look at more.
func nextData(path string, from int64) int64 {
	h, err := os.Open(path)
	if err != nil {
		return from
	}
	defer h.Close()
	at, err := unix.Seek(int(h.Fd()), from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return 1<<63 - 1 // nothing but holes
	case err != nil:
		return from
	}
	return max(at, from)
}
