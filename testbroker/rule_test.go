package testbroker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func one(t *testing.T, p *producer.Producer, topic string) (producer.Result, error) {
	t.Helper()
	return p.Send(t.Context(), &rocketmq.Message{Topic: topic, Body: []byte("x")})
}

func TestReplyInsteadOfTheBroker(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.Topic("U", 1))
	p := newProducer(t, c, producer.WithRetries(0))
	send(t, p, "T", "before", 1) // the connection is there before the rule
	h := c.On(testbroker.SendMessage).Topic("T").Skip(1).Times(2).Reply(rocketmq.CodeSystemBusy, "busy today")
	_, err := one(t, p, "T")
	require.NoError(t, err, "skipped")
	for range 2 {
		_, err = one(t, p, "T")
		var be *rocketmq.BrokerError
		require.ErrorAs(t, err, &be)
		require.Equal(t, rocketmq.CodeSystemBusy, be.Code)
		require.Equal(t, "busy today", be.Remark)
		_, err = one(t, p, "U")
		require.NoError(t, err, "another topic")
	}
	_, err = one(t, p, "T")
	require.NoError(t, err, "used up")
	require.Equal(t, 2, h.Hits())
	require.Len(t, c.Messages("T"), 3)
}

// The classic: stored, but the answer is lost, and the retry is a duplicate.
func TestAnswerLost(t *testing.T) {
	for name, lose := range map[string]func(*testbroker.Rule) *testbroker.Handle{
		"disconnect": (*testbroker.Rule).Disconnect,
		"drop":       (*testbroker.Rule).Drop,
		"reply": func(r *testbroker.Rule) *testbroker.Handle {
			return r.Reply(rocketmq.CodeSystemBusy, "so it says")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := testbroker.New(t, testbroker.Topic("T", 1))
			p := newProducer(t, c, producer.WithTimeout(10*time.Second, 300*time.Millisecond))
			h := lose(c.On(testbroker.SendMessage).AfterApply().Times(1))
			_, err := one(t, p, "T")
			require.NoError(t, err, "the retry")
			require.Equal(t, 1, h.Hits())
			all := c.Messages("T")
			require.Len(t, all, 2)
			require.Equal(t, all[0].ID, all[1].ID, "one message, twice")
		})
	}
}

func TestDisconnectBefore(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	p := newProducer(t, c)
	h := c.On(testbroker.SendMessage).Times(2).Disconnect()
	_, err := one(t, p, "T")
	require.NoError(t, err)
	require.Equal(t, 2, h.Hits())
	require.Len(t, c.Messages("T"), 1)
}

func TestHoldParksAndReleases(t *testing.T) {
	for _, after := range []bool{false, true} {
		c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.Topic("U", 1))
		p := newProducer(t, c)
		r := c.On(testbroker.SendMessage).Topic("T")
		stored := 0
		if after {
			r, stored = r.AfterApply(), 4
		}
		h := r.Hold()
		done := make(chan error, 4)
		for range 4 {
			go func() {
				_, err := p.Send(context.Background(), &rocketmq.Message{Topic: "T", Body: []byte("x")})
				done <- err
			}()
		}
		require.NoError(t, h.Wait(t.Context(), 4))
		send(t, p, "U", "passes", 10) // on the same connection
		require.Len(t, c.Messages("T"), stored)
		require.Empty(t, done)
		h.Release()
		for range 4 {
			require.NoError(t, <-done)
		}
		send(t, p, "T", "later", 1)
		require.Equal(t, 4, h.Hits())
		require.Len(t, c.Messages("T"), 5)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	c := testbroker.New(t)
	h := c.On(testbroker.PopMessage).Group("G").Optional().Drop()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	err := h.Wait(ctx, 1)
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, `0 of 1 requests have come to On(POP_MESSAGE).Group("G").Drop at rule_test.go:`)
	require.NoError(t, h.Wait(ctx, 0))
}

func TestDelayIsOvertaken(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1), testbroker.Topic("U", 1))
	p := newProducer(t, c)
	h := c.On(testbroker.SendMessage).Topic("T").Times(1).Delay(300 * time.Millisecond)
	began := time.Now()
	done := make(chan error, 1)
	go func() {
		_, err := p.Send(context.Background(), &rocketmq.Message{Topic: "T", Body: []byte("slow")})
		done <- err
	}()
	require.NoError(t, h.Wait(t.Context(), 1))
	send(t, p, "T", "fast", 1)
	require.NoError(t, <-done)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	all := c.Messages("T")
	require.Len(t, all, 2)
	require.Equal(t, "slow", string(all[1].Body))
}

func TestCorruptRequestsAndAnswers(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	p := newProducer(t, c)
	body := c.On(testbroker.SendMessage).Times(1).Corrupt(func(b []byte) []byte {
		b[len(b)-1] ^= 0xff
		return b
	})
	_, err := one(t, p, "T")
	require.NoError(t, err)
	require.NotEqual(t, "x", string(c.Messages("T")[0].Body))
	garbage := c.On(testbroker.SendMessage).AfterApply().Times(1).Corrupt(func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") })
	_, err = one(t, p, "T")
	require.NoError(t, err, "over a new connection")
	require.Equal(t, 1, body.Hits())
	require.Equal(t, 1, garbage.Hits())
	require.Len(t, c.Messages("T"), 3)
}

// The first rule that concerns a request has it; those that only watch see all
// that come to them.
func TestRulesInOrder(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 3))
	p := newProducer(t, c, producer.WithRetries(0), producer.WithGroup("PG"))
	var seen atomic.Pointer[testbroker.Call]
	watch := c.On().Topic("T").Group("PG").Server("broker-a").Observe(func(call *testbroker.Call) { seen.Store(call) })
	answered := c.On(testbroker.SendMessage).AfterApply().Observe(func(*testbroker.Call) {})
	first := c.On(testbroker.SendMessage).Where(func(call *testbroker.Call) bool { return call.Queue == 2 }).Reply(rocketmq.CodeSystemError, "first")
	second := c.On(testbroker.SendMessage).Reply(rocketmq.CodeSystemError, "second")
	third := c.On(testbroker.SendMessage).Optional().Reply(rocketmq.CodeSystemError, "third")
	var be *rocketmq.BrokerError
	_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte("hello")}, producer.To(rocketmq.Queue{Topic: "T", Broker: "broker-a", ID: 2}))
	require.ErrorAs(t, err, &be)
	require.Equal(t, "first", be.Remark)
	call := seen.Load()
	require.Equal(t, testbroker.SendMessage, call.Op)
	require.EqualValues(t, 310, call.Code)
	require.Equal(t, "hello", string(call.Body()))
	require.Equal(t, 2, call.Queue)
	require.False(t, call.ToClient)
	topic, ok := call.Field("b")
	require.True(t, ok)
	require.Equal(t, "T", topic)
	_, ok = call.Field("topic")
	require.False(t, ok)
	_, err = p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: []byte("hello")}, producer.To(rocketmq.Queue{Topic: "T", Broker: "broker-a", ID: 1}))
	require.ErrorAs(t, err, &be)
	require.Equal(t, "second", be.Remark)
	first.Remove()
	second.Remove()
	third.Remove()
	send(t, p, "T", "m", 1)
	require.Equal(t, 3, watch.Hits())
	require.Equal(t, 1, answered.Hits(), "others were not answered by the broker")
	require.Zero(t, third.Hits())
}

// What a broker asks of clients, and what name servers are asked, have rules, too.
func TestRulesOfOtherDirections(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 2))
	routes := c.On(testbroker.QueryRoute).Topic("T").Server("namesrv-0").Times(1).Reply(rocketmq.CodeSystemError, "no routes today")
	pushed := c.On(testbroker.ConsumersChanged).Group("G").Where(func(call *testbroker.Call) bool { return call.ToClient }).Drop()
	p := newProducer(t, c)
	_, err := one(t, p, "T")
	require.ErrorContains(t, err, "no routes today")
	send(t, p, "T", "m", 1)
	require.Equal(t, 1, routes.Hits())
	got := newBodies()
	stopA := consume(t, c.Client(t, rocketmq.WithInstanceName("a")), "G", "T", got)
	stopB := consume(t, c.Client(t, rocketmq.WithInstanceName("b")), "G", "T", got)
	require.NoError(t, pushed.Wait(t.Context(), 1))
	stopB()
	stopA()
}

// Rules stay in force over restarts, and what is parked dies with its
// connection.
func TestRulesOutliveServers(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	p := newProducer(t, c, producer.WithTimeout(20*time.Second, 15*time.Second))
	h := c.On(testbroker.SendMessage).Hold()
	done := make(chan error, 1)
	go func() {
		_, err := p.Send(context.Background(), &rocketmq.Message{Topic: "T", Body: []byte("x")})
		done <- err
	}()
	require.NoError(t, h.Wait(t.Context(), 1))
	c.Kill("broker-a", 0)
	c.Restart("broker-a", 0)
	require.NoError(t, h.Wait(t.Context(), 2), "the retry, at the new broker")
	h.Release()
	require.NoError(t, <-done)
	require.Len(t, c.Messages("T"), 1)
}

func TestUnusedRulesFailTheTest(t *testing.T) {
	f := &fakeTB{T: t}
	c := testbroker.New(f)
	c.On(testbroker.SendMessage, testbroker.Op(12345)).Topic("T").Skip(1).Times(2).AfterApply().Drop()
	c.On(testbroker.SendMessage).Optional().Drop()
	f.end()
	require.Len(t, f.errors, 1)
	require.Regexp(t, `^testbroker: no request has used the rule On\(SEND_MESSAGE, 12345\)\.Topic\("T"\)\.Skip\(1\)\.Times\(2\)\.AfterApply\(\)\.Drop at rule_test\.go:\d+$`, f.errors[0])
}
