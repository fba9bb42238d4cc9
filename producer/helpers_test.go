package producer_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/vnet"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

// cluster is a network with scripted servers: one name server at ns:9876 and
// any number of brokers.
type cluster struct {
	t   testing.TB
	net vnet.Network

	mu     sync.Mutex // guards topics
	topics map[string]wire.RouteData
	ns     *server
}

// server answers by script.
type server struct {
	addr string
	srv  *remoting.Server

	mu      sync.Mutex // guards all below
	h       map[int32]remoting.Handler
	asked   map[int32]int
	conns   []*remoting.Conn
	sent    []sent // by send requests
	batches int
}

// sent is one send request.
type sent struct {
	queue     int32
	topic, id string
	props     map[string]string
	head      wire.SendRequest
	body      string
	flag      int32
	code      int32
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, topics: make(map[string]wire.RouteData)}
	c.ns = c.serve("ns:9876")
	c.ns.on(wire.ReqGetRouteInfoByTopic, func(q *remoting.Request) {
		topic := q.Frame().Text("topic")
		c.mu.Lock()
		d, ok := c.topics[topic]
		c.mu.Unlock()
		if !ok {
			q.Reply(wire.RespTopicNotExist, "No topic route info in name server for the topic: "+topic, nil, nil)
			return
		}
		q.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
	})
	return c
}

// topic sets a route with n queues on each broker, "name=addr".
func (c *cluster) topic(name string, n int32, brokers ...string) {
	var d wire.RouteData
	for _, b := range brokers {
		broker, addr, _ := strings.Cut(b, "=")
		d.Brokers = append(d.Brokers, wire.BrokerData{Cluster: "c", BrokerName: broker, Addrs: map[int64]string{0: addr}})
		d.Queues = append(d.Queues, wire.QueueData{BrokerName: broker, ReadQueues: n, WriteQueues: n, Perm: wire.PermRead | wire.PermWrite})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.topics[name] = d
}

func (c *cluster) serve(addr string) *server {
	ln, err := c.net.Listen(addr)
	require.NoError(c.t, err)
	return c.serveOn(ln, addr)
}

func (c *cluster) serveOn(ln net.Listener, addr string) *server {
	s := &server{addr: addr, h: make(map[int32]remoting.Handler), asked: make(map[int32]int)}
	s.srv = remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{
		IdleTimeout: -1,
		Handler:     s.handle,
		OnOpen: func(x *remoting.Conn) {
			s.mu.Lock()
			s.conns = append(s.conns, x)
			s.mu.Unlock()
		},
	}})
	require.NoError(c.t, s.srv.Serve(ln))
	c.t.Cleanup(s.stop)
	return s
}

func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.srv.Close(ctx)
}

func (s *server) handle(q *remoting.Request) {
	code := q.Frame().Code
	s.mu.Lock()
	s.asked[code]++
	h := s.h[code]
	s.mu.Unlock()
	if h == nil {
		q.Reply(wire.RespRequestCodeNotSupported, "no script", nil, nil)
		return
	}
	h(q)
}

func (s *server) on(code int32, h remoting.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h[code] = h
}

func (s *server) count(code int32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[code]
}

// broker starts a broker that stores what it gets.
func (c *cluster) broker(addr string) *server {
	s := c.serve(addr)
	ok := func(q *remoting.Request) { q.Reply(wire.RespSuccess, "", nil, nil) }
	s.on(wire.ReqHeartBeat, ok)
	s.on(wire.ReqUnregisterClient, ok)
	s.answer(wire.RespSuccess, "")
	return s
}

// answer makes the broker answer sends with a code from now on. Zero and the
// weak acknowledgements store the message.
func (s *server) answer(code int32, remark string) {
	s.on(wire.ReqSendMessageV2, func(q *remoting.Request) { s.store(q, code, remark) })
}

func (s *server) store(q *remoting.Request, code int32, remark string) {
	var h wire.SendRequest
	f := q.Frame().Clone()
	if err := h.DecodeExt(f); err != nil {
		q.Reply(wire.RespInvalidParameter, err.Error(), nil, nil)
		return
	}
	s.mu.Lock()
	s.sent = append(s.sent, sent{
		queue: h.QueueID, topic: string(h.Topic), id: h.Properties.Text(wire.PropUniqKey),
		props: h.Properties.Map(), head: h, body: string(f.Body), flag: f.Flag, code: f.Code,
	})
	n := int64(len(s.sent))
	s.mu.Unlock()
	switch code {
	case wire.RespSuccess, wire.RespFlushDiskTimeout, wire.RespSlaveNotAvailable, wire.RespFlushSlaveTimeout:
		id := wire.AppendOffsetMsgID(nil, netip.MustParseAddrPort("10.0.0.1:10911"), n*1000)
		q.Reply(code, remark, &wire.SendResponse{OffsetMsgID: id, QueueID: h.QueueID, QueueOffset: n - 1, TransactionID: []byte(h.Properties.Text(wire.PropUniqKey)), TraceOn: true}, nil)
	default:
		q.Reply(code, remark, nil, nil)
	}
}

// answerBatches makes the broker store batches: got lists their messages.
func (s *server) answerBatches(code int32) {
	s.on(wire.ReqSendBatchMessage, func(q *remoting.Request) {
		var h wire.SendRequest
		f := q.Frame().Clone()
		if err := h.DecodeExt(f); err != nil || !h.Batch {
			q.Reply(wire.RespInvalidParameter, "no batch", nil, nil)
			return
		}
		var ids []byte
		s.mu.Lock()
		s.batches++
		first := int64(len(s.sent))
		it := wire.Batch(f.Body)
		for n := first; ; n++ {
			item, ok, err := it.Next()
			if err != nil || !ok {
				break
			}
			s.sent = append(s.sent, sent{
				queue: h.QueueID, topic: string(h.Topic), id: item.Properties.Text(wire.PropUniqKey),
				props: item.Properties.Map(), head: h, body: string(item.Body), code: f.Code,
			})
			if n > first {
				ids = append(ids, ',')
			}
			ids = wire.AppendOffsetMsgID(ids, netip.MustParseAddrPort("10.0.0.1:10911"), n)
		}
		s.mu.Unlock()
		if code != wire.RespSuccess {
			q.Reply(code, "no", nil, nil)
			return
		}
		q.Reply(code, "", &wire.SendResponse{OffsetMsgID: ids, QueueID: h.QueueID, QueueOffset: first, TraceOn: true}, nil)
	})
}

// hold makes the broker keep its answers to itself; stored gives one out.
func (s *server) hold() <-chan remoting.Replier {
	ch := make(chan remoting.Replier, 1<<20)
	s.on(wire.ReqSendMessageV2, func(q *remoting.Request) { ch <- q.Replier() })
	return ch
}

func stored(p remoting.Replier) {
	p.Reply(wire.RespSuccess, "", &wire.SendResponse{OffsetMsgID: []byte("X"), TraceOn: true}, nil)
}

// silent makes the broker take sends and never answer.
func (s *server) silent() {
	s.on(wire.ReqSendMessageV2, func(q *remoting.Request) { q.Drop() })
}

func (s *server) got() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sent(nil), s.sent...)
}

func (c *cluster) client(opts ...rocketmq.Option) *rocketmq.Client {
	cl, err := rocketmq.NewClient(append([]rocketmq.Option{rocketmq.WithNameServers("ns:9876"), rocketmq.WithDialer(c.net.Dial)}, opts...)...)
	require.NoError(c.t, err)
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = cl.Close(ctx)
	})
	return cl
}

func (c *cluster) producer(opts ...producer.Option) *producer.Producer {
	p, err := producer.New(c.client(), opts...)
	require.NoError(c.t, err)
	return p
}

func message(topic string) *rocketmq.Message {
	return &rocketmq.Message{Topic: topic, Body: []byte("hello")}
}

// textLogger writes to b, which may be read when all is closed.
func textLogger(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

const (
	patience = 10 * time.Second
	tick     = time.Millisecond
)

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
