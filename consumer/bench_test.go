package consumer_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

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
	case wire.ReqPopMessage:
		r.Reply(wire.RespSuccess, "", &wire.PopResponse{PopTime: 1700000000000, InvisibleMillis: 60000, StartOffsets: []byte("0 0 0")}, c.records)
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

// cost is what handling a number of messages took.
type cost struct {
	messages, mallocs, bytes int64
	took                     time.Duration
}

// consumeCanned handles at least n messages of size bytes, with tags checked
// and properties unread. The broker's half runs in the same process and on the
// same cores, and is counted, too.
func consumeCanned(tb testing.TB, size int, n int64) cost {
	tb.Helper()
	c := newCanned(tb, size)
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.addr))
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = cl.Close(context.Background()) })
	var handled, limit atomic.Int64
	limit.Store(math.MaxInt64)
	done := make(chan struct{})
	p, err := consumer.NewPush(cl, "bench", consumer.Subscribe("BenchTopic", selector.Tags("TagA"),
		consumer.Each(func(context.Context, *rocketmq.MessageView) error {
			if handled.Add(1) == limit.Load() {
				close(done)
			}
			return nil
		})))
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- p.Run(ctx) }()
	<-p.Ready()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, first := time.Now(), handled.Load()
	limit.Store(first + max(n, 30_000)) // some have been handled since
	<-done
	took, total := time.Since(began), handled.Load()-first
	runtime.ReadMemStats(&after)
	cancel()
	require.NoError(tb, <-result)
	return cost{total, int64(after.Mallocs - before.Mallocs), int64(after.TotalAlloc - before.TotalAlloc), took}
}

func BenchmarkConsume(b *testing.B) {
	for _, size := range []int{200, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			c := consumeCanned(b, size, int64(b.N))
			n := float64(c.messages)
			b.ReportMetric(float64(c.took.Nanoseconds())/n, "ns/op")
			b.ReportMetric(n/c.took.Seconds(), "msg/s")
			b.ReportMetric(float64(c.mallocs)/n, "allocs/msg")
			b.ReportMetric(float64(c.bytes)/n, "B/msg")
		})
	}
}

// receiveCanned receives at least n messages with a Simple consumer, 32 at a time,
// and acknowledges them together.
func receiveCanned(tb testing.TB, size int, n int64) cost {
	tb.Helper()
	c := newCanned(tb, size)
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.addr))
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = cl.Close(context.Background()) })
	s, err := consumer.NewSimple(cl, "bench", consumer.SubscribeTo("BenchTopic", selector.Tags("TagA")))
	require.NoError(tb, err)
	next := func() int64 {
		got, err := s.Receive(tb.Context(), 32, time.Minute)
		require.NoError(tb, err)
		require.NoError(tb, s.AckAll(tb.Context(), got...))
		return int64(len(got))
	}
	next()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, total := time.Now(), int64(0)
	for total < n {
		total += next()
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return cost{total, int64(after.Mallocs - before.Mallocs), int64(after.TotalAlloc - before.TotalAlloc), took}
}

func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{200, 1024} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			c := receiveCanned(b, size, int64(b.N))
			n := float64(c.messages)
			b.ReportMetric(float64(c.took.Nanoseconds())/n, "ns/op")
			b.ReportMetric(n/c.took.Seconds(), "msg/s")
			b.ReportMetric(float64(c.mallocs)/n, "allocs/msg")
			b.ReportMetric(float64(c.bytes)/n, "B/msg")
		})
	}
}

// A page of 32 with its acknowledgement costs about 60 allocations, those of the
// broker's half and of contexts included: 1.9 a message.
func TestAllocationsPerReceivedMessage(t *testing.T) {
	c := receiveCanned(t, 1024, 10_000)
	require.Less(t, float64(c.mallocs)/float64(c.messages), 3.0)
}

// The budget is 1 allocation a message; about 0.26 is what it takes.
func TestAllocationsPerConsumedMessage(t *testing.T) {
	c := consumeCanned(t, 1024, 30_000)
	require.Less(t, float64(c.mallocs)/float64(c.messages), 0.5)
}
