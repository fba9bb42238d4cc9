package client

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestClientID(t *testing.T) {
	a, err := New(Config{NameServers: []string{"ns:1"}})
	require.NoError(t, err)
	b, err := New(Config{NameServers: []string{"ns:1"}})
	require.NoError(t, err)
	require.NotEqual(t, a.ClientID(), b.ClientID())
	ip, instance, ok := strings.Cut(a.ClientID(), "@")
	require.True(t, ok)
	_, err = netip.ParseAddr(ip)
	require.NoError(t, err)
	require.NotEmpty(t, instance)
	n, err := New(Config{NameServers: []string{"ns:1"}, InstanceName: "one"})
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(n.ClientID(), "@one"))
	require.NotEqual(t, string(a.AppendID(nil, time.Now())), string(a.AppendID(nil, time.Now())))
	_, err = New(Config{})
	require.Error(t, err)
}

func TestNamespace(t *testing.T) {
	r, err := New(Config{NameServers: []string{"ns:1"}, Namespace: "dev"})
	require.NoError(t, err)
	for name, want := range map[string]string{
		"orders":         "dev%orders",
		"%RETRY%g":       "%RETRY%dev%g",
		"%DLQ%g":         "%DLQ%dev%g",
		"TBW102":         "TBW102",
		"c_REPLY_TOPIC":  "c_REPLY_TOPIC",
		"CID_RMQ_SYS_x":  "CID_RMQ_SYS_x",
		"":               "",
		"dev%orders":     "dev%orders",
		"%RETRY%dev%old": "%RETRY%dev%old",
	} {
		assert.Equal(t, want, r.Wrap(name), name)
	}
	assert.Equal(t, "orders", r.Unwrap("dev%orders"))
	assert.Equal(t, "%RETRY%g", r.Unwrap("%RETRY%dev%g"))
	assert.Equal(t, "other%orders", r.Unwrap("other%orders"))
	plain, err := New(Config{NameServers: []string{"ns:1"}})
	require.NoError(t, err)
	assert.Equal(t, "orders", plain.Wrap("orders"))
	assert.Equal(t, "dev%orders", plain.Unwrap("dev%orders"))
}

// A client that was never used has started nothing, so nothing leaks even if
// it is not closed: the leak check of this package would see it.
func TestNewStartsNothing(t *testing.T) {
	_, err := New(Config{NameServers: []string{"ns:1"}})
	require.NoError(t, err)
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.nameServer("ns:1").know("a", routeOf(1, "b1=b1:0"))
		b := c.broker("b1:0")
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Route(t.Context(), "a")
		require.NoError(t, err)
		r.RegisterProducer("p", ProducerHooks{})
		require.NoError(t, r.RegisterConsumer(&fakeConsumer{group: "g"}))
		require.NoError(t, r.HeartbeatNow(t.Context()))
		require.NoError(t, r.Close(t.Context()))
		require.Equal(t, 2, b.count(wire.ReqUnregisterClient), "who is left is unregistered")
		require.NoError(t, r.Close(t.Context()))
		_, err = r.Conn(t.Context(), "b1:0")
		require.ErrorIs(t, err, ErrClosed)
		_, err = r.FetchRoute(t.Context(), "a")
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, r.RegisterConsumer(&fakeConsumer{group: "h"}), ErrClosed)
		require.ErrorIs(t, r.HeartbeatNow(t.Context()), ErrClosed)
		require.ErrorIs(t, r.Ping(t.Context()), ErrClosed)
	})
}

func TestCloseBeforeUse(t *testing.T) {
	r, err := New(Config{NameServers: []string{"ns:1"}})
	require.NoError(t, err)
	require.NoError(t, r.Close(context.Background()))
	_, err = r.Conn(context.Background(), "b1:0")
	require.ErrorIs(t, err, ErrClosed)
	_, err = r.Route(context.Background(), "a")
	require.ErrorIs(t, err, ErrClosed)
	require.Empty(t, r.Health()[0].LastError)
}

func TestCloseEndsAWaitForARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.blackHole("hole:1")
		r := c.runtime(Config{NameServers: []string{"hole:1"}})
		got := make(chan error, 1)
		go func() {
			_, err := r.Route(t.Context(), "a")
			got <- err
		}()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, r.Close(t.Context()))
		require.ErrorIs(t, <-got, ErrClosed)
		require.Zero(t, time.Since(start))
	})
}

func TestCallReportsCodesAndSurvivesGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		b := c.broker("b1:0")
		r := c.runtime(Config{NameServers: []string{"ns:1"}})
		_, err := r.Call(t.Context(), "b1:0", &wire.Command{Code: wire.ReqViewMessageByID})
		var re *ResponseError
		require.ErrorAs(t, err, &re)
		require.Equal(t, &ResponseError{"VIEW_MESSAGE_BY_ID", "b1:0", wire.RespRequestCodeNotSupported, "no script"}, re)

		away := true
		b.on(wire.ReqViewMessageByID, func(q *remoting.Request) {
			if away {
				away = false
				q.Reply(wire.RespGoAway, "", nil, nil)
				return
			}
			q.Reply(wire.RespSuccess, "", nil, []byte("here"))
		})
		f, err := r.Call(t.Context(), "b1:0", &wire.Command{Code: wire.ReqViewMessageByID})
		require.NoError(t, err)
		require.Equal(t, "here", string(f.Body))
		require.Len(t, b.connections(), 2)
	})
}

func TestHooksAndCredentialsAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		b := c.broker("b1:0")
		b.on(wire.ReqViewMessageByID, func(q *remoting.Request) { q.Reply(wire.RespSuccess, "", nil, nil) })
		var opened, closed []string
		asked := 0
		r := c.runtime(Config{
			NameServers:   []string{"ns:1"},
			BeforeRequest: func(context.Context) error { asked++; return nil },
			OnConnect: func(addr string, _ time.Duration, err error) {
				if err != nil {
					addr += " failed"
				}
				opened = append(opened, addr)
			},
			OnDisconnect: func(addr string, _ error) { closed = append(closed, addr) },
		})
		_, err := r.Call(t.Context(), "b1:0", &wire.Command{Code: wire.ReqViewMessageByID})
		require.NoError(t, err)
		_, err = r.Call(t.Context(), "nobody:0", &wire.Command{Code: wire.ReqViewMessageByID})
		require.ErrorIs(t, err, ErrConnection)
		require.Equal(t, []string{"b1:0", "nobody:0 failed"}, opened)
		require.Equal(t, 2, asked)
		require.NoError(t, r.Close(t.Context()))
		require.Equal(t, []string{"b1:0"}, closed)
	})
}
