package broker

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// exchange is one line of testdata/exchanges.jsonl.
type exchange struct {
	Name         string
	Setup        bool
	Request      string
	Code         int32
	Remark       *string
	Ext          []string
	Body         *string
	BodyIsBinary bool `json:"body_is_binary"`
}

// TestGoldenExchanges replays what Apache's clients and tools asked a 5.3.3
// broker. Ours must answer with the same code, the same extension fields and a
// body of the same shape.
func TestGoldenExchanges(t *testing.T) {
	data, err := os.ReadFile("testdata/exchanges.jsonl")
	require.NoError(t, err)
	for _, encoding := range []string{"JSON", "ROCKETMQ"} {
		t.Run(encoding, func(t *testing.T) {
			c := clock.NewManual(testStart)
			b := startBroker(t, withClock(c))
			nc, err := net.Dial("tcp", b.Addr())
			require.NoError(t, err)
			t.Cleanup(func() { _ = nc.Close() })
			n := 0
			for line := range bytes.Lines(data) {
				var x exchange
				require.NoError(t, json.Unmarshal(line, &x))
				if !strings.HasPrefix(x.Name, "5.3-"+encoding+" ") {
					continue
				}
				if x.Setup {
					goldenMessages(t, b)
					continue
				}
				t.Run(x.Name, func(t *testing.T) { replay(t, b, c, nc, &x) })
				n++
			}
			require.Greater(t, n, 40)
		})
	}
}

// goldenMessages makes what was there when the rest was recorded: three
// messages in one queue of TopicA, one with another tag in the second, and a
// consumer of GroupA.
func goldenMessages(t *testing.T, b *Broker) {
	p := dial(t, b)
	p.send(b, "TopicA", 0, "second", "TAGS", "TagB")
	p.send(b, "TopicA", 0, "third", "TAGS", "TagA")
	p.send(b, "TopicA", 1, "another", "TAGS", "TagC")
	s := wire.TagSubscription("TopicA", "TagA || TagB")
	s.Version = 2_000_000_000_000
	retry := wire.TagSubscription("%RETRY%GroupA", "*")
	retry.Version = s.Version
	hb := wire.Heartbeat{ClientID: "192.0.2.2@1#2", Consumers: []wire.ConsumerData{{
		Group: "GroupA", ConsumeType: wire.ConsumePassively, Model: wire.Clustering, From: wire.FromFirstOffset,
		Subscriptions: []wire.Subscription{s, retry},
	}}}
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))
}

func replay(t *testing.T, b *Broker, c *clock.Manual, nc net.Conn, x *exchange) {
	if strings.Contains(x.Name, "GET_CONSUME_STATS") { // which needs a commit
		b.offsets.Commit([]byte("GroupA"), []byte("TopicA"), 0, 1)
	}
	req, err := hex.DecodeString(x.Request)
	require.NoError(t, err)
	_, err = nc.Write(req)
	require.NoError(t, err)
	got := make(chan *wire.Frame, 1)
	go func() {
		f := readFrame(nc)
		for f != nil && !f.IsResponse() {
			f = readFrame(nc) // the broker's own requests come over the connection as well
		}
		got <- f
	}()
	var f *wire.Frame
	require.Eventually(t, func() bool {
		if b.Held() > 0 {
			c.Advance(time.Minute) // nobody waits for a long poll here
		}
		select {
		case f = <-got:
			return true
		default:
			return false
		}
	}, 30*time.Second, time.Millisecond)
	require.NotNil(t, f, "connection closed")

	require.Equal(t, x.Code, f.Code, "%s", f.Remark)
	require.True(t, f.IsResponse())
	var ext []string
	for i := range f.NumFields() {
		ext = append(ext, string(f.Field(i).Key))
	}
	slices.Sort(ext)
	require.Equal(t, x.Ext, append([]string{}, ext...))
	if f.Code == wire.RespPullNotFound || x.Code == wire.RespPullRetryImmediately || x.Code == wire.RespPullOffsetMoved {
		require.Equal(t, *x.Remark, string(f.Remark))
	}
	switch {
	case x.BodyIsBinary:
		require.NotEmpty(t, f.Body)
	case x.Body == nil || *x.Body == "":
		require.Empty(t, f.Body)
	default:
		sameShape(t, x.Name, parseDialect(t, []byte(*x.Body)), parseDialect(t, f.Body))
	}
}

func readFrame(r io.Reader) *wire.Frame {
	head := make([]byte, wire.FrameHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil
	}
	n, err := wire.FrameSize(head, 0)
	if err != nil {
		return nil
	}
	b := append(head, make([]byte, n-len(head))...)
	if _, err := io.ReadFull(r, b[wire.FrameHead:]); err != nil {
		return nil
	}
	f := &wire.Frame{}
	if f.Decode(b) != nil {
		return nil
	}
	return f
}

// parseDialect reads fastjson's dialect: object and number keys become strings.
func parseDialect(t *testing.T, b []byte) any {
	var out []byte
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '"' {
			end := i + 1
			for b[end] != '"' {
				if b[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, b[i:end+1]...)
			i = end
			continue
		}
		out = append(out, c)
		if (c == '{' || c == ',' && key(b, i+1)) && i+1 < len(b) && b[i+1] != '"' && b[i+1] != '}' {
			end := i + 1
			if b[end] == '{' {
				end += bytes.IndexByte(b[end:], '}') + 1
			} else {
				end += bytes.IndexByte(b[end:], ':')
			}
			q, err := json.Marshal(string(b[i+1 : end]))
			require.NoError(t, err)
			out = append(out, q...)
			i = end - 1
		}
	}
	var v any
	require.NoError(t, json.Unmarshal(out, &v), "%s", out)
	return v
}

// key tells whether an unquoted key starts at i: an object or a number that a
// colon follows.
func key(b []byte, i int) bool {
	if i >= len(b) {
		return false
	}
	if b[i] == '{' {
		end := i + bytes.IndexByte(b[i:], '}') + 1
		return end < len(b) && b[end] == ':'
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i < len(b) && b[i] == ':'
}

// tables are objects whose keys are data.
var tables = []string{"offsetTable", "topicConfigTable", "subscriptionGroupTable", "subscriptionTable", "attributes", "forbiddenTable"}

func sameShape(t *testing.T, at string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		require.True(t, ok, at)
		if i := strings.LastIndexByte(at, '.'); i >= 0 && slices.Contains(tables, at[i+1:]) {
			require.Equal(t, len(want) > 0, len(got) > 0, at)
			for k, w := range want {
				if g, both := got[k]; both {
					sameShape(t, at+"[]", w, g)
				}
			}
			return
		}
		for k, v := range want {
			if strings.HasPrefix(k, "commitLogDiskRatio_") || strings.HasPrefix(k, "scheduleMessageOffset_") {
				continue // the path and the levels in use are in the name
			}
			require.Contains(t, got, k, at)
			sameShape(t, at+"."+k, v, got[k])
		}
		for k := range got {
			if !strings.HasSuffix(at, ".table") {
				require.Contains(t, want, k, at+": more than Apache has")
			}
		}
	case []any:
		got, ok := got.([]any)
		require.True(t, ok, at)
		require.Equal(t, len(want) > 0, len(got) > 0, at)
		if len(want) > 0 {
			sameShape(t, at+"[]", want[0], got[0])
		}
	default:
		require.IsType(t, want, got, at)
	}
}
