//go:build race

package store_test

// raceEnabled: under the race detector sync.Pool drops items on purpose.
const raceEnabled = true
