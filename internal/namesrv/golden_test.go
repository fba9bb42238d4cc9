package namesrv

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// exchange is one line of testdata/exchanges.jsonl.
type exchange struct {
	Name              string
	Request, Response string
}

func readExchanges(t *testing.T) []exchange {
	t.Helper()
	f, err := os.Open("testdata/exchanges.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var out []exchange
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var x exchange
		require.NoError(t, json.Unmarshal(sc.Bytes(), &x))
		out = append(out, x)
	}
	require.NoError(t, sc.Err())
	return out
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func decode(t *testing.T, s string) *wire.Frame {
	t.Helper()
	var f wire.Frame
	require.NoError(t, f.Decode(unhex(t, s)))
	return &f
}

// TestApacheExchanges sends what Apache's brokers, clients and tools sent and
// compares the answers with those of Apache's name servers: same code, same
// extension fields, same body up to the order of lists.
func TestApacheExchanges(t *testing.T) {
	sessions := map[string][]exchange{}
	for _, x := range readExchanges(t) {
		name, _, _ := strings.Cut(x.Name, " ")
		sessions[name] = append(sessions[name], x)
	}
	require.Len(t, sessions, 4)
	for name, xs := range sessions {
		t.Run(name, func(t *testing.T) { replay(t, xs) })
	}
}

func replay(t *testing.T, xs []exchange) {
	var cfg Config
	closed := make(chan struct{}, len(xs)+1)
	cfg.Remoting.OnClose = func(*remoting.Conn, error) { closed <- struct{}{} }
	s := start(t, cfg)
	broker := dial(t, s)
	prepare(t, broker, xs)
	for _, x := range xs {
		if q := decode(t, x.Request); !isReport(q) && q.Code != wire.ReqUnregisterBroker {
			replayOne(t, s, x)
			<-closed // with its connection goes a slave that it registered
		} // the former went before, the latter comes last
	}
	for _, x := range xs {
		if q := decode(t, x.Request); q.Code == wire.ReqUnregisterBroker {
			broker.write(unhex(t, x.Request))
			require.Equal(t, wire.RespSuccess, broker.read().Code)
			require.Equal(t, wire.RespTopicNotExist, broker.routeCode("TBW102"))
		}
	}
}

func replayOne(t *testing.T, s *Server, x exchange) {
	q := decode(t, x.Request)
	want := decode(t, x.Response)
	if want.Code == wire.RespTopicNotExist {
		restore := hide(s.tables, q.Text("topic"))
		defer restore()
	}
	c := dial(t, s) // Apache's tools use a connection each
	c.write(unhex(t, x.Request))
	got := c.read()
	require.Equal(t, want.Code, got.Code, "%s: %s", x.Name, got.Remark)
	require.Equal(t, q.Opaque, got.Opaque, x.Name)
	require.Equal(t, q.Encoding, got.Encoding, x.Name)
	require.Equal(t, wire.FlagResponse, got.Flag, x.Name)
	require.Equal(t, extOf(want), extOf(got), x.Name)
	if want.Code == wire.RespSuccess {
		compareBody(t, x.Name, q, want, got)
	} else {
		// 4.9 has another address of the FAQ.
		wantRemark, _, _ := strings.Cut(string(want.Remark), "\n")
		gotRemark, _, _ := strings.Cut(string(got.Remark), "\n")
		require.Equal(t, wantRemark, gotRemark, x.Name)
	}
	require.NoError(t, c.nc.Close())
}

// hide takes a topic out until restore is called: Apache was asked before the
// topic came or after its broker had left.
func hide(tb *tables, topic string) (restore func()) {
	d, _ := tb.routeData(topic)
	tb.deleteTopic(topic, "")
	return func() { tb.addQueues(topic, d.Queues) }
}

// prepare brings the server to the state in which Apache's were asked: the
// broker's recorded registrations, then the topics whose registrations were
// not kept in the recording.
func prepare(t *testing.T, c *raw, xs []exchange) {
	t.Helper()
	var addr wire.UnregisterBrokerRequest
	var missing []string
	for _, x := range xs {
		q := decode(t, x.Request)
		switch {
		case q.Code == wire.ReqUnregisterBroker:
			require.NoError(t, addr.DecodeExt(q))
		case isReport(q):
			c.write(unhex(t, x.Request))
			if x.Response != "" {
				got, want := c.read(), decode(t, x.Response)
				require.Equal(t, want.Code, got.Code)
				require.Equal(t, extOf(want), extOf(got))
				require.Equal(t, string(want.Body), string(got.Body))
			}
		case q.Code == wire.ReqGetAllTopicListFromNameserver:
			l, err := wire.DecodeTopicList(decode(t, x.Response).Body)
			require.NoError(t, err)
			missing = l.Topics
		}
	}
	v, ok := versionAsked(t, xs)
	require.True(t, ok)
	for _, topic := range missing {
		body := wire.RegisterBrokerBody{Version: v, Topics: map[string]wire.TopicConfig{
			topic: {Name: topic, ReadQueues: 2, WriteQueues: 2, Perm: 6},
		}}
		if c.routeCode(topic) == wire.RespSuccess {
			continue
		}
		f := c.ask(wire.ReqRegisterBroker, 479, &wire.RegisterBrokerRequest{
			BrokerName: addr.BrokerName, BrokerAddr: addr.BrokerAddr, ClusterName: addr.ClusterName,
			HAServerAddr: haOf(t, xs),
		}, body.AppendJSON(nil))
		require.Equal(t, wire.RespSuccess, f.Code, "%s", f.Remark)
	}
}

// isReport is true for a broker's registration with all its topics.
func isReport(q *wire.Frame) bool { return q.Code == wire.ReqRegisterBroker && len(q.Body) > 300 }

// versionAsked is the data version Apache's answer to code 322 showed.
func versionAsked(t *testing.T, xs []exchange) (wire.DataVersion, bool) {
	t.Helper()
	for _, x := range xs {
		if decode(t, x.Request).Code == wire.ReqQueryDataVersion {
			v, err := wire.DecodeDataVersion(decode(t, x.Response).Body)
			require.NoError(t, err)
			return v, true
		}
	}
	return wire.DataVersion{}, false
}

func haOf(t *testing.T, xs []exchange) string {
	t.Helper()
	for _, x := range xs {
		if q := decode(t, x.Request); q.Code == wire.ReqRegisterBroker {
			return q.Text("haServerAddr")
		}
	}
	return ""
}

func extOf(f *wire.Frame) map[string]string {
	m := map[string]string{}
	for i := range f.NumFields() {
		m[string(f.Field(i).Key)] = string(f.Field(i).Value)
	}
	// How many topics there are depends on what the session did before.
	for _, k := range []string{"wipeTopicCount", "addTopicCount"} {
		if _, ok := m[k]; ok {
			m[k] = "n"
		}
	}
	return m
}

func compareBody(t *testing.T, name string, q, want, got *wire.Frame) {
	t.Helper()
	switch q.Code {
	case wire.ReqGetNameServerConfig:
		keys := map[string]bool{}
		for line := range strings.Lines(string(want.Body)) {
			k, _, _ := strings.Cut(line, "=")
			keys[k] = true
		}
		for line := range strings.Lines(string(got.Body)) {
			k, _, ok := strings.Cut(line, "=")
			require.True(t, ok, line)
			require.True(t, keys[k] || strings.HasPrefix(name, "4.9"), "%s is no key of Apache", k)
		}
	case wire.ReqGetAllTopicListFromNameserver, wire.ReqGetTopicsByCluster, wire.ReqGetSystemTopicListFromNS:
		w, err := wire.DecodeTopicList(want.Body)
		require.NoError(t, err)
		g, err := wire.DecodeTopicList(got.Body)
		require.NoError(t, err)
		w.Topics = slices.DeleteFunc(w.Topics, func(s string) bool {
			return s == "TopicGone" || s == "%RETRY%GroupPull" // created after the list that prepare uses
		})
		g.Topics = slices.DeleteFunc(g.Topics, func(s string) bool { return s == "%RETRY%GroupPull" })
		slices.Sort(w.Topics)
		slices.Sort(g.Topics)
		require.Equal(t, w, g, name)
	default:
		w := string(want.Body)
		if strings.HasPrefix(name, "4.9") {
			// What 5.x added.
			got.Body = regexp.MustCompile(`,"enableActingMaster":false`).ReplaceAll(got.Body, nil)
			got.Body = regexp.MustCompile(`,"stateVersion":0`).ReplaceAll(got.Body, nil)
		}
		require.Equal(t, w, string(got.Body), name)
	}
}
