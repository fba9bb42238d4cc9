package send

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Recall asks the broker that holds a delayed message not to deliver it, and
// returns the message's id. Attempts go to that broker alone.
func (p *Pipeline) Recall(ctx context.Context, topic, handle string) (id string, err error) {
	if !p.gate.enter() {
		return "", rocketmq.ErrClosed
	}
	defer p.gate.leave()
	r := recall{p: p, topic: p.rt.Wrap(topic), text: handle}
	if r.handle, err = wire.ParseRecallHandle(handle); err != nil {
		return "", fmt.Errorf("%w: %w", rocketmq.ErrNotRecallable, err)
	}
	if r.handle.Topic != r.topic {
		return "", fmt.Errorf("%w: the handle is of topic %q, not of %q", rocketmq.ErrNotRecallable, p.rt.Unwrap(r.handle.Topic), topic)
	}
	s := sending{p: p}
	s.begin(ctx, time.Now())
	r.deadline = s.deadline
	if id, err = r.run(ctx); err != nil {
		return "", fmt.Errorf("producer: recall of message %s of topic %q: %w", r.handle.MessageID, topic, err)
	}
	return id, nil
}

// recall is one recall under way.
type recall struct {
	p        *Pipeline
	topic    string // with the namespace
	text     string
	handle   wire.RecallHandle
	deadline time.Time
}

func (r *recall) run(ctx context.Context) (id string, err error) {
	for tries := 0; ; tries++ {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if id, err = r.attempt(ctx); err == nil {
			return id, nil
		}
		if ctx.Err() != nil || tries >= r.p.cfg.Retries || !again(err) || !time.Now().Before(r.deadline) {
			return "", err
		}
		if !errors.Is(err, rocketmq.ErrBusy) {
			r.p.rt.RefreshRoute(r.topic)
		}
		if perr := pause(ctx, pauseFor(err)<<min(tries, 5), r.deadline); perr != nil {
			return "", perr
		}
	}
}

// again reports whether the same broker may answer differently soon.
func again(err error) bool {
	for _, yes := range [...]error{rocketmq.ErrBusy, rocketmq.ErrUnavailable, rocketmq.ErrConnection, rocketmq.ErrTimeout, remoting.ErrGoAway} {
		if errors.Is(err, yes) {
			return true
		}
	}
	return false
}

// attempt asks the broker once.
func (r *recall) attempt(ctx context.Context) (id string, err error) {
	p := r.p
	by := time.Now().Add(p.cfg.Attempt)
	if r.deadline.Before(by) {
		by = r.deadline
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	addr, err := r.master(ctx)
	if err != nil {
		return "", err
	}
	c, err := p.rt.ConnBy(ctx, addr, by)
	if err != nil {
		return "", bridge.PublicError(err)
	}
	f, err := c.Call(ctx, &wire.Command{Code: wire.ReqRecallMessage, Ext: &wire.RecallRequest{
		Group: string(p.group), Topic: r.topic, Handle: r.text, BrokerName: r.handle.Broker,
	}})
	if err != nil {
		return "", err
	}
	if f.Code == wire.RespSuccess {
		var resp wire.RecallResponse
		if err := resp.DecodeExt(f); err != nil {
			return "", fmt.Errorf("recalled, but the broker's answer cannot be read: %w", err)
		}
		return resp.MsgID, nil
	}
	refused := &rocketmq.BrokerError{Op: wire.RequestName(wire.ReqRecallMessage), Addr: addr, Code: rocketmq.Code(f.Code), Remark: string(f.Remark)}
	switch f.Code {
	case wire.RespNoPermission:
		return "", fmt.Errorf("the broker takes no recalls, recallMessageEnable is off: %w", refused)
	case wire.RespSlaveNotAvailable:
		// Of a send this code means that the message is stored.
		return "", fmt.Errorf("%w: the broker is a replica: %v", rocketmq.ErrUnavailable, refused)
	}
	return "", refused
}

// master is the address of the broker that holds the message.
func (r *recall) master(ctx context.Context) (string, error) {
	rt, err := r.p.rt.Route(ctx, r.topic)
	if err != nil {
		return "", routeError(r.p.rt.Unwrap(r.topic), err)
	}
	if addr := rt.MasterOf(r.handle.Broker); addr != "" {
		return addr, nil
	}
	if rt, err = r.p.rt.FetchRoute(ctx, r.topic); err != nil {
		return "", routeError(r.p.rt.Unwrap(r.topic), err)
	}
	if addr := rt.MasterOf(r.handle.Broker); addr != "" {
		return addr, nil
	}
	return "", fmt.Errorf("%w: broker %q, which holds the message, has no master in the topic's route", rocketmq.ErrUnavailable, r.handle.Broker)
}
