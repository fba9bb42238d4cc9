package broker

import (
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Questions for a client that an administrator asks through the broker:
// GET_CONSUMER_RUNNING_INFO (307), CONSUME_MESSAGE_DIRECTLY (309).
//
// Fields read: consumerGroup, clientId; 309: msgId, an offset id of this broker.
//
// Answers: the client's own, byte for byte; 1 malformed, client not online or
// too old, message not there; 207 the client did not answer within 10 s.
//
// No goroutine waits for the client: its answer is passed on by the reader of
// its connection.

const forwardTimeout = 10 * time.Second

// firstWithForward is V3_1_8_SNAPSHOT: older clients do not know the questions.
const firstWithForward = 62

func (b *Broker) handleRunningInfo(r *remoting.Request) {
	var req wire.RunningInfoRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	b.forward(r, req.Group, req.ClientID, &wire.Command{Code: wire.ReqGetConsumerRunningInfo, Ext: &req})
}

func (b *Broker) handleConsumeDirectly(r *remoting.Request) {
	var req wire.ConsumeDirectlyRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	_, phy, err := wire.ParseOffsetMsgID(req.MsgID)
	if malformed(r, err) {
		return
	}
	rec, ok := b.store.ViewMessage(nil, phy)
	if !ok {
		r.Reply(wire.RespSystemError, "can not find message by the offset, "+strconv.FormatInt(phy, 10), nil, nil)
		return
	}
	req.BrokerName = b.cfg.Name
	ext := &directlyHeader{ConsumeDirectlyRequest: req}
	if t := b.topics.Lookup(req.Topic); t != nil {
		ext.topicSysFlag = t.SysFlag
	}
	if g := b.groups.Lookup(req.Group); g != nil {
		ext.groupSysFlag = g.SysFlag
	}
	b.forward(r, req.Group, req.ClientID, &wire.Command{Code: wire.ReqConsumeMessageDirectly, Ext: ext, Body: rec})
}

// directlyHeader adds what a broker of 5.x tells the client.
type directlyHeader struct {
	wire.ConsumeDirectlyRequest
	topicSysFlag, groupSysFlag int32
}

// EncodeExt implements wire.ExtEncoder.
func (h *directlyHeader) EncodeExt(e *wire.Encoder) {
	h.ConsumeDirectlyRequest.EncodeExt(e)
	e.Int("topicSysFlag", int64(h.topicSysFlag))
	e.Int("groupSysFlag", int64(h.groupSysFlag))
}

func (b *Broker) forward(r *remoting.Request, group, clientID string, cmd *wire.Command) {
	c, ok := b.clients.Member(group, clientID)
	switch {
	case !ok:
		r.Reply(wire.RespSystemError, "The Consumer <"+group+"> <"+clientID+"> not online", nil, nil)
		return
	case c.Version < firstWithForward:
		r.Reply(wire.RespSystemError, "The Consumer <"+group+"> <"+clientID+"> is too old to answer this", nil, nil)
		return
	}
	x := &forwarded{cmd: cmd, replier: r.Replier()}
	// connections go by the machine's clock
	if _, err := c.Conn.(*remoting.Conn).Start(x, clock.Real().Now().Add(forwardTimeout), remoting.Try); err != nil {
		x.Done(nil, err)
	}
}

// forwarded is a request on its way through the broker.
type forwarded struct {
	cmd     *wire.Command
	replier remoting.Replier
}

// AppendFrame implements remoting.Exchange.
func (x *forwarded) AppendFrame(dst []byte, opaque int32) []byte {
	return x.cmd.Append(dst, wire.Head{Opaque: opaque})
}

// Done implements remoting.Exchange.
func (x *forwarded) Done(f *wire.Frame, err error) {
	switch {
	case err == nil:
		x.replier.Reply(f.Code, string(f.Remark), frameFields{f}, f.Body)
	case err == remoting.ErrTimeout:
		x.replier.Reply(wire.RespConsumeMsgTimeout, "consumer "+x.replier.Conn().Remote()+" did not answer in time", nil, nil)
	default:
		x.replier.Reply(wire.RespSystemError, "asking the consumer: "+err.Error(), nil, nil)
	}
}

// frameFields passes the extension fields of a frame on.
type frameFields struct{ f *wire.Frame }

// EncodeExt implements wire.ExtEncoder.
func (x frameFields) EncodeExt(e *wire.Encoder) {
	for i := range x.f.NumFields() {
		field := x.f.Field(i)
		e.Bytes(string(field.Key), field.Value)
	}
}
