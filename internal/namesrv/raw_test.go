package namesrv

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// start runs a name server on a free loopback port for the time of a test.
func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	if cfg.Addr == "" && cfg.Listener == nil {
		cfg.Addr = "127.0.0.1:0"
	}
	s, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, s.Close(ctx))
	})
	return s
}

// raw is a connection that sends bytes as they are: nothing of the module's
// own client stands between the test and the wire.
type raw struct {
	t  *testing.T
	nc net.Conn
}

func dial(t *testing.T, s *Server) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(10*time.Second)))
	return &raw{t, nc}
}

func (r *raw) write(b []byte) {
	r.t.Helper()
	_, err := r.nc.Write(b)
	require.NoError(r.t, err)
}

func (r *raw) read() *wire.Frame {
	r.t.Helper()
	head := make([]byte, wire.FrameHead)
	_, err := io.ReadFull(r.nc, head)
	require.NoError(r.t, err)
	n, err := wire.FrameSize(head, 0)
	require.NoError(r.t, err)
	b := make([]byte, n)
	copy(b, head)
	_, err = io.ReadFull(r.nc, b[wire.FrameHead:])
	require.NoError(r.t, err)
	var f wire.Frame
	require.NoError(r.t, f.Decode(b))
	return &f
}

// ask sends a request as a client of the given version and returns the answer.
func (r *raw) ask(code, version int32, ext wire.ExtEncoder, body []byte) *wire.Frame {
	r.t.Helper()
	r.write(request(wire.Binary, code, version, 7, 0, ext, body))
	f := r.read()
	require.EqualValues(r.t, 7, f.Opaque)
	require.Equal(r.t, wire.FlagResponse, f.Flag&wire.FlagResponse)
	return f
}

// request makes a frame. The version sits at a fixed place of binary headers.
func request(enc wire.Encoding, code, version, opaque, flag int32, ext wire.ExtEncoder, body []byte) []byte {
	c := wire.Command{Code: code, Ext: ext, Body: body}
	b := c.Append(nil, wire.Head{Opaque: opaque, Flag: flag, Encoding: enc})
	if enc == wire.Binary {
		binary.BigEndian.PutUint16(b[wire.FrameHead+3:], uint16(version))
	}
	return b
}

// brokerHeader is the registration header of broker name with an id.
func brokerHeader(name string, id int64, addr string) *wire.RegisterBrokerRequest {
	return &wire.RegisterBrokerRequest{
		BrokerName: name, BrokerAddr: addr, ClusterName: "c", HAServerAddr: addr + "0", BrokerID: id,
	}
}

// registerOn registers a broker over r and requires success.
func (r *raw) registerOn(name string, id int64, addr string, version int64, topics ...string) *wire.Frame {
	r.t.Helper()
	body := wire.RegisterBrokerBody{Version: wire.DataVersion{Counter: version}, Topics: topicSet(topics...)}
	f := r.ask(wire.ReqRegisterBroker, 479, brokerHeader(name, id, addr), body.AppendJSON(nil))
	require.Equal(r.t, wire.RespSuccess, f.Code, "%s", f.Remark)
	return f
}

// routeCode asks for a route and returns the answer's code.
func (r *raw) routeCode(topic string) int32 {
	r.t.Helper()
	return r.ask(wire.ReqGetRouteInfoByTopic, 479, &wire.RouteRequest{Topic: topic}, nil).Code
}

// ended waits until the server has closed the connection.
func (r *raw) ended() {
	r.t.Helper()
	_, err := r.nc.Read(make([]byte, 1))
	require.Error(r.t, err)
	var ne net.Error
	require.False(r.t, asTimeout(err, &ne), "still open")
}
