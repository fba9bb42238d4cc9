//go:build unix

package mfile

import (
	"os"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"
)

// keepHandle: a mapping needs no open file here; a store with ten thousand
// queues must not need as many descriptors.
const keepHandle = false

const syncsDirs = true

// syncMapping flushes part of a mapping. Only pages of the machine can be
// flushed, and they may be larger than PageSize.
func syncMapping(data []byte, from, to int64) error {
	from &^= int64(os.Getpagesize()) - 1
	return mmap.MMap(data[from:to]).Flush()
}

func readAhead(data []byte, on bool) {
	advice := unix.MADV_RANDOM
	if on {
		advice = unix.MADV_NORMAL
	}
	_ = unix.Madvise(data, advice)
}

func diskUsage(dir string) (total, available int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	used := int64(s.Blocks-s.Bfree) * int64(s.Bsize)
	available = int64(s.Bavail) * int64(s.Bsize)
	return used + available, available, nil
}
