package producer_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

// asked is a request that a scripted broker has stored.
type asked struct {
	sent
	conn *remoting.Conn
}

// requests makes a broker store what is sent and show it.
func (s *server) requests(code int32) <-chan asked {
	ch := make(chan asked, 1000)
	s.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
		s.store(q, code, "")
		all := s.got()
		ch <- asked{all[len(all)-1], q.Conn()}
	})
	return ch
}

// replyTo pushes a reply to whoever made the request, and returns what the
// client says to it.
func (a *asked) reply(t *testing.T, body []byte, sysFlag int32, more ...string) *wire.Frame {
	t.Helper()
	props := wire.AppendProperty(nil, wire.PropCorrelationID, a.props[wire.PropCorrelationID])
	for i := 0; i < len(more); i += 2 {
		props = wire.AppendProperty(props, more[i], more[i+1])
	}
	f, err := a.conn.Call(t.Context(), &wire.Command{Code: wire.ReqPushReplyMessageToClient, Body: body, Ext: &wire.PushReplyRequest{
		Group: "responders", Topic: "c_REPLY_TOPIC", DefaultTopic: "TBW102", DefaultTopicQueues: 4, QueueID: 1, SysFlag: sysFlag,
		BornTime: 1000, StoreTime: 2000, BornHost: "/1.2.3.4:5", StoreHost: "[::1]:10911", Properties: string(props),
	}})
	require.NoError(t, err)
	return f
}

type outcome struct {
	view *rocketmq.MessageView
	err  error
}

func request(ctx context.Context, p *producer.Producer, opts ...producer.SendOption) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		v, err := p.Request(ctx, message("orders"), opts...)
		ch <- outcome{v, err}
	}()
	return ch
}

// requestCluster has topic orders and the reply topic on one broker.
func requestCluster(t *testing.T) (*cluster, *server) {
	c := newCluster(t)
	c.topic("orders", 1, "a=a:0")
	c.topic("c_REPLY_TOPIC", 1, "a=a:0")
	return c, c.broker("a:0")
}

func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespSuccess)
		cl := c.client()
		p, err := producer.New(cl)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		m := message("orders")
		m.Properties = map[string]string{"user": "v"}
		before := m.Clone()
		done := make(chan outcome, 1)
		go func() {
			v, err := p.Request(ctx, m)
			done <- outcome{v, err}
		}()
		a := <-got
		require.Positive(t, b.count(wire.ReqHeartBeat), "the broker knows where the reply goes")
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, a.props[wire.PropCorrelationID])
		require.Equal(t, cl.ID(), a.props[wire.PropReplyToClient])
		ttl, err := strconv.Atoi(a.props[wire.PropTTL])
		require.NoError(t, err)
		require.InDelta(t, 2500, ttl, 100)
		require.Equal(t, "v", a.props["user"])
		require.Equal(t, "hello", a.body)
		require.Equal(t, before, m)

		time.Sleep(time.Second)
		f := a.reply(t, []byte("answer"), 0, "UNIQ_KEY", "AC11", "TAGS", "t", "KEYS", "k1 k2", "PUSH_REPLY_TIME", "1999", "mine", "x")
		require.Equal(t, wire.RespSuccess, f.Code)
		out := <-done
		require.NoError(t, out.err)
		v := out.view
		require.NotEmpty(t, v.Properties.Get("ARRIVE_TIME"))
		require.Equal(t, "1999", v.Properties.Get("PUSH_REPLY_TIME"))
		require.Equal(t, map[string]string{"mine": "x"}, v.Properties.User())
		v.Properties = ""
		require.Equal(t, &rocketmq.MessageView{
			ID: "AC11", Topic: "c_REPLY_TOPIC", Tag: "t", Keys: []string{"k1", "k2"}, Body: []byte("answer"),
			Queue: rocketmq.Queue{Topic: "c_REPLY_TOPIC", ID: 1}, BornAt: time.UnixMilli(1000), StoredAt: time.UnixMilli(2000),
			BornHost: netip.MustParseAddrPort("1.2.3.4:5"), StoreHost: netip.MustParseAddrPort("[::1]:10911"), Attempt: 1,
		}, v)
	})
}

func TestRequestReplyThatOvertakesTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := make(chan asked, 1)
		b.on(wire.ReqSendMessageV2, func(q *remoting.Request) {
			b.store(q, wire.RespSystemError, "") // one attempt, and it fails
			got <- asked{b.got()[0], q.Conn()}
		})
		hold := make(chan struct{})
		p := c.producer(producer.WithRetries(0), producer.WithInterceptors(func(next producer.SendFunc) producer.SendFunc {
			return func(ctx context.Context, m *rocketmq.Message) (producer.Result, error) {
				res, err := next(ctx, m)
				<-hold
				return res, err
			}
		}))
		done := request(t.Context(), p)
		a := <-got
		said := make(chan *wire.Frame, 1)
		go func() { said <- a.reply(t, nil, 0) }()
		synctest.Wait()
		close(hold)
		out := <-done
		require.NoError(t, out.err, "it was stored all the same, here is the reply")
		require.Empty(t, out.view.Body)
		require.Equal(t, wire.RespSuccess, (<-said).Code)
	})
}

func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespSuccess)
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cl := c.client(rocketmq.WithLogger(logger))
		p, err := producer.New(cl)
		require.NoError(t, err)
		start := time.Now()
		out := <-request(t.Context(), p)
		require.Equal(t, 3*time.Second, time.Since(start).Truncate(time.Second), "the total timeout")
		require.ErrorIs(t, out.err, rocketmq.ErrTimeout)
		require.ErrorIs(t, out.err, context.DeadlineExceeded)
		a := <-got
		require.ErrorContains(t, out.err, "it was stored as message "+a.id)
		require.ErrorContains(t, out.err, `"orders"`)
		require.Nil(t, out.view)

		// Longer than a send may take, if the context says so; then shorter.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := request(ctx, p)
		b2 := <-got
		time.Sleep(50 * time.Second)
		require.Equal(t, wire.RespSuccess, b2.reply(t, []byte("x"), 0).Code)
		require.NoError(t, (<-done).err)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start = time.Now()
		require.ErrorIs(t, (<-request(short, p)).err, rocketmq.ErrTimeout)
		require.Less(t, time.Since(start), 300*time.Millisecond)

		// The late reply is answered, and a second one to the same request.
		require.Equal(t, wire.RespSuccess, a.reply(t, []byte("late"), 0).Code)
		require.Equal(t, wire.RespSuccess, b2.reply(t, []byte("again"), 0).Code)
		require.NoError(t, cl.Close(t.Context()))
		require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("nobody waits for this reply")))
		require.Contains(t, log.String(), "level=DEBUG")
	})
}

func TestRequestThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		p := c.producer(producer.WithRetries(0))
		b.answer(wire.RespMessageIllegal, "no such thing")
		out := <-request(t.Context(), p)
		require.ErrorIs(t, out.err, rocketmq.ErrInvalidMessage)
		require.ErrorContains(t, out.err, "it was not stored")
		var se *rocketmq.SendError
		require.ErrorAs(t, out.err, &se)
		b.silent()
		out = <-request(t.Context(), p)
		require.ErrorIs(t, out.err, rocketmq.ErrTimeout)
		require.ErrorContains(t, out.err, "it may have been stored")
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		out = <-request(short, p)
		require.ErrorIs(t, out.err, rocketmq.ErrTimeout)
		require.ErrorContains(t, out.err, "it may have been stored")

		_, err := p.Request(t.Context(), message("typo"))
		require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		require.ErrorContains(t, err, "it was not stored")
		n := b.count(wire.ReqSendMessageV2)
		_, err = p.Request(t.Context(), nil)
		require.ErrorIs(t, err, rocketmq.ErrInvalidMessage)
		reply := message("orders")
		reply.ReplyTo = &rocketmq.ReplyTo{Client: "c", CorrelationID: "x"}
		_, err = p.Request(t.Context(), reply)
		require.ErrorIs(t, err, rocketmq.ErrInvalidMessage)
		require.Equal(t, n, b.count(wire.ReqSendMessageV2))
	})
}

// What the broker says of flushing does not matter to a request.
func TestRequestThatIsNotDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespFlushDiskTimeout)
		done := request(t.Context(), c.producer())
		a := <-got
		synctest.Wait()
		a.reply(t, []byte("x"), 0)
		require.NoError(t, (<-done).err)
	})
}

func TestRequestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespSuccess)
		p := c.producer()
		mine := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := request(ctx, p)
		<-got
		synctest.Wait()
		cancel(mine)
		out := <-done
		require.ErrorIs(t, out.err, mine)
		require.NotErrorIs(t, out.err, rocketmq.ErrTimeout)
		require.ErrorContains(t, out.err, "it was stored")
		require.ErrorIs(t, (<-request(ctx, p)).err, mine)
	})
}

func TestCloseEndsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespSuccess)
		p := c.producer()
		start := time.Now()
		var all []<-chan outcome
		for range 10 {
			all = append(all, request(t.Context(), p))
		}
		for range all {
			<-got
		}
		require.NoError(t, p.Close(t.Context()))
		for _, done := range all {
			require.ErrorIs(t, (<-done).err, rocketmq.ErrClosed)
		}
		require.Less(t, time.Since(start), time.Second)
		_, err := p.Request(t.Context(), message("orders"))
		require.ErrorIs(t, err, rocketmq.ErrClosed)
	})
}

func TestRequestCompressedReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespSuccess)
		p := c.producer()
		want := bytes.Repeat([]byte("abc"), 5000)
		var body bytes.Buffer
		z := zlib.NewWriter(&body)
		_, err := z.Write(want)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		done := request(t.Context(), p)
		a := <-got
		require.Equal(t, wire.RespSuccess, a.reply(t, body.Bytes(), wire.SysCompressed|wire.SysCompressionZLIB).Code)
		out := <-done
		require.NoError(t, out.err)
		require.Equal(t, want, out.view.Body)

		// The sender of a reply that cannot be read is told.
		done = request(t.Context(), p)
		a = <-got
		f := a.reply(t, []byte("no zlib"), wire.SysCompressed)
		require.Equal(t, wire.RespSystemError, f.Code)
		require.Contains(t, string(f.Remark), "zlib")
		require.ErrorContains(t, (<-done).err, "the reply cannot be read")
	})
}

func TestRequestsGoThroughInterceptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespSuccess)
		var mode atomic.Value
		mode.Store("tag")
		var seen atomic.Int32
		mine := errors.New("not today")
		p := c.producer(producer.WithInterceptors(func(next producer.SendFunc) producer.SendFunc {
			return func(ctx context.Context, m *rocketmq.Message) (producer.Result, error) {
				seen.Add(1)
				switch mode.Load() {
				case "refuse":
					return producer.Result{}, mine
				case "swallow":
					return producer.Result{}, nil
				case "panic":
					panic("interceptor")
				case "twice":
					if _, err := next(ctx, m); err != nil {
						return producer.Result{}, err
					}
				}
				m = m.Clone()
				m.Tag = "seen"
				res, err := next(ctx, m)
				assert.NotEmpty(t, res.MessageID)
				return res, err
			}
		}))
		done := request(t.Context(), p)
		a := <-got
		require.Equal(t, "seen", a.props[wire.PropTags])
		a.reply(t, []byte("x"), 0)
		require.NoError(t, (<-done).err)
		require.EqualValues(t, 1, seen.Load())

		mode.Store("twice")
		done = request(t.Context(), p)
		first, second := <-got, <-got
		require.Equal(t, first.props[wire.PropCorrelationID], second.props[wire.PropCorrelationID])
		require.Equal(t, wire.RespSuccess, first.reply(t, []byte("one"), 0).Code)
		require.Equal(t, wire.RespSuccess, second.reply(t, []byte("two"), 0).Code)
		require.Equal(t, "one", string((<-done).view.Body))

		mode.Store("refuse")
		require.ErrorIs(t, (<-request(t.Context(), p)).err, mine)
		mode.Store("swallow")
		out := <-request(t.Context(), p)
		require.ErrorIs(t, out.err, rocketmq.ErrTimeout)
		require.ErrorContains(t, out.err, "an interceptor says that it was sent")
		mode.Store("panic")
		require.PanicsWithValue(t, "interceptor", func() { _, _ = p.Request(t.Context(), message("orders")) })
		require.Empty(t, got)
	})
}

// Replies find their requests among those of several producers of one client,
// in any order.
func TestRequestsOfTwoProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, b := requestCluster(t)
		got := b.requests(wire.RespSuccess)
		cl := c.client()
		var wg sync.WaitGroup
		const n = 50
		for range 2 {
			p, err := producer.New(cl)
			require.NoError(t, err)
			for i := range n {
				wg.Go(func() {
					m := message("orders")
					m.Keys = []string{strconv.Itoa(i)}
					v, err := p.Request(t.Context(), m)
					if assert.NoError(t, err) {
						assert.Equal(t, "reply to "+strconv.Itoa(i), string(v.Body))
					}
				})
			}
		}
		var all []asked
		for range 2 * n {
			all = append(all, <-got)
		}
		for i := len(all) - 1; i >= 0; i-- {
			all[i].reply(t, []byte("reply to "+all[i].props[wire.PropKeys]), 0)
		}
		wg.Wait()
	})
}

func TestRequestToOneQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.topic("orders", 4, "a=a:0")
		b := c.broker("a:0")
		got := b.requests(wire.RespSuccess)
		done := request(t.Context(), c.producer(), producer.To(rocketmq.Queue{Broker: "a", ID: 3}))
		a := <-got
		require.EqualValues(t, 3, a.queue, "also in a cluster without a reply topic")
		a.reply(t, []byte("x"), 0)
		require.NoError(t, (<-done).err)
	})
}
