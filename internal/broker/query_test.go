package broker

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// TestGoldenQueries plays what Apache's clients and tools asked by key.
func TestGoldenQueries(t *testing.T) {
	data, err := os.ReadFile("testdata/queries.jsonl")
	require.NoError(t, err)
	frame := func(t *testing.T, text string) ([]byte, *wire.Frame) {
		raw, err := hex.DecodeString(text)
		require.NoError(t, err)
		f := &wire.Frame{}
		require.NoError(t, f.Decode(bytes.Clone(raw)))
		return raw, f
	}
	n := 0
	for line := range bytes.Lines(data) {
		var x struct{ Name, Send, Request, Response string }
		require.NoError(t, json.Unmarshal(line, &x))
		n++
		t.Run(x.Name, func(t *testing.T) {
			_, want := frame(t, x.Response)
			now := testStart
			var theirs, ours wire.Record
			if x.Send != "" {
				_, err := wire.DecodeRecord(want.Body, &theirs)
				require.NoError(t, err)
				now = time.UnixMilli(theirs.StoreTime)
			}
			b := startBroker(t, withClock(clock.NewManual(now)))
			nc, err := net.Dial("tcp", b.Addr())
			require.NoError(t, err)
			defer nc.Close()
			ask := func(text string) *wire.Frame {
				raw, _ := frame(t, text)
				_, err := nc.Write(raw)
				require.NoError(t, err)
				f := readFrame(nc)
				for f != nil && !f.IsResponse() {
					f = readFrame(nc)
				}
				require.NotNil(t, f, "connection closed")
				return f
			}
			if x.Send != "" {
				require.Equal(t, wire.RespSuccess, ask(x.Send).Code)
			}
			require.NoError(t, b.Store().WaitIndexed(t.Context()))
			got := ask(x.Request)
			require.Equal(t, want.Code, got.Code)
			require.Equal(t, want.Opaque, got.Opaque)
			require.Equal(t, string(want.Remark), string(got.Remark))
			require.Equal(t, want.NumFields(), got.NumFields())
			var was, is wire.QueryMessageResponse
			require.NoError(t, was.DecodeExt(want))
			require.NoError(t, is.DecodeExt(got))
			if x.Send == "" {
				require.Equal(t, was, is)
				require.Empty(t, got.Body)
				return
			}
			require.Equal(t, wire.QueryMessageResponse{IndexTime: theirs.StoreTime}, is)
			size, err := wire.DecodeRecord(got.Body, &ours)
			require.NoError(t, err)
			require.Len(t, got.Body, size)
			require.Equal(t, theirs.Topic, ours.Topic)
			require.Equal(t, theirs.Body, ours.Body)
			require.Equal(t, theirs.BornTime, ours.BornTime)
			for _, name := range []string{wire.PropUniqKey, wire.PropKeys, wire.PropTags} {
				require.Equal(t, theirs.Properties.Text(name), ours.Properties.Text(name))
			}
		})
	}
	require.Equal(t, 12, n)
}

func (p *peer) query(h *wire.QueryMessageRequest) (bodies []string) {
	p.tb.Helper()
	f := p.call(wire.ReqQueryMessage, h, nil)
	var resp wire.QueryMessageResponse
	require.NoError(p.tb, resp.DecodeExt(f))
	if f.Code == wire.RespQueryNotFound {
		require.Zero(p.tb, resp)
		require.Empty(p.tb, f.Body)
		return nil
	}
	require.Equal(p.tb, wire.RespSuccess, f.Code)
	require.Positive(p.tb, resp.IndexOffset)
	require.Equal(p.tb, testStart.UnixMilli(), resp.IndexTime)
	it := wire.Records(f.Body)
	var r wire.Record
	for ok, err := it.Next(&r); ok || err != nil; ok, err = it.Next(&r) {
		require.NoError(p.tb, err)
		bodies = append(bodies, string(r.Body))
	}
	return bodies
}

func TestQueryMessage(t *testing.T) {
	b := startBroker(t, withClock(clock.NewManual(testStart)), func(c *Config) {
		require.NoError(t, setAll(c, "maxHashSlotNum=16", "maxIndexNum=40", "maxMsgsNumBatch=40"))
	})
	p := dial(t, b)
	for i := range 100 {
		p.send(b, "T", 0, fmt.Sprint("m", i), wire.PropUniqKey, fmt.Sprint("id", i), wire.PropKeys, fmt.Sprintf("all k%d id%d", i%50, i-1))
	}
	require.NoError(t, b.Store().WaitIndexed(t.Context()))
	numbers := func(from, to int) (out []string) {
		for i := from; i < to; i++ {
			out = append(out, fmt.Sprint("m", i))
		}
		return out
	}
	at := testStart.UnixMilli()
	for _, tt := range []struct {
		q    wire.QueryMessageRequest
		want []string
	}{
		{wire.QueryMessageRequest{Topic: "T", Key: "k7", MaxNum: 10, End: at}, []string{"m7", "m57"}},
		{wire.QueryMessageRequest{Topic: "T", Key: "k7", MaxNum: 1, End: at}, []string{"m57"}},
		{wire.QueryMessageRequest{Topic: "T", Key: "k7", End: at}, nil},
		{wire.QueryMessageRequest{Topic: "T", Key: "k7", MaxNum: 10, End: at - 1}, nil},
		{wire.QueryMessageRequest{Topic: "T", Key: "k7", MaxNum: 10, Begin: at + 1, End: math.MaxInt64}, nil},
		{wire.QueryMessageRequest{Topic: "U", Key: "k7", MaxNum: 10, End: at}, nil},
		{wire.QueryMessageRequest{Topic: "T", Key: "all", MaxNum: 10, End: at}, numbers(90, 100)},
		{wire.QueryMessageRequest{Topic: "T", Key: "all", MaxNum: 1000, End: at}, numbers(60, 100)},
		{wire.QueryMessageRequest{Topic: "T", Key: "id5", MaxNum: 10, End: at}, []string{"m5", "m6"}},
		{wire.QueryMessageRequest{Topic: "T", Key: "id5", MaxNum: 0, End: at, UniqueKey: true}, []string{"m5"}},
		{wire.QueryMessageRequest{Topic: "T", Key: "all", MaxNum: 10, End: at, UniqueKey: true}, nil},
	} {
		require.Equal(t, tt.want, p.query(&tt.q), "%+v", tt.q)
	}
	f := p.call(wire.ReqQueryMessage, nil, nil)
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "topic")
}

// An answer is never larger than a frame.
func TestQueryMessageOfLargeBodies(t *testing.T) {
	b := startBroker(t, withClock(clock.NewManual(testStart)), func(c *Config) { c.MaxFrame = 1 << 20 })
	p := dial(t, b)
	body := strings.Repeat("x", 300<<10)
	for i := range 6 {
		p.send(b, "T", 0, fmt.Sprint(i, body), wire.PropKeys, "k")
	}
	require.NoError(t, b.Store().WaitIndexed(t.Context()))
	got := p.query(&wire.QueryMessageRequest{Topic: "T", Key: "k", MaxNum: 10, End: math.MaxInt64})
	require.Equal(t, []string{"3" + body, "4" + body, "5" + body}, got)
}

// With files of the real size: found after a clean stop and after a kill.
func TestQueryAfterRestarts(t *testing.T) {
	fs := mfile.OS()
	cfg := testConfig(withClock(clock.NewManual(testStart)), func(c *Config) {
		c.Store.Dir, c.Store.FS = t.TempDir(), fs
		c.Store.CommitLogFileSize = 1 << 20
	})
	t.Cleanup(func() { require.Zero(t, fs.Mapped(), "files still mapped") })
	var want []string
	for _, end := range []func(*Broker){
		func(b *Broker) { b.Kill() },
		func(b *Broker) { require.NoError(t, b.Close(t.Context())) },
		func(b *Broker) { b.Kill() },
		func(b *Broker) { b.Kill() },
	} {
		b := startWith(t, cfg)
		p := dial(t, b)
		for range 3 {
			want = append(want, fmt.Sprint(len(want)))
			p.send(b, "T", 0, want[len(want)-1], wire.PropKeys, "k")
		}
		require.NoError(t, b.Store().WaitIndexed(t.Context()))
		require.Equal(t, want, p.query(&wire.QueryMessageRequest{Topic: "T", Key: "k", MaxNum: 64, End: math.MaxInt64}))
		p.close()
		end(b)
	}
	list, err := fs.ReadDir(filepath.Join(cfg.Store.Dir, "index"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, int64(420_000_040), list[0].Size)
	require.Equal(t, testStart.Local().Format("20060102150405")+"000", list[0].Name)
}

func TestNoIndex(t *testing.T) {
	b := startBroker(t, func(c *Config) {
		require.NoError(t, setAll(c, "messageIndexEnable=false"))
		require.Contains(t, string(c.properties()), "messageIndexEnable=false\n")
	})
	p := dial(t, b)
	p.send(b, "T", 0, "x", wire.PropKeys, "k")
	require.NoError(t, b.Store().WaitIndexed(t.Context()))
	require.Nil(t, p.query(&wire.QueryMessageRequest{Topic: "T", Key: "k", MaxNum: 10, End: math.MaxInt64}))
	f := p.must(wire.ReqGetBrokerConfig, nil, nil)
	require.Contains(t, string(f.Body), "messageIndexEnable=false\n")
	require.Contains(t, string(f.Body), "maxMsgsNumBatch=64\n")
	require.Error(t, setAll(&Config{}, "messageIndexEnable=maybe"))
}

func setAll(c *Config, lines ...string) error {
	_, err := c.Load(strings.Join(lines, "\n"))
	return err
}
