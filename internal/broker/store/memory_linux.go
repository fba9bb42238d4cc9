package store

import "golang.org/x/sys/unix"

// physicalMemory is the machine's memory in bytes, 0 if not known.
func physicalMemory() int64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return int64(uint64(i.Totalram) * uint64(i.Unit)) // Totalram has 32 bits on some architectures
}
