package send

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/selector"
)

// sending is one message, or several in one request, on the way with all
// attempts. For a synchronous send it lives on the caller's stack.
type sending struct {
	p        *Pipeline
	m        *rocketmq.Message   // of a batch the first
	batch    []*rocketmq.Message // nil: m alone
	opts     Options
	start    time.Time
	deadline time.Time // of the whole

	t  *topic
	tb *table

	// The attempt under way, or the last one.
	r     ref
	last  rocketmq.Queue
	began time.Time
	cut   bool // it had less time than attempts have

	tries    int    // attempts that have failed, but for the first GO_AWAY
	avoid    string // the broker of the last one that failed
	goneAway bool
	failed   []rocketmq.Attempt
}

// begin sets the deadline.
func (s *sending) begin(ctx context.Context, now time.Time) {
	s.start, s.began = now, now
	s.deadline = now.Add(s.p.cfg.Total)
	if d, ok := ctx.Deadline(); ok && d.Before(s.deadline) {
		s.deadline = d
	}
	if by := s.opts.By; !by.IsZero() && by.Before(s.deadline) {
		s.deadline = by
	}
}

// run finds the route and tries until an attempt succeeds, is not worth
// repeating, or time or attempts have run out. The answer is in a if the
// broker has stored what was sent; then there is an error only for a weak
// acknowledgement.
func (s *sending) run(ctx context.Context, a *attempt) (stored bool, err error) {
	if ctx.Err() != nil {
		return false, s.fail(context.Cause(ctx))
	}
	if err := s.route(ctx); err != nil {
		return false, s.fail(err)
	}
	s.p.announce()
	s.prepare(a)
	return s.try(ctx, a)
}

func (s *sending) prepare(a *attempt) {
	if s.batch != nil {
		a.prepareBatch(s.batch, s.t, s.start)
	} else {
		a.prepare(s.m, &s.opts, s.t, s.start)
	}
}

// known finds the topic's table if that takes no waiting.
func (s *sending) known() bool {
	if t := s.p.topics.find(s.m.Topic); t != nil {
		if tb := t.table.Load(); tb != nil && !tb.borrowed {
			s.t, s.tb = t, tb
			return true
		}
	}
	return false
}

// route finds the topic's table; a context is only made if there is none yet.
func (s *sending) route(ctx context.Context) (err error) {
	if s.known() {
		return nil
	}
	ctx, cancel := context.WithDeadlineCause(ctx, s.deadline, errNoRouteInTime)
	defer cancel()
	s.t, s.tb, err = s.p.table(ctx, s.m.Topic)
	return err
}

// errNoRouteInTime is the end of the total timeout, unlike that of the caller's
// own context.
var errNoRouteInTime = fmt.Errorf("%w: no name server has given a route in time", rocketmq.ErrTimeout)

// try makes attempts from now on.
func (s *sending) try(ctx context.Context, a *attempt) (stored bool, err error) {
	for {
		if err := s.choose(); err != nil {
			return false, s.fail(err)
		}
		err = s.attempt(ctx, a)
		var again bool
		if stored, again, err = s.judge(ctx, a, err); !again {
			return stored, err
		}
	}
}

// attempt tries one queue. nil means that the broker answered, well or not.
func (s *sending) attempt(ctx context.Context, a *attempt) error {
	c, by, err := s.connect(ctx, a)
	if err != nil {
		return err
	}
	return a.do(ctx, c, by)
}

// connect aims a at the chosen queue and returns the broker's connection, and
// the deadline of the attempt.
func (s *sending) connect(ctx context.Context, a *attempt) (*remoting.Conn, time.Time, error) {
	by := s.until()
	if s.r.addr == "" {
		return nil, by, fmt.Errorf("%w: broker %q has no master", rocketmq.ErrUnavailable, s.r.broker.name)
	}
	c, err := s.p.rt.ConnBy(ctx, s.r.addr, by)
	if err != nil {
		return nil, by, bridge.PublicError(err)
	}
	a.aim(&s.r)
	return c, by, nil
}

// until is the deadline of the attempt that begins.
func (s *sending) until() time.Time {
	by := s.began.Add(s.p.cfg.Attempt)
	if s.cut = s.deadline.Before(by); s.cut {
		return s.deadline
	}
	return by
}

// judge looks at the outcome of an attempt: err, or the answer in a. If there
// shall be another it has waited as long as is good before.
func (s *sending) judge(ctx context.Context, a *attempt, err error) (stored, again bool, _ error) {
	if err == nil && a.stored() {
		return true, false, s.stored(a)
	}
	if err == nil {
		err = &rocketmq.BrokerError{Op: a.opName(), Addr: s.r.addr, Code: a.code, Remark: a.remark}
	}
	now := time.Now()
	s.failed = append(s.failed, rocketmq.Attempt{Queue: s.last, Addr: s.r.addr, Took: now.Sub(s.began), Err: err})
	v := judge(err)
	if s.cut && errors.Is(err, rocketmq.ErrTimeout) {
		v.avoid = 0 // the caller was in a hurry, that says nothing of the broker
	}
	s.consequences(v, now)
	s.began = now
	if errors.Is(err, remoting.ErrGoAway) && !s.goneAway {
		s.goneAway = true // it was not carried out: once more, without counting
		return false, true, nil
	}
	switch {
	case ctx.Err() != nil:
		return false, false, s.fail(context.Cause(ctx))
	case !v.retry || s.tries >= s.p.cfg.Retries:
		return false, false, s.fail(err)
	case !now.Before(s.deadline):
		return false, false, s.fail(fmt.Errorf("%w: no time left for another attempt", rocketmq.ErrTimeout))
	}
	s.tries++
	s.avoid = s.last.Broker
	if next := s.t.table.Load(); next != nil {
		s.tb = next // the route has changed meanwhile
	}
	if s.alone() {
		// The same broker again: give it time to come to itself.
		if err := pause(ctx, pauseFor(err)<<min(s.tries-1, 5), s.deadline); err != nil {
			return false, false, s.fail(err)
		}
		s.began = time.Now()
	}
	return false, true, nil
}

// stored is the end of a send that the broker stored.
func (s *sending) stored(a *attempt) error {
	s.settled(time.Now())
	if st := statusOf(a.code); st == StatusOK || s.p.cfg.WeakAck {
		return nil
	}
	err := &rocketmq.BrokerError{Op: a.opName(), Addr: s.r.addr, Code: a.code, Remark: a.remark}
	s.failed = append(s.failed, rocketmq.Attempt{Queue: s.last, Addr: s.r.addr, Took: time.Since(s.began), Err: err})
	return s.fail(err)
}

// settled is what a success means for the sends to come.
func (s *sending) settled(now time.Time) {
	s.r.broker.answered(s.p.cfg.Avoidance, now, now.Sub(s.began))
	if s.tb.borrowed {
		s.p.rt.RefreshRoute(s.t.wire) // the broker has created the topic
	}
}

// consequences are what a failure means for the sends to come.
func (s *sending) consequences(v verdict, now time.Time) {
	if v.avoid > 0 {
		s.r.broker.avoid(now.Add(v.avoid))
	}
	if v.refresh {
		s.p.rt.RefreshRoute(s.t.wire)
	}
}

// choose picks the queue of the next attempt.
func (s *sending) choose() (err error) {
	tb, sel := s.tb, s.opts.Selector
	if sel == nil {
		sel = s.p.cfg.Selector
	}
	var i int
	switch {
	case s.opts.Fixed:
		i, err = s.fixed()
	case sel != nil:
		i, err = s.selected(sel)
	case s.m.ShardingKey != "":
		i = selector.HashIndex(s.m.ShardingKey, len(tb.queues))
	default:
		i = s.inTurn()
	}
	if err == nil {
		s.last, s.r = tb.queues[i], tb.refs[i]
	}
	return err
}

// inTurn passes over the broker that just failed and those that failed lately,
// then only over the one that just failed, if there is nothing better.
func (s *sending) inTurn() int {
	refs := s.tb.refs
	n := len(refs)
	start := int(s.t.turn.Add(1)-1) % n
	i := start
	for range n {
		b := refs[i].broker
		if b.name != s.avoid && b.usable(s.began, s.p.cfg.Attempt) {
			return i
		}
		if i++; i == n {
			i = 0
		}
	}
	for k := range n {
		if i := (start + k) % n; refs[i].broker.name != s.avoid {
			return i
		}
	}
	return start
}

// fixed is the queue the caller named.
func (s *sending) fixed() (int, error) {
	q := s.opts.Queue
	switch {
	case q.Topic != "" && q.Topic != s.m.Topic:
		return 0, fmt.Errorf("%w: queue %s is of another topic than the message", rocketmq.ErrInvalidMessage, q)
	case q.ID < 0:
		return 0, fmt.Errorf("%w: queue %s has a negative id", rocketmq.ErrInvalidMessage, q)
	}
	q.Topic = s.m.Topic
	if i := slices.Index(s.tb.queues, q); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%w: queue %s is not in the topic's route", rocketmq.ErrNoQueue, q)
}

func (s *sending) selected(sel selector.QueueSelector) (int, error) {
	i, err := sel.Select(s.m, s.tb.queues, s.avoid)
	if err != nil {
		return 0, fmt.Errorf("queue selector: %w", err)
	}
	if i < 0 || i >= len(s.tb.queues) {
		return 0, fmt.Errorf("queue selector: index %d is outside of the %d queues", i, len(s.tb.queues))
	}
	return i, nil
}

// alone reports whether the next attempt most likely meets the same broker.
func (s *sending) alone() bool {
	if s.opts.Fixed || s.m.ShardingKey != "" && s.opts.Selector == nil && s.p.cfg.Selector == nil {
		return true
	}
	for i := range s.tb.refs {
		if s.tb.refs[i].broker.name != s.avoid {
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

// fail makes the error of a send.
func (s *sending) fail(cause error) error {
	return &rocketmq.SendError{Topic: s.m.Topic, Attempts: s.failed, Cause: cause}
}

// report tells the hooks how the send of one message ended.
func (s *sending) report(ctx context.Context, m *rocketmq.Message, id string, took time.Duration, err error) {
	info := rocketmq.SendInfo{
		Topic: m.Topic, MessageID: id, Queue: s.last, Addr: s.r.addr,
		Bytes: len(m.Body), Attempts: len(s.failed), Took: took, Err: err,
	}
	if err == nil {
		info.Attempts++
	}
	for _, h := range s.p.hooks {
		h.OnSend(ctx, info)
	}
}
