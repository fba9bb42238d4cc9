// Command rmqbroker runs a broker and a name server that speak the protocol of
// Apache RocketMQ and keep its files. Run it with -h for what it can do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker"
	"github.com/gorocketmq/rocketmq/internal/namesrv"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// stopLimit is how long a clean stop may take.
const stopLimit = 30 * time.Second

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, signals))
}

// run is the program. The first signal stops it cleanly, the second at once.
func run(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	if len(args) > 0 && args[0] == "store" {
		return storeMain(args[1:], stdout, stderr, signals)
	}
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "rmqbroker: %v\nRun rmqbroker -h for help.\n", err)
		return exitUsage
	}
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	for _, w := range o.warnings {
		log.Warn(w)
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		n   *node
		err error
	}
	started := make(chan result, 1)
	go func() {
		n, err := start(ctx, o, log)
		started <- result{n, err}
	}()
	var n *node
	var sig os.Signal
	select {
	case r := <-started:
		n, err = r.n, r.err
	case sig = <-signals:
		cancel()
		r := <-started
		n, err = r.n, r.err
	}
	if err != nil {
		if sig != nil {
			return exitOK // asked to stop while starting
		}
		fmt.Fprintf(stderr, "rmqbroker: %v\n", err)
		return exitFailure
	}
	if sig == nil {
		fmt.Fprintf(stdout, "rmqbroker ready namesrv=%s broker=%s store=%s\n", n.nameServers(), n.broker.Addr(), o.broker.Store.Dir)
		sig = <-signals
	}
	log.Info("stopping", "signal", sig.String())
	return n.stop(log, signals)
}

// node is what runs.
type node struct {
	namesrv *namesrv.Server // nil: elsewhere
	broker  *broker.Broker
	remote  []string // name servers elsewhere
}

// start brings up the name server and the broker. Nothing runs if it fails.
func start(ctx context.Context, o *options, log *slog.Logger) (*node, error) {
	dir, err := filepath.Abs(o.broker.Store.Dir)
	if err != nil {
		return nil, err
	}
	o.broker.Store.Dir = dir
	n := &node{remote: o.broker.NameServers}
	cfg := o.broker
	cfg.Logger = log.With("server", "broker")
	if o.namesrvListen != "" {
		n.namesrv, err = namesrv.Start(ctx, namesrv.Config{
			Addr: o.namesrvListen, ConfigPath: filepath.Join(dir, "namesrv", "kvConfig.json"),
			Logger: log.With("server", "namesrv"),
		})
		if err != nil {
			return nil, err
		}
		cfg.NameServers = append([]string{reachable(n.namesrv.Addr())}, cfg.NameServers...)
	}
	if n.broker, err = broker.Start(ctx, cfg); err != nil {
		if n.namesrv != nil {
			err = errors.Join(err, n.namesrv.Close(ctx))
		}
		return nil, err
	}
	return n, nil
}

// reachable is an address to dial for one that was listened on.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

// nameServers lists where clients can ask.
func (n *node) nameServers() string {
	all := n.remote
	if n.namesrv != nil {
		all = append([]string{n.namesrv.Addr()}, all...)
	}
	return strings.Join(all, ";")
}

// stop ends everything, the broker first so that it can say goodbye.
func (n *node) stop(log *slog.Logger, signals <-chan os.Signal) int {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := n.broker.Close(ctx)
		if n.namesrv != nil {
			err = errors.Join(err, n.namesrv.Close(ctx))
		}
		done <- err
	}()
	return awaitStop(log, done, signals)
}

// awaitStop waits for the end of a clean stop, or for impatience.
func awaitStop(log *slog.Logger, done <-chan error, signals <-chan os.Signal) int {
	select {
	case err := <-done:
		if err != nil {
			log.Error("stop was not clean", "error", err)
			return exitFailure
		}
		return exitOK
	case <-signals:
		log.Error("stopped at once by a second signal")
		return exitFailure
	}
}
