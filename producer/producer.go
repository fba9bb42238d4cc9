package producer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/msgtrace"
	"github.com/gorocketmq/rocketmq/internal/pool"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// Producer sends messages to any number of topics. All methods are safe for
// concurrent use.
type Producer struct {
	pipe      *send.Pipeline
	intercept Interceptor // nil: none
	workers   *pool.Pool  // of asynchronous sends with interceptors
	lingers   bool
	trace     *msgtrace.Tracer // nil: none
	release   func()

	closing  sync.Once
	closeErr error
}

// New returns a producer on c, which will close it if it is still open then.
// It does no I/O. Bad options are all reported at once, as
// rocketmq.ErrInvalidOption.
func New(c *rocketmq.Client, opts ...Option) (*Producer, error) {
	h := bridge.Of(c)
	if h == nil {
		return nil, errors.New("producer: the client is nil")
	}
	cfg := defaultConfig()
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &Producer{intercept: chain(cfg.interceptors), lingers: cfg.linger > 0}
	pipe := cfg.pipeline(h)
	if cfg.traceSet {
		p.trace = msgtrace.New(msgtrace.Config{Handle: h, Group: cfg.group, Role: msgtrace.Produce, Topic: cfg.trace})
		pipe.Observe = p.trace.Observe
	}
	p.pipe = send.New(pipe)
	if p.intercept != nil {
		var err error
		p.workers, err = pool.New(maxIntercepted, func(v any, stack []byte) {
			h.Logger.Error("panic in the callback of an asynchronous send", "panic", fmt.Sprint(v), "stack", string(stack))
		})
		if err != nil {
			return nil, fmt.Errorf("producer: %w", err)
		}
	}
	release, err := h.Adopt(p.end)
	if err != nil {
		return nil, fmt.Errorf("producer: %w", errors.Join(err, p.end(context.Background())))
	}
	p.release = release
	return p, nil
}

// Send sends one message and waits until the broker has stored it. The message
// is not changed, and not read any more once Send has returned.
//
// It blocks until the answer, the end of ctx or of the total timeout
// ([WithTimeout]), attempts on other brokers included. When ctx ends first, the
// message may have been stored all the same.
//
// Errors: rocketmq.ErrInvalidMessage for a message that is refused before
// sending (see Message.Validate), else a *rocketmq.SendError that lists the
// attempts and matches what happened: ErrTopicNotFound (with the
// *rocketmq.RouteError), ErrNoQueue, ErrNameServer, ErrBusy, ErrUnavailable,
// ErrConnection, ErrTimeout, a *rocketmq.BrokerError. ErrNotDurable comes with
// a complete Result. After Close it is ErrClosed.
func (p *Producer) Send(ctx context.Context, m *rocketmq.Message, opts ...SendOption) (Result, error) {
	if p.intercept != nil {
		o := options(opts)
		return p.intercept(func(ctx context.Context, m *rocketmq.Message) (Result, error) {
			return p.sendOne(ctx, m, o)
		})(ctx, m)
	}
	return p.sendOne(ctx, m, options(opts))
}

func (p *Producer) sendOne(ctx context.Context, m *rocketmq.Message, o send.Options) (Result, error) {
	r, err := p.pipe.Send(ctx, m, o)
	return result(r), err
}

// Queues are the queues that messages of a topic can go to now, sorted by
// broker and id. The slice is the caller's.
func (p *Producer) Queues(ctx context.Context, topic string) ([]rocketmq.Queue, error) {
	return p.pipe.Queues(ctx, topic)
}

// Close refuses further sends, sends what is held back, waits for what is under
// way, callbacks included, as long as ctx allows, and leaves the producer group. It may be called more than once and
// concurrently; all calls return the first one's error. The client stays open.
func (p *Producer) Close(ctx context.Context) error {
	p.closing.Do(func() {
		p.closeErr = p.end(ctx)
		p.release()
	})
	return p.closeErr
}

// end closes the insides.
func (p *Producer) end(ctx context.Context) error {
	err := p.pipe.Close(ctx)
	if p.workers != nil {
		err = errors.Join(err, p.workers.Close(ctx))
	}
	if p.trace != nil {
		p.trace.Close(ctx) // last: the sends have ended, and with them what is traced
	}
	return err
}
