package msgtrace

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// fakePipe stands for a pipeline: with room for so many messages in its
// window, and an outcome for all that it is given.
type fakePipe struct {
	room chan struct{} // nil: any number

	mu     sync.Mutex // guards all below
	err    error
	after  time.Duration // until the outcome
	sent   []*rocketmq.Message
	at     []time.Time
	closed int
	wg     sync.WaitGroup
}

func (f *fakePipe) set(after time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after, f.err = after, err
}

func (f *fakePipe) take(m *rocketmq.Message) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent, f.at = append(f.sent, m), append(f.at, time.Now())
	return f.after, f.err
}

func (f *fakePipe) Send(ctx context.Context, m *rocketmq.Message, _ send.Options) (send.Result, error) {
	after, err := f.take(m)
	select {
	case <-time.After(after):
	case <-ctx.Done():
		err = ctx.Err()
	}
	return send.Result{}, err
}

func (f *fakePipe) SendAsync(ctx context.Context, m *rocketmq.Message, _ send.Options, done func(send.Result, error)) {
	if f.room != nil {
		select {
		case f.room <- struct{}{}:
		case <-ctx.Done():
			done(send.Result{}, ctx.Err())
			return
		}
	}
	after, err := f.take(m)
	f.wg.Go(func() {
		<-time.After(after)
		if f.room != nil {
			<-f.room
		}
		done(send.Result{}, err)
	})
}

func (f *fakePipe) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed++
	f.mu.Unlock()
	done := make(chan struct{})
	go func() {
		f.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakePipe) got() []*rocketmq.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*rocketmq.Message(nil), f.sent...)
}

// sizes are how many records each message has.
func (f *fakePipe) sizes() (n []int) {
	for _, m := range f.got() {
		n = append(n, strings.Count(string(m.Body), "\x02"))
	}
	return n
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func testTracer(t testing.TB, f *fakePipe) (*Tracer, *lines) {
	t.Helper()
	log := &lines{}
	c, err := rocketmq.NewClient(rocketmq.WithNameServers("127.0.0.1:1"), rocketmq.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return newTracer(Config{Handle: bridge.Of(c), Group: "g", Topic: "traces"}, f), log
}

// outcome is that of a send that went well.
func outcome(i int) *send.Outcome {
	id := fmt.Sprintf("ID%d", i)
	return &send.Outcome{
		Message: &rocketmq.Message{Topic: "orders", Body: []byte("hello"), Keys: []string{fmt.Sprintf("k%d", i)}}, ID: id,
		Result: send.Result{MessageID: id, OffsetID: "OFF", Status: send.StatusOK},
		Addr:   "10.0.0.2:10911", Born: time.UnixMilli(1700000000123), Took: 3 * time.Millisecond, Region: "r1",
	}
}

func observe(t *Tracer, n int) {
	for i := range n {
		t.Observe(outcome(i))
	}
}
