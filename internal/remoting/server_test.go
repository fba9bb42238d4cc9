package remoting

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	codeLate    = wire.ReqPullMessage
	codePanic   = wire.ReqQueryMessage
	codeForget  = wire.ReqHeartBeat
	codeWork    = wire.ReqUpdateBrokerConfig
	codeBig     = wire.ReqGetBrokerConfig
	codeBack    = wire.ReqGetConsumerRunningInfo
	codeTwice   = wire.ReqLockBatchMQ
	codeUnknown = wire.ReqWipeWritePermOfBroker
)

func call1(t *testing.T, c *Conn, code int32, body string) *wire.Frame {
	t.Helper()
	f, err := c.Call(t.Context(), &wire.Command{Code: code, Body: []byte(body)})
	require.NoError(t, err)
	return f
}

func TestServerAnswers(t *testing.T) {
	workers := NewWorkers(2, 2)
	defer workers.Close()
	var mux Mux
	mux.Handle(codeEcho, OnReader(), echo)
	mux.Handle(codeWork, OnWorkers(workers), echo)
	mux.Handle(codePanic, OnReader(), func(*Request) { panic("broken handler") })
	mux.Handle(codeForget, OnReader(), func(*Request) {})
	mux.Handle(codeBig, OnReader(), func(r *Request) { r.Reply(0, "", nil, make([]byte, 5000)) })
	mux.Handle(codeLate, OnReader(), func(r *Request) {
		p, body := r.Replier(), bytes.Clone(r.Frame().Body)
		go p.Reply(wire.RespPullNotFound, "late", nil, body)
	})
	mux.Handle(codeTwice, OnReader(), func(r *Request) {
		echo(r)
		r.Reply(1, "second answer", nil, nil)
		panic("and then a panic")
	})
	var log bytes.Buffer
	_, addr := serveTCP(t, ServerConfig{Config: Config{
		Handler: mux.Serve, MaxFrame: 4096, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}})
	for _, enc := range []wire.Encoding{wire.JSON, wire.Binary} {
		c := get(t, newPool(t, PoolConfig{Config: Config{Encoding: enc}}), addr)
		for _, tc := range []struct {
			name   string
			code   int32
			want   int32
			remark string
			body   string
		}{
			{"on the reader", codeEcho, 0, "", "x"},
			{"on a worker", codeWork, 0, "", "x"},
			{"later", codeLate, wire.RespPullNotFound, "late", "x"},
			{"panic", codePanic, wire.RespSystemError, "handler panicked: broken handler", ""},
			{"no answer", codeForget, wire.RespSystemError, "request was not answered", ""},
			{"unknown code", codeUnknown, wire.RespRequestCodeNotSupported, " request type 205 not supported", ""},
			{"too large", codeBig, wire.RespSystemError, "answer is larger than the frame limit of 4096 bytes", ""},
			{"first answer counts", codeTwice, 0, "", "x"},
		} {
			f := call1(t, c, tc.code, "x")
			assert.Equal(t, tc.want, f.Code, tc.name)
			assert.Equal(t, tc.remark, string(f.Remark), tc.name)
			assert.Equal(t, tc.body, string(f.Body), tc.name)
			assert.Equal(t, enc, f.Encoding, tc.name)
		}
	}
	assert.Contains(t, log.String(), "broken handler")
	assert.Contains(t, log.String(), "server_test.go", "the stack is logged")
}

// A parked request costs a Replier; whoever holds it sees the peer go.
func TestReplierIsKeptAsLongAsWanted(t *testing.T) {
	parked := make(chan Replier, 1)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		parked <- r.Replier()
	}}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	x := &sendExchange{done: make(chan struct{}, 1)}
	_, err := c.Start(x, time.Time{}, Later)
	require.NoError(t, err)
	p := within(t, parked, "the request")
	assert.False(t, p.Oneway())
	p.ReplyAppend(sendResponse{})
	within(t, x.done, "the answer")
	require.NoError(t, x.err)
	assert.EqualValues(t, 123456, x.offset)

	_, err = c.Start(x, time.Time{}, Later)
	require.NoError(t, err)
	p = within(t, parked, "the request")
	c.Close(nil)
	within(t, x.done, "the call to fail")
	within(t, p.Conn().Done(), "the server to notice")
	p.Reply(0, "", nil, nil) // goes nowhere
	assert.ErrorContains(t, p.Conn().Err(), c.LocalAddr().String())
	Replier{}.Reply(0, "", nil, nil)
}

func TestDefaultHandler(t *testing.T) {
	var mux Mux
	mux.Default(OnReader(), echo)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: mux.Serve}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	assert.Equal(t, "x", string(call1(t, c, codeUnknown, "x").Body))
}

func TestFullWorkersAnswerOverload(t *testing.T) {
	const n, queue = 2, 3
	workers := NewWorkers(n, queue)
	defer workers.Close()
	started, release := make(chan struct{}, n+queue), make(chan struct{})
	var mux Mux
	mux.Handle(codeWork, OnWorkers(workers), func(r *Request) {
		started <- struct{}{}
		<-release
		echo(r)
	})
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: mux.Serve}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	var calls []*call
	for i := range n + queue {
		x := &call{command: command{&wire.Command{Code: codeWork}, c.cfg, 0}, done: make(chan struct{})}
		_, err := c.Start(x, time.Time{}, Later)
		require.NoError(t, err)
		calls = append(calls, x)
		if i < n {
			within(t, started, "a worker to start")
		}
	}
	// Requests of a connection are queued in order, so this one comes too late.
	f := call1(t, c, codeWork, "")
	assert.Equal(t, wire.RespSystemBusy, f.Code)
	assert.Equal(t, "[OVERLOAD]system busy, start flow control for a while", string(f.Remark))
	close(release)
	for _, x := range calls {
		within(t, x.done, "a queued request")
		require.NoError(t, x.err)
		assert.Zero(t, x.frame.Code)
	}
}

func TestServerCallsItsClient(t *testing.T) {
	var serverConn atomic.Pointer[Conn]
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		serverConn.Store(r.Conn())
		echo(r)
	}}})
	notified := make(chan string, 1)
	var mux Mux
	mux.Handle(codeBack, OnReader(), func(r *Request) { r.Reply(0, "", nil, []byte("running")) })
	mux.Handle(wire.ReqNotifyConsumerIdsChanged, OnReader(), func(r *Request) { notified <- string(r.Frame().Body) })
	c := get(t, newPool(t, PoolConfig{Config: Config{Handler: mux.Serve}}), addr)
	call1(t, c, codeEcho, "")
	s := serverConn.Load()
	assert.Equal(t, "running", string(call1(t, s, codeBack, "").Body))
	require.NoError(t, s.CallOneway(&wire.Command{Code: wire.ReqNotifyConsumerIdsChanged, Body: []byte("group")}))
	assert.Equal(t, "group", within(t, notified, "the notice"))
	assert.Equal(t, c.LocalAddr(), s.RemoteAddr())
	assert.Equal(t, addr, s.LocalAddr().String())
	assert.Equal(t, s.Remote(), s.RemoteAddr().String())
}

// Close answers what is being worked on, tells newer peers to go away, and
// serves older ones.
func TestCloseDrains(t *testing.T) {
	workers := NewWorkers(1, 10)
	defer workers.Close()
	started, release := make(chan struct{}, 1), make(chan struct{})
	var mux Mux
	mux.Handle(codeWork, OnWorkers(workers), func(r *Request) {
		started <- struct{}{}
		<-release
		echo(r)
	})
	mux.Handle(codeEcho, OnReader(), echo)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln := closeListener{inner, make(chan struct{})}
	addr := inner.Addr().String()
	s := NewServer(ServerConfig{Config: Config{Handler: mux.Serve}})
	require.NoError(t, s.Serve(ln))
	p := newPool(t, PoolConfig{})
	c := get(t, p, addr)
	body := make(chan string, 1)
	go func() {
		f, err := c.Call(context.Background(), &wire.Command{Code: codeWork, Body: []byte("in flight")})
		if err != nil {
			body <- err.Error()
			return
		}
		body <- string(f.Body)
	}()
	within(t, started, "the handler")
	closed := make(chan error, 1)
	go func() { closed <- s.Close(context.Background()) }()
	within(t, ln.closed, "the listener to close")
	_, err = c.Call(t.Context(), &wire.Command{Code: codeEcho})
	assert.ErrorIs(t, err, ErrGoAway)
	assert.Nil(t, p.Lookup(addr), "the connection is retired")
	assert.NoError(t, c.Err(), "but lives until its last answer")
	_, err = p.Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	assert.ErrorIs(t, err, ErrConnection, "nobody listens any more")
	assert.Empty(t, closed)
	close(release)
	assert.Equal(t, "in flight", within(t, body, "the answer"))
	assert.NoError(t, within(t, closed, "Close"))
	within(t, c.Done(), "the connection to end")

	another, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	assert.ErrorIs(t, s.Serve(another), ErrClosed)
	assert.NoError(t, s.Close(t.Context()), "closing twice is harmless")
}

// closeListener tells when it is closed.
type closeListener struct {
	net.Listener
	closed chan struct{}
}

func (l closeListener) Close() error {
	defer close(l.closed)
	return l.Listener.Close()
}

func TestOldPeersAreServedWhileDraining(t *testing.T) {
	var f wire.Frame
	answer := func(version string) int32 {
		client, server := net.Pipe()
		defer client.Close()
		s := NewServer(ServerConfig{Config: Config{Handler: echo}})
		s.draining.Store(true)
		s.open(server, server, nil)
		defer s.Close(context.Background())
		head := `{"code":310,"flag":0,"language":"JAVA","opaque":1,"version":` + version + `}`
		b := append([]byte{0, 0, 0, byte(4 + len(head)), 0, 0, 0, byte(len(head))}, head...)
		_, err := client.Write(b)
		require.NoError(t, err)
		in := input{max: firstBuffer}
		b, err = in.next(client, 0, func() {})
		require.NoError(t, err)
		require.NoError(t, f.Decode(b))
		return f.Code
	}
	assert.Equal(t, wire.RespGoAway, answer("479"))
	assert.Equal(t, wire.RespSuccess, answer("475"))
	assert.Equal(t, wire.RespSuccess, answer("317"))
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	workers := NewWorkers(1, 1)
	defer workers.Close()
	defer close(release)
	var mux Mux
	mux.Handle(codeWork, OnWorkers(workers), func(*Request) { close(started); <-release })
	s, addr := serveTCP(t, ServerConfig{Config: Config{Handler: mux.Serve}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	x := &call{command: command{&wire.Command{Code: codeWork}, c.cfg, 0}, done: make(chan struct{})}
	_, err := c.Start(x, time.Time{}, Inline)
	require.NoError(t, err)
	within(t, started, "the handler")
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	assert.ErrorIs(t, s.Close(ctx), enough)
	within(t, x.done, "the call to fail")
	assert.ErrorIs(t, x.err, ErrConnection)
}

// failingListener fails a few times before it works, as when there are too
// many open files.
type failingListener struct {
	*pipeNet
	failures atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return l.pipeNet.Accept()
}

func TestAcceptErrorsAreWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := &failingListener{pipeNet: newPipeNet()}
		ln.failures.Store(4)
		s := NewServer(ServerConfig{Config: Config{Handler: echo}})
		require.NoError(t, s.Serve(ln))
		p := NewPool(PoolConfig{Dial: ln.Dial})
		start := time.Now()
		_, err := p.Call(t.Context(), "broker:1", &wire.Command{Code: codeEcho})
		assert.NoError(t, err)
		assert.Equal(t, 75*time.Millisecond, time.Since(start), "5 + 10 + 20 + 40 ms")
		p.Close()
		require.NoError(t, s.Close(t.Context()))
	})
}

// Idle connections are judged by the configured clock.
func TestManualClock(t *testing.T) {
	m := clock.NewManual(time.Unix(1_700_000_000, 0))
	closed := make(chan error, 1)
	_, addr := serveTCP(t, ServerConfig{Config: Config{
		Handler: echo, Clock: m, OnClose: func(_ *Conn, err error) { closed <- err },
	}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	call1(t, c, codeEcho, "")
	for err := error(nil); err == nil; {
		if m.Pending() > 0 {
			m.Advance(DefaultIdleTimeout / 8)
		}
		select {
		case err = <-closed:
			assert.ErrorIs(t, err, ErrIdle)
		case <-time.After(time.Millisecond):
		}
	}
	assert.Greater(t, m.Now().Sub(time.Unix(1_700_000_000, 0)), DefaultIdleTimeout)
}
