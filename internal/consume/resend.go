package consume

import (
	"context"
	"errors"
	"strconv"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// A message that its broker does not take back is sent to %RETRY%group like any
// other, as Java's client does; and so is one of an ordered consumer that has
// had all its attempts. The broker that gets it moves it to %DLQ%group if the
// count of attempts, which travels in the request's header, is above the
// maximum there. 4.9 does so if it is equal, and 5.x also if the group holds
// any lock.

// innerProducer is the group of sends that no producer of the application makes.
const innerProducer = "CLIENT_INNER_PRODUCER"

// firstRetryLevel is the delay level of the first retry (10 s); each later one
// has the next.
const firstRetryLevel = 3

// notCopied are properties that belong to the stored message and not to its
// copy: what the broker sets, what delayed the original, and what is set here.
var notCopied = []string{
	wire.PropRetryTopic, wire.PropOriginMessageID, wire.PropDelay, wire.PropReconsumeTime, wire.PropMaxReconsumeTimes,
	wire.PropTranMsg, wire.PropRealTopic, wire.PropRealQueueID, wire.PropWait, wire.PropPopCK, wire.PropCluster, wire.PropMsgRegion,
	wire.PropTraceOn, wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs, wire.PropTimerOutMs,
	wire.PropTimerEnqueueMs, wire.PropTimerDequeueMs, wire.PropTimerRollTimes, wire.PropTimerDelUniqKey, wire.PropTimerDelayLevel,
}

var errNoRetryBroker = errors.New("no broker to send it to is known")

// target is a broker that may take a message for the retry topic.
type target struct {
	addr  string
	queue int32
}

// targets are the brokers to try: the message's own, whatever the route says, as
// it makes the topic when it needs it, then those of the retry topic.
func (c *Consumer) targets(f *failed) []target {
	own := f.q.key.Broker
	var ts []target
	if addr := f.q.topic.masterOnly(own); addr != "" {
		ts = append(ts, target{addr: addr})
	}
	retry := c.topics[len(c.topics)-1]
	r := retry.route.Load()
	if r == nil {
		return ts
	}
	for _, q := range r.Publish {
		if q.Broker != own && q.ID == 0 {
			ts = append(ts, target{addr: r.MasterOf(q.Broker)})
		}
	}
	return ts
}

// publish sends the copy to the next broker that may take it.
func (s *settler) publish(ctx context.Context, f failed, dead map[string]error) {
	err := f.err
	if err == nil {
		err = errNoRetryBroker
	}
	for ts := s.c.targets(&f); f.at < len(ts); {
		to := ts[f.at]
		f.at++
		x := &resend{s: s, f: f, topic: s.c.topics[len(s.c.topics)-1].wireName, to: to}
		x.prepare()
		if err = s.start(ctx, to.addr, x, dead); err == nil {
			return
		}
	}
	s.failed(f, err)
}

// resend is SEND_MESSAGE_V2 of one copy.
type resend struct {
	s     *settler
	f     failed
	topic string
	to    target
	h     wire.SendRequest
}

// prepare makes the header, so that nothing but encoding is left to AppendFrame.
func (x *resend) prepare() {
	v, c := x.f.view, x.s.c
	had := int32(v.Attempt)
	props := wire.Properties(v.Properties)
	origin := props.Text(wire.PropOriginMessageID)
	if origin == "" {
		origin = v.OffsetID
	}
	level := x.f.out.DelayLevel
	if level == 0 {
		level = firstRetryLevel - 1 + had
	}
	limit := int32(max(c.cfg.MaxAttempts-1, 0))
	p := props.Without(make([]byte, 0, len(props)+64), notCopied...)
	p = wire.AppendProperty(p, wire.PropRetryTopic, c.cfg.Runtime.Wrap(v.Topic))
	p = wire.AppendProperty(p, wire.PropOriginMessageID, origin)
	p = wire.AppendProperty(p, wire.PropWait, "false")
	if level > 0 {
		p = wire.AppendProperty(p, wire.PropDelay, strconv.Itoa(int(level)))
	} else {
		// To the dead letters whoever is asked: more than the maximum, which
		// cannot be 0 in this header.
		if limit == 0 || limit >= had {
			limit = had - 1
		}
		limit = max(limit, 1)
		had = max(had, limit+1)
	}
	x.h = wire.SendRequest{
		Group: []byte(innerProducer), Topic: []byte(x.topic), DefaultTopic: []byte("TBW102"), DefaultTopicQueues: 4,
		QueueID: x.to.queue, SysFlag: x.f.meta.sysFlag & (wire.SysCompressed | wire.SysCompressionMask), BornTime: v.BornAt.UnixMilli(),
		Flag: x.f.meta.flag, Properties: p, ReconsumeTimes: had, MaxReconsumeTimes: limit,
	}
	if x.f.meta.sysFlag&wire.SysCompressed == 0 {
		x.h.SysFlag = 0
	}
}

// AppendFrame implements [remoting.Exchange].
func (x *resend) AppendFrame(dst []byte, opaque int32) []byte {
	h := x.s.c.head
	h.Code, h.Opaque = wire.ReqSendMessageV2, opaque
	e := wire.Begin(dst, h)
	x.h.EncodeExt(&e)
	return e.Finish(x.f.view.Body)
}

// Done implements [remoting.Exchange]. A message that is stored and not yet
// flushed or replicated counts as taken, as it does in Java's client: it would
// be stored again and again otherwise.
func (x *resend) Done(f *wire.Frame, err error) {
	if err == nil {
		switch f.Code {
		case wire.RespSuccess, wire.RespFlushDiskTimeout, wire.RespFlushSlaveTimeout, wire.RespSlaveNotAvailable:
			x.s.done(x.f)
			return
		}
		err = &rocketmq.BrokerError{Op: "SEND_MESSAGE_V2", Addr: x.to.addr, Code: rocketmq.Code(f.Code), Remark: string(f.Remark)}
	}
	x.s.c.log.Debug("copy for the retry topic not stored", "message", x.f.view, "addr", x.to.addr, "err", err)
	x.f.err = err
	x.s.put(x.f, 0)
}
