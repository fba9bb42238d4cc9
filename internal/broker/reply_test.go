package broker

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const replyTopic = "DefaultCluster_REPLY_TOPIC"

// requester connects a client with a producer.
func requester(t *testing.T, b *Broker, id string, opts ...func(*remoting.Config)) *peer {
	t.Helper()
	p := dial(t, b, opts...)
	hb := wire.Heartbeat{ClientID: id, Producers: []string{"PG"}}
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))
	return p
}

func replyHeader(to string) *wire.SendRequest {
	h := sendHeader(replyTopic, 0, "UNIQ_KEY", "0A0000010001000000020000000A0001", "CORRELATION_ID", "cid", "REPLY_TO_CLIENT", to, "TTL", "3000", "MSG_TYPE", "reply")
	h.Flag, h.ReconsumeTimes, h.UnitMode, h.SysFlag = 7, 2, true, wire.SysCompressed
	return h
}

func sendResponse(t *testing.T, f *wire.Frame) wire.SendResponse {
	t.Helper()
	var resp wire.SendResponse
	require.NoError(t, resp.DecodeExt(f))
	return resp
}

func TestReplyReachesTheRequester(t *testing.T) {
	b := startBroker(t)
	asking, answering := requester(t, b, "10.0.0.1@asking"), dial(t, b)
	for i, code := range []int32{wire.ReqSendReplyMessageV2, wire.ReqSendReplyMessage} {
		h := replyHeader("10.0.0.1@asking")
		var ext wire.ExtEncoder = h
		if code == wire.ReqSendReplyMessage {
			ext = v1{h}
		}
		resp := sendResponse(t, answering.must(code, ext, []byte("the reply")))
		require.EqualValues(t, i, resp.QueueOffset)
		require.Equal(t, "0A0000010001000000020000000A0001", string(resp.TransactionID))
		require.Equal(t, "DefaultRegion", string(resp.Region))
		_, phy, err := wire.ParseOffsetMsgID(resp.OffsetMsgID)
		require.NoError(t, err)

		pushed := asking.push()
		require.Equal(t, wire.ReqPushReplyMessageToClient, pushed.Code)
		require.Equal(t, "the reply", string(pushed.Body))
		var got wire.PushReplyRequest
		require.NoError(t, got.DecodeExt(pushed))
		props := wire.Properties(got.Properties).Map()
		require.NotEmpty(t, props["PUSH_REPLY_TIME"])
		delete(props, "PUSH_REPLY_TIME")
		require.Equal(t, h.Properties.Map(), props)
		got.Properties = ""
		require.NotZero(t, got.StoreTime)
		got.StoreTime = 0
		require.Equal(t, wire.PushReplyRequest{
			Group: "PG", Topic: replyTopic, DefaultTopic: "TBW102", DefaultTopicQueues: 4, SysFlag: wire.SysCompressed, Flag: 7,
			ReconsumeTimes: 2, BornTime: testStart.UnixMilli(), UnitMode: true, BornHost: answering.conn().LocalAddr().String(), StoreHost: b.Addr(),
		}, got)

		var rec wire.Record
		_, err = wire.DecodeRecord(answering.must(wire.ReqViewMessageByID, &wire.ViewMessageRequest{Offset: phy}, nil).Body, &rec)
		require.NoError(t, err)
		require.Equal(t, "the reply", string(rec.Body))
		require.Equal(t, "cid", rec.Properties.Text("CORRELATION_ID"))
		require.Equal(t, "DefaultCluster", rec.Properties.Text("CLUSTER"))
	}
	require.Zero(t, b.replies.Load())
}

// Old clients send a reply without a body at all.
func TestReplyWithoutBody(t *testing.T) {
	b := startBroker(t)
	asking := requester(t, b, "asking")
	require.EqualValues(t, 0, sendResponse(t, dial(t, b).must(wire.ReqSendReplyMessageV2, replyHeader("asking"), nil)).QueueOffset)
	require.Empty(t, asking.push().Body)
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	f := asking.must(wire.ReqPullMessage, pullHeaderOf("CG", replyTopic, 0, 0), nil)
	require.Equal(t, []string{""}, bodies(t, f))
}

func TestRepliesThatAreNotStored(t *testing.T) {
	b := startBroker(t, func(c *Config) {
		known, err := c.Set("storeReplyMessageEnable", "false")
		require.True(t, known)
		require.NoError(t, err)
	})
	asking := requester(t, b, "asking")
	resp := sendResponse(t, dial(t, b).must(wire.ReqSendReplyMessageV2, replyHeader("asking"), []byte("x")))
	require.Equal(t, "0", string(resp.OffsetMsgID))
	require.Zero(t, resp.QueueOffset)
	require.Equal(t, "x", string(asking.push().Body))
	require.Zero(t, b.Store().MaxOffset(replyTopic, 0))
}

// A reply that cannot be handed over is code 1, stored all the same, and says
// where.
func TestReplyToNobody(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	requester(t, b, "refuses", func(c *remoting.Config) {
		c.Handler = func(r *remoting.Request) { r.Reply(wire.RespSystemError, "cannot read it", nil, nil) }
	})
	requester(t, b, "dies", func(c *remoting.Config) {
		c.Handler = func(r *remoting.Request) { r.Conn().Close(nil) }
	})
	consumer := dial(t, b)
	consumer.heartbeat("CG", "consumer", 1, "T")
	gone := requester(t, b, "gone")
	gone.must(wire.ReqUnregisterClient, &wire.UnregisterClientRequest{ClientID: "gone", ProducerGroup: "PG"}, nil)
	var n int64
	for to, remark := range map[string]string{
		"nobody":   "push reply message fail, channel of <nobody> not found.",
		"consumer": "push reply message fail, channel of <consumer> not found.",
		"gone":     "push reply message fail, channel of <gone> not found.",
		"refuses":  "push reply message to refuses fail: it answered 1 cannot read it",
		"dies":     "push reply message to dies fail: ",
	} {
		f := p.call(wire.ReqSendReplyMessageV2, replyHeader(to), []byte("x"))
		require.Equal(t, wire.RespSystemError, f.Code)
		require.Contains(t, string(f.Remark), remark)
		require.Equal(t, n, sendResponse(t, f).QueueOffset)
		n++
	}
	h := sendHeader(replyTopic, 0, "CORRELATION_ID", "cid")
	f := p.call(wire.ReqSendReplyMessageV2, h, []byte("x"))
	require.Equal(t, wire.RespSystemError, f.Code)
	require.Equal(t, "REPLY_TO_CLIENT is null, can not reply message", string(f.Remark))
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	require.Equal(t, n+1, b.Store().MaxOffset(replyTopic, 0))
	require.Zero(t, b.replies.Load())
}

func TestReplyRefusals(t *testing.T) {
	b := startBroker(t)
	asking, p := requester(t, b, "asking"), dial(t, b)
	bad := replyHeader("asking")
	bad.QueueID = 1
	reserved := replyHeader("asking")
	reserved.Topic = []byte("SCHEDULE_TOPIC_XXXX")
	for code, h := range map[int32]*wire.SendRequest{wire.RespInvalidParameter: bad, wire.RespNoPermission: reserved} {
		f := p.call(wire.ReqSendReplyMessageV2, h, []byte("x"))
		require.Equal(t, code, f.Code)
		require.Equal(t, "DefaultRegion", f.Text("MSG_REGION"))
	}
	require.Equal(t, wire.RespSystemError, p.call(wire.ReqSendReplyMessageV2, wire.ExtFields{"a": "PG"}, nil).Code)

	b.replies.Store(maxReplies)
	f := p.call(wire.ReqSendReplyMessageV2, replyHeader("asking"), []byte("x"))
	require.Equal(t, wire.RespSystemBusy, f.Code)
	require.Contains(t, string(f.Remark), "[OVERLOAD]")
	require.EqualValues(t, maxReplies, b.replies.Load())
	require.Empty(t, asking.pushed)
	require.Zero(t, b.Store().MaxOffset(replyTopic, 0))
}

// The store and the client are waited for, in either order, and by no goroutine:
// more replies wait here than the broker has workers.
func TestReplyWaitsForClientAndDisk(t *testing.T) {
	flushing, flushed := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(flushed) })
	t.Cleanup(release)
	b := startBroker(t, func(c *Config) {
		c.Store.SyncFlush = true
		c.Store.FS = mfile.Hooked(mfile.NewMemory(), func(op mfile.Op, path string, _, _ int64) error {
			if op == mfile.OpSync && strings.Contains(path, "commitlog") {
				flushing <- struct{}{}
				<-flushed
			}
			return nil
		})
	})
	const n = 3 * workers
	held := make(chan remoting.Replier, n)
	requester(t, b, "asking", func(c *remoting.Config) {
		c.Handler = func(r *remoting.Request) { held <- r.Replier() }
	})
	p := dial(t, b)
	var answers []<-chan *wire.Frame
	for range n {
		answers = append(answers, p.async(wire.ReqSendReplyMessageV2, replyHeader("asking")))
	}
	var repliers []remoting.Replier
	for range n {
		repliers = append(repliers, <-held)
	}
	for _, r := range repliers[:n/2] {
		r.Reply(wire.RespSuccess, "", nil, nil)
	}
	<-flushing
	release()
	for _, a := range answers[:n/2] {
		require.Equal(t, wire.RespSuccess, (<-a).Code)
	}
	for _, a := range answers[n/2:] {
		require.Empty(t, a)
	}
	for _, r := range repliers[n/2:] {
		r.Reply(wire.RespSuccess, "", nil, nil)
	}
	offsets := map[int64]bool{}
	for _, a := range answers[n/2:] {
		offsets[sendResponse(t, <-a).QueueOffset] = true
	}
	require.Len(t, offsets, n/2)
	require.Zero(t, b.replies.Load())
}

func TestRecallIsSwitchedOff(t *testing.T) {
	b := startBroker(t)
	f := dial(t, b).call(wire.ReqRecallMessage, &wire.RecallRequest{Topic: "T", Handle: "x"}, nil)
	require.Equal(t, wire.RespNoPermission, f.Code)
	require.Equal(t, "DefaultRegion", f.Text("MSG_REGION"))
}
