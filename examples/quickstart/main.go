// Command quickstart sends messages and consumes them in a group of two, and
// checks that each one arrived, unchanged.
//
// Without -namesrv it starts a name server and a broker inside this process;
// with it the same code runs against any RocketMQ cluster, Apache's included:
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -namesrv 127.0.0.1:9876
//
// The last line of the output is the verdict. The exit status is 0 if nothing
// is missing or altered, 1 otherwise, 2 for bad flags. Duplicates are reported
// but allowed: RocketMQ delivers at least once.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// queues is how many queues the topic gets.
const queues = 8

// settings is what the flags say.
type settings struct {
	namesrv, topic   string
	n, size, senders int
	patience         time.Duration
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	fs := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&s.namesrv, "namesrv", "", "name servers, host:port separated by ';' (default: a cluster inside this process)")
	fs.IntVar(&s.n, "n", 100_000, "number of messages")
	fs.IntVar(&s.size, "size", 1024, "bytes of each message's body")
	fs.StringVar(&s.topic, "topic", "", "topic, created if the cluster allows (default: a fresh name)")
	fs.IntVar(&s.senders, "senders", 64, "goroutines that send")
	fs.DurationVar(&s.patience, "patience", 30*time.Second, "how long to wait for a message when none arrives")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	var err error
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case s.n < 1:
		err = fmt.Errorf("-n %d: at least one message is needed", s.n)
	case s.size < minBody:
		err = fmt.Errorf("-size %d: a body has at least %d bytes: run, number and checksum", s.size, minBody)
	case s.senders < 1:
		err = fmt.Errorf("-senders %d: at least one is needed", s.senders)
	case s.patience <= 0:
		err = fmt.Errorf("-patience %s: must be positive", s.patience)
	}
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return nil, err
	}
	if s.topic == "" {
		s.topic = "quickstart-" + rand.Text()[:12]
	}
	return s, nil
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	began := time.Now()
	opts := []rocketmq.Option{rocketmq.WithNameServers(s.namesrv), rocketmq.WithRouteRefresh(2 * time.Second)}
	if s.namesrv == "" {
		cluster, err := testbroker.Start(ctx, testbroker.Topic(s.topic, queues))
		if err != nil {
			fmt.Fprintln(stderr, "quickstart: start of the embedded cluster:", err)
			return 1
		}
		defer func() {
			if err := cluster.Close(context.WithoutCancel(ctx)); err != nil {
				fmt.Fprintln(stderr, "quickstart: end of the embedded cluster:", err)
			}
		}()
		opts = cluster.ClientOptions()
	}
	l := &load{settings: s, began: began, opts: opts, bar: newBar(stdout, s.n)}
	err = l.run(ctx)
	l.bar.finish()
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
	}
	if ok := l.report(stdout); !ok || err != nil {
		return 1
	}
	return 0
}
