package consumer_test

import (
	"bytes"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long tests wait for an event in real time. What takes longer
// does not come; a busy machine takes its time.
const patience = time.Minute

var bubbleID = regexp.MustCompile(`^goroutine \d+ \[.*(synctest bubble \d+)\]:`)

// goroutines is how many there are in the caller's bubble when all that goes on
// has come to rest. Those of tests beside it are not counted, so a test that counts
// can be parallel.
func goroutines(t testing.TB) int {
	t.Helper()
	synctest.Wait()
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	mine := bubbleID.FindSubmatch(buf) // the caller comes first
	require.NotNil(t, mine, "not in a bubble: %.100s", buf)
	return bytes.Count(buf, append(mine[1], "]:\n"...))
}

func TestGoroutinesOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := goroutines(t)
		stop := make(chan struct{})
		for range 3 {
			go func() { <-stop }()
		}
		synctest.Wait()
		require.Equal(t, before+3, goroutines(t))
		close(stop)
		synctest.Wait()
		require.Equal(t, before, goroutines(t))
	})
}
