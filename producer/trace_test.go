package producer_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/msgtrace"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// pubs reads traces, by topic and message id.
func pubs(t *testing.T, bodies ...string) map[string]msgtrace.Pub {
	t.Helper()
	all := map[string]msgtrace.Pub{}
	for _, b := range bodies {
		for r := range msgtrace.Records(b) {
			p, err := msgtrace.ParsePub(r)
			require.NoError(t, err)
			key := p.Topic + "/" + p.MessageID
			require.NotContains(t, all, key, "one record for a message")
			all[key] = p
		}
	}
	return all
}

// traced is what a broker has got for the trace topic.
func (s *server) traced() (bodies []string) {
	for _, m := range s.got() {
		if m.topic == wire.TopicTrace {
			bodies = append(bodies, m.body)
		}
	}
	return bodies
}

// tracing is a cluster with a broker for orders and one for traces.
func tracing(t *testing.T) (c *cluster, orders, traces *server) {
	c = newCluster(t)
	c.topic("orders", 4, "b1=b1:0")
	c.topic(wire.TopicTrace, 1, "b2=b2:0")
	orders, traces = c.broker("b1:0"), c.broker("b2:0")
	orders.answerBatches(wire.RespSuccess)
	return c, orders, traces
}

func TestTraceOfEveryWayToSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, orders, traces := tracing(t)
		hook := &countHook{}
		p, err := producer.New(c.client(rocketmq.WithHooks(hook)), producer.WithGroup("shop"), producer.WithTrace(""), producer.WithLinger(time.Millisecond, 1<<20))
		require.NoError(t, err)
		began := time.Now()
		want := map[string]msgtrace.Pub{}
		expect := func(m *rocketmq.Message, r producer.Result, change ...func(p *msgtrace.Pub)) {
			w := msgtrace.Pub{
				Region: "DefaultRegion", Group: "shop", Topic: m.Topic, MessageID: r.MessageID, Tags: m.Tag, Keys: m.Keys,
				StoreHost: "b1:0", BodyLength: len(m.Body), OffsetID: r.OffsetID, Success: true,
			}
			for _, f := range change {
				f(&w)
			}
			want[m.Topic+"/"+w.MessageID] = w
		}
		send := func(m *rocketmq.Message, change ...func(p *msgtrace.Pub)) {
			r, err := p.Send(t.Context(), m)
			require.NoError(t, err)
			expect(m, r, change...)
		}
		send(&rocketmq.Message{Topic: "orders", Body: []byte("plain")})
		send(&rocketmq.Message{Topic: "orders", Body: []byte("all"), Tag: "t", Keys: []string{"k1", "k2"}})
		send(&rocketmq.Message{Topic: "orders", Body: bytes.Repeat([]byte("x"), 1<<20)}) // as the user gave it
		send(&rocketmq.Message{Topic: "orders", Body: []byte("ordered"), ShardingKey: "s"})
		send(&rocketmq.Message{Topic: "orders", Body: []byte("later"), Delay: rocketmq.DelayFor(time.Minute)}, func(p *msgtrace.Pub) { p.Type = msgtrace.Delay })

		batch := []*rocketmq.Message{message("orders"), message("orders"), message("orders")}
		rs, err := p.SendBatch(t.Context(), batch)
		require.NoError(t, err)
		for i, m := range batch {
			expect(m, rs[i])
		}
		var mu sync.Mutex
		for i := range 5 { // in one request
			m := &rocketmq.Message{Topic: "orders", Body: fmt.Append(nil, "async", i), Keys: []string{fmt.Sprint("a", i)}}
			p.SendAsync(t.Context(), m, func(r producer.Result, err error) {
				mu.Lock()
				defer mu.Unlock()
				assert.NoError(t, err)
				expect(m, r)
			})
		}
		require.NoError(t, p.Flush(t.Context()))

		once := &rocketmq.Message{Topic: "orders", Body: []byte("one-way"), Keys: []string{"o"}}
		require.NoError(t, p.SendOneway(t.Context(), once))
		require.NoError(t, p.Flush(t.Context()))
		synctest.Wait()
		got := orders.got()
		expect(once, producer.Result{MessageID: got[len(got)-1].id})

		orders.answer(wire.RespMessageIllegal, "no")
		bad := &rocketmq.Message{Topic: "orders", Body: []byte("refused"), Keys: []string{"r"}}
		_, err = p.Send(t.Context(), bad)
		require.Error(t, err)
		got = orders.got()
		expect(bad, producer.Result{MessageID: got[len(got)-1].id}, func(p *msgtrace.Pub) { p.Success = false })
		_, err = p.Send(t.Context(), &rocketmq.Message{Topic: "nowhere", Body: []byte("x"), Keys: []string{"n"}})
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		expect(&rocketmq.Message{Topic: "nowhere", Body: []byte("x"), Keys: []string{"n"}}, producer.Result{}, func(p *msgtrace.Pub) { p.Success, p.StoreHost = false, "" })

		// Traces of its own messages would never end.
		_, err = p.Send(t.Context(), &rocketmq.Message{Topic: wire.TopicTrace, Body: []byte(" ")})
		require.NoError(t, err)
		hooked := hook.count()

		require.NoError(t, p.Close(t.Context()))
		require.Equal(t, hooked, hook.count(), "hooks see the user's messages only")
		var bodies []string
		for _, m := range traces.got() {
			if m.body == " " {
				continue
			}
			bodies = append(bodies, m.body)
			require.Equal(t, "_INNER_TRACE_PRODUCER-shop-PRODUCE-1", string(m.head.Group))
			require.Equal(t, int32(0), m.head.SysFlag)
			keys := strings.Fields(m.props[wire.PropKeys])
			for _, r := range pubs(t, m.body) {
				require.Subset(t, keys, r.Keys)
				if r.MessageID != "" {
					require.Contains(t, keys, r.MessageID)
				}
			}
		}
		require.Len(t, bodies, 2, "of 10 and the rest")
		traced := pubs(t, bodies...)
		require.Len(t, traced, len(want))
		for key, w := range want {
			p := traced[key]
			require.WithinRange(t, p.Time, began, time.Now())
			require.NotEmpty(t, p.ClientHost)
			p.Time, p.ClientHost = w.Time, ""
			require.Equal(t, w, p)
		}
	})
}

// countHook counts.
type countHook struct {
	mu sync.Mutex
	n  int
}

func (h *countHook) OnSend(context.Context, rocketmq.SendInfo) { h.mu.Lock(); h.n++; h.mu.Unlock() }
func (h *countHook) count() int                                { h.mu.Lock(); defer h.mu.Unlock(); return h.n }

// Retries are one send; the broker's region and wish count.
func TestTraceSaysWhatTheBrokerSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, orders, traces := tracing(t)
		p := c.producer(producer.WithTrace(""))
		n, on := 0, true
		var mu sync.Mutex
		orders.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == 1 {
				q.Drop() // one attempt takes its whole second
				return
			}
			q.Reply(wire.RespSuccess, "", &wire.SendResponse{OffsetMsgID: []byte("OFF"), Region: []byte("west"), TraceOn: on}, nil)
		})
		r, err := p.Send(t.Context(), message("orders"))
		require.NoError(t, err)
		mu.Lock()
		on = false
		mu.Unlock()
		_, err = p.Send(t.Context(), message("orders"))
		require.NoError(t, err)
		_, err = p.Send(t.Context(), message("nowhere")) // nobody said no
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		require.NoError(t, p.Close(t.Context()))
		got := pubs(t, traces.traced()...)
		require.Len(t, got, 2)
		require.Equal(t, "DefaultRegion", got["nowhere/"].Region)
		first := got["orders/"+r.MessageID]
		require.Equal(t, "west", first.Region)
		require.Equal(t, "OFF", first.OffsetID)
		require.True(t, first.Success)
		require.GreaterOrEqual(t, first.Cost, time.Second)
		require.Less(t, first.Cost, 1500*time.Millisecond)
	})
}

// Neither a trace topic without an answer nor one that does not exist is
// noticed by sends; Close is bounded.
func TestTraceNeverDelaysASend(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(c *cluster, traces *server)
		most  time.Duration // Close
	}{
		{"no answer", func(_ *cluster, traces *server) { traces.silent() }, 5 * time.Second},
		{"refused", func(_ *cluster, traces *server) { traces.answer(wire.RespNoPermission, "no") }, time.Second},
		{"busy", func(_ *cluster, traces *server) { traces.answer(wire.RespSystemBusy, "busy") }, time.Second},
		{"no broker", func(_ *cluster, traces *server) { traces.stop() }, 5 * time.Second},
		{"no topic", func(c *cluster, _ *server) {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.topics, wire.TopicTrace)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, orders, traces := tracing(t)
				tt.spoil(c, traces)
				var log bytes.Buffer
				p, err := producer.New(c.client(rocketmq.WithLogger(textLogger(&log))), producer.WithTrace(""))
				require.NoError(t, err)
				const n = 2000
				o := newOutcomes()
				for i := range n {
					began := time.Now()
					if i%2 == 0 {
						_, err := p.Send(t.Context(), message("orders"))
						require.NoError(t, err)
					} else {
						p.SendAsync(t.Context(), message("orders"), o.done(i))
						require.NoError(t, p.Flush(t.Context()))
					}
					require.Zero(t, time.Since(began))
					if i%20 == 0 {
						time.Sleep(time.Second)
					}
				}
				require.Len(t, orders.got(), n)
				require.Empty(t, o.once(t, n/2))
				began := time.Now()
				require.NoError(t, p.Close(context.Background()))
				require.LessOrEqual(t, time.Since(began), tt.most)
				require.Less(t, c.ns.count(wire.ReqGetRouteInfoByTopic), 200, "name servers are not pestered")
				synctest.Wait()
				text := log.String()
				require.Equal(t, 1, strings.Count(text, "message traces cannot be sent"), text)
				require.Equal(t, 1, strings.Count(text, "message traces have ended"), text)
				require.Contains(t, text, fmt.Sprintf("dropped=%d", n), "all are accounted for")
			})
		})
	}
}

// TestTraceCost is a gate for what a traced send costs its sender: 3
// allocations more than others. What they cost without traces is seen by the
// other gates.
func TestTraceCost(t *testing.T) {
	gated(t)
	const n = 5000
	r := newRig(t, producer.WithTrace("")) // which does not exist
	r.gate(t, n, price{allocs: 4.5, bytes: 1100}, func() error { return r.sync(n, 1) })
}

func TestWithTraceIsChecked(t *testing.T) {
	c := newCluster(t)
	for _, topic := range []string{"a b", "SCHEDULE_TOPIC_XXXX", strings.Repeat("t", 128)} {
		_, err := producer.New(c.client(), producer.WithTrace(topic))
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		require.ErrorContains(t, err, "WithTrace")
	}
	p, err := producer.New(c.client(), producer.WithTrace("traces"))
	require.NoError(t, err)
	require.NoError(t, p.Close(t.Context()))
}

func TestClusterTraces(t *testing.T) {
	c := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("orders", 2), testbroker.Topic("traces", 1))
	for _, topic := range []string{"", "traces"} {
		p, err := producer.New(c.Client(t), producer.WithTimeout(time.Minute, 30*time.Second), producer.WithTrace(topic))
		require.NoError(t, err)
		if topic == "" {
			topic = wire.TopicTrace
		}
		results := map[string]producer.Result{}
		for i := range 25 {
			r, err := p.Send(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("x"), Tag: "t", Keys: []string{fmt.Sprint("k", i)}})
			require.NoError(t, err)
			results["orders/"+r.MessageID] = r
		}
		require.NoError(t, p.Close(t.Context()))
		var bodies []string
		for _, v := range c.Messages(topic) {
			bodies = append(bodies, string(v.Body))
			require.NotEmpty(t, v.Keys)
		}
		got := pubs(t, bodies...)
		require.Len(t, got, len(results))
		for key, r := range results {
			tr := got[key]
			require.True(t, tr.Success)
			require.Equal(t, r.OffsetID, tr.OffsetID)
			require.Equal(t, "DefaultRegion", tr.Region)
			require.Equal(t, "t", tr.Tags)
			host, _, err := wire.ParseOffsetMsgID(r.OffsetID)
			require.NoError(t, err)
			require.Equal(t, host.String(), tr.StoreHost)
		}
	}
}
