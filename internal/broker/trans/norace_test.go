//go:build !race

package trans

const raceEnabled = false
