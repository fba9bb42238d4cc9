package send

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Half is a half message that a broker has stored.
type Half struct {
	Result
	LogOffset int64 // where it is in the broker's log
}

// SendHalf sends a message that waits at its broker until [Pipeline.End] decides
// about it. immunity is for how long the broker shall not ask, rounded up to
// seconds; 0 leaves that to the broker. The broker knows this producer before
// it gets the message, so that it can ask.
func (p *Pipeline) SendHalf(ctx context.Context, m *rocketmq.Message, immunity time.Duration) (Half, error) {
	if err := m.Validate(); err != nil {
		return Half{}, err
	}
	if !m.Delay.IsZero() || m.ReplyTo != nil {
		return Half{}, fmt.Errorf("%w: topic %q: a message of a transaction can neither be delayed nor be a reply", rocketmq.ErrInvalidMessage, m.Topic)
	}
	if err := p.introduce(ctx, m, time.Time{}, p.rt.IntroduceToMasters); err != nil {
		return Half{}, err
	}
	var room [256]byte
	props := wire.AppendProperty(room[:0], wire.PropTranMsg, "true")
	props = wire.AppendProperty(props, wire.PropProducerGroup, p.group)
	if immunity > 0 {
		props = wire.AppendProperty(props, wire.PropCheckImmunitySeconds, strconv.FormatInt(int64((immunity+time.Second-1)/time.Second), 10))
	}
	res, err := p.Send(ctx, m, Options{Extra: props, SysFlag: wire.SysTranPrepared})
	if res.Status == StatusUnknown {
		return Half{}, err
	}
	h := Half{Result: res}
	var perr error
	if _, h.LogOffset, perr = wire.ParseOffsetMsgID(res.OffsetID); perr != nil {
		return Half{}, fmt.Errorf("half message %s is stored, but its broker does not say where, so it cannot be decided about: %w", res.MessageID, errors.Join(err, perr))
	}
	return h, err
}

// introduce makes this producer known to the brokers that f tells. by lowers the
// total timeout; zero does not.
func (p *Pipeline) introduce(ctx context.Context, m *rocketmq.Message, by time.Time, f func(ctx context.Context, topic string)) error {
	if !p.gate.enter() {
		return rocketmq.ErrClosed
	}
	defer p.gate.leave()
	s := sending{p: p, m: m, opts: Options{By: by}}
	s.begin(ctx, time.Now())
	if err := s.route(ctx); err != nil {
		return s.fail(err)
	}
	p.announce()
	ctx, cancel := context.WithDeadline(ctx, s.until())
	defer cancel()
	f(ctx, s.t.wire)
	return nil
}

// Announce makes the producer's group known to brokers now instead of with the
// first send.
func (p *Pipeline) Announce() { p.announce() }

// Ending is what is said of a half message.
type Ending struct {
	Topic     string // with the namespace
	Broker    string // its name; "" if not known
	Addr      string // of the broker, if the name is of no help
	Half      int64  // offset in the queue of half messages
	LogOffset int64
	Decision  int32 // wire.SysTranCommit, wire.SysTranRollback or 0
	FromCheck bool  // the broker has asked
	ID        string
}

// EndingOf is the ending of a half message of this pipeline.
func (p *Pipeline) EndingOf(h *Half, decision int32) *Ending {
	return &Ending{
		Topic: p.rt.Wrap(h.Queue.Topic), Broker: h.Queue.Broker, Half: h.Offset, LogOffset: h.LogOffset, Decision: decision, ID: h.MessageID,
	}
}

// End decides about a half message and waits until the broker has done it. That
// it does not know the decision yet is only said, without an answer. It works
// as long as the client is open.
//
// A rollback is tried again within the total timeout. A commit is only tried
// again if the broker cannot have carried it out: Apache's would deliver the
// message twice.
func (p *Pipeline) End(ctx context.Context, e *Ending) error {
	s := sending{p: p}
	s.begin(ctx, time.Now())
	for tries := 0; ; tries++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		harmless, err := p.end(ctx, e, s.deadline)
		if err == nil {
			return nil
		}
		if !harmless && e.Decision == wire.SysTranCommit || !again(err) || tries >= p.cfg.Retries || ctx.Err() != nil || !time.Now().Before(s.deadline) {
			return err
		}
		p.rt.RefreshRoute(e.Topic)
		if perr := pause(ctx, pauseFor(err)<<min(tries, 5), s.deadline); perr != nil {
			return errors.Join(err, perr)
		}
	}
}

// end tries once. harmless means that the broker has not carried it out.
func (p *Pipeline) end(ctx context.Context, e *Ending, deadline time.Time) (harmless bool, err error) {
	by := time.Now().Add(p.cfg.Attempt)
	if deadline.Before(by) {
		by = deadline
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	addr, err := p.holder(ctx, e)
	if err != nil {
		return true, err
	}
	c, err := p.rt.ConnBy(ctx, addr, by)
	if err != nil {
		return true, bridge.PublicError(err)
	}
	cmd := &wire.Command{Code: wire.ReqEndTransaction, Ext: &wire.EndTransactionRequest{
		Group: string(p.group), TranStateOffset: e.Half, CommitLogOffset: e.LogOffset, CommitOrRollback: e.Decision, FromCheck: e.FromCheck,
		MsgID: e.ID, TransactionID: e.ID, Topic: e.Topic, BrokerName: e.Broker,
	}}
	if e.Decision == 0 {
		return true, c.CallOneway(cmd)
	}
	f, err := c.Call(ctx, cmd)
	if err != nil {
		return errors.Is(err, remoting.ErrGoAway), err
	}
	if f.Code == wire.RespSuccess {
		return false, nil
	}
	refused := &rocketmq.BrokerError{Op: wire.RequestName(wire.ReqEndTransaction), Addr: addr, Code: rocketmq.Code(f.Code), Remark: string(f.Remark)}
	switch f.Code {
	case wire.RespSlaveNotAvailable:
		// Of a send this code means that the message is stored.
		return true, fmt.Errorf("%w: the broker is a replica: %v", rocketmq.ErrUnavailable, refused)
	case wire.RespFlushDiskTimeout, wire.RespFlushSlaveTimeout:
		return false, nil
	}
	return true, refused
}

// holder is the address of the broker that holds a half message.
func (p *Pipeline) holder(ctx context.Context, e *Ending) (string, error) {
	if e.Broker == "" {
		return e.Addr, nil
	}
	rt, err := p.rt.Route(ctx, e.Topic)
	switch {
	case err == nil && rt.MasterOf(e.Broker) != "":
		return rt.MasterOf(e.Broker), nil
	case e.Addr != "":
		return e.Addr, nil
	case err != nil:
		return "", routeError(p.rt.Unwrap(e.Topic), err)
	}
	if rt, err = p.rt.FetchRoute(ctx, e.Topic); err != nil {
		return "", routeError(p.rt.Unwrap(e.Topic), err)
	}
	if addr := rt.MasterOf(e.Broker); addr != "" {
		return addr, nil
	}
	return "", fmt.Errorf("%w: broker %q, which holds the half message, has no master in the topic's route", rocketmq.ErrUnavailable, e.Broker)
}
