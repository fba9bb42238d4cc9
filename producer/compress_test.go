package producer_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func compressible(n int) []byte { return bytes.Repeat([]byte("abcdefgh "), n/9+1)[:n] }

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestC18_CompressionLeavesTheMessageAlone(t *testing.T) {
	for name, o := range map[string]struct {
		opt  producer.Option
		flag int32
	}{
		"default": {nil, wire.SysCompressed | wire.SysCompressionZLIB},
		"zlib 9":  {producer.WithCompression(producer.ZLIB, 9, 0), wire.SysCompressed | wire.SysCompressionZLIB},
		"lz4":     {producer.WithCompression(producer.LZ4, 0, 1000), wire.SysCompressed | wire.SysCompressionLZ4},
		"lz4 9":   {producer.WithCompression(producer.LZ4, 9, 1000), wire.SysCompressed | wire.SysCompressionLZ4},
		"zstd":    {producer.WithCompression(producer.ZSTD, 3, 1000), wire.SysCompressed | wire.SysCompressionZSTD},
		"none":    {producer.WithCompression(producer.NoCompression, 0, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.topic("orders", 1, "b1=b1:0")
			b := c.broker("b1:0")
			p := c.producer(o.opt)
			first := true
			b.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
				code := wire.RespSuccess
				if first {
					code = wire.RespSystemBusy
				}
				first = false
				b.store(q, code, "")
			})
			body := compressible(100_000)
			m := &rocketmq.Message{Topic: "orders", Body: bytes.Clone(body)}
			_, err := p.Send(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, body, m.Body)
			_, err = p.Send(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, body, m.Body)
			got := b.got()
			require.Len(t, got, 3)
			require.Equal(t, got[0].id, got[1].id)
			for _, s := range got {
				require.Equal(t, o.flag, s.head.SysFlag)
				require.Equal(t, got[0].body, s.body)
				require.Equal(t, o.flag == 0, len(s.body) == len(body))
			}
			// What does not get shorter, and what is short, goes as it is.
			noise := random(50_000)
			for _, raw := range [][]byte{noise, []byte("short")} {
				_, err = p.Send(t.Context(), &rocketmq.Message{Topic: "orders", Body: raw})
				require.NoError(t, err)
				last := b.got()[len(b.got())-1]
				require.Zero(t, last.head.SysFlag)
				require.Equal(t, string(raw), last.body)
			}
		})
	}
}

// What one end compresses the other reads, in every codec, and sends of many
// goroutines do not mix up their buffers.
func TestCompressedRoundTrip(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("orders", 2))
	want := map[string][]byte{}
	for _, o := range []producer.Option{
		nil, producer.WithCompression(producer.LZ4, 1, 100), producer.WithCompression(producer.ZSTD, 19, 100), producer.WithCompression(producer.ZLIB, 1, 100),
	} {
		p := clusterProducer(t, c, o)
		out := newOutcomes()
		bodies := map[int][]byte{}
		for i := range 50 {
			bodies[i] = append(compressible(100+i*997), byte(i))
			p.SendAsync(t.Context(), &rocketmq.Message{Topic: "orders", Body: bodies[i]}, out.done(i))
		}
		require.NoError(t, p.Flush(t.Context()))
		require.Empty(t, out.once(t, 50))
		for i, b := range bodies {
			want[out.res[i].MessageID] = b
		}
	}
	got := make(chan *rocketmq.MessageView, len(want))
	push, err := consumer.NewPush(c.Client(t), "g", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe("orders", selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			got <- m
			return nil
		})))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- push.Run(ctx) }()
	for range len(want) {
		m := <-got
		require.Equal(t, want[m.ID], m.Body)
	}
	cancel()
	require.NoError(t, <-ended)
}
