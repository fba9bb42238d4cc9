package namesrv

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func (r *raw) putKV(ns, key, value string) *wire.Frame {
	r.t.Helper()
	return r.ask(wire.ReqPutKVConfig, 479, &wire.KVRequest{Namespace: ns, Key: key, Value: value}, nil)
}

func TestKVSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "namesrv", "kvConfig.json")
	s, err := Start(t.Context(), Config{Addr: "127.0.0.1:0", ConfigPath: path})
	require.NoError(t, err)
	c := dial(t, s)
	require.Equal(t, wire.RespSuccess, c.putKV("ns", "k", "v<1>").Code)
	require.Equal(t, wire.RespSuccess, c.putKV("ns", "gone", "x").Code)
	f := c.ask(wire.ReqDeleteKVConfig, 479, &wire.KVRequest{Namespace: "ns", Key: "gone"}, nil)
	require.Equal(t, wire.RespSuccess, f.Code)
	// The answer came, so the file is there, before any clean end.
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, `{"configTable":{"ns":{"k":"v<1>"}}}`, string(b))
	require.Contains(t, string(b), "v<1>", "as Apache writes it")
	require.NoError(t, s.Close(context.Background()))

	c = dial(t, start(t, Config{ConfigPath: path}))
	f = c.ask(wire.ReqGetKVConfig, 479, &wire.KVRequest{Namespace: "ns", Key: "k"}, nil)
	require.Equal(t, "v<1>", f.Text("value"))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file stays")
}

func TestKVAnswers(t *testing.T) {
	c := dial(t, start(t, Config{}))
	f := c.ask(wire.ReqGetKvlistByNamespace, 479, &wire.KVRequest{Namespace: "ns"}, nil)
	require.Equal(t, wire.RespQueryNotFound, f.Code)
	require.Equal(t, "No config item, Namespace: ns", string(f.Remark))
	require.Equal(t, wire.RespSuccess, c.putKV("ns", "k", "v").Code)
	f = c.ask(wire.ReqGetKvlistByNamespace, 479, &wire.KVRequest{Namespace: "ns"}, nil)
	require.Equal(t, `{"table":{"k":"v"}}`, string(f.Body))
	f = c.ask(wire.ReqDeleteKVConfig, 479, &wire.KVRequest{Namespace: "other", Key: "k"}, nil)
	require.Equal(t, wire.RespSuccess, f.Code, "deleting what is not there is no error")
	f = c.ask(wire.ReqPutKVConfig, 479, wire.ExtFields{"namespace": "ns"}, nil)
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "key")
}

func TestKVThatCannotBeStored(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	_, err := Start(t.Context(), Config{Addr: "127.0.0.1:0", ConfigPath: dir})
	require.ErrorContains(t, err, "key-value configuration", "a folder is no file")

	s := start(t, Config{ConfigPath: filepath.Join(dir, "later", "kv.json")})
	c := dial(t, s)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "later"), nil, 0o600))
	f := c.putKV("ns", "k", "v")
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "not stored")
	f = c.ask(wire.ReqGetKVConfig, 479, &wire.KVRequest{Namespace: "ns", Key: "k"}, nil)
	require.Equal(t, "v", f.Text("value"), "in effect all the same")
}

func TestBrokenKVFileStopsTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kvConfig.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"configTable":`), 0o600))
	_, err := Start(t.Context(), Config{Addr: "127.0.0.1:0", ConfigPath: path})
	require.ErrorContains(t, err, path)
}

func TestOrderConfigInRoutesAndRegistrations(t *testing.T) {
	c := dial(t, start(t, Config{OrderMessage: true}))
	require.Empty(t, c.registerOn("a", 0, "h:1", 1, "T", "U").Body)
	require.Equal(t, wire.RespSuccess, c.putKV(orderNamespace, "T", "a:4").Code)
	route := func() string {
		return string(c.ask(wire.ReqGetRouteInfoByTopic, 479, &wire.RouteRequest{Topic: "T"}, nil).Body)
	}
	require.Contains(t, route(), `"orderTopicConf":"a:4"`)
	require.Equal(t, `{"table":{"T":"a:4"}}`, string(c.registerOn("a", 0, "h:1", 1, "T", "U").Body))

	// Both can be switched off at run time.
	f := c.ask(wire.ReqUpdateNameServerConfig, 479, nil, []byte("orderMessageEnable=false\nreturnOrderTopicConfigToBroker = false\n"))
	require.Equal(t, wire.RespSuccess, f.Code, "%s", f.Remark)
	require.NotContains(t, route(), "orderTopicConf")
	require.Empty(t, c.registerOn("a", 0, "h:1", 1, "T", "U").Body)
}

func TestSettings(t *testing.T) {
	c := dial(t, start(t, Config{}))
	show := func() string { return string(c.ask(wire.ReqGetNameServerConfig, 479, nil, nil).Body) }
	require.Contains(t, show(), "scanNotActiveBrokerInterval=10000\n")
	update := func(text string) *wire.Frame { return c.ask(wire.ReqUpdateNameServerConfig, 479, nil, []byte(text)) }
	require.Equal(t, wire.RespSuccess, update("# note\nscanNotActiveBrokerInterval=2000\nunknownKey=1\n").Code)
	require.Contains(t, show(), "scanNotActiveBrokerInterval=2000\n")
	require.Equal(t, wire.RespNoPermission, update("scanNotActiveBrokerInterval=1\nkvConfigPath=/x\n").Code)
	for _, bad := range []string{"scanNotActiveBrokerInterval=soon", "scanNotActiveBrokerInterval=0", "orderMessageEnable=maybe"} {
		require.Equal(t, wire.RespSystemError, update(bad).Code, bad)
	}
	require.Contains(t, show(), "scanNotActiveBrokerInterval=2000\n", "bad lines change nothing")
}
