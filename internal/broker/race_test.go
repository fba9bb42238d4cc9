//go:build race

package broker

// raceEnabled: the race detector makes pools forget at random.
const raceEnabled = true
