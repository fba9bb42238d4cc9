package broker

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var testStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// testConfig is a broker on a free port with files in memory.
func testConfig(opts ...func(*Config)) Config {
	c := DefaultConfig()
	c.Name, c.Listen = "broker-a", "127.0.0.1:0"
	c.Store.Dir, c.Store.FS = "/store", mfile.NewMemory()
	c.Store.DiskUsage = func(string) (float64, error) { return 0, nil } // whatever this machine's is
	for _, o := range opts {
		o(&c)
	}
	return c
}

// withClock makes the broker go by a clock that the test moves.
func withClock(c *clock.Manual) func(*Config) { return func(cfg *Config) { cfg.Clock = c } }

// startBroker starts a broker that ends with the test.
func startBroker(tb testing.TB, opts ...func(*Config)) *Broker {
	tb.Helper()
	return startWith(tb, testConfig(opts...))
}

func startWith(tb testing.TB, cfg Config) *Broker {
	tb.Helper()
	b, err := Start(context.Background(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { b.Kill() })
	return b
}

// peer is a raw client: a connection and the requests that come over it.
type peer struct {
	tb     testing.TB
	pool   *remoting.Pool
	addr   string
	pushed chan *wire.Frame
}

// dial connects a client. Requests of the broker are answered with 0 and show
// up in pushed.
func dial(tb testing.TB, b *Broker, opts ...func(*remoting.Config)) *peer {
	tb.Helper()
	p := &peer{tb: tb, addr: b.Addr(), pushed: make(chan *wire.Frame, 100)}
	cfg := remoting.Config{Encoding: wire.Binary, CallTimeout: 40 * time.Second, Handler: func(r *remoting.Request) {
		p.pushed <- r.Frame().Clone()
		r.Reply(wire.RespSuccess, "", nil, []byte("answer"))
	}}
	for _, o := range opts {
		o(&cfg)
	}
	p.pool = remoting.NewPool(remoting.PoolConfig{Config: cfg})
	tb.Cleanup(p.close)
	return p
}

func (p *peer) close() { p.pool.Close() }

func (p *peer) conn() *remoting.Conn {
	p.tb.Helper()
	c, err := p.pool.Get(p.tb.Context(), p.addr)
	require.NoError(p.tb, err)
	return c
}

func (p *peer) call(code int32, ext wire.ExtEncoder, body []byte) *wire.Frame {
	p.tb.Helper()
	f, err := p.conn().Call(p.tb.Context(), &wire.Command{Code: code, Ext: ext, Body: body})
	require.NoError(p.tb, err)
	return f
}

// must is call that succeeds.
func (p *peer) must(code int32, ext wire.ExtEncoder, body []byte) *wire.Frame {
	p.tb.Helper()
	f := p.call(code, ext, body)
	require.EqualValues(p.tb, wire.RespSuccess, f.Code, "code %d: %s", code, f.Remark)
	return f
}

// push is the next request of the broker.
func (p *peer) push() *wire.Frame {
	p.tb.Helper()
	select {
	case f := <-p.pushed:
		return f
	case <-p.tb.Context().Done():
		p.tb.Fatal("no request came")
		return nil
	}
}

// async is a call whose answer is waited for elsewhere.
func (p *peer) async(code int32, ext wire.ExtEncoder) <-chan *wire.Frame {
	p.tb.Helper()
	x := &answer{cmd: wire.Command{Code: code, Ext: ext}, ch: make(chan *wire.Frame, 1)}
	_, err := p.conn().Start(x, time.Time{}, remoting.Inline)
	require.NoError(p.tb, err)
	return x.ch
}

type answer struct {
	cmd wire.Command
	ch  chan *wire.Frame
}

func (x *answer) AppendFrame(dst []byte, opaque int32) []byte {
	return x.cmd.Append(dst, wire.Head{Opaque: opaque, Encoding: wire.Binary})
}

func (x *answer) Done(f *wire.Frame, err error) {
	if err == nil {
		x.ch <- f.Clone()
	}
	close(x.ch)
}

func sendHeader(topic string, queue int32, props ...string) *wire.SendRequest {
	h := &wire.SendRequest{
		Group: []byte("PG"), Topic: []byte(topic), DefaultTopic: []byte(wire.TopicDefault), DefaultTopicQueues: 4, QueueID: queue,
		BornTime: testStart.UnixMilli(),
	}
	for i := 0; i < len(props); i += 2 {
		h.Properties = wire.AppendProperty(h.Properties, props[i], props[i+1])
	}
	return h
}

// send stores a message and waits until it can be consumed.
func (p *peer) send(b *Broker, topic string, queue int32, body string, props ...string) wire.SendResponse {
	p.tb.Helper()
	f := p.must(wire.ReqSendMessageV2, sendHeader(topic, queue, props...), []byte(body))
	var resp wire.SendResponse
	require.NoError(p.tb, resp.DecodeExt(f))
	require.NoError(p.tb, b.Store().WaitDispatched(p.tb.Context()))
	return resp
}

func pullHeaderOf(group, topic string, queue int32, offset int64) *wire.PullRequest {
	return &wire.PullRequest{
		Group: []byte(group), Topic: []byte(topic), QueueID: queue, Offset: offset, MaxMsgs: 32,
		SysFlag: wire.PullSubscription, Subscription: []byte("*"), SuspendMillis: 20_000,
	}
}

// holding makes a pull wait.
func holding(h *wire.PullRequest) *wire.PullRequest {
	h.SysFlag |= wire.PullSuspend
	return h
}

// bodies are the bodies of the records of a pull.
func bodies(tb testing.TB, f *wire.Frame) []string {
	tb.Helper()
	var out []string
	for b := f.Body; len(b) > 0; {
		var rec wire.Record
		n, err := wire.DecodeRecord(b, &rec)
		require.NoError(tb, err)
		out = append(out, string(rec.Body))
		b = b[n:]
	}
	return out
}

func pullResponse(tb testing.TB, f *wire.Frame) wire.PullResponse {
	tb.Helper()
	var resp wire.PullResponse
	require.NoError(tb, resp.DecodeExt(f))
	return resp
}

// heartbeat makes p a member of a group.
func (p *peer) heartbeat(group, id string, version int64, topics ...string) {
	p.tb.Helper()
	hb := wire.Heartbeat{ClientID: id, Consumers: []wire.ConsumerData{{
		Group: group, ConsumeType: wire.ConsumePassively, Model: wire.Clustering, From: wire.FromLastOffset,
	}}}
	for _, t := range topics {
		s := wire.TagSubscription(t, "*")
		s.Version = version
		hb.Consumers[0].Subscriptions = append(hb.Consumers[0].Subscriptions, s)
	}
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))
}

// nameServerStub answers registrations and notes them.
type nameServerStub struct {
	addr   string
	server *remoting.Server

	mu       sync.Mutex // guards all below
	requests []registered
	answer   int32
	body     []byte
	came     chan struct{}
}

// registered is one request of a broker to a name server.
type registered struct {
	code   int32
	header wire.RegisterBrokerRequest
	body   wire.RegisterBrokerBody
}

func startNameServer(tb testing.TB, listen string) *nameServerStub {
	tb.Helper()
	ln, err := net.Listen("tcp", listen)
	require.NoError(tb, err)
	s := &nameServerStub{addr: ln.Addr().String(), came: make(chan struct{}, 1000)}
	s.server = remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: s.serve}})
	require.NoError(tb, s.server.Serve(ln))
	tb.Cleanup(s.stop)
	return s
}

func (s *nameServerStub) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.server.Close(ctx)
}

func (s *nameServerStub) serve(r *remoting.Request) {
	f := r.Frame()
	x := registered{code: f.Code}
	if f.Code == wire.ReqRegisterBroker {
		if err := x.header.DecodeExt(f); err != nil {
			r.Reply(wire.RespSystemError, err.Error(), nil, nil)
			return
		}
		if crc := int32(wire.BodyCRC(f.Body)); crc != x.header.BodyCRC32 {
			r.Reply(wire.RespSystemError, "crc32 not match", nil, nil)
			return
		}
		body, err := wire.DecodeRegisterBrokerBody(f.Body)
		if err != nil {
			r.Reply(wire.RespSystemError, err.Error(), nil, nil)
			return
		}
		x.body = body
	}
	s.mu.Lock()
	s.requests = append(s.requests, x)
	code, body := s.answer, s.body
	s.mu.Unlock()
	r.Reply(code, "", nil, body)
	s.came <- struct{}{}
}

// all are the requests so far.
func (s *nameServerStub) all() []registered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]registered(nil), s.requests...)
}

func (s *nameServerStub) last() registered {
	all := s.all()
	return all[len(all)-1]
}

// next waits for one more request and returns the last.
func (s *nameServerStub) next(tb testing.TB) registered {
	tb.Helper()
	select {
	case <-s.came:
	case <-tb.Context().Done():
		tb.Fatal("no registration came")
	}
	return s.last()
}

// advanceUntil moves the clock in steps until ok holds; the goroutines that
// the clock wakes are waited for between the steps.
func advanceUntil(tb testing.TB, c *clock.Manual, step time.Duration, ok func() bool) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		if ok() {
			return true
		}
		c.Advance(step)
		return ok()
	}, 10*time.Second, 2*time.Millisecond)
}
