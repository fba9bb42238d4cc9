package namesrv

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// asTimeout reports whether err is a deadline's.
func asTimeout(err error, ne *net.Error) bool { return errors.As(err, ne) && (*ne).Timeout() }

// routeGone waits until a topic has no route any more. The end of a connection is
// noticed by the server on a goroutine of its own.
func routeGone(t *testing.T, c *raw, topic string) {
	t.Helper()
	require.Eventually(t, func() bool { return c.routeCode(topic) == wire.RespTopicNotExist },
		30*time.Second, time.Millisecond)
}

func TestSilentBrokerExpiresAndIsDisconnected(t *testing.T) {
	clk := clock.NewManual(epoch)
	s := start(t, Config{Clock: clk})
	broker, client := dial(t, s), dial(t, s)
	broker.registerOn("a", 0, "h:1", 1, "T", "U")

	clk.Advance(2 * time.Minute)
	require.Equal(t, wire.RespSuccess, client.routeCode("T"), "alive for 120 s")
	clk.Advance(DefaultScanEvery)
	require.Equal(t, wire.RespTopicNotExist, client.routeCode("T"))
	broker.ended()
}

func TestSignsOfLife(t *testing.T) {
	for _, sign := range []struct {
		name string
		send func(c *raw)
	}{
		{"registration", func(c *raw) { c.registerOn("a", 0, "h:1", 1, "T", "U") }},
		{"data version", func(c *raw) {
			f := c.ask(wire.ReqQueryDataVersion, 479, &wire.UnregisterBrokerRequest{
				BrokerName: "a", BrokerAddr: "h:1", ClusterName: "c",
			}, (&wire.DataVersion{Counter: 1}).AppendJSON(nil))
			require.Equal(t, "false", f.Text("changed"))
		}},
		{"heartbeat", func(c *raw) {
			f := c.ask(wire.ReqBrokerHeartbeat, 479, &wire.BrokerHeartbeatRequest{
				ClusterName: "c", BrokerAddr: "h:1", BrokerName: "a",
			}, nil)
			require.Equal(t, wire.RespSuccess, f.Code)
		}},
	} {
		t.Run(sign.name, func(t *testing.T) {
			clk := clock.NewManual(epoch)
			s := start(t, Config{Clock: clk, Expiry: time.Minute})
			broker := dial(t, s)
			broker.registerOn("a", 0, "h:1", 1, "T", "U")
			for range 3 {
				clk.Advance(45 * time.Second)
				sign.send(broker)
			}
			require.Equal(t, wire.RespSuccess, broker.routeCode("T"))
			clk.Advance(75 * time.Second)
			require.Equal(t, wire.RespTopicNotExist, dial(t, s).routeCode("T"))
		})
	}
}

func TestBrokersOwnTimeoutCounts(t *testing.T) {
	clk := clock.NewManual(epoch)
	s := start(t, Config{Clock: clk})
	broker := dial(t, s)
	h := brokerHeader("a", 0, "h:1")
	h.HeartbeatTimeoutMillis = 10_000
	body := wire.RegisterBrokerBody{Topics: topicSet("T", "U")}
	require.Equal(t, wire.RespSuccess, broker.ask(wire.ReqRegisterBroker, 479, h, body.AppendJSON(nil)).Code)
	clk.Advance(DefaultFirstScan + DefaultScanEvery)
	require.Equal(t, wire.RespTopicNotExist, dial(t, s).routeCode("T"))
}

func TestBrokerGoesWithItsConnection(t *testing.T) {
	s := start(t, Config{})
	first, second, client := dial(t, s), dial(t, s), dial(t, s)
	first.registerOn("a", 0, "h:1", 1, "T", "U")
	second.registerOn("b", 0, "h:2", 1, "T", "V")
	require.NoError(t, first.nc.Close())
	routeGone(t, client, "U")
	require.Equal(t, wire.RespSuccess, client.routeCode("T"))
	require.NoError(t, second.nc.Close())
	routeGone(t, client, "T")
	f := client.ask(wire.ReqGetAllTopicListFromNameserver, 479, nil, nil)
	require.Equal(t, `{"topicList":[]}`, string(f.Body))
}

func TestReconnectedBrokerStays(t *testing.T) {
	var cfg Config
	closed := make(chan struct{}, 2)
	cfg.Remoting.OnClose = func(*remoting.Conn, error) { closed <- struct{}{} }
	s := start(t, cfg)
	old, next := dial(t, s), dial(t, s)
	old.registerOn("a", 0, "h:1", 1, "T", "U")
	next.registerOn("a", 0, "h:1", 1, "T", "U")
	require.NoError(t, old.nc.Close())
	<-closed
	require.Equal(t, wire.RespSuccess, next.routeCode("T"))
}

func TestWaitBroker(t *testing.T) {
	s := start(t, Config{})
	done := make(chan error, 1)
	go func() { done <- s.WaitBroker(t.Context(), "a") }()
	c := dial(t, s)
	c.registerOn("b", 0, "h:2", 1)
	c.registerOn("a", 1, "h:3", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.WaitBroker(ctx, "a"), context.Canceled, "a slave is not enough")
	c.registerOn("a", 0, "h:1", 1)
	require.NoError(t, <-done)
}

func TestSeveralNameServersAreIndependent(t *testing.T) {
	var all []*raw
	for range 3 {
		all = append(all, dial(t, start(t, Config{})))
	}
	all[0].registerOn("a", 0, "h:1", 1, "T", "U")
	all[1].registerOn("a", 0, "h:1", 1, "T", "U")
	require.Equal(t, wire.RespSuccess, all[0].routeCode("T"))
	require.Equal(t, wire.RespSuccess, all[1].routeCode("T"))
	require.Equal(t, wire.RespTopicNotExist, all[2].routeCode("T"))
	all[0].ask(wire.ReqWipeWritePermOfBroker, 479, &wire.WipeWritePermRequest{BrokerName: "a"}, nil)
	for i, want := range []int32{wire.PermRead, 6} {
		f := all[i].ask(wire.ReqGetRouteInfoByTopic, 479, &wire.RouteRequest{Topic: "T"}, nil)
		d, err := wire.DecodeRouteData(f.Body)
		require.NoError(t, err)
		require.Equal(t, want, d.Queues[0].Perm)
	}
}

// TestC09_RestartedNameServer: a name server that comes back on its port knows
// nothing until the brokers register again, and then knows exactly what they
// say now: the default topic of a broker that was restarted with auto-create
// off is not resurrected.
func TestC09_RestartedNameServer(t *testing.T) {
	s, err := Start(t.Context(), Config{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	addr := s.Addr()
	broker := dial(t, s)
	broker.registerOn("a", 0, "h:1", 1, wire.TopicDefault, "T")
	require.NoError(t, s.Close(context.Background()))
	broker.ended()

	s = start(t, Config{Addr: addr})
	require.Equal(t, addr, s.Addr())
	broker = dial(t, s)
	require.Equal(t, wire.RespTopicNotExist, broker.routeCode("T"))
	broker.registerOn("a", 0, "h:1", 1, wire.TopicDefault, "T")
	require.Equal(t, wire.RespSuccess, broker.routeCode(wire.TopicDefault))

	// The broker is restarted with auto-create off, once cleanly, once not.
	f := broker.ask(wire.ReqUnregisterBroker, 479, &wire.UnregisterBrokerRequest{
		BrokerName: "a", BrokerAddr: "h:1", ClusterName: "c",
	}, nil)
	require.Equal(t, wire.RespSuccess, f.Code)
	broker.registerOn("a", 0, "h:1", 2, "T", "U")
	require.Equal(t, wire.RespTopicNotExist, broker.routeCode(wire.TopicDefault))

	broker.registerOn("a", 0, "h:1", 3, wire.TopicDefault, "T")
	require.NoError(t, broker.nc.Close())
	broker = dial(t, s)
	routeGone(t, broker, wire.TopicDefault)
	broker.registerOn("a", 0, "h:1", 2, "T", "U")
	require.Equal(t, wire.RespTopicNotExist, broker.routeCode(wire.TopicDefault))
	require.Equal(t, wire.RespSuccess, broker.routeCode("T"))
}

// TestC12_BadFrameLength: garbage on the name server's port ends the
// connection it came on and nothing else.
func TestC12_BadFrameLength(t *testing.T) {
	s := start(t, Config{})
	healthy := dial(t, s)
	healthy.registerOn("a", 0, "h:1", 1, "T", "U")
	for name, garbage := range map[string][]byte{
		"negative":       {0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0},
		"huge":           {0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0},
		"http":           []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"header too big": {0, 0, 0, 16, 0, 0, 0, 200, 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'},
		"serialize type": {0, 0, 0, 8, 9, 0, 0, 4, '{', '}', ' ', ' '},
		"header no json": {0, 0, 0, 8, 0, 0, 0, 4, 'x', 'x', 'x', 'x'},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			c.write(garbage)
			c.ended()
		})
	}
	t.Run("three bytes and silence", func(t *testing.T) {
		c := dial(t, s)
		c.write([]byte{0, 0, 0})
		require.Equal(t, wire.RespSuccess, dial(t, s).routeCode("T"), "nobody waits for it")
	})
	require.Equal(t, wire.RespSuccess, healthy.routeCode("T"))
}

func TestRefusedRegistrations(t *testing.T) {
	s := start(t, Config{})
	c := dial(t, s)
	body := (&wire.RegisterBrokerBody{Topics: topicSet("T", "U")}).AppendJSON(nil)
	h := brokerHeader("a", 0, "h:1")
	h.BodyCRC32 = int32(crc32.ChecksumIEEE(body) & 0x7FFFFFFF)
	require.Equal(t, wire.RespSuccess, c.ask(wire.ReqRegisterBroker, 479, h, body).Code)
	h.BodyCRC32++
	f := c.ask(wire.ReqRegisterBroker, 479, h, body)
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Equal(t, "crc32 not match", string(f.Remark))

	h = brokerHeader("b", 0, "h:2")
	f = c.ask(wire.ReqRegisterBroker, 479, h, []byte(`{"topicConfigSerializeWrapper":{`))
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "b is not readable")
	f = c.ask(wire.ReqRegisterBroker, 479, h, (&wire.RegisterBrokerBody{Topics: topicSet("T")}).AppendJSON(nil))
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "register broker failed")
	f = c.ask(wire.ReqRegisterBroker, 479, wire.ExtFields{"brokerName": "b"}, nil)
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "brokerAddr")
	require.NotContains(t, string(c.ask(wire.ReqGetBrokerClusterInfo, 479, nil, nil).Body), `"b"`)
}

func TestCompressedRegistrationIsSniffed(t *testing.T) {
	for _, label := range []bool{true, false} {
		t.Run(fmt.Sprint(label), func(t *testing.T) {
			c := dial(t, start(t, Config{}))
			h := brokerHeader("a", 0, "h:1")
			h.Compressed = label
			body := (&wire.RegisterBrokerBody{Version: wire.DataVersion{Counter: 3}, Topics: topicSet("T", "U")}).AppendCompressed(nil)
			require.Equal(t, wire.RespSuccess, c.ask(wire.ReqRegisterBroker, 479, h, body).Code)
			require.Equal(t, wire.RespSuccess, c.routeCode("U"))
		})
	}
}

func TestRouteDialects(t *testing.T) {
	c := dial(t, start(t, Config{}))
	c.registerOn("a", 0, "h:1", 1, "T", "U")
	for _, tc := range []struct {
		version int32
		strict  bool
		want    string
	}{
		{400, false, `{0:"h:1"}`}, {400, true, `{"0":"h:1"}`}, {401, false, `{"0":"h:1"}`}, {479, false, `{"0":"h:1"}`},
	} {
		f := c.ask(wire.ReqGetRouteInfoByTopic, tc.version, &wire.RouteRequest{Topic: "T", StandardJSONOnly: tc.strict}, nil)
		require.Contains(t, string(f.Body), `"brokerAddrs":`+tc.want, "%+v", tc)
	}
	f := c.ask(wire.ReqGetRouteInfoByTopic, 479, wire.ExtFields{"topic": "T", "__ZONE_MODE": "true", "__ZONE_NAME": "z"}, nil)
	require.Contains(t, string(f.Body), `{0:"h:1"}`)
}

func TestUnknownCodeAndOneWay(t *testing.T) {
	c := dial(t, start(t, Config{}))
	f := c.ask(9999, 479, nil, nil)
	require.Equal(t, wire.RespRequestCodeNotSupported, f.Code)
	require.Equal(t, " request type 9999 not supported", string(f.Remark))
	// A one-way request is carried out and not answered, whatever it is.
	body := (&wire.RegisterBrokerBody{Topics: topicSet("T", "U")}).AppendJSON(nil)
	c.write(request(wire.JSON, wire.ReqRegisterBroker, 0, 1, wire.FlagOneway, brokerHeader("a", 0, "h:1"), body))
	c.write(request(wire.JSON, 9999, 0, 2, wire.FlagOneway, nil, nil))
	require.Equal(t, wire.RespSuccess, c.routeCode("T"))
}

func TestCloseEndsEverything(t *testing.T) {
	s, err := Start(t.Context(), Config{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	c := dial(t, s)
	c.registerOn("a", 0, "h:1", 1, "T", "U")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { require.NoError(t, s.Close(context.Background())) })
	}
	wg.Wait()
	c.ended()
	_, err = net.Dial("tcp", s.Addr())
	require.Error(t, err)
}

func TestStartFailures(t *testing.T) {
	s := start(t, Config{})
	_, err := Start(t.Context(), Config{Addr: s.Addr()})
	require.ErrorContains(t, err, "name server: ")
	_, err = Start(t.Context(), Config{Addr: "127.0.0.1:0", Expiry: -1})
	require.ErrorContains(t, err, "Expiry is negative")
}
