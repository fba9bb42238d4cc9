package producer

import (
	"context"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// SendAsync sends one message without waiting for the answer. It returns at
// once unless the window is full ([WithInflight]) or the connection takes no
// more: then it waits for room, within the total timeout. Attempts, deadlines
// and errors are those of [Producer.Send].
//
// done is called exactly once, also for a message that is refused or if the
// producer is closed, and never on the caller's goroutine. Callbacks of one
// producer run one after another (with interceptors up to 64 at a time) and must
// not block: meanwhile no other callback runs and the window fills. A callback may send, but if the window is
// full then, it waits for room that only comes when it has returned, until the
// timeout. Until done is called the message must not be changed.
//
// ctx limits waiting for room, route and connection, further attempts, and with
// its deadline the whole. A request that is under way when ctx is cancelled is
// waited for: its answer tells what became of the message.
func (p *Producer) SendAsync(ctx context.Context, m *rocketmq.Message, done func(Result, error), opts ...SendOption) {
	if p.intercept != nil {
		p.interceptAsync(ctx, m, done, opts)
		return
	}
	p.pipe.SendAsync(ctx, m, options(opts), func(r send.Result, err error) { done(result(r), err) })
}

// SendOneway sends one message and asks for no answer. nil means that it was
// handed to a connection, not that it was stored; for logs and metrics that may
// be lost. It blocks until there is a route, a connection and room in its
// output, within the total timeout; other brokers are tried as long as nothing
// was handed over. [Producer.Flush] waits until it is written.
func (p *Producer) SendOneway(ctx context.Context, m *rocketmq.Message, opts ...SendOption) error {
	if p.intercept != nil {
		o := options(opts)
		_, err := p.intercept(func(ctx context.Context, m *rocketmq.Message) (Result, error) {
			return Result{}, p.pipe.SendOneway(ctx, m, o)
		})(ctx, m)
		return err
	}
	return p.pipe.SendOneway(ctx, m, options(opts))
}

// Flush sends what [WithLinger] holds back and waits until all asynchronous
// sends that began before it have ended, their callbacks included, and one-way
// messages are written. It returns early with an error when ctx ends. It must
// not be called from a callback.
func (p *Producer) Flush(ctx context.Context) error {
	return p.pipe.Flush(ctx)
}
