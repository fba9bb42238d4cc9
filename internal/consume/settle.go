package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	// localRetry is when a message that the broker would not take back is
	// handled again here, as Java's client does.
	localRetry = 5 * time.Second
	// settleTimeout bounds one send-back.
	settleTimeout = 3 * time.Second
)

// errEnded stands for a handler that calls runtime.Goexit.
var errEnded = error(&rocketmq.PanicError{Value: "the handler ended its goroutine"})

// ErrHandlerTimeout ends a handler's context after Config.HandlerTimeout.
var ErrHandlerTimeout = fmt.Errorf("handler timeout: %w", context.DeadlineExceeded)

// Kind is what is to become of a message after its handler returned.
type Kind uint8

// The kinds of outcomes. There is no good one at zero.
const (
	Failed  Kind = iota // to be retried by way of the broker
	Done                // finished
	Untried             // not looked at: back to the local queue, no attempt spent
)

// Outcome is the verdict over one message.
type Outcome struct {
	Kind       Kind
	Err        error         // why it failed
	DelayLevel int32         // for the broker: 0 is by attempt, below 0 the dead-letter topic
	Delay      time.Duration // the same for a retry here; 0 is the default
}

// failed is a message on its way back to the broker.
type failed struct {
	d       *dispatcher
	q       *queue
	p       *page
	i       int
	view    *rocketmq.MessageView
	meta    meta
	out     Outcome
	publish bool    // send it, because it cannot be sent back, see resend.go
	at      int     // of publish: how many brokers have been tried
	err     error   // of publish: why the last of them did not take it
	burial  *burial // in order: who waits for it
}

// newFailed is message i of w.
func newFailed(d *dispatcher, w *work, i int, out Outcome) failed {
	at := w.base + i
	return failed{d: d, q: w.p.q, p: w.p, i: at, view: w.views[i], meta: w.p.meta[at], out: out}
}

// judge settles a batch whose handler did not return nil.
func (c *Consumer) judge(d *dispatcher, q *queue, w *work, from, to int, err error, r report) {
	var pe *rocketmq.PanicError
	if errors.As(err, &pe) {
		c.log.Error("handler panicked", "queue", q.key, "offset", w.views[from].Offset, "messages", to-from,
			"panic", fmt.Sprint(pe.Value), "stack", string(pe.Stack))
	}
	for i := from; i < to; i++ {
		at := w.base + i
		o := c.cfg.Judge(err, i-from, to-from)
		dead := o.Kind == Failed && c.spent(w.views[i], o)
		r.failed(i-from, o, dead)
		q.topic.stats.judged(o)
		switch {
		case o.Kind == Done:
			q.finish(w.p, at)
		case q.cut():
			// It failed because we cut it short, or another member has the
			// queue by now: the message comes again without our doing.
		case o.Kind == Untried:
			d.push(&work{p: w.p, views: w.views[i : i+1 : i+1], base: at})
		case c.local != nil:
			if pe == nil {
				c.log.Warn("message failed and is dropped, as broadcasting retries nothing", "message", w.views[i], "err", o.Err)
			}
			q.finish(w.p, at)
		default:
			if pe == nil {
				c.log.Warn("message failed", "message", w.views[i], "err", o.Err)
			}
			if dead {
				o.DelayLevel = -1
			}
			c.settler.add(newFailed(d, w, i, o))
		}
	}
}

// settler sends failed messages back to their brokers (code 36), which store
// a copy for the retry topic. A broker that cannot be had, or does not want it,
// is passed over: the copy is made here and sent, see resend.go. Until a broker
// has confirmed one or the other, the message is unfinished and holds the
// committed offset.
type settler struct {
	c *Consumer

	mu      sync.Mutex // guards all below
	list    []failed
	pending int           // in list or on their way
	changed chan struct{} // closed and replaced when pending falls to 0
	wake    chan struct{} // one slot
}

func newSettler(c *Consumer) *settler {
	return &settler{c: c, changed: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func (s *settler) add(f failed) { s.put(f, 1) }

// put adds a message that is on its way already, with 0, or a new one.
func (s *settler) put(f failed, fresh int) {
	s.mu.Lock()
	s.list = append(s.list, f)
	s.pending += fresh
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *settler) settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending--; s.pending == 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// wait blocks until nothing is on its way, or ctx ends.
func (s *settler) wait(ctx context.Context) {
	s.mu.Lock()
	pending, changed := s.pending, s.changed
	s.mu.Unlock()
	if pending == 0 {
		return
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// run is the goroutine: it starts the calls and waits for none but a dial.
func (s *settler) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		s.mu.Lock()
		list := s.list
		s.list = nil
		s.mu.Unlock()
		dead := map[string]error{} // so that a dead broker costs one dial a round
		for _, f := range list {
			s.send(ctx, f, dead)
		}
	}
}

func (s *settler) send(ctx context.Context, f failed, dead map[string]error) {
	if f.q.revoked.Load() {
		s.failed(f, rocketmq.ErrRevoked)
		return
	}
	if f.publish {
		s.publish(ctx, f, dead)
		return
	}
	err := s.start(ctx, f.q.topic.master(f.q.key.Broker), &sendBack{s: s, f: f}, dead)
	if err != nil {
		f.publish = true
		s.publish(ctx, f, dead)
	}
}

// start sends a request to a broker.
func (s *settler) start(ctx context.Context, addr string, x remoting.Exchange, dead map[string]error) error {
	if err := dead[addr]; err != nil {
		return err
	}
	dial, cancel := context.WithTimeout(ctx, settleTimeout)
	conn, err := s.c.dial(dial, addr)
	cancel()
	if err == nil {
		_, err = conn.Start(x, time.Now().Add(settleTimeout), remoting.Later)
	}
	if err != nil {
		dead[addr] = err
	}
	return err
}

// done ends the way of a message of which a broker has a copy.
func (s *settler) done(f failed) {
	if f.burial != nil {
		f.burial.done(nil)
	} else {
		f.q.finish(f.p, f.i)
	}
	s.settled()
}

// failed ends the way of a message of which no broker has taken a copy. It
// stays here and is handled once more, as a new attempt. The application may
// still hold the view of the attempt before, so this one gets its own.
func (s *settler) failed(f failed, err error) {
	switch {
	case f.burial != nil:
		f.burial.done(err)
	case !f.q.revoked.Load():
		wait := f.out.Delay
		if wait <= 0 {
			wait = localRetry
		}
		s.c.log.Debug("message could not be sent back, retrying it here", "message", f.view, "in", wait, "err", err)
		view := *f.view
		view.Attempt++
		s.c.timers.after(wait, func() {
			if !f.q.gone.Load() {
				f.d.push(&work{p: f.p, views: []*rocketmq.MessageView{&view}, base: f.i})
			}
		})
	}
	s.settled()
}

// sendBack is CONSUMER_SEND_MSG_BACK for one message.
type sendBack struct {
	s *settler
	f failed
}

// AppendFrame implements [remoting.Exchange].
func (x *sendBack) AppendFrame(dst []byte, opaque int32) []byte {
	c := x.s.c
	h := c.head
	h.Code, h.Opaque = wire.ReqConsumerSendMsgBack, opaque
	e := wire.Begin(dst, h)
	(&wire.SendBackRequest{
		Offset: x.f.meta.logOffset, Group: string(c.groupWire), DelayLevel: x.f.out.DelayLevel,
		OriginMsgID: x.f.view.OffsetID, OriginTopic: x.f.q.topic.wireName, MaxReconsumeTimes: int32(max(c.cfg.MaxAttempts-1, 0)),
	}).EncodeExt(&e)
	return e.Finish(nil)
}

// Done implements [remoting.Exchange].
func (x *sendBack) Done(f *wire.Frame, err error) {
	if err == nil && f.Code != wire.RespSuccess {
		err = &rocketmq.BrokerError{Op: "CONSUMER_SEND_MSG_BACK", Code: rocketmq.Code(f.Code), Remark: string(f.Remark)}
	}
	if err == nil {
		x.s.done(x.f)
		return
	}
	x.s.c.log.Debug("message could not be sent back, sending a copy", "message", x.f.view, "err", err)
	x.f.publish = true
	x.s.put(x.f, 0)
}
