//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProcess runs the program as a process of its own and stops it as an
// operator does. Twice, on one folder: the second finds what the first left.
func TestProcess(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.Command(exe, "-namesrv-listen", "127.0.0.1:0", "-listen", "127.0.0.1:0", "-store", dir)
		cmd.Env = append(os.Environ(), "RMQBROKER_TEST_MAIN=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		awaitReady(t, stdout)
		require.NoError(t, cmd.Process.Signal(sig))
		require.NoError(t, cmd.Wait(), "%s: %s", sig, stderr.String())
		require.Empty(t, stderr.String())
	}
}
