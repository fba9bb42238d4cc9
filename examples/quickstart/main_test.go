package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/leak"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func TestMain(m *testing.M) { leak.Main(m) }

// lastLine is the verdict of a run.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestEmbeddedCluster(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"-n", "2000", "-size", "100"}, &stdout, &stderr), stderr.String())
	require.Empty(t, stderr.String())
	require.Equal(t, "sent 2000, received 2000, missing 0, duplicates 0", lastLine(stdout.String()))
	require.Regexp(t, regexp.MustCompile(`start-up +[0-9.]+ ms`), stdout.String())
	require.Regexp(t, regexp.MustCompile(`consumed +2000 messages in [0-9.]+ s: [0-9]+ msg/s`), stdout.String())
	require.Regexp(t, regexp.MustCompile(`send to handler +p50 [0-9.]+ ms, p99 [0-9.]+ ms`), stdout.String())
}

// TestClusterElsewhere runs against brokers that know nothing of the topic but
// create it, as Apache's do by default.
func TestClusterElsewhere(t *testing.T) {
	c := testbroker.New(t, testbroker.AutoCreate(true))
	args := []string{"-namesrv", c.NameServers()[0], "-n", "500", "-topic", "Elsewhere"}
	for range 2 { // the second run finds the first one's messages in the topic
		var stdout, stderr bytes.Buffer
		require.Equal(t, 0, run(t.Context(), args, &stdout, &stderr), stderr.String())
		require.Contains(t, stdout.String(), c.NameServers()[0])
		require.Equal(t, "sent 500, received 500, missing 0, duplicates 0", lastLine(stdout.String()))
	}
}

func TestMissingTopic(t *testing.T) {
	c := testbroker.New(t) // creates nothing by itself
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-namesrv", c.NameServers()[0], "-n", "1"}, &stdout, &stderr)
	require.Equal(t, 1, code)
	require.Contains(t, stderr.String(), "first message")
	require.Equal(t, "sent 0, received 0, missing 0, duplicates 0", lastLine(stdout.String()))
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 1, run(ctx, []string{"-n", "10"}, io.Discard, io.Discard))
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-n", "0"}, {"-n", "many"}, {"-size", "19"}, {"-senders", "0"}, {"-patience", "0s"}, {"-unknown"}, {"argument"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, io.Discard, &stderr), args)
		require.NotEmpty(t, stderr.String(), args)
	}
	require.Equal(t, 0, run(t.Context(), []string{"-h"}, io.Discard, io.Discard))
}
