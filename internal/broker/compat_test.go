package broker

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompatListsWhatIsServed keeps the table in docs/COMPAT.md true.
func TestCompatListsWhatIsServed(t *testing.T) {
	doc, err := os.ReadFile("../../docs/COMPAT.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(doc), "\n## Broker\n")
	require.True(t, ok)
	table, _, ok = strings.Cut(table, "\n### ")
	require.True(t, ok)
	var listed []int32
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, text := range regexp.MustCompile(`\d+`).FindAllString(cells[1], -1) {
			code, err := strconv.Atoi(text)
			require.NoError(t, err)
			listed = append(listed, int32(code))
		}
	}
	var codes []int32
	for _, r := range startBroker(t).routes() {
		codes = append(codes, r.code)
	}
	slices.Sort(listed)
	slices.Sort(codes)
	require.Equal(t, codes, listed)
}
