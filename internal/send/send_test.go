package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestJudge(t *testing.T) {
	code := func(c rocketmq.Code) error {
		return fmt.Errorf("wrapped: %w", &rocketmq.BrokerError{Code: c})
	}
	conn := &remoting.ConnError{Addr: "a", Op: "read", Err: io.EOF}
	tests := []struct {
		name string
		err  error
		want verdict
	}{
		{"busy", code(2), verdict{retry: true}},
		{"system error", code(1), verdict{retry: true}},
		{"204", code(204), verdict{retry: true}},
		{"205", code(205), verdict{retry: true}},
		{"not writable", code(14), verdict{true, avoidSick, true}},
		{"not the leader", code(501), verdict{true, avoidSick, true}},
		{"no permission", code(16), verdict{retry: true, refresh: true}},
		{"no topic", code(17), verdict{retry: true, refresh: true}},
		{"illegal message", code(13), verdict{}},
		{"invalid parameter", code(29), verdict{}},
		{"stored, weakly", code(10), verdict{}},
		{"unknown code", code(4711), verdict{}},
		{"timeout", remoting.ErrTimeout, verdict{true, avoidDead, true}},
		{"connection", conn, verdict{true, avoidDead, true}},
		{"no master", fmt.Errorf("x: %w", rocketmq.ErrUnavailable), verdict{true, avoidSick, true}},
		{"going away", remoting.ErrGoAway, verdict{retry: true, refresh: true}},
		{"closed", client.ErrClosed, verdict{}},
		{"no credentials", rocketmq.ErrUnauthorized, verdict{}},
		{"frame too large", remoting.ErrFrameTooLarge, verdict{}},
		{"caller gone", context.Canceled, verdict{}},
		{"caller late", context.DeadlineExceeded, verdict{}},
		{"anything else", io.EOF, verdict{}},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, judge(tt.err), tt.name)
	}
}

func TestFaults(t *testing.T) {
	var f faults
	b := f.broker("b")
	require.Same(t, b, f.broker("b"))
	require.NotSame(t, b, f.broker("c"))
	now := time.Unix(1000, 0)
	require.True(t, b.usable(now, time.Second))
	b.avoid(now.Add(10 * time.Second))
	b.avoid(now.Add(5 * time.Second)) // never shorter
	require.False(t, b.usable(now.Add(9*time.Second), time.Second))
	// When the time is over, one may try and the others wait for its outcome.
	over := now.Add(10 * time.Second)
	require.True(t, b.usable(over, time.Second))
	require.False(t, b.usable(over, time.Second))
	require.True(t, b.usable(over.Add(time.Second), time.Second))
	b.answered(nil, over, time.Second)
	require.True(t, b.usable(over, time.Second))
	require.True(t, b.usable(over, time.Second))
}

// A slow answer keeps others away for as long as the table says, and a faster
// one does not shorten that.
func TestSlowBrokersAreAvoided(t *testing.T) {
	var f faults
	b := f.broker("b")
	now := time.Unix(1000, 0)
	table := DefaultAvoidance()
	b.answered(table, now, 100*time.Millisecond)
	require.True(t, b.usable(now, time.Second))
	b.answered(table, now, 2*time.Second)
	b.answered(table, now, time.Millisecond)
	require.False(t, b.usable(now.Add(5*time.Second-1), time.Second))
	require.True(t, b.usable(now.Add(5*time.Second), time.Second))
	b.answered(nil, now, time.Hour)
	require.True(t, b.usable(now.Add(5*time.Second), time.Second))
	for took, want := range map[time.Duration]time.Duration{0: 0, 50: 0, 549: 0, 550: 2000, 1799: 2000, 1800: 5000, 3000: 6000, 5000: 10000, 15000: 30000, 1e6: 30000} {
		require.Equal(t, want*time.Millisecond, table.after(took*time.Millisecond))
	}
}

func TestFaultsLetOneProbeThrough(t *testing.T) {
	var f faults
	b := f.broker("b")
	now := time.Unix(1000, 0)
	b.avoid(now)
	var wg sync.WaitGroup
	var mu sync.Mutex
	through := 0
	for range 50 {
		wg.Go(func() {
			if b.usable(now, time.Second) {
				mu.Lock()
				through++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, through)
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.init()
		require.True(t, g.enter())
		require.True(t, g.enter())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.shut()
		require.ErrorContains(t, g.wait(ctx), "2 sends")
		require.False(t, g.enter())
		closed := make(chan error, 2)
		for range cap(closed) {
			go func() { closed <- g.wait(t.Context()) }()
		}
		synctest.Wait()
		g.leave()
		synctest.Wait()
		require.Empty(t, closed)
		g.leave()
		synctest.Wait()
		require.Len(t, closed, 2, "all who wait are told")
		require.NoError(t, <-closed)
		require.NoError(t, <-closed)
	})
}

func TestAppendProperties(t *testing.T) {
	at := time.UnixMilli(1700000000123)
	for want, m := range map[string]*rocketmq.Message{
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02":                                      {},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02TAGS\x01t\x02":                         {Tag: "t"},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02KEYS\x01a\x02":                         {Keys: []string{"a"}},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02KEYS\x01a b c\x02":                     {Keys: []string{"a", "b", "c"}},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02__SHARDINGKEY\x01s\x02":                {ShardingKey: "s"},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02DELAY\x0118\x02":                       {Delay: rocketmq.DelayLevel(18)},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02TIMER_DELAY_MS\x011500\x02":            {Delay: rocketmq.DelayFor(1500 * time.Millisecond)},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02TIMER_DELIVER_MS\x011700000000123\x02": {Delay: rocketmq.DeliverAt(at)},
		"UNIQ_KEY\x01ID\x02WAIT\x01true\x02TAGS\x01t\x02own\x01v\x02":             {Tag: "t", Properties: map[string]string{"own": "v"}},
	} {
		got := appendProperties(nil, m, []byte("ID"), nil)
		assert.Equal(t, want, string(got))
		require.Equal(t, "ID", wire.Properties(got).Text(wire.PropUniqKey))
	}
}

// newAttemptFor makes an attempt without a connection.
func newAttemptFor(t *testing.T) *attempt {
	t.Helper()
	rt, err := client.New(client.Config{NameServers: []string{"ns:1"}})
	require.NoError(t, err)
	p := &Pipeline{rt: rt, group: []byte("g")}
	p.packer.init(Compression{})
	a := newAttempt(p)
	a.prepare(&rocketmq.Message{Topic: "t", Body: []byte("b")}, &Options{}, &topic{wire: "t", bytes: []byte("t")}, time.Now())
	return a
}

// answerOf is a response as it comes from the wire.
func answerOf(t *testing.T, code int32, remark string, ext wire.ExtEncoder) *wire.Frame {
	t.Helper()
	cmd := wire.Command{Code: code, Remark: remark, Ext: ext}
	f := &wire.Frame{}
	require.NoError(t, f.Decode(cmd.Append(nil, wire.Head{Flag: wire.FlagResponse})))
	return f
}

func TestAttemptReadsAnswers(t *testing.T) {
	a := newAttemptFor(t)
	q := rocketmq.Queue{Topic: "t", Broker: "b", ID: 0}
	id := string(a.ids)

	a.Done(answerOf(t, 0, "", &wire.SendResponse{OffsetMsgID: []byte("OFF"), QueueID: 3, QueueOffset: 9, RecallHandle: []byte("handle")}), nil)
	<-a.answered
	require.NoError(t, a.err)
	require.Equal(t, Result{
		MessageID: id, OffsetID: "OFF", TransactionID: id, Queue: rocketmq.Queue{Topic: "t", Broker: "b", ID: 3}, Offset: 9, Status: StatusOK, RecallHandle: "handle",
	}, a.result(q))

	a.Done(answerOf(t, 12, "late", &wire.SendResponse{OffsetMsgID: []byte("OFF"), TransactionID: []byte("OTHER")}), nil)
	<-a.answered
	require.Equal(t, "OTHER", a.result(q).TransactionID)
	require.Equal(t, StatusReplicaTimeout, a.result(q).Status)

	a.Done(answerOf(t, 2, "busy", nil), nil)
	<-a.answered
	require.NoError(t, a.err)
	require.False(t, a.stored())
	require.Equal(t, "busy", a.remark)

	a.Done(answerOf(t, 0, "", wire.ExtFields{"msgId": "OFF", "queueId": "x", "queueOffset": "1"}), nil)
	<-a.answered
	require.ErrorContains(t, a.err, "stored, but")
	require.Equal(t, verdict{}, judge(a.err), "not sent twice")

	a.Done(nil, io.EOF)
	<-a.answered
	require.ErrorIs(t, a.err, io.EOF)
}

func TestAttemptWritesRequest(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.JSON, wire.Binary} {
		a := newAttemptFor(t)
		a.p.encoding = enc
		a.head.QueueID, a.head.BrokerName = 5, []byte("b1")
		var f wire.Frame
		require.NoError(t, f.Decode(a.AppendFrame([]byte(nil), 77)))
		require.Equal(t, wire.ReqSendMessageV2, f.Code)
		require.Equal(t, int32(77), f.Opaque)
		require.Equal(t, enc, f.Encoding)
		require.Equal(t, "b", string(f.Body))
		var h wire.SendRequest
		require.NoError(t, h.DecodeExt(&f))
		require.Equal(t, int32(5), h.QueueID)
		require.Equal(t, string(a.ids), h.Properties.Text(wire.PropUniqKey))
		a.props = make([]byte, 0, maxKept+1)
		a.release()
		require.Nil(t, a.body)
		require.Nil(t, a.props, "huge buffers are not kept")
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 20 * time.Millisecond
		start := time.Now()
		require.NoError(t, pause(t.Context(), d, start.Add(time.Minute)))
		require.GreaterOrEqual(t, time.Since(start), d)
		require.LessOrEqual(t, time.Since(start), 3*d/2)
		start = time.Now()
		require.NoError(t, pause(t.Context(), d, start.Add(time.Millisecond)))
		require.Equal(t, time.Millisecond, time.Since(start), "not beyond the deadline")
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		require.ErrorIs(t, pause(ctx, d, start.Add(time.Minute)), cause)
	})
	require.Less(t, pauseFor(&rocketmq.BrokerError{Code: 2}), pauseFor(&remoting.ConnError{Err: io.EOF}))
}
