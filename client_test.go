package rocketmq

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/vnet"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestServerAddr(t *testing.T) {
	for in, want := range map[string]string{
		"ns:1":                 "ns:1",
		"ns":                   "ns:9876",
		"10.0.0.1:9876":        "10.0.0.1:9876",
		"10.0.0.1":             "10.0.0.1:9876",
		"[::1]:9876":           "[::1]:9876",
		"[::1]":                "[::1]:9876",
		"fe80::1":              "[fe80::1]:9876",
		"http://ns.local:9876": "ns.local:9876",
	} {
		got, err := serverAddr(in)
		assert.NoError(t, err, in)
		assert.Equal(t, want, got, in)
	}
	for _, bad := range []string{":9876", "ns:", "ns:x", "ns:0", "ns:65536", "http://ns/path", "a:b:c", "[::1"} {
		_, err := serverAddr(bad)
		assert.Error(t, err, bad)
	}
}

func TestOptionsAreJudgedTogether(t *testing.T) {
	_, err := NewClient(
		WithNameServers("ns:x;:1"), WithNamespace("a%b"), WithInstanceName("a@b"), WithLogger(nil), WithHooks("none"),
		WithHeartbeat(time.Hour), WithRouteRefresh(0), WithRequestTimeout(-1), WithMaxFrame(1),
	)
	require.ErrorIs(t, err, ErrInvalidOption)
	for _, part := range []string{
		`"ns:x"`, `":1"`, "WithNamespace", "WithInstanceName", "WithLogger", "string implements none", "WithHeartbeat", "WithRouteRefresh", "WithRequestTimeout", "WithMaxFrame",
	} {
		assert.ErrorContains(t, err, part)
	}
	_, err = NewClient()
	require.ErrorIs(t, err, ErrInvalidOption)
	require.ErrorContains(t, err, "127.0.0.1:9876")

	cfg := defaultConfig()
	for _, o := range []Option{WithNameServers("a:1;b:2", "c , a:1", "")} {
		o(&cfg)
	}
	require.NoError(t, cfg.validate())
	require.Equal(t, []string{"a:1", "b:2", "c:9876"}, cfg.servers)
	// The documented defaults.
	require.Equal(t, 30*time.Second, cfg.heartbeat)
	require.Equal(t, 30*time.Second, cfg.refresh)
	require.Equal(t, 3*time.Second, cfg.timeout)
	require.Equal(t, 16<<20, cfg.maxFrame)
}

// hooks watches everything.
type hooks struct {
	mu    sync.Mutex
	lines []string
}

func (h *hooks) say(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, s)
}

func (h *hooks) OnConnect(addr string, _ time.Duration, err error) {
	if err != nil {
		addr += " refused"
	}
	h.say("connect " + addr)
}
func (h *hooks) OnDisconnect(addr string, _ error) { h.say("disconnect " + addr) }
func (h *hooks) OnRoute(topic string, before, after Route) {
	h.say("route " + topic + " " + strings.Repeat("q", len(before.Publish)) + ">" + strings.Repeat("q", len(after.Publish)) + " at " + after.Brokers[0].Addrs[0])
}

// nameServer answers route queries for the topic "t" (and "dev%t").
func nameServer(t *testing.T, ln net.Listener, cfg remoting.ServerConfig) (requests func() []*wire.Frame) {
	var mu sync.Mutex
	var seen []*wire.Frame
	cfg.Handler = func(q *remoting.Request) {
		mu.Lock()
		seen = append(seen, q.Frame().Clone())
		mu.Unlock()
		topic := q.Frame().Text("topic")
		if q.Frame().Code == wire.ReqGetRouteInfoByTopic && topic != "t" && topic != "dev%t" {
			q.Reply(wire.RespTopicNotExist, "unknown", nil, nil)
			return
		}
		d := wire.RouteData{
			Brokers: []wire.BrokerData{{BrokerName: "b", Cluster: "c", Addrs: map[int64]string{0: "b:0"}}},
			Queues:  []wire.QueueData{{BrokerName: "b", ReadQueues: 2, WriteQueues: 2, Perm: 6}},
		}
		q.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
	}
	s := remoting.NewServer(cfg)
	require.NoError(t, s.Serve(ln))
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return func() []*wire.Frame {
		mu.Lock()
		defer mu.Unlock()
		return append([]*wire.Frame(nil), seen...)
	}
}

func newTestClient(t *testing.T, opts ...Option) *Client {
	t.Helper()
	c, err := NewClient(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func TestPingHealthAndHooks(t *testing.T) {
	var n vnet.Network
	ln, err := n.Listen("ns:9876")
	require.NoError(t, err)
	nameServer(t, ln, remoting.ServerConfig{})
	h := &hooks{}
	c := newTestClient(t, WithNameServers("ns"), WithDialer(n.Dial), WithHooks(h), WithNamespace("dev"), WithLogger(slog.New(slog.DiscardHandler)))
	require.Equal(t, []ServerHealth{{Addr: "ns:9876"}}, c.Health().NameServers)
	require.NoError(t, c.Ping(t.Context()))
	got := c.Health()
	require.True(t, got.NameServers[0].OK())
	require.True(t, got.NameServers[0].Connected)
	require.Empty(t, got.Brokers)

	rt := bridge.Of(c).Runtime
	_, err = rt.Route(t.Context(), rt.Wrap("t"))
	require.NoError(t, err)
	err = c.Ping(t.Context())
	require.ErrorIs(t, err, ErrConnection, "the broker is not there")
	got = c.Health()
	require.Len(t, got.Brokers, 1)
	require.Equal(t, "b:0", got.Brokers[0].Addr)
	require.False(t, got.Brokers[0].OK())
	require.ErrorIs(t, got.Brokers[0].LastError, ErrConnection)

	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, c.Close(t.Context()))
	require.ErrorIs(t, c.Ping(t.Context()), ErrClosed)
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Equal(t, []string{"connect ns:9876", "route t >qq at b:0", "connect b:0 refused", "disconnect ns:9876"}, h.lines)
}

func TestClientID(t *testing.T) {
	a, b := newTestClient(t, WithNameServers("ns")), newTestClient(t, WithNameServers("ns"))
	require.NotEqual(t, a.ID(), b.ID())
	c := newTestClient(t, WithNameServers("ns"), WithInstanceName("i"))
	require.True(t, strings.HasSuffix(c.ID(), "@i"))
}

func TestRolesAreClosedInReverse(t *testing.T) {
	c := newTestClient(t, WithNameServers("ns"))
	var order []int
	role := func(i int) func(context.Context) error {
		return func(context.Context) error {
			order = append(order, i)
			return map[bool]error{true: errors.New("stuck")}[i == 2]
		}
	}
	var releases []func()
	for i := range 4 {
		release, err := bridge.Of(c).Adopt(role(i))
		require.NoError(t, err)
		releases = append(releases, release)
	}
	releases[1]()
	require.ErrorContains(t, c.Close(t.Context()), "stuck")
	require.Equal(t, []int{3, 2, 0}, order)
	require.ErrorContains(t, c.Close(t.Context()), "stuck")
	require.Len(t, order, 3)
	_, err := bridge.Of(c).Adopt(role(9))
	require.ErrorIs(t, err, ErrClosed)
	require.Nil(t, bridge.Of((*Client)(nil)))
	require.Nil(t, bridge.Of("no client"))
}

func TestResolver(t *testing.T) {
	var n vnet.Network
	ln, err := n.Listen("ns:9876")
	require.NoError(t, err)
	nameServer(t, ln, remoting.ServerConfig{})
	c := newTestClient(t, WithDialer(n.Dial), WithResolver(ResolverFunc(func(context.Context) ([]string, error) { return []string{"ns"}, nil })))
	require.NoError(t, c.Ping(t.Context()))
	bad := newTestClient(t, WithDialer(n.Dial), WithResolver(ResolverFunc(func(context.Context) ([]string, error) { return []string{"ns:x"}, nil })))
	require.ErrorIs(t, bad.Ping(t.Context()), ErrNameServer)
}

// rotating changes its keys with each request.
type rotating struct{ keys chan Credentials }

func (r *rotating) Credentials(context.Context) (Credentials, error) {
	select {
	case c := <-r.keys:
		return c, nil
	default:
		return Credentials{}, errors.New("no more keys")
	}
}

func TestCredentials(t *testing.T) {
	// As computed by AclUtils of Apache RocketMQ.
	s := &signer{provider: StaticCredentials("rocketmq2", "12345678")}
	require.NoError(t, s.refresh(t.Context()))
	cmd := wire.Command{Code: wire.ReqGetRouteInfoByTopic, Ext: wire.ExtFields{"topic": "TopicA"}, Body: []byte("body")}
	var f wire.Frame
	require.NoError(t, f.Decode(cmd.Append(nil, wire.Head{Signer: s})))
	require.Equal(t, "rocketmq2", f.Text("AccessKey"))
	require.Equal(t, "NNAYM88+R4ZdXdI+BtOJOm9+vYI=", f.Text("Signature"))

	var n vnet.Network
	ln, err := n.Listen("ns:9876")
	require.NoError(t, err)
	requests := nameServer(t, ln, remoting.ServerConfig{})
	keys := &rotating{keys: make(chan Credentials, 4)}
	c := newTestClient(t, WithNameServers("ns"), WithDialer(n.Dial), WithCredentials(keys))
	keys.keys <- Credentials{AccessKey: "one", SecretKey: "s"}
	keys.keys <- Credentials{AccessKey: "two", SecretKey: "s", SecurityToken: "token"}
	keys.keys <- Credentials{AccessKey: "three"}
	require.NoError(t, c.Ping(t.Context()))
	require.NoError(t, c.Ping(t.Context()))
	got := requests()
	require.Equal(t, "one", got[0].Text("AccessKey"))
	require.Equal(t, "two", got[1].Text("AccessKey"))
	require.Equal(t, "token", got[1].Text("SecurityToken"))
	require.ErrorIs(t, c.Ping(t.Context()), ErrUnauthorized, "a key without its secret")
	require.ErrorIs(t, c.Ping(t.Context()), ErrUnauthorized, "the provider failed")
	require.Len(t, requests(), 2)
	for _, text := range []string{Credentials{"ak", "sk", "st"}.String(), Credentials{"ak", "sk", "st"}.LogValue().String()} {
		require.NotContains(t, text, "sk")
	}
}

func TestNamesIPv6AndTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv6loopback}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	server := remoting.ServerConfig{TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}

	for listen, host := range map[string]string{"127.0.0.1:0": "localhost", "[::1]:0": "[::1]"} {
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("skipping %s: %v", listen, err)
			continue
		}
		_, port, err := net.SplitHostPort(ln.Addr().String())
		require.NoError(t, err)
		nameServer(t, ln, server)
		addr := host + ":" + port
		// On a starved machine a handshake can take longer than an attempt.
		ping := func(opts ...Option) (err error) {
			c := newTestClient(t, append(opts, WithNameServers(addr))...)
			for range 20 {
				if err = c.Ping(t.Context()); !errors.Is(err, ErrTimeout) {
					return err
				}
			}
			return err
		}
		require.NoError(t, ping(), "plain to %s", addr)
		require.NoError(t, ping(WithTLS(&tls.Config{RootCAs: roots})), "TLS to %s", addr)
		err = ping(WithTLS(&tls.Config{}))
		require.ErrorIs(t, err, ErrConnection, "an unknown issuer")
		var unknown x509.UnknownAuthorityError
		require.ErrorAs(t, err, &unknown)
	}
}

func TestCodeString(t *testing.T) {
	require.Equal(t, "TOPIC_NOT_EXIST", CodeTopicNotExist.String())
	require.Equal(t, "code -7", Code(-7).String())
}
