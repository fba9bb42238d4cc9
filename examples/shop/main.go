// Command shop is a shop of several services that talk by messages: orders,
// payments and refunds, a till that cancels what is not paid, a ledger and
// logistics. Its customers place orders; it prints what happens and at the end
// checks its own books: every paid order was shipped once, every refund came
// after its payment, the money adds up.
//
//	go run ./examples/shop                     # a broker inside this process
//	go run ./examples/shop -orders 2000 -chaos # which is killed twice on the way
//	go run ./examples/shop -namesrv 127.0.0.1:9876
//	go run ./examples/shop dead-letters -namesrv 127.0.0.1:9876 -group GROUP [-resend]
//
// What it shows:
//
//   - orders.go: an order and the message about it in one transaction, with a
//     database that answers when the broker asks back;
//   - payments.go: an outbox, and events of one order that keep their order;
//   - consumers.go: a timeout by a delayed message, an ordered consumer, retries
//     while a database is down, dead letters, and handling twice what came twice;
//   - operator.go: dead letters listed and sent again.
//
// The last line is the verdict. The exit status is 0 if the books are balanced,
// 1 otherwise, 2 for bad flags.
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
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gorocketmq/rocketmq"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings is what the flags say.
type settings struct {
	namesrv        string
	run            string
	dir            string
	n, rate        int
	counters       int
	chaos          bool
	timeout, limit time.Duration
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	fs := flag.NewFlagSet("shop", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&s.namesrv, "namesrv", "", "name servers, host:port separated by ';' (default: a cluster inside this process)")
	fs.StringVar(&s.run, "run", "", "ends the names of topics and groups (default: a fresh name on a cluster of your own, nothing otherwise)")
	fs.StringVar(&s.dir, "dir", "", "where the databases and the embedded broker's files are kept, an empty directory (default: a temporary one)")
	fs.IntVar(&s.n, "orders", 500, "number of orders")
	fs.IntVar(&s.rate, "rate", 200, "orders placed in a second, about")
	fs.IntVar(&s.counters, "counters", 16, "customers served at a time")
	fs.BoolVar(&s.chaos, "chaos", false, "kill and restart the embedded broker on the way")
	fs.DurationVar(&s.timeout, "timeout", 3*time.Second, "how long an order may stay unpaid")
	fs.DurationVar(&s.limit, "limit", 2*time.Minute, "how long the rest may take when all orders are placed")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	var err error
	switch {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case s.n < 1 || s.rate < 1 || s.counters < 1:
		err = fmt.Errorf("-orders %d, -rate %d, -counters %d: each must be at least 1", s.n, s.rate, s.counters)
	case s.timeout <= 0 || s.limit <= 0:
		err = fmt.Errorf("-timeout %s, -limit %s: both must be positive", s.timeout, s.limit)
	case s.chaos && s.namesrv != "":
		err = errors.New("-chaos kills the embedded broker; with -namesrv there is none")
	}
	if err != nil {
		fmt.Fprintln(stderr, "shop:", err)
		return nil, err
	}
	if s.run == "" && s.namesrv != "" {
		s.run = rand.Text()[:8]
	}
	return s, nil
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "dead-letters" {
		return deadLettersCommand(ctx, args[1:], stdout, stderr)
	}
	s, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := s.work(ctx, stdout); err != nil {
		fmt.Fprintln(stderr, "shop:", err)
		return 1
	}
	return 0
}

// work runs a shop from its opening to its books.
func (s *settings) work(ctx context.Context, stdout io.Writer) (err error) {
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "shop-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	}
	sh := &shop{settings: s, names: newNames(s.run), out: stdout, tl: newTimeline(stdout)}
	if s.namesrv != "" {
		sh.opts = []rocketmq.Option{rocketmq.WithNameServers(s.namesrv), rocketmq.WithRouteRefresh(2 * time.Second)}
		return sh.run(ctx, noChaos)
	}
	c, err := startCluster(ctx, filepath.Join(s.dir, "broker"), sh.topics())
	if err != nil {
		return fmt.Errorf("start of the embedded cluster: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	asked, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { asking(asked, c) })
	defer wg.Wait()
	defer stop()
	sh.opts, sh.settings.namesrv = c.ClientOptions(), c.NameServers()[0]
	if !s.chaos {
		return sh.run(ctx, noChaos)
	}
	return sh.run(ctx, chaos{c, s, sh.tl}.run)
}
