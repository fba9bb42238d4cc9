package send

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// async is one asynchronous send. No goroutine belongs to it: it goes from hand
// to hand.
//
//	caller      checks, room in the window, first attempt if nothing is in the way
//	reader      takes the answer (Done)
//	helpers     whatever has to wait: routes, connections, further attempts
//	deliverer   runs the callback
//
// A parcel is an async whose members were put together by linger; it has no
// callback of its own.
type async struct {
	sending
	ctx   context.Context
	a     *attempt
	begun bool // an attempt was made, its outcome is in a
	done  func(Result, error)
	bytes int // of the window
	lap   *lap
	late  bool // it came after Close

	members []*async

	// met counts the two who must be done with the request before anybody else
	// may have x: whoever sends it, and whoever brings the answer. A call can
	// time out while its frame is being encoded.
	met atomic.Int32

	stored bool
	err    error
}

var _ remoting.Exchange = (*async)(nil)

// overhead is what a message takes beside its body, roughly.
const overhead = 512

// SendAsync sends one message without waiting for the answer. done is called
// exactly once.
func (p *Pipeline) SendAsync(ctx context.Context, m *rocketmq.Message, o Options, done func(Result, error)) {
	x := p.asyncs.Get().(*async)
	x.ctx, x.m, x.opts, x.done = ctx, m, o, done
	x.lap = p.under.enter()
	if !p.gate.enter() {
		x.late = true
		x.end(rocketmq.ErrClosed)
		return
	}
	if err := m.Validate(); err != nil {
		x.end(err)
		return
	}
	x.begin(ctx, time.Now())
	bytes := len(m.Body) + overhead
	if err := p.window.enter(ctx, bytes, x.deadline); err != nil {
		x.end(x.fail(err))
		return
	}
	x.bytes = bytes
	if p.linger != nil && p.linger.add(x) {
		return
	}
	x.launch()
}

// Refuse has done called with an error, as for a send that could not begin.
func (p *Pipeline) Refuse(done func(Result, error), err error) {
	x := p.asyncs.Get().(*async)
	x.done, x.lap, x.late = done, p.under.enter(), true
	x.end(err)
}

// Join counts the caller among the asynchronous sends under way, for which
// Flush and Close wait, until leave is called.
func (p *Pipeline) Join() (leave func(), err error) {
	if !p.gate.enter() {
		return nil, rocketmq.ErrClosed
	}
	lap := p.under.enter()
	return func() {
		p.gate.leave()
		p.under.leave(lap)
	}, nil
}

// launch makes the first attempt, or has the helpers do it if that would wait.
// It blocks only while the connection's output is full.
func (x *async) launch() {
	if !x.first() {
		x.p.helpers.add(x)
	}
}

// first makes the first attempt if nothing has to be waited for. Once it has
// returned true x may be anybody's.
func (x *async) first() (gone bool) {
	defer func() { x.mind(recover(), &gone) }()
	p := x.p
	if !x.known() || x.ctx.Err() != nil {
		return false
	}
	if err := x.choose(); err != nil || x.r.addr == "" {
		return false
	}
	c := p.rt.Connected(x.ctx, x.r.addr)
	if c == nil {
		return false
	}
	p.announce()
	x.prepare(x.a)
	x.a.aim(&x.r)
	x.begun = true
	if _, err := c.Start(x, x.until(), remoting.Later); err != nil {
		x.a.err = err
		return false
	}
	x.meet()
	return true
}

// AppendFrame implements [remoting.Appender].
func (x *async) AppendFrame(dst []byte, opaque int32) []byte { return x.a.AppendFrame(dst, opaque) }

// Done implements [remoting.Exchange].
func (x *async) Done(f *wire.Frame, err error) {
	x.a.take(f, err)
	x.meet()
}

// meet passes x on when the frame is made and the answer is there.
func (x *async) meet() {
	if x.met.Add(1) < 2 {
		return
	}
	if x.a.err == nil && statusOf(x.a.code) == StatusOK {
		x.stored = true
		x.settled(time.Now())
		x.p.deliverer.add(x)
		return
	}
	x.p.helpers.add(x)
}

// help does on a helper's goroutine what has to wait: it finds route and
// connection and lets x go, or brings it to its end.
func (x *async) help() {
	if !x.begun && x.clear() && x.first() {
		return
	}
	defer func() {
		if v := recover(); v != nil { // a selector's
			x.stored, x.err = false, x.fail(&rocketmq.PanicError{Value: v, Stack: debug.Stack()})
		}
		x.p.deliverer.add(x)
	}()
	if !x.begun {
		x.stored, x.err = x.run(x.ctx, x.a)
		return
	}
	again := false
	if x.stored, again, x.err = x.judge(x.ctx, x.a, x.a.err); again {
		x.stored, x.err = x.try(x.ctx, x.a)
	}
}

// clear waits for what was in the way of the first attempt. What cannot be had
// is reported by run, which tries once more.
func (x *async) clear() (ok bool) {
	defer func() { x.mind(recover(), &ok) }()
	if x.route(x.ctx) != nil || x.choose() != nil || x.r.addr == "" {
		return false
	}
	_, err := x.p.rt.ConnBy(x.ctx, x.r.addr, x.until())
	return err == nil
}

// mind makes a selector's panic a false; it will panic again where that is
// reported.
func (x *async) mind(panicked any, ok *bool) {
	if panicked != nil {
		x.begun, *ok = false, false
	}
}

// end delivers a send that has failed before it began.
func (x *async) end(err error) {
	x.stored, x.err = false, err
	x.p.deliverer.add(x)
}

// deliver runs the callback, on the deliverer's goroutine.
func (x *async) deliver() {
	if x.members != nil {
		x.unpack()
		return
	}
	var res Result
	if x.stored {
		res = x.a.result(x.last)
	}
	x.finish(x.a, 0, res, x.err)
}

// unpack gives each member of a parcel its own outcome.
func (x *async) unpack() {
	give := func(i int, res Result) {
		m := x.members[i]
		m.last, m.r, m.failed = x.last, x.r, x.failed
		m.finish(x.a, i, res, x.err)
	}
	if x.stored {
		x.a.results(x.last, len(x.members), give)
	} else {
		for i := range x.members {
			give(i, Result{})
		}
	}
	x.drop()
}

// finish gives back what x has taken and runs the callback. It was the i-th
// message of the request in a.
func (x *async) finish(a *attempt, i int, res Result, err error) {
	p := x.p
	if x.bytes > 0 {
		p.window.leave(x.bytes)
	}
	x.ended(x.ctx, x.m, a, i, res, err)
	done, lap, late := x.done, x.lap, x.late
	x.drop()
	p.call(done, res, err)
	if !late {
		p.gate.leave()
	}
	p.under.leave(lap)
}

// call runs a callback. A panic in it is the user's to see, but not at the cost
// of all other sends.
func (p *Pipeline) call(done func(Result, error), res Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("panic in the callback of an asynchronous send", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	done(res, err)
}

// drop gives x back for reuse.
func (x *async) drop() {
	x.a.release()
	*x = async{sending: sending{p: x.p}, a: x.a}
	x.p.asyncs.Put(x)
}
