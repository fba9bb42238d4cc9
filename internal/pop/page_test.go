package pop

import (
	"bytes"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

func newConsumer(tb testing.TB, namespace string) (*Consumer, *target) {
	tb.Helper()
	rt, err := client.New(client.Config{NameServers: []string{"ns:1"}, Namespace: namespace})
	require.NoError(tb, err)
	c, err := New(Config{
		Runtime: rt, Group: "G", Subscriptions: []Subscription{{"T", selector.All}}, DrainTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(tb, err)
	return c, &target{topic: c.topics[0], broker: "b"}
}

func record(topic string, queue int32, offset int64, props ...string) []byte {
	r := wire.Record{
		Topic: []byte(topic), QueueID: queue, QueueOffset: offset, PhyOffset: 100 + offset, ReconsumeTimes: 2, Body: []byte("body"),
		BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
	}
	for i := 0; i < len(props); i += 2 {
		r.Properties = wire.AppendProperty(r.Properties, props[i], props[i+1])
	}
	return wire.AppendRecord(nil, &r)
}

var answer = wire.PopResponse{PopTime: 1700000000000, InvisibleMillis: 60000, ReviveQueue: 3, StartOffsets: []byte("0 0 100;0 1 7;1 0 5;2 0 6")}

// Each message's handle is the text that Java's client makes of the same answer.
func TestHandles(t *testing.T) {
	for _, ns := range []string{"", "NS"} {
		c, x := newConsumer(t, ns)
		topic := x.topic.wireName
		retry := wire.PopRetryTopic(c.group, topic)
		body := bytes.Join([][]byte{
			record(topic, 0, 100), record(topic, 0, 101), record(topic, 1, 9), record(topic, 0, 102),
			record(retry, 0, 5), record(wire.PopRetryTopicV2(c.group, topic), 0, 8),
			record(topic, 0, 30, wire.PropPopCK, "29 1700000000001 50000 4 1 b 0 30"),
			record(topic, 2, 11), record(topic, 2, 12),
		}, nil)
		got, err := c.decode(x, &answer, body)
		require.NoError(t, err)
		var handles []string
		var queues []rocketmq.Queue
		for _, d := range got {
			handles = append(handles, d.handle.String())
			queues = append(queues, d.Queue)
			require.Equal(t, "T", d.Topic)
			require.Equal(t, d.handle.Offset, d.Offset)
			require.Equal(t, 100+d.Offset, d.logOffset)
			require.Equal(t, 3, d.Attempt)
			require.Equal(t, "body", string(d.Body))
			require.Equal(t, d.OffsetID, d.ID, "without an id of the sender")
		}
		require.Equal(t, []string{
			"100 1700000000000 60000 3 0 b 0 100", "100 1700000000000 60000 3 0 b 0 101", "7 1700000000000 60000 3 0 b 1 9", "100 1700000000000 60000 3 0 b 0 102",
			"5 1700000000000 60000 3 1 b 0 5", "6 1700000000000 60000 3 2 b 0 8",
			"29 1700000000001 50000 4 1 b 0 30",                                      // the broker's own
			"11 1700000000000 60000 3 0 b 2 11", "11 1700000000000 60000 3 0 b 2 12", // a queue that the answer does not tell of
		}, handles)
		require.Equal(t, rocketmq.Queue{Topic: "T", Broker: "b", ID: 1}, queues[2])
		require.Equal(t, rocketmq.Queue{Topic: "%RETRY%G_T", Broker: "b"}, queues[4])
		require.Equal(t, rocketmq.Queue{Topic: "%RETRY%G+T", Broker: "b"}, queues[5])
		require.Equal(t, rocketmq.Queue{Topic: "%RETRY%G_T", Broker: "b"}, queues[6])
	}
}

func TestDecodeKeepsWhatItCanRead(t *testing.T) {
	c, x := newConsumer(t, "")
	good := record("T", 0, 100)
	for _, bad := range [][]byte{good[:len(good)-1], {0, 0, 0, 1}, {1}, record("T", 0, 101, wire.PropPopCK, "1 2 3")} {
		got, err := c.decode(x, &answer, append(bytes.Clone(good), bad...))
		require.ErrorContains(t, err, "message 1 of a POP")
		require.Len(t, got, 1)
	}
	got, err := c.decode(x, &answer, nil)
	require.NoError(t, err)
	require.Empty(t, got)
}

func FuzzDecode(f *testing.F) {
	f.Add(record("T", 0, 100), []byte("0 0 100"))
	f.Add(append(record("%RETRY%G_T", 0, 5), record("T", 0, 30, wire.PropPopCK, "29 1700000000001 50000 4 1 b 0 30", wire.PropKeys, "a b")...), []byte(""))
	f.Fuzz(func(t *testing.T, body, starts []byte) {
		c, x := newConsumer(t, "")
		h := answer
		h.StartOffsets = starts
		got, _ := c.decode(x, &h, body)
		for _, d := range got {
			if back, err := wire.ParsePopHandle(d.handle.String()); err != nil || back != d.handle {
				t.Fatalf("%+v: %v", d.handle, err)
			}
		}
	})
}

// What a message costs when it is received, of 32 that come together.
func BenchmarkDecode(b *testing.B) {
	c, x := newConsumer(b, "")
	var body []byte
	for i := range int64(32) {
		body = append(body, record("T", 0, 100+i, wire.PropUniqKey, "0A00000100002A9F0000000000000001", wire.PropTags, "TagA", wire.PropKeys, "k", "CLUSTER", "c")...)
	}
	b.ReportAllocs()
	for range b.N {
		got, err := c.decode(x, &answer, body)
		if err != nil || len(got) != 32 {
			b.Fatal(err)
		}
	}
}
