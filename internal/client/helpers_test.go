package client

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/vnet"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// cluster is a network with scripted servers.
type cluster struct {
	t   testing.TB
	net vnet.Network
}

// server answers by script and counts what it is asked.
type server struct {
	addr string
	srv  *remoting.Server

	mu       sync.Mutex // guards all below
	handlers map[int32]remoting.Handler
	asked    map[int32]int
	conns    []*remoting.Conn
	topics   map[string]wire.RouteData // of a name server
}

func newCluster(t testing.TB) *cluster { return &cluster{t: t} }

func (c *cluster) listen(addr string) net.Listener {
	ln, err := c.net.Listen(addr)
	require.NoError(c.t, err)
	return ln
}

// serve starts a server that answers code 3 to all it has no handler for.
func (c *cluster) serve(addr string) *server {
	s := &server{addr: addr, handlers: make(map[int32]remoting.Handler), asked: make(map[int32]int), topics: make(map[string]wire.RouteData)}
	s.srv = remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{
		IdleTimeout: -1,
		Handler:     s.handle,
		OnOpen: func(x *remoting.Conn) {
			s.mu.Lock()
			s.conns = append(s.conns, x)
			s.mu.Unlock()
		},
	}})
	require.NoError(c.t, s.srv.Serve(c.listen(addr)))
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
	h := s.handlers[code]
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
	s.handlers[code] = h
}

func (s *server) count(code int32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[code]
}

func (s *server) connections() []*remoting.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*remoting.Conn(nil), s.conns...)
}

// nameServer starts a name server; its topics are set with know.
func (c *cluster) nameServer(addr string) *server {
	s := c.serve(addr)
	s.on(wire.ReqGetRouteInfoByTopic, s.answerRoute)
	return s
}

func (s *server) answerRoute(q *remoting.Request) {
	topic := q.Frame().Text("topic")
	s.mu.Lock()
	d, ok := s.topics[topic]
	s.mu.Unlock()
	if !ok {
		q.Reply(wire.RespTopicNotExist, "No topic route info in name server for the topic: "+topic, nil, nil)
		return
	}
	q.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
}

func (s *server) know(topic string, d wire.RouteData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics[topic] = d
}

// broker starts a broker that accepts heartbeats and unregistering.
func (c *cluster) broker(addr string) *server {
	s := c.serve(addr)
	ok := func(q *remoting.Request) { q.Reply(wire.RespSuccess, "", nil, nil) }
	s.on(wire.ReqHeartBeat, ok)
	s.on(wire.ReqUnregisterClient, ok)
	return s
}

// blackHole accepts connections, reads, and never answers.
func (c *cluster) blackHole(addr string) (connections func() int) {
	ln := c.listen(addr)
	var mu sync.Mutex
	var conns []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, nc)
			mu.Unlock()
			wg.Go(func() {
				b := make([]byte, 1024)
				for {
					if _, err := nc.Read(b); err != nil {
						return
					}
				}
			})
		}
	})
	c.t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for _, nc := range conns {
			_ = nc.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(conns)
	}
}

// runtime makes a runtime that asks the first of cfg.NameServers first.
func (c *cluster) runtime(cfg Config) *Runtime {
	cfg.Dial = c.net.Dial
	r, err := New(cfg)
	require.NoError(c.t, err)
	if len(cfg.NameServers) > 0 {
		r.servers.prefer = cfg.NameServers[0]
	}
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = r.Close(ctx)
	})
	return r
}

// routeOf is a route with n queues on each broker. A broker is
// "name=master-addr" or "name=master-addr,replica-addr".
func routeOf(n int32, brokers ...string) wire.RouteData {
	var d wire.RouteData
	for _, b := range brokers {
		name, list, _ := strings.Cut(b, "=")
		addrs := make(map[int64]string)
		for i, a := range strings.Split(list, ",") {
			if a != "" {
				addrs[int64(i)] = a
			}
		}
		d.Brokers = append(d.Brokers, wire.BrokerData{Cluster: "c", BrokerName: name, Addrs: addrs})
		d.Queues = append(d.Queues, wire.QueueData{BrokerName: name, ReadQueues: n, WriteQueues: n, Perm: wire.PermRead | wire.PermWrite})
	}
	return d
}
