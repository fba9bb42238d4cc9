package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// pushing is a broker that pushes resets, with topic T, which has ten messages
// in queue 0 and two in queue 1 and of which CG has consumed five and two.
func pushing(t *testing.T) (*Broker, *peer) {
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), func(c *Config) { c.ServerSideReset = false })
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	for i := range 10 {
		p.send(b, "T", 0, "x")
		if i < 2 {
			p.send(b, "T", 1, "x")
		}
		c.Advance(time.Minute)
	}
	require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
	for queue, off := range []int64{5, 2} {
		p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", QueueID: int32(queue), Offset: off}, nil)
	}
	return b, p
}

// joined is a member that has been told so.
func joined(t *testing.T, b *Broker, id string, answer []byte) *peer {
	p := dial(t, b, func(c *remoting.Config) {
		inner := c.Handler
		c.Handler = func(r *remoting.Request) {
			if r.Frame().Code == wire.ReqGetConsumerStatusFromClient && answer != nil {
				r.Reply(wire.RespSuccess, "", nil, answer)
				return
			}
			inner(r)
		}
	})
	p.heartbeat("CG", id, 1, "T")
	p.notified("CG")
	return p
}

func TestC44_PushedReset(t *testing.T) {
	b, p := pushing(t)
	q0, q1 := wire.MessageQueue{Topic: "T", Broker: "broker-a"}, wire.MessageQueue{Topic: "T", Broker: "broker-a", QueueID: 1}
	at := func(minute int) int64 { return testStart.Add(time.Duration(minute) * time.Minute).UnixMilli() }
	reset := func(h wire.ResetOffsetRequest) *wire.Frame {
		h.Topic, h.Group = "T", "CG"
		return p.call(wire.ReqInvokeBrokerToResetOffset, &h, nil)
	}
	f := reset(wire.ResetOffsetRequest{Timestamp: -1, Force: true})
	require.EqualValues(t, wire.RespConsumerNotOnline, f.Code, "mqadmin then commits by itself")
	require.Contains(t, string(f.Remark), "not online")

	one := joined(t, b, "one", nil)
	two := joined(t, b, "two", nil)
	one.notified("CG")
	for name, test := range map[string]struct {
		h    wire.ResetOffsetRequest
		want map[wire.MessageQueue]int64
	}{
		"back":                  {wire.ResetOffsetRequest{Timestamp: at(3)}, map[wire.MessageQueue]int64{q0: 3, q1: 2}},
		"to the end":            {wire.ResetOffsetRequest{Timestamp: -1, Force: true}, map[wire.MessageQueue]int64{q0: 10, q1: 2}},
		"forward, not forced":   {wire.ResetOffsetRequest{Timestamp: at(8)}, map[wire.MessageQueue]int64{q0: 5, q1: 2}},
		"forward":               {wire.ResetOffsetRequest{Timestamp: at(8), Force: true}, map[wire.MessageQueue]int64{q0: 8, q1: 2}},
		"before the first":      {wire.ResetOffsetRequest{Timestamp: at(-60)}, map[wire.MessageQueue]int64{q0: 0, q1: 0}},
		"one queue is all here": {wire.ResetOffsetRequest{Timestamp: at(1), OneQueue: true, Offset: 4}, map[wire.MessageQueue]int64{q0: 1, q1: 1}},
	} {
		f := reset(test.h)
		require.EqualValues(t, wire.RespSuccess, f.Code, "%s: %s", name, f.Remark)
		got, err := wire.DecodeOffsetTable(f.Body)
		require.NoError(t, err)
		require.Equal(t, test.want, got.Offsets, name)
		for _, m := range []*peer{one, two} {
			asked := m.push()
			require.EqualValues(t, wire.ReqResetConsumerClientOffset, asked.Code)
			require.True(t, asked.IsOneway())
			require.Equal(t, "T", asked.Text("topic"))
			require.Equal(t, "CG", asked.Text("group"))
			require.Equal(t, f.Body, asked.Body, "queues as keys")
		}
		off, _ := b.Offset("CG", "T", 0)
		require.EqualValues(t, 5, off, "the members commit")
	}
	require.Contains(t, string(reset(wire.ResetOffsetRequest{Timestamp: -1}).Body), `{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5`)
	one.push()
	two.push()

	// An administrator's tool in C++: Apache takes its members to be of that kind.
	x := &cppAnswer{answer{
		cmd: wire.Command{Code: wire.ReqInvokeBrokerToResetOffset, Ext: &wire.ResetOffsetRequest{Topic: "T", Group: "CG", Timestamp: -1}},
		ch:  make(chan *wire.Frame, 1),
	}}
	_, err := p.conn().Start(x, time.Time{}, remoting.Inline)
	require.NoError(t, err)
	require.EqualValues(t, wire.RespSuccess, (<-x.ch).Code)
	require.Equal(t, `{"offsetTable":[{"brokerName":"broker-a","offset":5,"queueId":0,"topic":"T"},{"brokerName":"broker-a","offset":2,"queueId":1,"topic":"T"}]}`,
		string(one.push().Body))
}

// cppAnswer asks in the name of another language.
type cppAnswer struct{ answer }

func (x *cppAnswer) AppendFrame(dst []byte, opaque int32) []byte {
	at := len(dst)
	dst = x.answer.AppendFrame(dst, opaque)
	dst[at+10] = byte(wire.LanguageCPP) // behind both lengths and the code
	return dst
}

func TestPushedResetRefusals(t *testing.T) {
	b, p := pushing(t)
	joined(t, b, "one", nil)
	for name, h := range map[string]*wire.ResetOffsetRequest{
		"no topic in this broker":        {Topic: "None", Group: "CG"},
		"<New> has no offset of T":       {Topic: "T", Group: "New"},
		"topic: the field is missing":    nil,
		"feature. client=old version=27": {Topic: "T", Group: "Old", Timestamp: -1},
	} {
		if h != nil && h.Group == "Old" {
			for q := range int32(2) {
				b.offsets.Commit([]byte("Old"), []byte("T"), q, 1)
			}
			oldMember(t, b, "Old")
		}
		var f *wire.Frame
		if h == nil {
			f = p.call(wire.ReqInvokeBrokerToResetOffset, wire.ExtFields{"group": "CG"}, nil)
			name = "topic"
		} else {
			f = p.call(wire.ReqInvokeBrokerToResetOffset, h, nil)
		}
		require.EqualValues(t, wire.RespSystemError, f.Code)
		require.Contains(t, string(f.Remark), name)
	}
	f := p.call(wire.ReqInvokeBrokerToGetConsumerStatus, &wire.ConsumerStatusRequest{Topic: "T", Group: "Old"}, nil)
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Contains(t, string(f.Remark), "version=27")
}

// oldMember is a member that knows nothing of resets.
func oldMember(t *testing.T, b *Broker, group string) {
	hb := wire.Heartbeat{ClientID: "old", Consumers: []wire.ConsumerData{{Group: group, ConsumeType: wire.ConsumePassively, Model: wire.Clustering}}}
	x := &oldAnswer{answer{cmd: wire.Command{Code: wire.ReqHeartBeat, Body: hb.AppendJSON(nil)}, ch: make(chan *wire.Frame, 1)}}
	_, err := dial(t, b).conn().Start(x, time.Time{}, remoting.Inline)
	require.NoError(t, err)
	require.EqualValues(t, wire.RespSuccess, (<-x.ch).Code)
}

type oldAnswer struct{ answer }

func (x *oldAnswer) AppendFrame(dst []byte, opaque int32) []byte {
	at := len(dst)
	dst = x.answer.AppendFrame(dst, opaque)
	dst[at+11], dst[at+12] = 0, 27 // the version, behind the language
	return dst
}

func TestConsumerStatusOfAllMembers(t *testing.T) {
	b, p := pushing(t)
	ask := func(group, id string) *wire.Frame {
		return p.call(wire.ReqInvokeBrokerToGetConsumerStatus, &wire.ConsumerStatusRequest{Topic: "T", Group: group, ClientAddr: id}, nil)
	}
	require.EqualValues(t, wire.RespSystemError, ask("CG", "").Code, "nobody is there")
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqInvokeBrokerToGetConsumerStatus, wire.ExtFields{"topic": "T"}, nil).Code)
	tables := map[string]map[wire.MessageQueue]int64{
		"one": {{Topic: "T", Broker: "broker-a"}: 5}, "two": {{Topic: "T", Broker: "broker-a", QueueID: 1}: 2},
	}
	for id, table := range tables {
		st := wire.ConsumerStatus{Queues: table}
		joined(t, b, id, st.AppendJSON(nil))
	}
	joined(t, b, "strange", []byte("no JSON"))
	status := func(id string) map[string]map[wire.MessageQueue]int64 {
		f := ask("CG", id)
		require.EqualValues(t, wire.RespSuccess, f.Code, "%s", f.Remark)
		st, err := wire.DecodeConsumerStatus(f.Body)
		require.NoError(t, err)
		return st.Clients
	}
	require.Equal(t, tables, status(""))
	require.Equal(t, map[string]map[wire.MessageQueue]int64{"two": tables["two"]}, status("two"))
	require.Empty(t, status("nobody"))
}
