//go:build !windows

package remoting

// partialWrites says whether a write that a deadline ended tells for certain
// how many bytes went out, so that it can be continued.
const partialWrites = true
