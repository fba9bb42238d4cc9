package consumer_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// canned answers every pull at once with the same 32 records. It allocates
// nothing per pull, so that what is counted is the consumer's.
type canned struct {
	records []byte
	addr    string
	clients atomic.Pointer[string]
	next    int64
}

// AppendResponse implements remoting.Responder. It is called before the
// handler returns, so one value serves a connection.
func (c *canned) AppendResponse(dst []byte, h wire.Head) []byte {
	h.Code = wire.RespSuccess
	e := wire.Begin(dst, h)
	(&wire.PullResponse{NextOffset: c.next, MaxOffset: 1 << 40}).EncodeExt(&e)
	return e.Finish(c.records)
}

func (c *canned) serve(r *remoting.Request) {
	switch f := r.Frame(); f.Code {
	case wire.ReqPullMessage:
		var h wire.PullRequest
		_ = h.DecodeExt(f)
		c.next = h.Offset + 32
		r.ReplyAppend(c)
	case wire.ReqGetRouteInfoByTopic:
		var h wire.RouteRequest
		_ = h.DecodeExt(f)
		if wire.IsRetryTopic(h.Topic) {
			r.Reply(wire.RespTopicNotExist, "", nil, nil)
			return
		}
		d := wire.RouteData{
			Queues:  []wire.QueueData{{BrokerName: "b", ReadQueues: 8, WriteQueues: 8, Perm: 6}},
			Brokers: []wire.BrokerData{{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: c.addr}}},
		}
		r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
	case wire.ReqHeartBeat:
		hb, _ := wire.DecodeHeartbeat(f.Body)
		c.clients.Store(&hb.ClientID)
		r.Reply(wire.RespSuccess, "", &wire.HeartbeatResponse{}, nil)
	case wire.ReqGetConsumerListByGroup:
		l := wire.ConsumerList{IDs: []string{*c.clients.Load()}}
		r.Reply(wire.RespSuccess, "", nil, l.AppendJSON(nil))
	case wire.ReqQueryConsumerOffset:
		r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{}, nil)
	default:
		r.Reply(wire.RespSuccess, "", nil, nil)
	}
}

func newCanned(tb testing.TB, size int) *canned {
	tb.Helper()
	c := &canned{}
	for i := range 32 {
		var props []byte
		for _, kv := range [][2]string{
			{wire.PropUniqKey, fmt.Sprintf("0A00000100002A9F00000000%08X", i)}, {wire.PropWait, "true"}, {wire.PropTags, "TagA"},
			{"CLUSTER", "DefaultCluster"}, {"MSG_REGION", "DefaultRegion"}, {"TRACE_ON", "true"},
		} {
			props = wire.AppendProperty(props, kv[0], kv[1])
		}
		c.records = wire.AppendRecord(c.records, &wire.Record{
			QueueOffset: int64(i), PhyOffset: int64(i), BornTime: 1700000000000, StoreTime: 1700000000001,
			BornHost: netip.MustParseAddrPort("10.0.0.1:1234"), StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"),
			Topic: []byte("BenchTopic"), Body: make([]byte, size), Properties: props,
		})
	}
	srv := remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: c.serve}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	c.addr = ln.Addr().String()
	require.NoError(tb, srv.Serve(ln))
	tb.Cleanup(func() { _ = srv.Close(context.Background()) })
	return c
}

// benchConsume handles n messages and reports what one costs. The broker's
// half runs in the same process and on the same cores.
func benchConsume(b *testing.B, size int) {
	c := newCanned(b, size)
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.addr))
	require.NoError(b, err)
	b.Cleanup(func() { _ = cl.Close(context.Background()) })
	var n atomic.Int64
	var limit atomic.Int64
	limit.Store(1 << 62)
	done := make(chan struct{})
	p, err := consumer.NewPush(cl, "bench", consumer.Subscribe("BenchTopic", selector.Tags("TagA"),
		consumer.Each(func(context.Context, *rocketmq.MessageView) error {
			if n.Add(1) == limit.Load() {
				close(done)
			}
			return nil
		})))
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- p.Run(ctx) }()
	<-p.Ready()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	start := n.Load()
	limit.Store(start + max(int64(b.N), 100_000)) // some have been handled already
	<-done
	total := n.Load() - start
	b.StopTimer()
	runtime.ReadMemStats(&after)
	cancel()
	require.NoError(b, <-result)
	secs := b.Elapsed().Seconds()
	b.ReportMetric(float64(total)/secs, "msg/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(total), "allocs/msg")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(total), "B/msg")
}

func BenchmarkConsume(b *testing.B) {
	for _, size := range []int{200, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) { benchConsume(b, size) })
	}
}
