package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

var verdict = regexp.MustCompile(`^orders 150, paid (\d+), shipped (\d+), refunded (\d+), cancelled (\d+), books balanced$`)

func TestShop(t *testing.T) {
	for _, args := range [][]string{nil, {"-chaos"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			var out, diag bytes.Buffer
			status := run(t.Context(), append([]string{"-orders", "150", "-rate", "150", "-timeout", "1s"}, args...), &out, &diag)
			require.Zero(t, status, "%s\n%s", &diag, &out)
			require.Empty(t, diag.String())
			got := verdict.FindStringSubmatch(lastLine(out.String()))
			require.NotNil(t, got, lastLine(out.String()))
			require.Equal(t, got[1], got[2], "paid and shipped")
			for _, n := range got[1:] {
				require.NotEqual(t, "0", n, lastLine(out.String()))
			}
			for _, text := range []string{
				"written and committed", "rolled back, nobody sees it", "the broker asks about order", "was not paid in time and is cancelled",
				"comes too late and is refused", "is refunded", "cannot be shipped, again in a second", "is shipped at attempt",
				"to the dead letters", "sent again: ",
			} {
				require.Contains(t, out.String(), text)
			}
			if args != nil {
				require.Equal(t, 2, strings.Count(out.String(), "the broker is killed"))
			}
		})
	}
}

func TestUnbalanced(t *testing.T) {
	var out bytes.Buffer
	b := books{orders: 3, paid: 2, shipped: 1, faults: []string{"parcels: 1, want 2"}}
	require.ErrorIs(t, b.report(&out), errUnbalanced)
	require.Equal(t, "fault: parcels: 1, want 2\norders 3, paid 2, shipped 1, refunded 0, cancelled 0, books NOT balanced\n", out.String())
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-orders", "0"}, {"-rate", "0"}, {"-x"}, {"more"}, {"-timeout", "0s"}, {"-chaos", "-namesrv", "127.0.0.1:1"},
		{"dead-letters"}, {"dead-letters", "-x"}, {"dead-letters", "-namesrv", "127.0.0.1:1", "more"},
	} {
		var out, diag bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, &out, &diag), args)
		require.NotEmpty(t, diag.String(), args)
	}
	var out, diag bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-h"}, &out, &diag))
	require.Zero(t, run(t.Context(), []string{"dead-letters", "-h"}, &out, &diag))
}
