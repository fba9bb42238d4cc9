// Package demo is what the small examples have in common: a cluster inside the
// process, or the one that -namesrv names, and topics of this run.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// Env is where an example runs.
type Env struct {
	options []rocketmq.Option
	cluster *testbroker.Cluster // nil with -namesrv
	run     string

	mu  sync.Mutex // guards out
	out io.Writer
}

// Main runs an example with the program's arguments and ends the process:
// with 0 if all is well, 1 if not, 2 for bad flags.
func Main(example func(ctx context.Context, e *Env) error, opts ...testbroker.Option) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(Run(ctx, os.Args[1:], os.Stdout, os.Stderr, example, opts...))
}

// Run runs an example and returns the exit status. opts are for the embedded
// cluster.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, example func(ctx context.Context, e *Env) error, opts ...testbroker.Option) int {
	fs := flag.NewFlagSet("example", flag.ContinueOnError)
	fs.SetOutput(stderr)
	namesrv := fs.String("namesrv", "", "name servers, host:port separated by ';' (default: a cluster inside this process)")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := run(ctx, *namesrv, stdout, example, opts); err != nil {
		fmt.Fprintln(stderr, "example:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, namesrv string, stdout io.Writer, example func(ctx context.Context, e *Env) error, opts []testbroker.Option) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	e := &Env{run: "-" + rand.Text()[:8], out: stdout}
	if namesrv != "" {
		e.options = []rocketmq.Option{rocketmq.WithNameServers(namesrv), rocketmq.WithRouteRefresh(2 * time.Second)}
		return example(ctx, e)
	}
	if e.cluster, err = testbroker.Start(ctx, opts...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.cluster.Close(context.WithoutCancel(ctx))) }()
	e.options = e.cluster.ClientOptions()
	return example(ctx, e)
}

// Client connects to the cluster.
func (e *Env) Client(opts ...rocketmq.Option) (*rocketmq.Client, error) {
	return rocketmq.NewClient(append(e.options[:len(e.options):len(e.options)], opts...)...)
}

// Name makes a name for a topic or a group that no other run has.
func (e *Env) Name(name string) string { return name + e.run }

// Topic makes a topic with so many queues. On a cluster of your own it has to
// create topics when they are first sent to (autoCreateTopicEnable), or you
// create yours as you always do.
func (e *Env) Topic(ctx context.Context, name string, queues int) (topic string, err error) {
	topic = e.Name(name)
	if e.cluster != nil {
		e.cluster.CreateTopic(topic, queues)
		return topic, nil
	}
	cl, err := e.Client()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, cl.Close(context.WithoutCancel(ctx))) }()
	p, err := producer.New(cl, producer.WithAutoCreate(queues))
	if err != nil {
		return "", err
	}
	_, err = p.Send(ctx, &rocketmq.Message{Topic: topic, Tag: "opening", Body: []byte("makes the topic")})
	return topic, err
}

// Say prints a line. It may be called from handlers.
func (e *Env) Say(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = fmt.Fprintf(e.out, format+"\n", args...)
}

// Closer is what every role is at its end.
type Closer interface {
	Close(ctx context.Context) error
}

// Close closes roles in the order given and adds what failed to err:
//
//	defer func() { demo.Close(ctx, &err, producer, client) }()
func Close(ctx context.Context, err *error, roles ...Closer) {
	for _, r := range roles {
		*err = errors.Join(*err, r.Close(context.WithoutCancel(ctx)))
	}
}

// Role is a consumer that runs.
type Role interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
	Closer
}

// Start runs a consumer beside the rest and waits until it has its queues. stop
// ends it, when its handlers have returned, and says how it ended.
//
// A program that only consumes needs none of this: it calls Run.
func Start(ctx context.Context, r Role) (stop func() error, err error) {
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = func() error {
		return errors.Join(r.Close(context.WithoutCancel(ctx)), <-ended)
	}
	select {
	case <-r.Ready():
		return stop, nil
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), stop())
	}
}

// CheckTransactions has the embedded cluster ask about undecided transactions
// now. Any other does so by itself, 6 s to a minute after they began.
func (e *Env) CheckTransactions() {
	if e.cluster != nil {
		e.cluster.CheckTransactions()
	}
}
