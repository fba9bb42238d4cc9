package broker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// window is how many requests the benchmarks have in flight.
const window = 128

// rawClient sends ready-made frames and counts answers; it allocates nothing,
// so that what a benchmark reports is the broker's.
type rawClient struct {
	tb testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func rawDial(tb testing.TB, b *Broker) *rawClient {
	tb.Helper()
	nc, err := net.Dial("tcp", b.Addr())
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = nc.Close() })
	return &rawClient{tb, nc, bufio.NewReaderSize(nc, 256<<10)}
}

// answers reads n answers and returns the size of the last.
func (c *rawClient) answers(n int) int {
	size := 0
	var head [4]byte
	for range n {
		if _, err := io.ReadFull(c.r, head[:]); err != nil {
			c.tb.Fatal(err)
		}
		size = int(binary.BigEndian.Uint32(head[:]))
		if _, err := c.r.Discard(size); err != nil {
			c.tb.Fatal(err)
		}
	}
	return size
}

// exchange sends n frames a window at a time.
func (c *rawClient) exchange(n int, frame []byte) { c.exchangeBy(window, n, frame) }

func (c *rawClient) exchangeBy(window, n int, frame []byte) {
	batch := frame
	if n > 1 {
		batch = bytes.Repeat(frame, window)
	}
	for n > 0 {
		k := min(n, window)
		if _, err := c.nc.Write(batch[:k*len(frame)]); err != nil {
			c.tb.Fatal(err)
		}
		c.answers(k)
		n -= k
	}
}

func sendFrame(topic string, body []byte) []byte {
	h := sendHeader(topic, 0, "UNIQ_KEY", "0A0000010001000000020000000A0001", "WAIT", "true", "TAGS", "TagA")
	cmd := wire.Command{Code: wire.ReqSendMessageV2, Ext: h, Body: body}
	return cmd.Append(nil, wire.Head{Encoding: wire.Binary})
}

func benchBroker(b *testing.B, onDisk bool) *Broker {
	return startBroker(b, func(c *Config) {
		if onDisk {
			c.Store.FS, c.Store.Dir = mfile.OS(), b.TempDir()
		}
		c.Store.CommitLogFileSize = 64 << 20
		c.Store.ConsumeQueueFileSize = 6_000_000
	})
}

// perMessage reports what the process allocated, per message.
func perMessage(b *testing.B, n int, work func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/msg")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n), "B/msg")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkSend(b *testing.B) {
	for name, onDisk := range map[string]bool{"memory": false, "disk": true} {
		b.Run(name, func(b *testing.B) {
			broker := benchBroker(b, onDisk)
			c := rawDial(b, broker)
			frame := sendFrame("T", make([]byte, 1024))
			c.exchange(1000, frame)
			b.ResetTimer()
			perMessage(b, b.N, func() { c.exchange(b.N, frame) })
		})
	}
}

func BenchmarkPull(b *testing.B) {
	broker := benchBroker(b, false)
	c := rawDial(b, broker)
	c.exchange(10_000, sendFrame("T", make([]byte, 1024)))
	require.NoError(b, broker.Store().WaitDispatched(b.Context()))
	cmd := wire.Command{Code: wire.ReqPullMessage, Ext: pullHeaderOf("CG", "T", 0, 5000)}
	frame := cmd.Append(nil, wire.Head{Encoding: wire.Binary})
	c.exchangeBy(8, 100, frame)
	b.ResetTimer()
	perMessage(b, b.N*32, func() { c.exchangeBy(8, b.N, frame) })
}

// BenchmarkLongPoll is one message at a time through a held pull: the way of a
// consumer that has caught up.
func BenchmarkLongPoll(b *testing.B) {
	broker := benchBroker(b, false)
	producer, consumer := rawDial(b, broker), rawDial(b, broker)
	send := sendFrame("T", make([]byte, 1024))
	producer.exchange(1, send)
	var frame []byte
	b.ResetTimer()
	perMessage(b, b.N, func() {
		for i := range b.N {
			cmd := wire.Command{Code: wire.ReqPullMessage, Ext: holding(pullHeaderOf("CG", "T", 0, int64(i+1)))}
			frame = cmd.Append(frame[:0], wire.Head{Encoding: wire.Binary})
			if _, err := consumer.nc.Write(frame); err != nil {
				b.Fatal(err)
			}
			producer.exchange(1, send)
			consumer.answers(1)
		}
	})
}

// TestSendAllocations keeps the message path what it is.
func TestSendAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget at random")
	}
	broker := startBroker(t)
	c := rawDial(t, broker)
	frame := sendFrame("T", make([]byte, 100))
	c.exchange(1000, frame)
	const n = 10 * window
	perSend := testing.AllocsPerRun(5, func() { c.exchange(n, frame) }) / n
	require.Less(t, perSend, 1.0, "broker allocations per message")
}

// BenchmarkDelivery delivers delayed messages of 200 bytes that are due.
func BenchmarkDelivery(b *testing.B) {
	c := clock.NewManual(testStart)
	br := startBroker(b, withClock(c), func(cfg *Config) { cfg.Store.FS, cfg.Store.Dir = mfile.OS(), b.TempDir() })
	require.NoError(b, br.CreateTopic(b.Context(), "T", 4))
	body := make([]byte, 200)
	for i := range b.N {
		m := &store.Message{Topic: []byte("T"), QueueID: int32(i % 4), Body: body, Properties: wire.AppendProperty(nil, wire.PropUniqKey, "0A00000200002A9F0000000000000004")}
		br.park(nil, m, int64(i%18+1))
		if res, _ := br.store.Put(m, nil); res.Err != nil {
			b.Fatal(res.Err)
		}
	}
	require.NoError(b, br.SettleDelays(b.Context()))
	b.ReportAllocs()
	b.ResetTimer()
	c.Advance(3 * time.Hour)
	require.NoError(b, br.SettleDelays(b.Context()))
	b.StopTimer()
	require.Zero(b, br.Delayed())
}
