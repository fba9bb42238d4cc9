package leak_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/leak"
)

// scene names what a child process, which is this test binary once more, plays.
const scene = "LEAK_TEST_SCENE"

func TestMain(m *testing.M) { leak.Main(m) }

// play runs the test named Scene in a child process.
func play(t *testing.T, name string) (out string, ok bool) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestScene$", "-test.v")
	cmd.Env = append(os.Environ(), scene+"="+name)
	b, err := cmd.CombinedOutput()
	return string(b), err == nil
}

// forgotten is a goroutine that nobody ends.
func forgotten(ch chan struct{}) { <-ch }

// TestScene is what children run.
func TestScene(t *testing.T) {
	switch os.Getenv(scene) {
	case "main":
		go forgotten(make(chan struct{}))
	case "check":
		end := make(chan struct{})
		go forgotten(end)
		t.Run("leaky", func(t *testing.T) {
			leak.Check(t)
			go forgotten(end)
		})
		close(end) // Main has nothing to find
	case "clean":
		leak.Check(t)
		end := make(chan struct{})
		go forgotten(end)
		close(end)
	}
}

func TestMainFindsWhatIsLeftBehind(t *testing.T) {
	out, ok := play(t, "main")
	require.False(t, ok, out)
	require.Contains(t, out, "--- PASS: TestScene", "each test for itself is fine")
	require.Contains(t, out, "leak_test.forgotten")
}

func TestCheckFindsWhatATestLeavesBehind(t *testing.T) {
	out, ok := play(t, "check")
	require.False(t, ok, out)
	require.Contains(t, out, "--- FAIL: TestScene/leaky")
	require.Contains(t, out, "leak_test.forgotten")
	require.NotContains(t, out, "goleak: Errors on successful test run")
}

func TestCleanRunsPass(t *testing.T) {
	out, ok := play(t, "clean")
	require.True(t, ok, out)
}
