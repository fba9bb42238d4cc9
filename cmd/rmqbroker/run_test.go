package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var readyLine = regexp.MustCompile(`^rmqbroker ready namesrv=(\S+) broker=(\S+) store=(.+)\n$`)

// awaitReady reads the line that the program prints when it is ready.
func awaitReady(t *testing.T, stdout io.Reader) (namesrv, broker, store string) {
	t.Helper()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	m := readyLine.FindStringSubmatch(line)
	require.NotNil(t, m, "%q", line)
	return m[1], m[2], m[3]
}

// launch calls run on a goroutine.
func launch(t *testing.T, args ...string) (stdout io.Reader, stderr *bytes.Buffer, signals chan<- os.Signal, code <-chan int) {
	t.Helper()
	r, w := io.Pipe()
	sig, done := make(chan os.Signal, 2), make(chan int, 1)
	var log bytes.Buffer // may be read once the code has come
	go func() {
		defer w.Close()
		done <- run(args, w, &log, sig)
	}()
	return r, &log, sig, done
}

// ask sends one request to a server.
func ask(t *testing.T, addr string, cmd *wire.Command) *wire.Frame {
	t.Helper()
	pool := remoting.NewPool(remoting.PoolConfig{})
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	f, err := pool.Call(ctx, addr, cmd)
	require.NoError(t, err)
	return f
}

func TestRunUntilSignal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	stdout, stderr, signals, code := launch(t, "-namesrv-listen", "127.0.0.1:0", "-listen", "127.0.0.1:0", "-store", dir)
	namesrv, broker, store := awaitReady(t, stdout)
	require.Equal(t, dir, store)

	// The name server lists the broker and the topic that stands for all that
	// do not exist yet.
	f := ask(t, namesrv, &wire.Command{Code: wire.ReqGetRouteInfoByTopic, Ext: &wire.RouteRequest{Topic: wire.TopicDefault}})
	require.Equal(t, wire.RespSuccess, f.Code, "%s", f.Remark)
	route, err := wire.DecodeRouteData(f.Body)
	require.NoError(t, err)
	require.Equal(t, broker, route.Brokers[0].Addrs[0])

	signals <- os.Interrupt
	require.Equal(t, exitOK, <-code)
	require.Empty(t, stderr.String(), "nothing went wrong, nothing is said")
	_, err = net.Dial("tcp", broker)
	require.Error(t, err)
	require.FileExists(t, filepath.Join(dir, "config", "topics.json"))
	require.NoFileExists(t, filepath.Join(dir, "abort"), "the stop was clean")
}

func TestSignalDuringTheStart(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	code := run([]string{"-namesrv-listen", "127.0.0.1:0", "-listen", "127.0.0.1:0", "-store", t.TempDir()}, io.Discard, io.Discard, signals)
	require.Equal(t, exitOK, code)
}

func TestSecondSignalDoesNotWait(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	require.Equal(t, exitFailure, awaitStop(log, make(chan error), signals))
	done := make(chan error, 1)
	done <- errors.New("flush failed")
	require.Equal(t, exitFailure, awaitStop(log, done, nil))
	done <- nil
	require.Equal(t, exitOK, awaitStop(log, done, nil))
}

func TestBrokerOfAnotherNameServer(t *testing.T) {
	first, _, stop1, code1 := launch(t, "-namesrv-listen", "127.0.0.1:0", "-listen", "127.0.0.1:0", "-store", t.TempDir())
	namesrv, _, _ := awaitReady(t, first)
	conf := confFile(t, "brokerName=second\n")
	second, _, stop2, code2 := launch(t, "-n", namesrv, "-c", conf, "-listen", "127.0.0.1:0", "-store", t.TempDir())
	shown, broker, _ := awaitReady(t, second)
	require.Equal(t, namesrv, shown)

	info, err := wire.DecodeClusterInfo(ask(t, namesrv, &wire.Command{Code: wire.ReqGetBrokerClusterInfo}).Body)
	require.NoError(t, err)
	require.Equal(t, broker, info.Brokers["second"].Addrs[0])
	stop2 <- os.Interrupt
	require.Equal(t, exitOK, <-code2)
	stop1 <- os.Interrupt
	require.Equal(t, exitOK, <-code1)
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, flag := range []string{"-listen", "-namesrv-listen"} {
		other := map[string]string{"-listen": "-namesrv-listen", "-namesrv-listen": "-listen"}[flag]
		var stderr bytes.Buffer
		code := run([]string{flag, l.Addr().String(), other, "127.0.0.1:0", "-store", t.TempDir()}, io.Discard, &stderr, nil)
		require.Equal(t, exitFailure, code)
		require.Contains(t, stderr.String(), l.Addr().String())
	}
}

func TestExitCodes(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run([]string{"-h"}, &stdout, &stderr, nil))
	require.Contains(t, stdout.String(), "Usage: rmqbroker")
	require.Empty(t, stderr.String())
	require.Equal(t, exitUsage, run([]string{"-nonsense"}, io.Discard, &stderr, nil))
	require.Contains(t, stderr.String(), "Run rmqbroker -h")
}

func TestWarningsAreLogged(t *testing.T) {
	conf := confFile(t, "warmMapedFileEnable=true\n")
	stdout, stderr, signals, code := launch(t, "-namesrv-listen", "127.0.0.1:0", "-listen", "127.0.0.1:0", "-store", t.TempDir(), "-c", conf)
	awaitReady(t, stdout)
	signals <- os.Interrupt
	require.Equal(t, exitOK, <-code)
	require.Contains(t, stderr.String(), "warmMapedFileEnable has no effect")
}
