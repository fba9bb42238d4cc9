package store

import "golang.org/x/sys/unix"

// physicalMemory is the machine's memory in bytes, 0 if not known.
func physicalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
