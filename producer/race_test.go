//go:build race

package producer_test

// raceEnabled is set under the race detector, which makes pools forget.
const raceEnabled = true
