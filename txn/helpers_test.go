package txn_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/testbroker"
	"github.com/gorocketmq/rocketmq/txn"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newCluster is a cluster whose time the test moves.
func newCluster(t *testing.T, opts ...testbroker.Option) *testbroker.Cluster {
	t.Helper()
	return testbroker.New(t, append([]testbroker.Option{testbroker.Topic("orders", 2), testbroker.ManualClock(start)}, opts...)...)
}

func newProducer(t *testing.T, cl *rocketmq.Client, check txn.Checker, opts ...txn.Option) *txn.Producer {
	t.Helper()
	p, err := txn.NewProducer(cl, "shop", check, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // of a test that has failed
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

// says is a checker that always says the same.
func says(s txn.State) txn.Checker {
	return func(context.Context, *rocketmq.MessageView) (txn.State, error) { return s, nil }
}

// unasked is a checker that must not be called.
func unasked(t *testing.T) txn.Checker {
	return func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
		t.Errorf("check of %s", half.ID)
		return txn.Unknown, nil
	}
}

// local is a local transaction with an outcome.
func local(s txn.State, err error) func(context.Context, *txn.Tx) (txn.State, error) {
	return func(context.Context, *txn.Tx) (txn.State, error) { return s, err }
}

func order(body string) *rocketmq.Message {
	return &rocketmq.Message{Topic: "orders", Tag: "paid", Keys: []string{"k-" + body}, Body: []byte(body)}
}

func bodies(c *testbroker.Cluster, topic string) []string {
	out := []string{}
	for _, m := range c.Messages(topic) {
		out = append(out, string(m.Body))
	}
	return out
}

// eventually waits for something that the test cannot be told of.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, 2*time.Millisecond, what)
}

// process is a client that can die: its connections end, and no new ones are
// made.
type process struct {
	mu    sync.Mutex // guards all below
	dead  bool
	conns []net.Conn
}

var errDead = errors.New("the process is dead")

func (p *process) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, errDead
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil {
		p.conns = append(p.conns, c)
	}
	return c, err
}

func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// logged is a log to be looked at.
type logged struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) option() rocketmq.Option {
	return rocketmq.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
