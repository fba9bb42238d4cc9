package mfile

import (
	"errors"
	"os"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/windows"
)

// keepHandle: flushing a mapping needs the file's handle here.
const keepHandle = true

const syncsDirs = false

// syncMapping flushes the whole mapping: mmap-go finds its handles by the
// mapping's first address.
func syncMapping(data []byte, _, _ int64) error { return mmap.MMap(data).Flush() }

// coherent: mappings and writes are not promised to agree here.
const coherent = false

// allocate has nothing to do: setting a file's length takes the space.
func allocate(*os.File, int64, int64) error { return nil }

func populate([]byte) {}

func readAhead([]byte, bool) {}

// nextData knows nothing of holes.
func nextData(_ string, from int64) int64 { return from }

func lockFile(h *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(h.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

func diskUsage(dir string) (total, available int64, err error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var avail, all, free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &avail, &all, &free); err != nil {
		return 0, 0, &os.PathError{Op: "disk usage", Path: dir, Err: err}
	}
	return int64(all - free + avail), int64(avail), nil
}
