package broker

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// TestEveryMessageReachesItsHeldPull lets producers and following consumers
// race: with every read, parking and arrival in any order, each consumer must
// see every message of its tag, in order, without waiting for a timeout.
func TestEveryMessageReachesItsHeldPull(t *testing.T) {
	const queues, each = 4, 300
	b := startBroker(t)
	require.NoError(t, b.CreateTopic(t.Context(), "T", queues))
	var wg sync.WaitGroup
	for q := range int32(queues) {
		producer := dial(t, b)
		wg.Go(func() {
			for i := range each {
				tag := []string{"TagA", "TagB"}[i%2]
				f := producer.call(wire.ReqSendMessageV2, sendHeader("T", q, "TAGS", tag), fmt.Appendf(nil, "%s %d", tag, i))
				if f.Code != wire.RespSuccess {
					t.Errorf("send: %d %s", f.Code, f.Remark)
				}
			}
		})
		for _, tag := range []string{"TagA", "TagB"} {
			consumer := dial(t, b)
			wg.Go(func() { follow(t, consumer, q, tag, each) })
		}
	}
	wg.Wait()
}

func follow(t *testing.T, p *peer, queue int32, tag string, each int) {
	want := 0
	if tag == "TagB" {
		want = 1
	}
	for off := int64(0); want < each; {
		h := holding(pullHeaderOf("CG"+tag, "T", queue, off))
		h.Subscription = []byte(tag)
		f := p.call(wire.ReqPullMessage, h, nil)
		if f.Code == wire.RespPullNotFound {
			t.Errorf("queue %d: waited in vain for %s %d at %d", queue, tag, want, off)
			return
		}
		for _, body := range bodies(t, f) {
			if body != fmt.Sprintf("%s %d", tag, want) {
				t.Errorf("queue %d: got %q, want %s %d", queue, body, tag, want)
				return
			}
			want += 2
		}
		off = pullResponse(t, f).NextOffset
	}
}

func TestIPv6(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	b := startBroker(t, func(c *Config) { c.Listener = ln })
	p := dial(t, b)
	resp := p.send(b, "T", 0, "six")
	require.Len(t, resp.OffsetMsgID, 56)
	host, _, err := wire.ParseOffsetMsgID(resp.OffsetMsgID)
	require.NoError(t, err)
	require.Equal(t, b.Addr(), host.String())
	f := p.must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil)
	require.Equal(t, []string{"six"}, bodies(t, f))
}
