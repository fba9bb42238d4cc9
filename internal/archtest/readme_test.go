package archtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)\n```go\n(.*?)\n```")

// TestReadme compiles every Go file that README.md shows in full, that is,
// with its package clause, and runs those that are tests.
func TestReadme(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)

	programs, tests := 0, 0
	for i, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
		code := block[1]
		if !strings.HasPrefix(code, "package ") {
			continue // an excerpt
		}
		isTest := strings.Contains(code, "\nfunc Test")
		bin := filepath.Join(t.TempDir(), "readme.test.exe")
		name, args := "main.go", []string{"build", "-o", os.DevNull}
		if isTest { // built and run apart: its directory does not exist
			name, args = "readme_test.go", []string{"test", "-vet=off", "-c", "-o", bin}
			tests++
		} else {
			programs++
		}
		// The file is laid into the module without being written there.
		dir := fmt.Sprintf("readme%d", i)
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(code+"\n"), 0o600))
		overlay := filepath.Join(t.TempDir(), "overlay.json")
		plan, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, dir, name): file}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(overlay, plan, 0o600))

		cmd := exec.Command("go", append(args, "-overlay", overlay, "./"+dir)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s of block %d:\n%s\n%s", args[0], i+1, code, out)
		if isTest {
			cmd = exec.Command(bin, "-test.v")
			cmd.Dir = t.TempDir()
			out, err = cmd.CombinedOutput()
			require.NoError(t, err, "test in block %d:\n%s\n%s", i+1, code, out)
			require.Contains(t, string(out), "--- PASS", "no test ran in block %d:\n%s", i+1, code)
		}
	}
	require.Positive(t, programs, "README.md shows no program")
	require.Positive(t, tests, "README.md shows no test")
}
