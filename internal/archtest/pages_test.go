package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTestingPage holds docs/TESTING.md to code that runs: each Go block of it
// is, letter by letter, a part of a file of tests.
func TestTestingPage(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../docs/TESTING.md"))
	require.NoError(t, err)
	code, err := os.ReadFile(filepath.FromSlash("../../testbroker/recipes_test.go"))
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(blocks), 10)
	recipes := 0
	for _, b := range blocks {
		require.Contains(t, string(code), b[1]+"\n", "this is not in testbroker/recipes_test.go")
		recipes += strings.Count("\n"+b[1], "\nfunc Test")
	}
	require.Equal(t, strings.Count(string(code), "\nfunc Test"), recipes, "each recipe is on the page, once")
}
