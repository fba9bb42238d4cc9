//go:build race

package trans

// raceEnabled: the race detector makes all ten times as slow.
const raceEnabled = true
