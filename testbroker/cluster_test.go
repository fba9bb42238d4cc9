package testbroker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/leak"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func TestSendAndConsume(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 4))
	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	send(t, newProducer(t, c), "T", "m", 100)
	got.await(t, 100)
	stop()
	require.Zero(t, c.Lag("G", "T"), "offsets are handed in at the end")
}

func TestSeveralServers(t *testing.T) {
	c := testbroker.New(t, testbroker.Brokers(3), testbroker.NameServers(2), testbroker.Topic("T", 2), testbroker.Topic("U", 1))
	require.Equal(t, []string{"broker-a", "broker-b", "broker-c"}, c.Brokers())
	require.Len(t, c.NameServers(), 2)
	for _, addr := range c.NameServers() { // each knows everything
		cl, err := rocketmq.NewClient(rocketmq.WithNameServers(addr))
		require.NoError(t, err)
		p, err := producer.New(cl, patient())
		require.NoError(t, err)
		qs, err := p.Queues(t.Context(), "T")
		require.NoError(t, err)
		require.Len(t, qs, 6)
		require.NoError(t, cl.Close(t.Context()))
	}
	send(t, newProducer(t, c), "T", "m", 30)
	perBroker := map[string]int{}
	for _, m := range c.Messages("T") {
		perBroker[m.Queue.Broker]++
	}
	require.Equal(t, map[string]int{"broker-a": 10, "broker-b": 10, "broker-c": 10}, perBroker)
}

func TestClustersAreIndependent(t *testing.T) {
	a := testbroker.New(t, testbroker.Topic("T", 1))
	b := testbroker.New(t, testbroker.Topic("T", 1))
	send(t, newProducer(t, a), "T", "m", 3)
	require.Len(t, a.Messages("T"), 3)
	require.Empty(t, b.Messages("T"))
}

func TestTopics(t *testing.T) {
	c := testbroker.New(t)
	p := newProducer(t, c, producer.WithAutoCreate(4))
	_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "Misspelt", Body: []byte("x")})
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound, "nothing is created by itself")
	c.CreateTopic("Late", 3)
	send(t, p, "Late", "m", 1)
	qs, err := p.Queues(t.Context(), "Late")
	require.NoError(t, err)
	require.Len(t, qs, 3)

	auto := testbroker.New(t, testbroker.AutoCreate(true))
	send(t, newProducer(t, auto, producer.WithAutoCreate(2)), "New", "m", 1)
	require.Len(t, auto.Messages("New"), 1)
}

// TestC01_StartOnAMissingTopic: each start fails with the topic and the name
// server asked, and nothing is left behind.
func TestC01_StartOnAMissingTopic(t *testing.T) {
	c := testbroker.New(t)
	leak.Check(t) // before the cluster is closed
	for range 100 {
		cl, err := rocketmq.NewClient(c.ClientOptions()...)
		require.NoError(t, err)
		p, err := consumer.NewPush(cl, "G", consumer.Subscribe("Absent", selector.All, consumer.Each(newBodies().handle)))
		require.NoError(t, err)
		err = p.Run(t.Context())
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		var re *rocketmq.RouteError
		require.ErrorAs(t, err, &re)
		require.Equal(t, "Absent", re.Topic)
		require.Equal(t, c.NameServers()[0], re.Asked[0].Addr)
		require.NoError(t, cl.Close(t.Context()))
	}
}

func TestStartAndClose(t *testing.T) {
	c, err := testbroker.Start(t.Context(), testbroker.Topic("T", 1))
	require.NoError(t, err)
	cl, err := rocketmq.NewClient(c.ClientOptions()...)
	require.NoError(t, err)
	p, err := producer.New(cl)
	require.NoError(t, err)
	send(t, p, "T", "m", 1)
	require.NoError(t, cl.Close(t.Context()))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { require.NoError(t, c.Close(context.Background())) })
	}
	wg.Wait()
	require.PanicsWithValue(t, "testbroker: the cluster is closed", func() { c.CreateTopic("U", 1) })
}

func TestStartThatIsCutShort(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no patience")
	cancel(cause)
	_, err := testbroker.Start(ctx, testbroker.Topic("T", 1))
	require.ErrorIs(t, err, cause)
}

func TestInvalidOptions(t *testing.T) {
	for want, o := range map[string]testbroker.Option{
		"Brokers(0)":             testbroker.Brokers(0),
		"Brokers(27)":            testbroker.Brokers(27),
		"NameServers(-1)":        testbroker.NameServers(-1),
		`Topic("", 1)`:           testbroker.Topic("", 1),
		`Topic("a b", 1)`:        testbroker.Topic("a b", 1),
		`Topic("TBW102", 1)`:     testbroker.Topic("TBW102", 1),
		`Topic("T", 0)`:          testbroker.Topic("T", 0),
		"SegmentSize(1)":         testbroker.SegmentSize(1),
		"Logger(nil)":            testbroker.Logger(nil),
		"SegmentSize(1073741825": testbroker.SegmentSize(1<<30 + 1),
	} {
		_, err := testbroker.Start(t.Context(), testbroker.Brokers(99), o)
		require.ErrorIs(t, err, testbroker.ErrInvalidOption)
		require.ErrorContains(t, err, want)
	}
	_, err := testbroker.Start(t.Context(), testbroker.Brokers(0), testbroker.NameServers(0))
	require.ErrorContains(t, err, "Brokers(0)")
	require.ErrorContains(t, err, "NameServers(0)", "all faults at once")
}

// fakeTB is a test that records what happens to it.
type fakeTB struct {
	*testing.T
	mu      sync.Mutex // guards all below
	cleanup []func()
	fatal   []string
	errors  []string
	log     []string
	over    bool
}

func (f *fakeTB) Helper() {}
func (f *fakeTB) Cleanup(g func()) {
	f.cleanup = append(f.cleanup, g)
}
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fatal = append(f.fatal, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		panic("log after the test has ended")
	}
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

// end runs the clean-up as package testing does.
func (f *fakeTB) end() {
	for i := len(f.cleanup) - 1; i >= 0; i-- {
		f.cleanup[i]()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

func TestNewUsesTheTest(t *testing.T) {
	f := &fakeTB{T: t}
	c := testbroker.New(f, testbroker.Topic("T", 1))
	require.NoError(t, c.Client(f).Ping(t.Context()))
	require.Contains(t, strings.Join(f.log, "\n"), "name server listens")
	require.Nil(t, c.Client(f, rocketmq.WithHeartbeat(-1)), "a client that cannot be made")
	c.Kill("broker-z", 0)
	c.Kill("broker-a", 1)
	c.RestartNameServer(5)
	c.CreateTopic("no good", 1)
	f.end()
	require.Len(t, f.fatal, 5)
	require.Contains(t, f.fatal[0], "WithHeartbeat")
	require.Contains(t, f.fatal[1], `no broker "broker-z"`)
	require.Contains(t, f.fatal[2], "replica 1")
	require.Contains(t, f.fatal[3], "no name server 5")
	require.Contains(t, f.fatal[4], `CreateTopic("no good", 1)`)

	f = &fakeTB{T: t}
	require.Nil(t, testbroker.New(f, testbroker.Brokers(0)))
	require.Contains(t, f.fatal[0], "Brokers(0)")
	f.end()
}

func TestLoggerOption(t *testing.T) {
	var b strings.Builder
	var mu sync.Mutex
	f := &fakeTB{T: t}
	testbroker.New(f, testbroker.Logger(slog.New(slog.NewTextHandler(lockedWriter{&mu, &b}, nil))))
	f.end()
	require.Contains(t, b.String(), "name server listens")
	require.Empty(t, f.log)
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}
