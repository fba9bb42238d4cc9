//go:build unix

package consumer_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what the process has used so far, all threads together: the
// figure to compare on a machine that is shared.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
