package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/inspect"
)

// apacheStore unpacks the store that an Apache broker left.
func apacheStore(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "internal", "broker", "store", "testdata", "store-"+name+".tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir := t.TempDir()
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		if h.Typeflag != tar.TypeReg || strings.HasSuffix(h.Name, "timerwheel") {
			continue
		}
		b, err := io.ReadAll(tr)
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
}

func storeRun(args ...string) (code int, stdout, stderr string) {
	var out, diag bytes.Buffer
	code = run(append([]string{"store"}, args...), &out, &diag, nil)
	return code, out.String(), diag.String()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

const apacheConf = "mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=1999\nmaxHashSlotNum=50\nmaxIndexNum=100\n" +
	"brokerRole=SLAVE\nflushDiskType=SYNC_FLUSH\nmessageDelayLevel=1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h\n"

func TestStoreCheck(t *testing.T) {
	dir := apacheStore(t, "4.9-clean")
	for _, args := range [][]string{{"check", dir}, {"check", "-c", confFile(t, apacheConf), dir}, {"check", dir, "-c", confFile(t, apacheConf)}} {
		code, out, diag := storeRun(args...)
		require.Equal(t, exitOK, code, diag)
		require.Equal(t, "checked 33 files, 198 messages, 0 problems\n", out)
		require.Empty(t, diag)
	}

	log := filepath.Join(dir, "commitlog", "00000000000000000000")
	b, err := os.ReadFile(log)
	require.NoError(t, err)
	b[88] ^= 1 // in the first body
	require.NoError(t, os.WriteFile(log, b, 0o600))
	code, out, diag := storeRun("check", dir)
	require.Equal(t, exitFailure, code)
	require.Equal(t, "damage: "+log+" at byte 0: the body does not match its checksum; the log goes on at 199\n"+
		"checked 33 files, 197 messages, 1 problems\n", out)
	require.Empty(t, diag)
}

// TestStoreCheckTornTail: what the next start cuts is said, and is no damage.
func TestStoreCheckTornTail(t *testing.T) {
	dir := apacheStore(t, "5.3-killed")
	log := filepath.Join(dir, "commitlog", "00000000000000262144")
	b, err := os.ReadFile(log)
	require.NoError(t, err)
	end := bytes.LastIndexFunc(b, func(r rune) bool { return r != 0 }) + 1
	clear(b[end-100 : end])
	require.NoError(t, os.WriteFile(log, b, 0o600))
	code, out, _ := storeRun("check", dir)
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "note: "+log)
	require.Contains(t, out, "torn tail")
	require.Equal(t, "checked 45 files, 238 messages, 0 problems", lastLine(out))
}

func TestStoreCheckBesideABroker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	stdout, stderr, signals, code := launch(t, "-namesrv-listen", "127.0.0.1:0", "-listen", "127.0.0.1:0", "-store", dir)
	awaitReady(t, stdout)
	got, out, _ := storeRun("check", dir)
	require.Equal(t, exitOK, got, out)
	require.Contains(t, out, "a broker has the store open")
	got, out, _ = storeRun("stats", dir)
	require.Equal(t, exitOK, got)
	require.Contains(t, out, "in use, or not stopped cleanly")
	signals <- os.Interrupt
	require.Equal(t, exitOK, <-code, stderr.String())
	got, out, _ = storeRun("check", dir)
	require.Equal(t, exitOK, got, out)
	require.NotContains(t, out, "note: "+filepath.Join(dir, "abort"))
}

func TestStoreDump(t *testing.T) {
	dir := apacheStore(t, "5.3-clean")
	code, out, diag := storeRun("dump", dir, "--topic", "TopicA", "--queue", "2", "--from", "1", "--max", "2")
	require.Equal(t, exitOK, code, diag)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	require.Regexp(t, `^queue=2 offset=1 phy=\d+ size=\d+ id=7F000001[0-9A-F]{24} stored=2026-11-29T\S+Z born=\S+Z bornhost=127\.0\.0\.1:\d+ .*p\.UNIQ_KEY=[0-9A-F]{32} .*length=\d+ body="`, lines[0])
	require.Contains(t, lines[1], "offset=2 ")

	_, out, _ = storeRun("dump", dir, "-topic", "TopicA", "-queue", "0", "-max", "1", "-body", "3")
	require.Contains(t, out, `p.KEYS="key-0 shared"`)
	require.True(t, strings.HasSuffix(out, "length=6 body=\"bod\"...\n"), out)

	code, _, diag = storeRun("dump", dir, "-topic", "Nothing")
	require.Equal(t, exitFailure, code)
	require.Contains(t, diag, "there are: %DLQ%GroupDead")

	// A unit that points nowhere does not end it.
	cq := filepath.Join(dir, "consumequeue", "TopicA", "0", "00000000000000000000")
	b, err := os.ReadFile(cq)
	require.NoError(t, err)
	b[23] = 1
	require.NoError(t, os.WriteFile(cq, b, 0o600))
	code, out, diag = storeRun("dump", dir, "-topic", "TopicA", "-queue", "0")
	require.Equal(t, exitFailure, code)
	require.Equal(t, 6, strings.Count(out, "\n"))
	require.Contains(t, diag, "damage: "+cq+" at byte 20: unit 1 of queue TopicA/0")
}

func TestStoreStats(t *testing.T) {
	code, out, diag := storeRun("stats", apacheStore(t, "4.9-clean"))
	require.Equal(t, exitOK, code, diag)
	require.Contains(t, out, "state         stopped cleanly\n")
	require.Contains(t, out, "commit log    3 files of 65536 bytes, positions 0 to ")
	require.Contains(t, out, "queues        15 of 11 topics, 16 files of 2000 bytes, 198 messages\n")
	require.Regexp(t, `(?m)^TopicB +0 +0 +146 +146$`, out)
}

func TestStoreBadUsage(t *testing.T) {
	dir := apacheStore(t, "4.9-clean")
	file := filepath.Join(dir, "lock")
	for name, tc := range map[string]struct {
		want string
		args []string
	}{
		"no verb":           {"check, dump or stats is needed", nil},
		"other verb":        {`not "repair"`, []string{"repair", dir}},
		"no directory":      {"one directory is needed", []string{"check"}},
		"two directories":   {"one directory is needed, got 2", []string{"check", dir, dir}},
		"missing directory": {"nowhere: file does not exist", []string{"check", filepath.Join(dir, "nowhere")}},
		"a file":            {"it is a file", []string{"stats", file}},
		"empty":             {"it is empty", []string{"check", t.TempDir()}},
		"another folder":    {"it has none of commitlog", []string{"check", filepath.Join(dir, "consumequeue")}},
		"no topic":          {"dump needs -topic", []string{"dump", dir}},
		"flag of another":   {"not defined: -topic", []string{"check", dir, "-topic", "x"}},
		"negative number":   {"numbers from 0 on", []string{"dump", dir, "-topic", "x", "-max", "-1"}},
		"no file":           {"no such file", []string{"check", dir, "-c", filepath.Join(dir, "nothing")}},
		"bad size":          {"line 1: mappedFileSizeCommitLog=1k", []string{"check", dir, "-c", confFile(t, "mappedFileSizeCommitLog=1k\n")}},
		"bad delay":         {`"5x" is no delay`, []string{"check", dir, "-c", confFile(t, "messageDelayLevel=1s 5x\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, diag := storeRun(tc.args...)
			require.Equal(t, exitUsage, code)
			require.Contains(t, diag, tc.want)
			require.Empty(t, out)
		})
	}
	code, out, _ := storeRun("-h")
	require.Equal(t, exitOK, code)
	require.Equal(t, storeUsage, out)
	code, _, _ = storeRun("check", "-h")
	require.Equal(t, exitOK, code)
}

func TestStoreSignal(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	// It may be done before the signal is seen; it ends in any case.
	code := run([]string{"store", "check", apacheStore(t, "4.9-clean")}, io.Discard, io.Discard, signals)
	require.Contains(t, []int{exitOK, exitFailure}, code)
}

func TestConfSizes(t *testing.T) {
	s, err := confSizes(confFile(t, apacheConf))
	require.NoError(t, err)
	require.Len(t, s.Delays, 18)
	require.Equal(t, 2*time.Hour, s.Delays[17])
	s.Delays = nil
	require.Equal(t, inspect.Sizes{CommitLog: 65536, ConsumeQueue: 2000, IndexSlots: 50, IndexEntries: 100}, s)
}
