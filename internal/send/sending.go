package send

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/selector"
)

// sending is one synchronous send with all its attempts. It lives on the
// caller's stack.
type sending struct {
	p        *Pipeline
	m        *rocketmq.Message
	target   Target
	start    time.Time
	deadline time.Time // of the whole
	cut      bool      // the last attempt had less time than attempts have
	failed   []rocketmq.Attempt
	last     rocketmq.Queue // of the last attempt
	lastAddr string
	id       string // if it failed
}

// run finds the route and tries until an attempt succeeds, is not worth
// repeating, or time or attempts have run out.
func (s *sending) run(ctx context.Context) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, s.fail(context.Cause(ctx))
	}
	t, tb, err := s.route(ctx)
	if err != nil {
		return Result{}, s.fail(err)
	}
	s.p.announce()
	a := s.p.attempts.Get().(*attempt)
	a.prepare(s.m, t, s.start)
	res, err := s.try(ctx, a, t, tb)
	if err != nil {
		s.id = string(a.id)
	}
	a.release()
	s.p.attempts.Put(a)
	return res, err
}

// route is the topic's table; a context is only made if there is none yet.
func (s *sending) route(ctx context.Context) (*topic, *table, error) {
	if t := s.p.topics.find(s.m.Topic); t != nil {
		if tb := t.table.Load(); tb != nil && !tb.borrowed {
			return t, tb, nil
		}
	}
	ctx, cancel := context.WithDeadline(ctx, s.deadline)
	defer cancel()
	return s.p.table(ctx, s.m.Topic)
}

func (s *sending) try(ctx context.Context, a *attempt, t *topic, tb *table) (Result, error) {
	now := s.start
	avoid, goneAway := "", false
	for n := 0; ; n++ {
		q, r, err := s.choose(t, tb, avoid, now)
		if err != nil {
			return Result{}, s.fail(err)
		}
		s.last, s.lastAddr = q, r.addr
		err = s.attempt(ctx, a, &r, now)
		if err == nil && a.stored() {
			return s.stored(a, t, tb, q, &r)
		}
		if err == nil {
			err = &rocketmq.BrokerError{Op: sendOp, Addr: r.addr, Code: a.code, Remark: a.remark}
		}
		began := now
		now = time.Now()
		s.failed = append(s.failed, rocketmq.Attempt{Queue: q, Addr: r.addr, Took: now.Sub(began), Err: err})
		v := judge(err)
		if s.cut && errors.Is(err, rocketmq.ErrTimeout) {
			v.avoid = 0 // the caller was in a hurry, that says nothing of the broker
		}
		s.consequences(v, t, &r, now)
		if errors.Is(err, remoting.ErrGoAway) && !goneAway {
			goneAway = true // it was not carried out: once more, without counting
			n--
			continue
		}
		switch {
		case ctx.Err() != nil:
			return Result{}, s.fail(context.Cause(ctx))
		case !v.retry || n >= s.p.cfg.Retries:
			return Result{}, s.fail(err)
		case !now.Before(s.deadline):
			return Result{}, s.fail(fmt.Errorf("%w: no time left for another attempt", rocketmq.ErrTimeout))
		}
		avoid = q.Broker
		if next := t.table.Load(); next != nil {
			tb = next // the route has changed meanwhile
		}
		if s.alone(tb, q.Broker) {
			// The same broker again: give it time to come to itself.
			if err := pause(ctx, pauseFor(err)<<min(n, 5), s.deadline); err != nil {
				return Result{}, s.fail(err)
			}
			now = time.Now()
		}
	}
}

// attempt tries one queue. nil means that the broker answered, well or not.
func (s *sending) attempt(ctx context.Context, a *attempt, r *ref, now time.Time) error {
	if r.addr == "" {
		return fmt.Errorf("%w: broker %q has no master", rocketmq.ErrUnavailable, r.broker.name)
	}
	by := now.Add(s.p.cfg.Attempt)
	if s.cut = s.deadline.Before(by); s.cut {
		by = s.deadline
	}
	c, err := s.p.rt.ConnBy(ctx, r.addr, by)
	if err != nil {
		return bridge.PublicError(err)
	}
	return a.do(ctx, c, r, by)
}

// stored is the end of a send that the broker stored.
func (s *sending) stored(a *attempt, t *topic, tb *table, q rocketmq.Queue, r *ref) (Result, error) {
	r.broker.healthy()
	if tb.borrowed {
		s.p.rt.RefreshRoute(t.wire) // the broker has created the topic
	}
	res := a.result(q)
	if res.Status == StatusOK || s.p.cfg.WeakAck {
		return res, nil
	}
	err := &rocketmq.BrokerError{Op: sendOp, Addr: r.addr, Code: a.code, Remark: a.remark}
	s.failed = append(s.failed, rocketmq.Attempt{Queue: q, Addr: r.addr, Took: time.Since(s.start), Err: err})
	return res, s.fail(err)
}

// consequences are what a failure means for the sends to come.
func (s *sending) consequences(v verdict, t *topic, r *ref, now time.Time) {
	if v.avoid > 0 {
		r.broker.avoid(now.Add(v.avoid))
	}
	if v.refresh {
		s.p.rt.RefreshRoute(t.wire)
	}
}

// choose picks the queue of the next attempt.
func (s *sending) choose(t *topic, tb *table, avoid string, now time.Time) (rocketmq.Queue, ref, error) {
	switch {
	case s.target.Fixed:
		return s.fixed(tb)
	case s.target.Selector != nil:
		return s.selected(s.target.Selector, tb, avoid)
	case s.p.cfg.Selector != nil:
		return s.selected(s.p.cfg.Selector, tb, avoid)
	case s.m.ShardingKey != "":
		i := selector.HashIndex(s.m.ShardingKey, len(tb.queues))
		return tb.queues[i], tb.refs[i], nil
	}
	i := s.inTurn(t, tb, avoid, now)
	return tb.queues[i], tb.refs[i], nil
}

// inTurn passes over the broker that just failed and those that failed lately,
// then only over the one that just failed, if there is nothing better.
func (s *sending) inTurn(t *topic, tb *table, avoid string, now time.Time) int {
	n := len(tb.refs)
	start := int(t.turn.Add(1)-1) % n
	i := start
	for range n {
		b := tb.refs[i].broker
		if b.name != avoid && b.usable(now, s.p.cfg.Attempt) {
			return i
		}
		if i++; i == n {
			i = 0
		}
	}
	for k := range n {
		if i := (start + k) % n; tb.refs[i].broker.name != avoid {
			return i
		}
	}
	return start
}

// fixed is the queue the caller named, at the broker's present address.
func (s *sending) fixed(tb *table) (rocketmq.Queue, ref, error) {
	q := s.target.Queue
	switch {
	case q.Topic != "" && q.Topic != s.m.Topic:
		return q, ref{}, fmt.Errorf("%w: queue %s is of another topic than the message", rocketmq.ErrInvalidMessage, q)
	case q.ID < 0:
		return q, ref{}, fmt.Errorf("%w: queue %s has a negative id", rocketmq.ErrInvalidMessage, q)
	}
	q.Topic = s.m.Topic
	for i := range tb.queues {
		if tb.queues[i] == q {
			return q, tb.refs[i], nil
		}
	}
	return q, ref{}, fmt.Errorf("%w: queue %s is not in the topic's route", rocketmq.ErrNoQueue, q)
}

func (s *sending) selected(sel selector.QueueSelector, tb *table, avoid string) (rocketmq.Queue, ref, error) {
	i, err := sel.Select(s.m, tb.queues, avoid)
	if err != nil {
		return rocketmq.Queue{}, ref{}, fmt.Errorf("queue selector: %w", err)
	}
	if i < 0 || i >= len(tb.queues) {
		return rocketmq.Queue{}, ref{}, fmt.Errorf("queue selector: index %d is outside of the %d queues", i, len(tb.queues))
	}
	return tb.queues[i], tb.refs[i], nil
}

// alone reports whether the next attempt most likely meets the same broker.
func (s *sending) alone(tb *table, name string) bool {
	if s.target.Fixed || s.m.ShardingKey != "" && s.target.Selector == nil && s.p.cfg.Selector == nil {
		return true
	}
	for i := range tb.refs {
		if tb.refs[i].broker.name != name {
			return false
		}
	}
	return true
}

// pauseFor is the first pause before the same broker is tried again: a busy one
// may have room in a moment, one that is being restarted takes longer.
func pauseFor(err error) time.Duration {
	if errors.Is(err, rocketmq.ErrConnection) {
		return 150 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// pause waits for d and up to half of it more, so that senders do not come back
// in step, but never beyond the deadline.
func pause(ctx context.Context, d time.Duration, deadline time.Time) error {
	d += rand.N(d/2 + 1)
	t := time.NewTimer(min(d, max(time.Until(deadline), 0)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const sendOp = "SEND_MESSAGE_V2"

// fail makes the error of a send.
func (s *sending) fail(cause error) error {
	return &rocketmq.SendError{Topic: s.m.Topic, Attempts: s.failed, Cause: cause}
}

// report tells the hooks how the send ended.
func (s *sending) report(ctx context.Context, res Result, err error) {
	info := rocketmq.SendInfo{
		Topic: s.m.Topic, MessageID: res.MessageID, Queue: s.last, Addr: s.lastAddr,
		Bytes: len(s.m.Body), Attempts: len(s.failed), Took: time.Since(s.start), Err: err,
	}
	if err == nil {
		info.Attempts++
	}
	if info.MessageID == "" {
		info.MessageID = s.id
	}
	for _, h := range s.p.hooks {
		h.OnSend(ctx, info)
	}
}
