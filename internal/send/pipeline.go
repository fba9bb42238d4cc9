package send

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// Config is what a [Pipeline] is made of.
type Config struct {
	Handle     *bridge.Handle
	Group      string
	Total      time.Duration          // for a send with all its attempts
	Attempt    time.Duration          // for one attempt
	Retries    int                    // attempts after the first
	Selector   selector.QueueSelector // nil: by sharding key, else in turn
	AutoCreate int                    // queues to ask for when a topic does not exist; 0: such sends fail
	WeakAck    bool                   // stored but not flushed or replicated in time is a success
}

// Target says where one send goes. The zero value leaves it to the pipeline.
type Target struct {
	Queue    rocketmq.Queue // used if Fixed
	Fixed    bool
	Selector selector.QueueSelector // used if not nil and not Fixed
}

// Pipeline sends the messages of one producer. All methods are safe for
// concurrent use.
type Pipeline struct {
	cfg    Config
	rt     *client.Runtime
	log    *slog.Logger
	hooks  []rocketmq.HookSend
	topics topics
	faults faults
	gate   gate

	group      []byte
	signer     wire.Signer
	encoding   wire.Encoding
	autoQueues int32

	register   sync.Once
	unregister func(ctx context.Context) error
	stopRoutes func()
	attempts   sync.Pool // *attempt
}

// New returns a pipeline. It does no I/O.
func New(cfg Config) *Pipeline {
	rt := cfg.Handle.Runtime
	p := &Pipeline{
		cfg:        cfg,
		rt:         rt,
		log:        cfg.Handle.Logger,
		group:      []byte(rt.Wrap(cfg.Group)),
		signer:     rt.Signer(),
		encoding:   rt.Encoding(),
		autoQueues: defaultTopicQueues,
	}
	if cfg.AutoCreate > 0 {
		p.autoQueues = int32(cfg.AutoCreate)
	}
	for _, h := range cfg.Handle.Hooks {
		if h, ok := h.(rocketmq.HookSend); ok {
			p.hooks = append(p.hooks, h)
		}
	}
	p.gate.init()
	p.attempts.New = func() any { return newAttempt(p) }
	p.stopRoutes = rt.OnRouteChange(func(topic string, _, _ *client.Route) { p.topics.outdated(topic) })
	return p
}

// defaultTopicQueues is what Java clients ask for (defaultTopicQueueNums).
const defaultTopicQueues = 4

// Send sends one message and waits for the answer. See producer.Producer.Send.
func (p *Pipeline) Send(ctx context.Context, m *rocketmq.Message, t Target) (Result, error) {
	if !p.gate.enter() {
		return Result{}, rocketmq.ErrClosed
	}
	defer p.gate.leave()
	if err := m.Validate(); err != nil {
		return Result{}, err
	}
	s := sending{p: p, m: m, target: t, start: time.Now()}
	s.deadline = s.start.Add(p.cfg.Total)
	if d, ok := ctx.Deadline(); ok && d.Before(s.deadline) {
		s.deadline = d
	}
	res, err := s.run(ctx)
	if p.hooks != nil {
		s.report(ctx, res, err)
	}
	return res, err
}

// Queues are the queues a message to topic can go to, in the order selectors
// get them.
func (p *Pipeline) Queues(ctx context.Context, topic string) ([]rocketmq.Queue, error) {
	if !p.gate.enter() {
		return nil, rocketmq.ErrClosed
	}
	defer p.gate.leave()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Total)
	defer cancel()
	_, tb, err := p.table(ctx, topic)
	if err != nil {
		return nil, err
	}
	return append([]rocketmq.Queue(nil), tb.queues...), nil
}

// Close lets no new sends in, waits for those under way and leaves the
// producer group. When ctx ends first, sends under way go on to their own
// deadline.
func (p *Pipeline) Close(ctx context.Context) error {
	err := p.gate.close(ctx)
	p.stopRoutes()
	p.register.Do(func() {}) // never registered: nothing to undo
	if p.unregister != nil {
		err = errors.Join(err, bridge.PublicError(p.unregister(ctx)))
	}
	return err
}

// announce makes the producer's group known to brokers, with the first send.
func (p *Pipeline) announce() {
	p.register.Do(func() {
		p.unregister = p.rt.RegisterProducer(string(p.group), client.ProducerHooks{})
	})
}
