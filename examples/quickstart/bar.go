package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows progress on a terminal; anywhere else it does nothing.
type bar struct{ b *progressbar.ProgressBar }

func newBar(w io.Writer, n int) *bar {
	if !terminal(w) {
		return &bar{}
	}
	return &bar{progressbar.NewOptions(n,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("consumed"),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("msg"),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
	)}
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}

func (b *bar) set(n int64) {
	if b.b != nil {
		_ = b.b.Set64(n) // a terminal that is gone is no reason to stop
	}
}

func (b *bar) finish() {
	if b.b != nil {
		_ = b.b.Finish()
	}
}
