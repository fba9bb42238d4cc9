package testbroker

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
)

// TB is what [New] needs of a test. *testing.T and *testing.B have it, so
// package testing, and its flags, do not come along into programs.
type TB interface {
	Helper()
	Name() string
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(f func())
	TempDir() string
	Context() context.Context
}

// testLog is the test's own log as a writer. A line after the end of the test
// would make it panic, so it is closed before.
type testLog struct {
	mu sync.Mutex // guards tb; held while logging: tb must not change under it
	tb TB         // nil: closed
}

func newTestLogger(tb TB) (*slog.Logger, *testLog) {
	w := &testLog{tb: tb}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo})), w
}

// Write logs one record of slog's text handler.
func (w *testLog) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tb != nil {
		w.tb.Logf("%s", bytes.TrimSpace(b))
	}
	return len(b), nil
}

func (w *testLog) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tb = nil
}
