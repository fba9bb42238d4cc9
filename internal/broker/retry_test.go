package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// retryHeader is a message that a client sends to a retry topic itself, with
// what a delivered message has left of earlier rounds.
func retryHeader(times, limit int32, props ...string) *wire.SendRequest {
	h := sendHeader("%RETRY%CG", 0, append([]string{
		wire.PropRetryTopic, "T", wire.PropOriginMessageID, "7F0000010000A2270000000000000000", wire.PropRealTopic, "Elsewhere", wire.PropRealQueueID, "9",
	}, props...)...)
	h.ReconsumeTimes, h.MaxReconsumeTimes = times, limit
	return h
}

func TestClientSentRetries(t *testing.T) {
	for name, test := range map[string]struct {
		header *wire.SendRequest
		locked bool
		dead   bool
	}{
		"within the group's limit":     {retryHeader(16, 0, wire.PropDelay, "3"), false, false},
		"beyond the group's limit":     {retryHeader(17, 0, wire.PropDelay, "3"), false, true},
		"within the request's limit":   {retryHeader(2, 2, wire.PropDelay, "3"), false, false},
		"beyond the request's limit":   {retryHeader(3, 2, wire.PropDelay, "3"), false, true},
		"given up by a group in order": {retryHeader(2, 2, wire.PropDelay, "3"), true, true},
		"a dead letter, sent again":    {retryHeader(0, 16, wire.PropDelay, "3"), true, false},
		"in order, without any retry":  {retryHeader(0, 0, wire.PropDelay, "3"), true, true},
		"of a transaction":             {retryHeader(1, 0, wire.PropDelay, "3", wire.PropTranMsg, "true"), false, false},
		"of a transaction, dead":       {retryHeader(17, 0, wire.PropDelay, "3", wire.PropTranMsg, "true"), false, true},
		"of a timer":                   {retryHeader(1, 0, wire.PropDelay, "3", wire.PropTimerDelayMs, "5", wire.PropTimerOutMs, "1"), false, false},
		"of a timer, dead":             {retryHeader(17, 0, wire.PropDelay, "3", wire.PropTimerDelayMs, "5"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewManual(testStart)
			b := startBroker(t, withClock(c))
			p := dial(t, b)
			if test.locked {
				b.locks.Lock("CG", "c1", []wire.MessageQueue{{Topic: "T", Broker: "broker-a"}})
			}
			p.must(wire.ReqSendMessageV2, test.header, []byte("x"))
			require.NoError(t, b.SettleDelays(t.Context()))
			if test.dead {
				dead := records(t, b, "%DLQ%CG", 0)
				require.Len(t, dead, 1, "at once")
				require.Equal(t, "-1", dead[0].Properties.Text(wire.PropDelay))
				require.Equal(t, "T", dead[0].Properties.Text(wire.PropRetryTopic))
				require.Equal(t, test.header.ReconsumeTimes, dead[0].ReconsumeTimes)
				require.Zero(t, b.Store().MaxOffset("%RETRY%CG", 0))
				return
			}
			require.Zero(t, b.Store().MaxOffset("%RETRY%CG", 0), "it waits")
			pass(t, b, c, 10*time.Second)
			got := records(t, b, "%RETRY%CG", 0)
			require.Len(t, got, 1)
			require.Equal(t, test.header.ReconsumeTimes, got[0].ReconsumeTimes)
			require.Equal(t, "%RETRY%CG", got[0].Properties.Text(wire.PropRealTopic))
			require.Equal(t, "T", got[0].Properties.Text(wire.PropRetryTopic))
		})
	}
}

// TestLocksThatHaveRunOutDoNotCount: a group that consumed in order once is
// free to retry.
func TestLocksThatHaveRunOutDoNotCount(t *testing.T) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c))
	p := dial(t, b)
	b.locks.Lock("CG", "c1", []wire.MessageQueue{{Topic: "T", Broker: "broker-a"}})
	c.Advance(2 * time.Minute)
	p.must(wire.ReqSendMessageV2, retryHeader(1, 0), []byte("x"))
	require.Len(t, records(t, b, "%RETRY%CG", 0), 1)
}

// TestDeadLetterIsSentAgain: what the dashboard does is CONSUME_MESSAGE_DIRECTLY,
// what others do is a plain send of what they found.
func TestDeadLetterIsSentAgain(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p.heartbeat("CG", "c1", 1, "T", "%RETRY%CG")
	p.send(b, "T", 0, "poison", wire.PropKeys, "k")
	rec := p.pulled("CG", "T", 0)
	require.EqualValues(t, wire.RespSuccess, p.sendBack(&rec, "CG", func(h *wire.SendBackRequest) { h.DelayLevel = -1 }).Code)
	dead := records(t, b, "%DLQ%CG", 0)[0]

	h := &wire.ConsumeDirectlyRequest{
		Group: "CG", ClientID: "c1", Topic: "%DLQ%CG", MsgID: string(wire.AppendOffsetMsgID(nil, dead.StoreHost, dead.PhyOffset)),
	}
	require.Equal(t, "answer", string(p.must(wire.ReqConsumeMessageDirectly, h, nil).Body))
	asked := p.push()
	for asked.Code != wire.ReqConsumeMessageDirectly {
		asked = p.push() // the group's member was told of itself before
	}
	var got wire.Record
	_, err := wire.DecodeRecord(asked.Body, &got)
	require.NoError(t, err)
	require.Equal(t, "poison", string(got.Body))
	require.Equal(t, "T", got.Properties.Text(wire.PropRetryTopic))

	again := sendHeader("T", 0)
	again.Properties = dead.Properties // DELAY=0, RETRY_TOPIC and all
	p.must(wire.ReqSendMessageV2, again, dead.Body)
	require.Equal(t, []string{"poison", "poison"}, bodiesOf(records(t, b, "T", 0)))
}
