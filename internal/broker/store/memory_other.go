//go:build !linux && !darwin

package store

// physicalMemory is not known here.
func physicalMemory() int64 { return 0 }
