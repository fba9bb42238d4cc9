package producer

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/pool"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// SendFunc sends one message and returns when it is known what became of it.
type SendFunc func(ctx context.Context, m *rocketmq.Message) (Result, error)

// Interceptor wraps every send of a producer: it may pass on another context or
// another message (not change the one it got), look at the outcome or change
// it, send again, or not send at all. It is called concurrently. For one-way
// messages the result is empty. In a batch the calls for the messages are
// nested: those for the first message go around those for the second.
type Interceptor func(next SendFunc) SendFunc

// maxIntercepted is how many asynchronous sends may be inside of interceptors:
// each takes a goroutine.
const maxIntercepted = 64

// chain joins interceptors; the first is the outermost.
func chain(list []Interceptor) Interceptor {
	if len(list) == 0 {
		return nil
	}
	return func(next SendFunc) SendFunc {
		for i := len(list) - 1; i >= 0; i-- {
			next = list[i](next)
		}
		return next
	}
}

// interceptAsync runs the interceptors on a goroutine of a bounded pool.
func (p *Producer) interceptAsync(ctx context.Context, m *rocketmq.Message, done func(Result, error), opts []SendOption) {
	leave, err := p.pipe.Join()
	if err == nil {
		o := options(opts)
		task := func() {
			defer leave()
			res, err := p.intercepted(ctx, m, o)
			done(res, err)
		}
		if err = p.workers.Go(ctx, task); err == nil {
			return
		}
		leave()
		if err == pool.ErrClosed {
			err = rocketmq.ErrClosed
		}
	}
	p.pipe.Refuse(func(_ send.Result, err error) { done(Result{}, err) }, err)
}

// intercepted is one asynchronous send on the pool's goroutine. What panics in
// an interceptor is the send's error.
func (p *Producer) intercepted(ctx context.Context, m *rocketmq.Message, o send.Options) (res Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = Result{}, &rocketmq.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return p.intercept(func(ctx context.Context, m *rocketmq.Message) (Result, error) {
		if !p.lingers {
			return p.sendOne(ctx, m, o)
		}
		type outcome struct {
			res send.Result
			err error
		}
		ch := make(chan outcome, 1)
		p.pipe.SendAsync(ctx, m, o, func(r send.Result, err error) { ch <- outcome{r, err} })
		out := <-ch
		return result(out.res), out.err
	})(ctx, m)
}

// interceptBatch goes through the interceptors of one message after the other,
// each inside of the one before, sends what they pass on, and comes back with
// the results.
func (p *Producer) interceptBatch(ctx context.Context, ms []*rocketmq.Message, opts []SendOption) ([]Result, error) {
	b := nested{
		p: p, opts: options(opts), in: ms,
		res: make([]Result, len(ms)), errs: make([]error, len(ms)),
	}
	b.from(ctx, 0)
	if b.refused != nil {
		return nil, b.refused
	}
	return b.res, batchError(b.errs)
}

type nested struct {
	p       *Producer
	opts    send.Options
	in      []*rocketmq.Message
	out     []*rocketmq.Message // what is sent
	sent    []Result
	sentErr []error
	refused error // nothing was sent

	res  []Result
	errs []error
}

// from handles the messages from i on.
func (b *nested) from(ctx context.Context, i int) {
	if i == len(b.in) {
		b.send(ctx)
		return
	}
	passed := false
	b.res[i], b.errs[i] = b.p.intercept(func(ctx context.Context, m *rocketmq.Message) (Result, error) {
		if passed {
			return Result{}, fmt.Errorf("%w: an interceptor cannot send a message of a batch twice", rocketmq.ErrInvalidMessage)
		}
		passed = true
		k := len(b.out)
		b.out = append(b.out, m)
		b.from(ctx, i+1)
		if b.refused != nil {
			return Result{}, b.refused
		}
		return b.sent[k], b.sentErr[k]
	})(ctx, b.in[i])
	if !passed {
		b.from(ctx, i+1)
	}
}

func (b *nested) send(ctx context.Context) {
	if len(b.out) == 0 && len(b.in) > 0 {
		return // the interceptors have seen to all of it
	}
	b.sent = make([]Result, len(b.out))
	b.sentErr, b.refused = b.p.pipe.SendBatch(ctx, b.out, b.opts, func(i int, r send.Result) { b.sent[i] = result(r) })
	if b.sentErr == nil {
		b.sentErr = make([]error, len(b.out))
	}
}
