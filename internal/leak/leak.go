// Package leak fails a test binary that leaves goroutines behind.
package leak

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and exits. It fails the run when a
// goroutine is still alive afterwards. Two goroutines of the ants package are
// ignored: its default pool starts them on import and offers no way to end
// them without ending the pool for every other user of that package.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, Ignore()...)
}

// Check fails t if goroutines other than those running now are alive when t
// ends. Call it first in a test that must clean up after itself.
func Check(t *testing.T) {
	t.Helper()
	opts := append(Ignore(), goleak.IgnoreCurrent())
	t.Cleanup(func() { goleak.VerifyNone(t, opts...) })
}

// Ignore lists the goroutines that live as long as the process by design of a
// library.
func Ignore() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	}
}
